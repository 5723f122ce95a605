"""From a file of predictions to files of figures. Nothing but that file and the evaluator is needed, so figures can be made again.

Only BLEU against many references reads the prepared data too: the references are sentences of the test split.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tigs.config import Config
from tigs.data.corpora.pairs import hash_share
from tigs.data.prepare import prepare
from tigs.errors import EvaluationError
from tigs.evaluation.bleu import Statistics, bleu_of_sums, bleu_signature, bleu_statistics, sentence_bleu
from tigs.evaluation.bootstrap import Array, estimate, estimate_mean, ratio
from tigs.evaluation.fills import distinct, exact_match, template_failure, unk_share
from tigs.evaluation.likelihood import Evaluator
from tigs.evaluation.many_references import ManyReferences
from tigs.evaluation.metrics import (
    FORMAT_VERSION,
    Figure,
    Metrics,
    Sentences,
    sentences_text,
    text_hash,
    write_metrics,
)
from tigs.inference.predictions import Header, Prediction, PredictionFile, read_predictions
from tigs.inference.required import checkpoint_path

MAX_REFERENCES = 10_000
TEMPLATE = "template"


def evaluate(config: Config, path: Path) -> Metrics:
    """Compute and write the figures of one prediction file.

    Args:
        config: says where the evaluator stands, where figures go, how many sentences count (`eval.limit`) and, for a task
            without contexts, where the data is.
        path: of the predictions.

    Raises:
        EvaluationError: if predictions and configuration are not about the same thing.
        PredictionError: if the file is damaged.
        CheckpointError: if there is no evaluator.
    """
    whole = read_predictions(path)
    # An earlier command may have filled more; all methods are compared on the same first sentences.
    file = replace(whole, predictions=whole.predictions[: config.eval.limit])
    _require_same_experiment(config, file, path)
    # A sentence with holes has no likelihood.
    evaluator = None if file.header.method == TEMPLATE else _load_evaluator(config, file.header, path)
    references = (
        None if any(prediction.context for prediction in file.predictions) else _references(config, file.header)
    )
    bleu = bleu_by_scope(file.predictions, references)
    figures = _bleu_figures(bleu)
    nll = None
    if evaluator is not None:
        contexts = [prediction.context for prediction in file.predictions]
        nll = tuple(evaluator.score(contexts, [prediction.sentence for prediction in file.predictions]))
        figures |= _nll_figures(nll) | _method_figures(file.predictions, evaluator)
    sentences = Sentences(
        ids=tuple(prediction.id for prediction in file.predictions),
        nll=nll,
        bleu={scope: tuple(map(tuple, statistics.tolist())) for scope, statistics in bleu.items()},
    )
    metrics = _describe(file, figures, sentences, evaluator, references)
    write_metrics(Path(config.output_dir), metrics, sentences)
    return metrics


def bleu_by_scope(predictions: Sequence[Prediction], references: ManyReferences | None) -> dict[str, Statistics]:
    """What each BLEU is computed from: over `x ⊕ y` (the paper's for tasks with a context), over `y`, against many references."""
    contexts = [prediction.context for prediction in predictions]
    filled = [prediction.sentence for prediction in predictions]
    originals = [prediction.reference for prediction in predictions]
    scopes = {
        "bleu_xy": bleu_statistics(_joined(contexts, filled), _joined(contexts, originals)),
        "bleu_y": bleu_statistics(filled, originals),
    }
    return scopes if references is None else scopes | {"bleu_references": references.statistics(filled)}


def mean_trace(predictions: Sequence[Prediction]) -> tuple[float, ...]:
    """The method's own NLL per token at the start and after each round; a sentence that stopped keeps its last value."""
    traces = [prediction.trace for prediction in predictions]
    if not all(traces):
        return ()
    n_rounds = max(map(len, traces))
    padded = np.array([(*trace, *[trace[-1]] * (n_rounds - len(trace))) for trace in traces])  # (sentences, rounds + 1)
    return tuple(round(float(nll), 9) for nll in padded.sum(axis=0) / _n_tokens(predictions).sum())


def _joined(contexts: Sequence[tuple[str, ...]], sentences: Sequence[tuple[str, ...]]) -> list[tuple[str, ...]]:
    return [context + sentence for context, sentence in zip(contexts, sentences, strict=True)]


def _n_tokens(predictions: Sequence[Prediction]) -> Array:
    """(sentences) with `</s>`."""
    return np.array([len(prediction.template) + 1.0 for prediction in predictions])


def _bleu_figures(bleu: dict[str, Statistics]) -> dict[str, Figure]:
    corpus = {scope: estimate(statistics, bleu_of_sums) for scope, statistics in bleu.items()}
    means = {
        f"{scope}_sentence": estimate_mean(sentence_bleu(statistics))
        for scope, statistics in bleu.items()
        if scope != "bleu_references"
    }
    return corpus | means


def _nll_figures(nll: Sequence[Sequence[float]]) -> dict[str, Figure]:
    per_sentence = [(math.fsum(tokens), len(tokens)) for tokens in nll]
    return {
        "nll": estimate(per_sentence),
        "nll_sentence": estimate_mean([total for total, _ in per_sentence]),
        "perplexity": estimate(per_sentence, lambda sums: np.exp(ratio(sums))),
    }


def _method_figures(predictions: Sequence[Prediction], evaluator: Evaluator) -> dict[str, Figure]:
    """What the method says about itself, and what it put into the blanks."""
    figures: dict[str, Figure | None] = {
        "own_nll": _per_token(predictions, [prediction.nll for prediction in predictions]),
        "forward_nll": _per_token(predictions, [prediction.forward_nll for prediction in predictions]),
        "unk_share": unk_share(predictions),
        "exact_match": exact_match(predictions),
        "distinct_1": distinct(predictions, 1),
        "distinct_2": distinct(predictions, 2),
        "template_failure": template_failure(predictions, evaluator.vocabulary),
        "model_steps": estimate_mean([prediction.model_steps for prediction in predictions]),
        "rounds": estimate_mean([prediction.rounds for prediction in predictions]),
        "seconds": estimate_mean([prediction.seconds for prediction in predictions]),
    }
    return {name: figure for name, figure in figures.items() if figure is not None}


def _per_token(predictions: Sequence[Prediction], totals: Sequence[float | None]) -> Figure | None:
    known = [total for total in totals if total is not None]
    if len(known) < len(predictions):
        return None
    return estimate(np.stack([np.array(known), _n_tokens(predictions)], axis=1))


def _load_evaluator(config: Config, header: Header, path: Path) -> Evaluator:
    checkpoint = checkpoint_path(config, "evaluator")
    evaluator = Evaluator.load(checkpoint, accelerator=config.trainer.accelerator)
    if (evaluator.task, evaluator.corpus) != (header.task, header.corpus):
        raise EvaluationError(
            f"{checkpoint}: an evaluator for {evaluator.task} ({evaluator.corpus}) cannot judge {path}, which is "
            f"{header.task} ({header.corpus})",
            remedy="Train an evaluator on the same corpus, or correct output_dir",
        )
    return evaluator


def _references(config: Config, header: Header) -> ManyReferences:
    """Of a task without contexts: sentences of the test split, picked by hash, hence the same for every method."""
    prepared = prepare(config)
    test_set = prepared.summary["test_sets"].get(header.set_name, {"hash": None})
    if test_set["hash"] != header.test_set_hash:
        raise EvaluationError(
            f"{prepared.folder}: its test set {header.set_name} is not the one of the predictions",
            remedy="Use the data.* and test_sets.* settings of the predictions, or run the method again",
        )
    targets = sorted(prepared.split("test")["target"], key=lambda text: (hash_share(text), text))
    return ManyReferences([text.split(" ") for text in targets[:MAX_REFERENCES]])


def _require_same_experiment(config: Config, file: PredictionFile, path: Path) -> None:
    header = file.header
    if (header.task, header.profile) != (config.task.name, config.profile):
        raise EvaluationError(
            f"{path}: predictions for task={header.task} profile={header.profile}, "
            f"the settings are for task={config.task.name} profile={config.profile}",
            remedy=f"Use task={header.task} profile={header.profile}",
        )
    if not file.predictions:
        raise EvaluationError(f"{path}: holds no predictions", remedy="Run `make eval` for this method again")
    for number, prediction in enumerate(file.predictions, start=2):
        problem = _problem(prediction)
        if problem:
            raise EvaluationError(
                f"{path} line {number}: {problem}", remedy="Delete the file and run `make eval` for this method again"
            )


def _problem(prediction: Prediction) -> str | None:
    if len(prediction.template) != len(prediction.reference):
        return f"{len(prediction.template)} tokens in the template, {len(prediction.reference)} in the reference"
    numbers = (prediction.nll, prediction.forward_nll, prediction.seconds, *prediction.trace)
    if not all(math.isfinite(number) for number in numbers if number is not None):
        return "an NLL or a time that is no number"
    return None


def _describe(
    file: PredictionFile,
    figures: dict[str, Figure],
    sentences: Sentences,
    evaluator: Evaluator | None,
    references: ManyReferences | None,
) -> Metrics:
    header = file.header
    return Metrics(
        format_version=FORMAT_VERSION,
        task=header.task,
        profile=header.profile,
        corpus=header.corpus,
        method=header.method,
        set_name=header.set_name,
        strategy=header.strategy,
        ratio=header.ratio,
        n=len(file.predictions),
        test_set_hash=header.test_set_hash,
        figures=figures,
        n_references=None if references is None else references.n_references,
        bleu_signature=bleu_signature(),
        trace=mean_trace(file.predictions),
        evaluator=None if evaluator is None else evaluator.about,
        checkpoints=header.checkpoints,
        config=header.config,
        search_seconds=header.seconds,
        devices=header.devices,
        git_revision=header.git_revision,
        sentences_hash=text_hash(sentences_text(sentences)),
    )
