"""Every method against TIGS, from files of figures alone."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tigs.errors import EvaluationError
from tigs.evaluation.compare import compare_all
from tigs.evaluation.evaluate import evaluate
from tigs.evaluation.metrics import load_all, read_comparisons
from tigs.inference.required import checkpoint_path


@pytest.fixture
def judged(experiment, predicted):
    """Figures of a good, an equal and a bad method beside TIGS."""

    def make(task):
        config = experiment(task)
        for method, skill in (("tigs", 0.5), ("seq2seq-f", 0.1), ("seq2seq-b", 0.9), ("template", 0)):
            evaluate(config, predicted(config, method, skill=skill))
        return config

    return make


def by_name(comparison):
    return {(difference.method, difference.figure): difference for difference in comparison.differences}


def test_differences_are_those_of_the_figures(judged):
    config = judged("poetry")
    folder = Path(config.output_dir)
    figures = {metrics.method: metrics.figures for metrics in load_all(folder)}
    (comparison,) = compare_all(folder)
    assert (comparison.task, comparison.profile, comparison.baseline) == ("poetry", "small", "tigs")
    differences = by_name(comparison)
    scored = {(method, figure) for method in ("seq2seq-f", "seq2seq-b") for figure in ("nll", "bleu_xy", "bleu_y")}
    assert differences.keys() == scored | {("template", "bleu_xy"), ("template", "bleu_y")}
    for (method, figure), difference in differences.items():
        expected = figures[method][figure].value - figures["tigs"][figure].value
        assert difference.value == pytest.approx(expected, abs=1e-8)
        assert difference.low < difference.value < difference.high
        assert (difference.n, difference.set_name) == (40, "random-50")
    assert read_comparisons(folder) == [comparison]


def test_what_is_better_or_worse_is_significant(judged):
    (comparison,) = compare_all(Path(judged("poetry").output_dir))
    differences = by_name(comparison)
    for method, sign in (("seq2seq-f", 1), ("seq2seq-b", -1)):
        # Lower is better for the one, higher for the other.
        assert sign * differences[method, "nll"].value > 0 > sign * differences[method, "bleu_y"].value
        assert all(differences[method, figure].is_significant for figure in ("nll", "bleu_xy", "bleu_y"))


def test_the_same_answers_are_no_difference(experiment, predicted):
    config = experiment("poetry")
    fills = {}

    def remember(prediction):
        return {"fill": fills.setdefault(prediction.id, prediction.fill)}

    for method in ("tigs", "seq2seq-fb"):
        evaluate(config, predicted(config, method, change=remember))
    (comparison,) = compare_all(Path(config.output_dir))
    for difference in comparison.differences:
        assert (difference.value, difference.p_value, difference.is_significant) == (0, 1, False)


def test_reviews_are_compared_against_many_references_too(judged):
    (comparison,) = compare_all(Path(judged("aprc").output_dir))
    assert by_name(comparison)["seq2seq-b", "bleu_references"].is_significant


def test_neither_evaluator_nor_predictions_are_needed(judged, tmp_path):
    config = judged("poetry")
    (before,) = compare_all(Path(config.output_dir))
    shutil.rmtree(checkpoint_path(config, "evaluator").parents[1])
    shutil.rmtree(Path(config.output_dir) / "poetry" / "small" / "predictions")
    shutil.move(Path(config.output_dir), tmp_path / "elsewhere")
    assert compare_all(tmp_path / "elsewhere") == [before]


def test_the_order_of_templates_does_not_matter(experiment, predicted):
    config = experiment("poetry")
    evaluate(config, predicted(config))
    path = predicted(config, "seq2seq-f", skill=0.45)
    evaluate(config, path)
    (before,) = compare_all(Path(config.output_dir))
    header, *lines = path.read_text(encoding="utf-8").splitlines()
    path.write_text("\n".join([header, *reversed(lines)]) + "\n", encoding="utf-8")
    evaluate(config, path)
    assert compare_all(Path(config.output_dir)) == [before]


def test_every_cell_is_compared_by_itself(experiment, predicted):
    config = experiment("poetry")
    for name in ("random-50", "middle-50"):
        evaluate(config, predicted(config, name=name))
    evaluate(config, predicted(config, "seq2seq-f", name="middle-50"))
    (comparison,) = compare_all(Path(config.output_dir))
    assert {difference.set_name for difference in comparison.differences} == {"middle-50"}


def test_without_tigs_there_is_nothing_to_compare_with(experiment, predicted):
    config = experiment("poetry")
    evaluate(config, predicted(config, "seq2seq-f"))
    (comparison,) = compare_all(Path(config.output_dir))
    assert comparison.differences == ()


def test_other_templates_of_the_same_set_are_refused(experiment, predicted):
    config = experiment("poetry")
    evaluate(config, predicted(config))
    path = predicted(config, "seq2seq-f", change=lambda prediction: {"id": prediction.id[::-1]})
    evaluate(config, path)
    with pytest.raises(EvaluationError, match="different templates"):
        compare_all(Path(config.output_dir))


def test_one_profile_that_must_not_be_compared_leaves_the_others(experiment, predicted):
    config = experiment("poetry")
    folder = Path(config.output_dir)
    for method in ("tigs", "seq2seq-f"):
        evaluate(config, predicted(config, method))
    good = folder / "poetry" / "small" / "metrics"
    bad = folder / "aprc" / "small" / "metrics" / "tigs" / "random-50.json"
    bad.parent.mkdir(parents=True)
    bad.write_text("{", encoding="utf-8")
    (comparison,) = compare_all(folder, task="poetry", profile="small")
    (good / "comparison.json").unlink()
    with pytest.raises(EvaluationError, match="cannot be read"):
        compare_all(folder)
    assert read_comparisons(folder) == [comparison]
    assert compare_all(folder, task="poetry", profile="cpu") == []


def test_mixed_test_sets_are_refused(experiment, predicted):
    config = experiment("poetry")
    evaluate(config, predicted(config))
    evaluate(config, predicted(config, "seq2seq-f", test_set_hash="another"))
    with pytest.raises(EvaluationError, match="test set"):
        compare_all(Path(config.output_dir))
