"""The learning rate over a training, as a factor of the configured one."""

from __future__ import annotations

_HALVINGS = 4
_DECAY_START = 2 / 3


def learning_rate_factor(step: int, *, total_steps: int, warmup_steps: int) -> float:
    """Rises over the warm-up, then 1, then halved four times over the last third ("luong234", as the original code)."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = step / total_steps
    if done < _DECAY_START:
        return 1.0
    n_halvings = 1 + int((done - _DECAY_START) / (1 - _DECAY_START) * _HALVINGS)
    return 0.5 ** min(n_halvings, _HALVINGS)
