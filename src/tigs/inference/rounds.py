"""What the methods that go round have in common: when a sentence stops, and the answer from all that was seen."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from tigs.inference.interfaces import Alternative, FillResult

Seen = dict[tuple[int, ...], float]
"""Fills of one sentence, with what the method minimises."""


def go_round(visit: Callable[[Tensor], Tensor], blanks: Tensor, *, max_rounds: int, patience: int) -> None:
    """Visit sentences until they stay the same.

    Args:
        visit: does a round for the sentences (active) and returns (active) which of them changed.
        blanks: (batch, longest) true at blanks; a sentence without any is never visited.
        max_rounds: T.
        patience: a sentence that did not change for so many rounds leaves the batch.
    """
    active = blanks.any(dim=1).nonzero().squeeze(1)  # (active) into batch
    unchanged = blanks.new_zeros(len(blanks), dtype=torch.long)  # (batch) rounds without a change
    for _ in range(max_rounds):
        if not len(active):
            return
        changed = visit(active)  # (active)
        unchanged[active] = torch.where(changed, 0, unchanged[active] + 1)
        active = active[unchanged[active] < patience]


def n_best_of(seen: Seen, n_best: int) -> Seen:
    """The best of them, best first."""
    return dict(sorted(seen.items(), key=lambda item: item[1])[:n_best])


def nth_best(seen: Seen, n_best: int) -> float:
    """What the last of the n best costs; inf if there are fewer."""
    return sorted(seen.values())[n_best - 1] if len(seen) >= n_best else float("inf")


def best_seen(
    seen: Sequence[Seen], traces: Sequence[Sequence[float]], steps: Tensor, *, n_best: int
) -> list[FillResult]:
    """The best fill of every sentence and the next ones as alternatives; `traces` start before the first round."""
    results = []
    for fills, trace, n_steps in zip(seen, traces, steps.tolist(), strict=True):
        alternatives = tuple(Alternative(fill, nll) for fill, nll in n_best_of(fills, n_best).items())
        results.append(
            FillResult(
                alternatives[0].fill,
                alternatives[0].nll,
                tuple(trace),
                rounds=len(trace) - 1,
                model_steps=n_steps,
                alternatives=alternatives,
            )
        )
    return results
