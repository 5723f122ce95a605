"""Where another method is ahead of TIGS, and where TIGS left the beam's answer alone."""

from __future__ import annotations

import pytest

from tigs.evaluation.evaluate import evaluate
from tigs.evaluation.standing import ahead_of_tigs, paper_bleu, unchanged_share


@pytest.fixture
def poetry(experiment):
    return experiment("poetry")


def test_a_rival_is_named_for_each_figure_in_which_it_is_better_and_for_no_other(poetry, predicted):
    tigs = evaluate(poetry, predicted(poetry, "tigs", skill=0.2))
    better = evaluate(poetry, predicted(poetry, "birnn-gsn", skill=0.9))
    worse = evaluate(poetry, predicted(poetry, "seq2seq-f", skill=0.0))
    for figure, sign in (("bleu_xy", 1), ("bleu_y", 1), ("nll", -1), ("forward_nll", -1)):
        expected = {
            other.method
            for other in (better, worse)
            if sign * other.figures[figure].value > sign * tigs.figures[figure].value
        }
        assert {rival.method for rival in ahead_of_tigs([worse, tigs, better], figure)} == expected
    assert [rival.method for rival in ahead_of_tigs([tigs, better, worse], "bleu_y")] == ["birnn-gsn"]
    assert ahead_of_tigs([better, worse], "bleu_y") == []


def test_the_share_of_unchanged_answers_counts_templates(poetry, predicted):
    beam = predicted(poetry, "seq2seq-f", skill=1.0)
    changed = []

    def change(prediction):
        changed.append(len(changed) < 10)
        return {"fill": ("，", *prediction.reference[1:])[: len(prediction.fill)]} if changed[-1] else {}

    tigs = predicted(poetry, "tigs", skill=1.0, change=change)
    assert unchanged_share(beam, beam) == 1
    assert unchanged_share(tigs, beam) == pytest.approx(1 - 10 / len(changed), abs=2 / len(changed))


def test_the_papers_bleu_depends_on_whether_there_is_a_context(experiment, predicted):
    for task, figure in (("poetry", "bleu_xy"), ("aprc", "bleu_references")):
        config = experiment(task)
        assert paper_bleu([evaluate(config, predicted(config, "tigs"))]) == figure
