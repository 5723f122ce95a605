"""From prediction files to figures, each computed a second time here in the plainest way."""

from __future__ import annotations

import json
import math
import shutil
from dataclasses import replace
from pathlib import Path

import pytest
import sacrebleu

from tigs.data.prepare import prepare
from tigs.data.special import BLANK
from tigs.errors import CheckpointError, EvaluationError, PredictionError
from tigs.evaluation.evaluate import evaluate, mean_trace
from tigs.evaluation.likelihood import Evaluator
from tigs.evaluation.metrics import load_all, read_metrics, read_sentences, sentences_path
from tigs.inference.predictions import read_predictions
from tigs.inference.required import checkpoint_path

NLL = {"nll", "nll_sentence", "perplexity", "own_nll", "forward_nll"}
BLEU = {"bleu_xy", "bleu_y", "bleu_xy_sentence", "bleu_y_sentence"}
FILLS = {"unk_share", "exact_match", "distinct_1", "distinct_2"}
COSTS = {"model_steps", "rounds", "seconds"}


def sacrebleus(hypotheses, references):
    """References: one list for each hypothesis."""
    columns = list(zip(*references, strict=True))
    return sacrebleu.corpus_bleu(hypotheses, columns, tokenize="none", force=True).score / 100


def mean(values):
    values = list(values)
    return sum(values) / len(values)


@pytest.fixture
def poems(experiment, predicted):
    """Configuration, metrics and predictions of a made-up method."""
    config = experiment("poetry")
    path = predicted(config, change=lambda prediction: {"fill": ("<unk>", *prediction.fill[1:])})
    return config, evaluate(config, path), read_predictions(path).predictions


def test_every_figure_has_a_number_of_sentences_a_corpus_and_a_profile(poems):
    config, metrics, predictions = poems
    assert metrics.figures.keys() == NLL | BLEU | FILLS | COSTS
    assert (metrics.n, metrics.task, metrics.profile) == (len(predictions), "poetry", "small")
    assert metrics.corpus == prepare(config).summary["corpus"]
    assert (metrics.set_name, metrics.strategy, metrics.ratio) == ("random-50", "random", 0.5)
    assert metrics.test_set_hash == prepare(config).summary["test_sets"]["random-50"]["hash"]
    assert metrics.bleu_signature.startswith("nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:")
    assert metrics.checkpoints["forward"]["hash"] == "h"
    assert metrics.config["task"]["name"] == "poetry"


def test_every_figure_lies_in_its_interval(poems):
    for name, figure in poems[1].figures.items():
        # No share is above one, not even where every pair of words is another.
        assert figure.low < figure.value < figure.high or figure.value == figure.high == 1, name


def test_nll_is_that_of_the_filled_sentences_under_the_evaluator(poems):
    config, metrics, predictions = poems
    evaluator = Evaluator.load(checkpoint_path(config, "evaluator"))
    totals = [sum(evaluator.score([p.context], [p.sentence])[0]) for p in predictions]
    n_tokens = sum(len(p.sentence) + 1 for p in predictions)
    assert metrics.figures["nll"].value == pytest.approx(sum(totals) / n_tokens)
    assert metrics.figures["nll_sentence"].value == pytest.approx(mean(totals))
    for part in ("value", "low", "high"):
        perplexity = getattr(metrics.figures["perplexity"], part)
        assert perplexity == pytest.approx(math.exp(getattr(metrics.figures["nll"], part)))
    assert metrics.evaluator == evaluator.about
    # Of a fill that is right half of the time; the reference is likelier.
    reference = [sum(evaluator.score([p.context], [p.reference])[0]) for p in predictions]
    assert sum(reference) < sum(totals)


def test_what_the_method_reports_is_averaged(poems):
    _, metrics, predictions = poems
    n_tokens = sum(len(p.template) + 1 for p in predictions)
    expected = {
        "own_nll": sum(p.nll for p in predictions) / n_tokens,
        "forward_nll": sum(p.forward_nll for p in predictions) / n_tokens,
        "model_steps": mean(p.model_steps for p in predictions),
        "rounds": mean(p.rounds for p in predictions),
        "seconds": mean(p.seconds for p in predictions),
        "unk_share": len(predictions) / sum(len(p.fill) for p in predictions),
    }
    assert {name: metrics.figures[name].value for name in expected} == pytest.approx(expected)


