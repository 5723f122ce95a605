"""Ranks and their agreement, against values worked out by hand and by another formula."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.report.ranks import make_ranks, rank
from tigs.report.tables import Block, Cell, make_table


def block(ours, paper, figure="nll"):
    rows = {}
    for method in ours:
        rows[method] = [
            Cell(ours[method], None, None, paper.get(method), best=False, paper_best=False, like_tigs=False)
        ]
    return Block(figure, "", rows)


def test_the_best_is_first_and_equals_as_printed_share_a_rank():
    assert rank({"a": 3.1, "b": 2.9, "c": 3.0999, "d": 4.0}, lower=True) == {"a": 2, "b": 1, "c": 2, "d": 4}
    assert rank({"a": 0.1, "b": 0.3}, lower=False) == {"a": 2, "b": 1}


def test_only_methods_with_both_figures_are_ranked_and_never_the_template():
    ours = {"template": 0.1, "tigs": 0.9, "tigs-plus": 0.95, "birnn-gsn": 0.5, "seq2seq-f": None}
    paper = {"template": 0.2, "tigs": 0.8, "birnn-gsn": 0.85, "seq2seq-f": 0.4}
    (ranks,) = make_ranks(block(ours, paper, "bleu"))
    assert ranks.ours == {"tigs": 1, "birnn-gsn": 2}
    assert ranks.paper == {"tigs": 2, "birnn-gsn": 1}
    assert ranks.agreement is None


@given(st.permutations(range(8)))
def test_without_ties_agreement_is_spearmans_textbook_formula(order):
    names = [f"m{number}" for number in range(8)]
    (ranks,) = make_ranks(
        block({n: float(i) for i, n in enumerate(names)}, dict(zip(names, map(float, order), strict=True)))
    )
    squares = sum((place - other) ** 2 for place, other in enumerate(order))
    assert ranks.agreement == pytest.approx(1 - 6 * squares / (8 * 63))


def test_ties_count_with_their_mean_rank():
    # Ranks 1, 2.5, 2.5, 4 against 1, 2, 3, 4: by hand 4.5 / sqrt(4.5 * 5).
    (ranks,) = make_ranks(block({"a": 1.0, "b": 2.0, "c": 2.0, "d": 3.0}, {"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0}))
    assert ranks.agreement == pytest.approx(4.5 / (4.5 * 5) ** 0.5)


def test_no_agreement_is_claimed_where_all_figures_are_equal():
    (ranks,) = make_ranks(block(dict.fromkeys("abc", 1.0), {"a": 1.0, "b": 2.0, "c": 3.0}))
    assert ranks.agreement is None


def test_one_column_for_each_test_set(experiments):
    table = make_table(experiments["poetry"])
    for one in table.blocks:
        columns = make_ranks(one)
        assert len(columns) == len(table.sets)
        assert all(
            set(ranks.ours) == set(ranks.paper) == set(one.rows) - {"template", "tigs-plus"} for ranks in columns
        )
        for place, ranks in enumerate(columns):
            values = {method: round(one.rows[method][place].ours, 3) for method in ranks.ours}
            best = (min if one.figure == "nll" else max)(values.values())
            assert {m for m, r in ranks.ours.items() if r == 1} == {m for m, value in values.items() if value == best}
