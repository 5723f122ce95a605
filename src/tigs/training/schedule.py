"""The learning rate over a training, as a factor of the configured one."""

from __future__ import annotations

_HALVINGS = 4


def learning_rate_factor(step: int, *, total_steps: int, warmup_steps: int) -> float:
    """Rises over the warm-up, then 1, then halved four times over the last third ("luong234", as the original code)."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    into_last_third = 3 * step - 2 * total_steps
    if into_last_third < 0:
        return 1.0
    return 0.5 ** min(1 + into_last_third * _HALVINGS // total_steps, _HALVINGS)
