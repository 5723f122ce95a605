"""The paper's figures are the paper's: read again from its LaTeX source where that is at hand, and spot-checked everywhere."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tigs.config import METHODS, TASKS
from tigs.report.methods import LABELS
from tigs.report.paper import paper_figures, paper_human_scores, paper_sets

SETS = ["random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75"]
NAMES = {name: method for method, name in LABELS.items()} | {"TIGS (ours)": "tigs"}


@pytest.fixture(scope="module")
def source():
    path = os.environ.get("TIGS_PAPER")
    if not path:
        pytest.skip("TIGS_PAPER does not name the paper's LaTeX source")
    return Path(path).read_text(encoding="utf-8")


def numbers(line):
    return [float(value) for value in re.findall(r"(?<![\w.])\d\.\d{3}(?!\d)", line)]


def read_table_1(source):
    """(task, figure) -> method -> six figures, from the rows between `\\midrule` and `\\bottomrule`."""
    table, task, figure = {}, None, None
    for line in source.split(r"\midrule", 1)[1].split(r"\bottomrule")[0].splitlines():
        for name in TASKS:
            if re.search(rf"multirow.*{{{name}}}", line, re.IGNORECASE):
                task = name
        found = re.search(r"multirow.*\{(NLL|BLEU)\}", line)
        figure = found.group(1).lower() if found else figure
        values = numbers(line)
        if values:
            method = next(NAMES[name] for name in sorted(NAMES, key=len, reverse=True) if f"{name} " in line)
            table.setdefault((task, figure), {})[method] = values
    return table


def test_table_1_is_the_papers(source):
    table = read_table_1(source)
    assert len(table) == len(TASKS) * 2
    for (task, figure), rows in table.items():
        ours = {method: list(cells.values()) for method, cells in paper_figures(task, figure).items()}
        assert ours == rows
        assert len(rows) == {"nll": 8, "bleu": 9}[figure]


def test_table_2_is_the_papers(source):
    rows = source.split(r"Methods & Dialog & Poetry & APRC", 1)[1].split(r"\end{tabular}")[0].splitlines()
    table = {NAMES[line.split("&")[0].strip()]: numbers(line) for line in rows if numbers(line)}
    assert len(table) == 4
    columns = [paper_human_scores(task) for task in ("dialog", "poetry", "aprc")]
    assert {method: [column[method] for column in columns] for method in columns[0]} == table


@pytest.mark.parametrize(
    ("task", "figure", "method", "name", "value"),
    [
        ("poetry", "bleu", "template", "random-75", 0.508),
        ("poetry", "nll", "tigs", "random-25", 3.860),
        ("dialog", "nll", "seq2seq-f", "random-25", 3.573),
        ("dialog", "bleu", "mask-seq2seq", "middle-75", 0.662),
        ("aprc", "nll", "tigs", "middle-75", 1.913),
        ("aprc", "bleu", "seq2seq-fb", "middle-50", 0.887),
    ],
)
def test_spot_checks(task, figure, method, name, value):
    assert paper_figures(task, figure)[method][name] == value


def test_every_method_of_the_paper_has_six_figures_and_an_id_of_ours():
    assert paper_sets() == SETS
    for task in TASKS:
        for figure in ("nll", "bleu"):
            rows = paper_figures(task, figure)
            assert set(rows) == set(METHODS) - {"tigs-plus"} - ({"template"} if figure == "nll" else set())
            assert all(list(cells) == SETS for cells in rows.values())


def test_the_scores_of_four_ranks_add_up_to_ten():
    # 4 + 3 + 2 + 1 for every instance and judge, and so for the means, but for the paper's rounding.
    for task in TASKS:
        assert sum(paper_human_scores(task).values()) == pytest.approx(10, abs=0.0021)


def test_tigs_has_the_lowest_nll_of_the_paper_but_for_one_cell():
    lost = []
    for task in TASKS:
        rows = paper_figures(task, "nll")
        lost += [(task, name) for name in SETS if min(rows, key=lambda method: rows[method][name]) != "tigs"]
    assert lost == [("aprc", "random-75")]
