"""BLEU-4 of token sequences, as sacrebleu computes it on space-joined tokens, with the signature that makes it comparable."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from sacrebleu.metrics import BLEU

Tokens = Sequence[str]


class BleuScore(NamedTuple):
    """A score between 0 and 1, and sacrebleu's description of how it was computed."""

    value: float
    signature: str


def corpus_bleu(hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> BleuScore:
    """BLEU of all sentences together, one reference each."""
    # The text is tokenised already: sacrebleu must neither split it again nor warn about that.
    metric = BLEU(tokenize="none", force=True)
    score = metric.corpus_score(
        [" ".join(tokens) for tokens in hypotheses], [[" ".join(tokens) for tokens in references]]
    )
    return BleuScore(score.score / 100, str(metric.get_signature()))