def test_bleu_is_sacrebleus_over_both_scopes(poems):
    _, metrics, predictions = poems
    metric = sacrebleu.BLEU(tokenize="none", force=True, effective_order=True)
    for scope, with_context in (("bleu_xy", True), ("bleu_y", False)):
        hypotheses, references = [], []
        for p in predictions:
            context = p.context if with_context else ()
            hypotheses.append(" ".join(context + p.sentence))
            references.append(" ".join(context + p.reference))
        assert metrics.figures[scope].value == pytest.approx(sacrebleus(hypotheses, [[text] for text in references]))
        scores = [
            metric.sentence_score(one, [two]).score / 100 for one, two in zip(hypotheses, references, strict=True)
        ]
        assert metrics.figures[f"{scope}_sentence"].value == pytest.approx(mean(scores))
    assert metrics.figures["bleu_xy"].value > metrics.figures["bleu_y"].value + 0.1


def test_sentences_stand_beside_the_figures(poems):
    config, metrics, predictions = poems
    sentences = read_sentences(Path(config.output_dir), metrics)
    assert sentences.ids == tuple(p.id for p in predictions)
    assert [len(tokens) for tokens in sentences.nll] == [len(p.sentence) + 1 for p in predictions]
    n_tokens = sum(map(len, sentences.nll))
    assert sum(map(sum, sentences.nll)) / n_tokens == pytest.approx(metrics.figures["nll"].value, abs=1e-9)
    assert sentences.bleu.keys() == {"bleu_xy", "bleu_y"}
    assert load_all(Path(config.output_dir)) == [metrics]


def test_figures_made_again_are_the_same_to_the_last_digit(experiment, predicted):
    config = experiment("aprc")
    path = predicted(config)
    file = evaluate(config, path).path(Path(config.output_dir))
    before = [found.read_bytes() for found in (file, sentences_path(file))]
    shutil.rmtree(file.parent)
    evaluate(config, path)
    assert [found.read_bytes() for found in (file, sentences_path(file))] == before


def test_reviews_are_also_judged_against_the_test_split(experiment, predicted, monkeypatch):
    config = experiment("aprc")
    path = predicted(config)
    metrics = evaluate(config, path)
    assert metrics.figures.keys() == NLL | BLEU | FILLS | COSTS | {"bleu_references"}
    targets = prepare(config).split("test")["target"]
    assert metrics.n_references == len(targets) > 40
    predictions = read_predictions(path).predictions
    expected = sacrebleus([" ".join(p.sentence) for p in predictions], [list(targets)] * len(predictions))
    assert metrics.figures["bleu_references"].value == pytest.approx(expected)
    assert metrics.figures["bleu_references"].value > metrics.figures["bleu_y"].value
    # Without contexts the two scopes are one.
    assert metrics.figures["bleu_xy"] == metrics.figures["bleu_y"]
    # Fewer references, lower figure: the number must be stated.
    monkeypatch.setattr("tigs.evaluation.evaluate.MAX_REFERENCES", 30)
    fewer = evaluate(config, path)
    assert fewer.n_references == 30
    assert fewer.figures["bleu_references"].value < metrics.figures["bleu_references"].value


def test_reviews_need_the_data_that_the_predictions_were_made_with(experiment, predicted):
    config = experiment("aprc")
    path = predicted(config, test_set_hash="another")
    with pytest.raises(EvaluationError, match="not the one of the predictions"):
        evaluate(config, path)


def test_the_bare_template_has_bleu_alone_and_needs_no_model(experiment, predicted):
    config = experiment("poetry")
    shutil.rmtree(checkpoint_path(config, "evaluator").parent)
    metrics = evaluate(config, predicted(config, "template"))
    assert metrics.figures.keys() == BLEU
    assert (metrics.evaluator, metrics.trace) == (None, ())
    assert read_sentences(Path(config.output_dir), metrics).nll is None


def test_masked_models_may_fail_to_reproduce_a_template(experiment, predicted):
    config = experiment("dialog")

    def unforced(prediction):
        # Every template with an even id is reproduced, the others lose their last word.
        even = int(prediction.id, 16) % 2 == 0
        return {"unforced": prediction.sentence if even else prediction.sentence[:-1]}

    path = predicted(config, "mask-seq2seq", change=unforced)
    odd = mean(int(p.id, 16) % 2 for p in read_predictions(path).predictions)
    assert 0 < odd < 1
    assert evaluate(config, path).figures["template_failure"].value == pytest.approx(odd)


