"""The figures of the paper: Table 1 (NLL and BLEU of every method) and Table 2 (ranks given by people), as printed.

Table 1 prints TIGS in bold for every NLL, but at 75 % random of `aprc` Mask-Self-attn (2.448) is below TIGS (2.451). What is
best is therefore computed from the figures here, not copied from the paper's bold type.
"""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

PAPER_SENTENCES = 5000
"""Per test set, in every cell of Table 1."""


def paper_figures(task: str, figure: str) -> dict[str, dict[str, float]]:
    """Table 1: method -> test set -> figure.

    Args:
        task: `dialog`, `poetry` or `aprc`.
        figure: `nll` (per token) or `bleu` (0 to 1).
    """
    return {method: dict(cells) for (a, b, method), cells in _table_1().items() if (a, b) == (task, figure)}


def paper_sets() -> list[str]:
    """The six test sets of Table 1, in its order."""
    return list(next(iter(_table_1().values())))


def paper_human_scores(task: str) -> dict[str, float]:
    """Table 2: mean score of each method: the best of four fills gets 4, the worst 1; 50 instances, ten judges."""
    return {row["method"]: float(row[task]) for row in _rows("paper_table_2.csv")}


@cache
def _table_1() -> dict[tuple[str, str, str], dict[str, float]]:
    """(task, figure, method) -> test set -> value."""
    table = {}
    for row in _rows("paper_table_1.csv"):
        key = row.pop("task"), row.pop("figure"), row.pop("method")
        table[key] = {name: float(value) for name, value in row.items()}
    return table


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("tigs.report") / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
