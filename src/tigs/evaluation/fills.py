"""Figures about the words in the blanks, from predictions alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tigs.data.special import BLANK, UNK
from tigs.data.vocabulary import Vocabulary
from tigs.evaluation.bootstrap import Array, estimate, interval, resamples
from tigs.evaluation.metrics import Figure
from tigs.inference.predictions import Prediction


def unk_share(predictions: Sequence[Prediction]) -> Figure:
    """The share of blanks filled with `<unk>`."""
    return estimate([(prediction.fill.count(UNK), len(prediction.fill)) for prediction in predictions])


def exact_match(predictions: Sequence[Prediction]) -> Figure:
    """The share of blanks filled with the word that stood there."""
    rows = []
    for prediction in predictions:
        missing = [
            word for word, token in zip(prediction.reference, prediction.template, strict=True) if token == BLANK
        ]
        rows.append((sum(map(str.__eq__, prediction.fill, missing)), len(missing)))
    return estimate(rows)


def template_failure(predictions: Sequence[Prediction], vocabulary: Vocabulary) -> Figure | None:
    """The share of unforced outputs that have another length than the template or change one of its known words.

    A known word that the model cannot know counts as reproduced by `<unk>`, which is what the model read.

    Returns:
        None for a method that has no unforced output.
    """
    failures = [
        (not _reproduces(prediction.unforced, prediction.template, vocabulary), 1)
        for prediction in predictions
        if prediction.unforced is not None
    ]
    return estimate(failures) if failures else None


def distinct(predictions: Sequence[Prediction], order: int) -> Figure | None:
    """Different n-grams among all n-grams of filled words (Li et al. 2016); an n-gram never spans a word that was known.

    A resample repeats sentences, and so shows fewer different words than as many new sentences would. The interval is therefore
    that of the resamples, moved by what they fall short on average.

    Returns:
        None where no blanks stand side by side.
    """
    kinds: dict[tuple[str, ...], int] = {}
    owners, numbers = [], []
    for owner, prediction in enumerate(predictions):
        for ngram in _filled_ngrams(prediction, order):
            owners.append(owner)
            numbers.append(kinds.setdefault(ngram, len(kinds)))
    if not kinds:
        return None
    value = len(kinds) / len(numbers)
    ratios = _resampled_ratios(np.array(owners), np.array(numbers), n_sentences=len(predictions))
    low, high = (max(0.0, min(1.0, bound + value - float(ratios.mean()))) for bound in interval(ratios))
    return Figure.rounded(value, low, high)


def _resampled_ratios(owners: np.ndarray, numbers: np.ndarray, *, n_sentences: int) -> Array:
    """Of the resamples in which any n-gram stands; each n-gram has an owner, its sentence, and the number of its kind."""
    ratios = []
    for counts in resamples(n_sentences):
        drawn = counts[owners]  # (n-grams)
        if drawn.any():
            ratios.append(np.count_nonzero(np.bincount(numbers, weights=drawn)) / drawn.sum())
    return np.array(ratios)


def _filled_ngrams(prediction: Prediction, order: int) -> list[tuple[str, ...]]:
    sentence, template = prediction.sentence, prediction.template
    return [
        sentence[first : first + order]
        for first in range(len(template) - order + 1)
        if all(token == BLANK for token in template[first : first + order])
    ]


def _reproduces(output: Sequence[str], template: Sequence[str], vocabulary: Vocabulary) -> bool:
    if len(output) != len(template):
        return False
    pairs = zip(vocabulary.encode(output), vocabulary.encode(template), template, strict=True)
    return all(written == read for written, read, token in pairs if token != BLANK)