def test_the_trace_keeps_the_last_value_of_sentences_that_stopped(experiment, predicted):
    config = experiment("poetry")
    path = predicted(config)
    predictions = read_predictions(path).predictions
    assert len({len(p.trace) for p in predictions}) > 2
    n_tokens = sum(len(p.template) + 1 for p in predictions)
    longest = max(len(p.trace) for p in predictions)
    expected = [sum(p.trace[min(turn, len(p.trace) - 1)] for p in predictions) / n_tokens for turn in range(longest)]
    metrics = evaluate(config, path)
    assert metrics.trace == pytest.approx(tuple(expected))
    assert metrics.trace[-1] == pytest.approx(metrics.figures["own_nll"].value)


def test_a_method_that_goes_no_rounds_has_no_trace(experiment, predicted):
    config = experiment("poetry")
    path = predicted(config, change=lambda prediction: {"trace": ()})
    assert mean_trace(read_predictions(path).predictions) == ()


def test_a_method_without_an_nll_of_its_own_has_no_such_figure(experiment, predicted):
    config = experiment("poetry")
    metrics = evaluate(config, predicted(config, change=lambda prediction: {"nll": None}))
    assert metrics.figures.keys() == (NLL - {"own_nll"}) | BLEU | FILLS | COSTS


def test_one_sentence_is_enough(experiment, predicted):
    config = experiment("poetry")
    metrics = evaluate(config, predicted(config, limit=1))
    assert metrics.n == 1
    for figure in metrics.figures.values():
        assert figure.low == figure.value == figure.high


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        ({"task": "dialog"}, "task=dialog profile=small"),
        ({"profile": "cpu"}, "task=poetry profile=cpu"),
        ({"corpus": "another corpus"}, "another corpus"),
    ],
)
def test_predictions_of_something_else_are_refused(experiment, predicted, header, complaint):
    config = experiment("poetry")
    with pytest.raises(EvaluationError, match=complaint):
        evaluate(config, predicted(config, **header))


def test_of_a_longer_file_only_the_sentences_asked_for_count(experiment, predicted):
    config = experiment("poetry")
    shorter = evaluate(config, predicted(config, limit=7))
    limited = replace(config, eval=replace(config.eval, limit=7))
    assert evaluate(limited, predicted(config)) == shorter
    assert shorter.n == 7


def test_an_empty_file_is_refused(experiment, predicted):
    config = experiment("poetry")
    with pytest.raises(EvaluationError, match="no predictions"):
        evaluate(config, predicted(config, limit=0))


def test_a_damaged_file_is_refused_with_its_line(experiment, predicted):
    config = experiment("poetry")
    path = predicted(config)
    lines = path.read_text(encoding="utf-8").split("\n")
    path.write_text("\n".join([*lines[:7], lines[7][:40]]), encoding="utf-8")
    with pytest.raises(PredictionError, match="line 8"):
        evaluate(config, path)


def test_a_reference_of_another_length_is_refused_with_its_line(experiment, predicted):
    config = experiment("poetry")
    path = predicted(config, change=lambda prediction: {"reference": prediction.reference[1:]})
    with pytest.raises(EvaluationError, match="line 2"):
        evaluate(config, path)


@pytest.mark.parametrize("name", ["nll", "forward_nll", "seconds"])
def test_what_is_no_number_is_refused_with_its_line(experiment, predicted, name):
    config = experiment("poetry")
    path = predicted(config, change=lambda prediction: {name: math.inf})
    with pytest.raises(EvaluationError, match=r"line 2.*no number"):
        evaluate(config, path)
    assert load_all(Path(config.output_dir)) == []


def test_a_missing_evaluator_is_refused(experiment, predicted):
    config = experiment("poetry")
    shutil.rmtree(checkpoint_path(config, "evaluator").parent)
    with pytest.raises(CheckpointError, match="evaluator"):
        evaluate(config, predicted(config))


def test_the_file_is_json_that_anybody_can_read(poems):
    config, metrics, _ = poems
    path = metrics.path(Path(config.output_dir))
    values = json.loads(path.read_text(encoding="utf-8"), parse_constant=pytest.fail)
    assert values["figures"]["nll"].keys() == {"value", "low", "high"}
    assert BLANK not in path.read_text(encoding="utf-8")
    assert read_metrics(path) == metrics
