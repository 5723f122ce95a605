"""Every method against TIGS on the same sentences: is the difference more than chance? Needs no torch, nor the evaluator."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tigs.errors import EvaluationError
from tigs.evaluation.bleu import bleu_of_sums
from tigs.evaluation.bootstrap import Array, OfSums, estimate_difference, ratio
from tigs.evaluation.metrics import (
    FORMAT_VERSION,
    Comparison,
    Difference,
    Metrics,
    Sentences,
    find_experiments,
    load_all,
    read_sentences,
    write_comparison,
)

BASELINE = "tigs"


def compare_all(output_dir: Path, *, task: str | None = None, profile: str | None = None) -> list[Comparison]:
    """Compare whatever figures lie below a folder, and write one comparison for each task and profile.

    Args:
        output_dir: the folder.
        task: compare only this one's; None means every task's.
        profile: the same of the profile.

    Raises:
        EvaluationError: if a file is damaged, or figures of one cell are about different sentences; first the comparisons of all
            other tasks and profiles are written.
    """
    comparisons, problems = [], []
    for experiment in find_experiments(output_dir, task=task, profile=profile):
        try:
            comparisons.append(_compare(output_dir, *experiment))
        except EvaluationError as error:
            problems.append(error)
    if problems:
        raise problems[0]
    return comparisons


def compare_sentences(method: Sentences, baseline: Sentences) -> dict[str, tuple[Array, Array, OfSums]]:
    """For each figure that both have: what it is summed from, sentence by sentence in the same order, and how."""
    # Two machines may have written the same templates in another order.
    place = {identifier: index for index, identifier in enumerate(method.ids)}
    order = [place[identifier] for identifier in baseline.ids]
    columns: dict[str, tuple[Array, Array, OfSums]] = {}
    if method.nll is not None and baseline.nll is not None:
        columns["nll"] = (_totals(method.nll)[order], _totals(baseline.nll), ratio)
    for scope in baseline.bleu:
        if scope in method.bleu:
            first, second = (np.array(part.bleu[scope], dtype=np.float64) for part in (method, baseline))
            columns[scope] = (first[order], second, bleu_of_sums)
    return columns


def _compare(output_dir: Path, task: str, profile: str) -> Comparison:
    loaded = load_all(output_dir, task=task, profile=profile)
    comparison = Comparison(
        format_version=FORMAT_VERSION,
        task=task,
        profile=profile,
        corpus=loaded[0].corpus,
        baseline=BASELINE,
        differences=tuple(_differences(output_dir, loaded)),
    )
    write_comparison(output_dir, comparison)
    return comparison


def _differences(output_dir: Path, loaded: Sequence[Metrics]) -> list[Difference]:
    differences = []
    for baseline in [metrics for metrics in loaded if metrics.method == BASELINE]:
        rivals = [metrics for metrics in loaded if metrics.cell == baseline.cell and metrics is not baseline]
        if rivals:
            sentences = read_sentences(output_dir, baseline)
            for rival in rivals:
                differences += _against(output_dir, rival, baseline, sentences)
    return differences


def _against(output_dir: Path, rival: Metrics, baseline: Metrics, baseline_sentences: Sentences) -> list[Difference]:
    sentences = read_sentences(output_dir, rival)
    if set(sentences.ids) != set(baseline_sentences.ids):
        raise EvaluationError(
            f"{rival.path(output_dir)} and {baseline.path(output_dir)} are about different templates of the same test set",
            remedy="Run both methods again with the same eval.limit",
        )
    differences = []
    for figure, columns in compare_sentences(sentences, baseline_sentences).items():
        estimated, p_value = estimate_difference(*columns)
        differences.append(
            Difference(
                set_name=rival.set_name,
                method=rival.method,
                figure=figure,
                value=estimated.value,
                low=estimated.low,
                high=estimated.high,
                p_value=p_value,
                n=rival.n,
            )
        )
    return differences


def _totals(nll: Sequence[Sequence[float]]) -> Array:
    """(sentences, 2) NLL and number of tokens."""
    return np.array([(math.fsum(tokens), len(tokens)) for tokens in nll])
