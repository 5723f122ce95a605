"""BLEU-4 of token sequences, as sacrebleu computes it on space-joined tokens, with the signature that makes it comparable.

Matches are counted here, once per sentence; sums of these counts over any sentences go into sacrebleu's own formula. Ten numbers
a sentence, in sacrebleu's order: length of the hypothesis, length of the reference, matches and totals of orders 1 to 4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sacrebleu.metrics import BLEU

ORDER = 4
N_STATISTICS = 2 + 2 * ORDER

Tokens = Sequence[str]
NGrams = Mapping[tuple[str, ...], int]
Statistics = npt.NDArray[np.int64]
"""(sentences, N_STATISTICS)"""


class BleuScore(NamedTuple):
    """A score between 0 and 1, and sacrebleu's description of how it was computed."""

    value: float
    signature: str


def corpus_bleu(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> BleuScore:
    """BLEU of all sentences together, one reference each."""
    total = bleu_statistics(hypotheses, references).sum(axis=0)
    return BleuScore(float(bleu_of_sums(total)), bleu_signature())


def bleu_statistics(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> Statistics:
    """What BLEU is computed from, one reference for each hypothesis."""
    rows = []
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        words = as_sacrebleu_splits(reference)
        rows.append(match(as_sacrebleu_splits(hypothesis), count_ngrams(words), len(words)))
    return np.array(rows, dtype=np.int64).reshape(-1, N_STATISTICS)


def bleu_of_sums(sums: npt.ArrayLike) -> npt.NDArray[np.float64]:
    """BLEU (...) between 0 and 1 from sums (..., N_STATISTICS) over the sentences of one or many corpora."""
    return _bleu(np.asarray(sums), effective_order=False)


def sentence_bleu(statistics: Statistics) -> npt.NDArray[np.float64]:
    """BLEU (sentences) of each sentence by itself; orders that a short sentence cannot have are left out, as sacrebleu advises."""
    return _bleu(statistics, effective_order=True)


def bleu_signature() -> str:
    """sacrebleu's own, of a figure over a whole corpus with one reference for each sentence."""
    # The text is tokenised already: sacrebleu must neither split it again nor warn about that.
    metric = BLEU(tokenize="none", force=True)
    metric.corpus_score(["a"], [["a"]])  # it knows its number of references only when it has seen some
    return str(metric.get_signature())


def as_sacrebleu_splits(tokens: Tokens) -> list[str]:
    """The words that sacrebleu sees: white space of any kind, which may stand inside a token, separates."""
    return " ".join(tokens).split()


def count_ngrams(words: Sequence[str]) -> Counter[tuple[str, ...]]:
    """How often each n-gram of the orders 1 to 4 occurs."""
    return Counter(
        tuple(words[first : first + order]) for order in range(1, ORDER + 1) for first in range(len(words) - order + 1)
    )


def match(words: Sequence[str], reference: NGrams, reference_length: int) -> list[int]:
    """The ten numbers of one hypothesis."""
    matches, totals = [0] * ORDER, [max(0, len(words) - order) for order in range(ORDER)]
    for ngram, count in count_ngrams(words).items():
        matches[len(ngram) - 1] += min(count, reference.get(ngram, 0))
    return [len(words), reference_length, *matches, *totals]


def _bleu(sums: npt.NDArray[Any], *, effective_order: bool) -> npt.NDArray[np.float64]:
    scores = [
        BLEU.compute_bleu(
            correct=row[2 : 2 + ORDER],
            total=row[2 + ORDER :],
            sys_len=row[0],
            ref_len=row[1],
            smooth_method="exp",
            effective_order=effective_order,
        ).score
        for row in sums.reshape(-1, N_STATISTICS).round().astype(np.int64).tolist()
    ]
    return np.array(scores).reshape(sums.shape[:-1]) / 100
