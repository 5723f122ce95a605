"""Predictions and figures of invented searches on the built-in sample, written by the same code that writes real ones.

Only the choice of words and their NLL are invented; every figure is computed from them, so that files agree with each other.
"""

from __future__ import annotations

import math
import random
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import pytest

from tigs.composition import compose, to_plain
from tigs.config import METHODS, DataConfig, TestSetConfig
from tigs.data.corpora.sample import read_sample
from tigs.data.special import BLANK
from tigs.data.test_sets import make_test_sets
from tigs.evaluation import bootstrap
from tigs.evaluation.bleu import bleu_of_sums, bleu_signature, bleu_statistics
from tigs.evaluation.bootstrap import estimate, estimate_mean
from tigs.evaluation.many_references import ManyReferences
from tigs.evaluation.metrics import FORMAT_VERSION, Metrics, Sentences, sentences_text, text_hash, write_metrics
from tigs.inference.predictions import Header, Prediction, write_predictions

CORPUS = "built-in sample corpus"
# How often a method finds the word that stood there, and what a sentence costs it.
SKILL = {
    "tigs": (0.60, 9000, 0.2),
    "tigs-plus": (0.64, 900, 0.02),
    "birnn-gsn": (0.55, 2500, 0.05),
    "birnn-bibs": (0.45, 4000, 0.08),
    "mask-selfattn": (0.50, 60, 0.004),
    "mask-seq2seq": (0.48, 60, 0.003),
    "seq2seq-fb": (0.42, 120, 0.006),
    "seq2seq-f": (0.35, 60, 0.003),
    "seq2seq-b": (0.30, 60, 0.003),
    "template": (0.0, 0, 0.0),
}


@contextmanager
def few_resamples():
    """A tenth of the time for intervals and comparisons; their meaning is tested where they are made."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bootstrap, "N_RESAMPLES", 100)
        bootstrap.resamples.cache_clear()
        yield
    bootstrap.resamples.cache_clear()


def write_experiment(root, task, *, profile="small", methods=METHODS, skip=(), n=40, words=(), pairs=None):
    """Files below `root` for every method and the six test sets, but for the (method, set) in `skip`.

    Args:
        root: what `output_dir` names.
        task: one of the three.
        profile: part of the path.
        methods: which to invent.
        skip: pairs of method and test set to leave out.
        n: sentences per test set.
        words: settings to note in the files.
        pairs: the (context, target) to use instead of the sample.
    """
    pairs = pairs or read_sample(task, DataConfig(sample_pairs=800)).splits["test"]
    sets = make_test_sets(pairs, TestSetConfig(size=n))
    vocabulary = sorted({word for pair in pairs for word in pair.target})
    for test_set in sets:
        for method in methods:
            if (method, test_set.name) not in skip:
                _write(Path(root), task, profile, method, test_set, vocabulary, [f"test_sets.size={n}", *words])


def _write(root, task, profile, method, test_set, vocabulary, words):
    generator = random.Random(f"{task} {method} {test_set.name}")
    predictions = [_predict(method, item, vocabulary, generator) for item in test_set.items]
    known = [f"method={method}"] if method in METHODS else []
    header = Header(
        format_version=1,
        task=task,
        profile=profile,
        corpus=CORPUS,
        method=method,
        strategy=test_set.strategy,
        ratio=test_set.ratio,
        n=len(predictions),
        test_set_hash=test_set.hash,
        checkpoints={},
        config=_config(task, profile, *known, *words),
        seconds=1.0,
        devices=1,
        git_revision=None,
    )
    write_predictions(root / task / profile / "predictions" / method / f"{test_set.name}.jsonl", header, predictions)
    nll = None if method == "template" else tuple(_token_nll(one, generator) for one in predictions)
    statistics = _bleu(predictions)
    sentences = Sentences(
        ids=tuple(one.id for one in predictions),
        nll=nll,
        bleu={scope: tuple(map(tuple, rows.tolist())) for scope, rows in statistics.items()},
    )
    write_metrics(root, _metrics(header, predictions, nll, statistics, sentences), sentences)


@cache
def _config(task, profile, *words):
    return to_plain(compose([f"task={task}", f"profile={profile}", *words]))


def _predict(method, item, vocabulary, generator):
    skill, steps, seconds = SKILL[method]
    fill = tuple(
        BLANK if method == "template" else word if generator.random() < skill else generator.choice(vocabulary)
        for word in item.reference_fill
    )
    n_tokens, rounds = len(item.reference) + 1, generator.randint(2, 5) if method.startswith(("tigs", "birnn")) else 0
    nll = None if method == "template" else 3.0 * n_tokens
    return Prediction(
        id=item.template.id,
        context=item.template.context,
        template=item.template.tokens,
        reference=item.reference,
        fill=fill,
        nll=nll,
        forward_nll=nll,
        trace=tuple((3 + 0.6 * math.exp(-number)) * n_tokens for number in range(rounds + 1)) if rounds else (),
        rounds=rounds,
        model_steps=int(steps * len(fill) * generator.uniform(0.5, 1.5)),
        seconds=seconds * len(fill) * generator.uniform(0.5, 1.5),
    )


def _token_nll(prediction, generator):
    """A word that is not the original one costs more, and so does the word behind it."""
    row, wrong = [], False
    for word, original in zip((*prediction.sentence, ""), (*prediction.reference, ""), strict=True):
        row.append(round(generator.gammavariate(2, 0.9) + 2.5 * (word != original) + 1.5 * wrong, 6))
        wrong = word != original
    return tuple(row)


def _bleu(predictions):
    x = [one.context for one in predictions]
    filled, originals = [one.sentence for one in predictions], [one.reference for one in predictions]
    scopes = {"bleu_y": bleu_statistics(filled, originals)}
    scopes["bleu_xy"] = bleu_statistics(
        [a + b for a, b in zip(x, filled, strict=True)], [a + b for a, b in zip(x, originals, strict=True)]
    )
    return scopes if any(x) else scopes | {"bleu_references": ManyReferences(originals).statistics(filled)}


def _metrics(header, predictions, nll, statistics, sentences):
    figures = {scope: estimate(rows, bleu_of_sums) for scope, rows in statistics.items()}
    if nll is not None:
        figures |= {
            "nll": estimate([(math.fsum(row), len(row)) for row in nll]),
            "nll_sentence": estimate_mean([math.fsum(row) for row in nll]),
            "model_steps": estimate_mean([one.model_steps for one in predictions]),
            "seconds": estimate_mean([one.seconds for one in predictions]),
            "rounds": estimate_mean([one.rounds for one in predictions]),
        }
    traces = [one.trace for one in predictions]
    longest = max(map(len, traces))
    padded = [trace + trace[-1:] * (longest - len(trace)) for trace in traces]
    n_tokens = sum(len(one.template) + 1 for one in predictions)
    return Metrics(
        format_version=FORMAT_VERSION,
        task=header.task,
        profile=header.profile,
        corpus=header.corpus,
        method=header.method,
        set_name=header.set_name,
        strategy=header.strategy,
        ratio=header.ratio,
        n=header.n,
        test_set_hash=header.test_set_hash,
        figures=figures,
        n_references=None if predictions[0].context else len(predictions),
        bleu_signature=bleu_signature(),
        trace=tuple(sum(column) / n_tokens for column in zip(*padded, strict=True)),
        evaluator=None if nll is None else {"path": "evaluator/best.ckpt", "hash": "e", "validation_nll": 2.0},
        checkpoints={},
        config=header.config,
        search_seconds=1.0,
        devices=1,
        git_revision=None,
        sentences_hash=text_hash(sentences_text(sentences)),
    )
