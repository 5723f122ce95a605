"""BLEU against thousands of references, the same for every hypothesis.

A hypothesis may match an n-gram as often as the one reference that has it most often: so the counts of all references are merged
by their maximum once, and each hypothesis costs a few look-ups, however many references there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import numpy as np

from tigs.evaluation.bleu import (
    N_STATISTICS,
    Statistics,
    Tokens,
    as_sacrebleu_splits,
    count_ngrams,
    match,
)


class ManyReferences:
    """Merged counts of references."""

    def __init__(self, references: Sequence[Tokens]) -> None:
        """Count once.

        Args:
            references: at least one sentence.
        """
        self.n_references = len(references)
        self._counts: dict[tuple[str, ...], int] = {}
        lengths = set()
        for reference in references:
            words = as_sacrebleu_splits(reference)
            lengths.add(len(words))
            for ngram, count in count_ngrams(words).items():
                if count > self._counts.get(ngram, 0):
                    self._counts[ngram] = count
        self._lengths = sorted(lengths)

    def statistics(self, hypotheses: Sequence[Tokens]) -> Statistics:
        """What BLEU is computed from (`tigs.evaluation.bleu`), every hypothesis against all references."""
        rows = []
        for hypothesis in hypotheses:
            words = as_sacrebleu_splits(hypothesis)
            rows.append(match(words, self._counts, self._closest_length(len(words))))
        return np.array(rows, dtype=np.int64).reshape(-1, N_STATISTICS)

    def _closest_length(self, length: int) -> int:
        """The shorter of two that are equally close, as in sacrebleu."""
        place = bisect_left(self._lengths, length)
        near = self._lengths[max(0, place - 1) : place + 1]
        return min(near, key=lambda candidate: (abs(candidate - length), candidate))
