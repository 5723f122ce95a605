"""The order of methods on each test set, ours beside the paper's: what can be compared where corpora differ."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tigs.report.tables import DIGITS, Block


@dataclass(frozen=True)
class Ranks:
    """Of the methods that have a figure in both; 1 is best, and equal figures as printed share the better rank."""

    ours: dict[str, int]
    paper: dict[str, int]
    agreement: float | None
    """Spearman's correlation of the two orders; None for fewer than three methods, or if one order has no differences."""


def make_ranks(block: Block) -> list[Ranks]:
    """One for each test set. The bare template fills nothing and has no rank."""
    lower = block.figure == "nll"
    columns = []
    for place in range(len(next(iter(block.rows.values())))):
        ours, paper = {}, {}
        for method, cells in block.rows.items():
            cell = cells[place]
            if method != "template" and cell.ours is not None and cell.paper is not None:
                ours[method], paper[method] = cell.ours, cell.paper
        columns.append(Ranks(rank(ours, lower=lower), rank(paper, lower=lower), _spearman(ours, paper)))
    return columns


def rank(figures: Mapping[str, float], *, lower: bool) -> dict[str, int]:
    """1 for the best; equal figures share the better rank."""
    printed = {method: round(value if lower else -value, DIGITS) for method, value in figures.items()}
    return {method: 1 + sum(other < value for other in printed.values()) for method, value in printed.items()}


def _spearman(first: Mapping[str, float], second: Mapping[str, float]) -> float | None:
    """Pearson's correlation of the mean ranks."""
    if len(first) < 3:
        return None
    a, b = _mean_ranks(first), _mean_ranks(second)
    middle = (len(a) + 1) / 2
    covariance = math.fsum((a[method] - middle) * (b[method] - middle) for method in a)
    spread = math.prod(math.sqrt(math.fsum((value - middle) ** 2 for value in ranks.values())) for ranks in (a, b))
    return covariance / spread if spread else None


def _mean_ranks(figures: Mapping[str, float]) -> dict[str, float]:
    """Equal figures, as printed, share the mean of their ranks."""
    printed = {method: round(value, DIGITS) for method, value in figures.items()}
    return {
        method: sum(other < value for other in printed.values())
        + (1 + sum(other == value for other in printed.values())) / 2
        for method, value in printed.items()
    }
