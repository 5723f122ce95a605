"""Which words the P-step tries at a blank: interchangeable rules, each a score of the whole vocabulary.

`nearest` is the paper's. The others know that a word pays -log P(word | prefix) itself, which the gradient of its input vector
does not see, and take the gradient for what it is: a first-order estimate of what the word does to the words behind it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.config import MethodConfig
from tigs.errors import ConfigError


class Visit(NamedTuple):
    """What is known at one blank of each of some sentences."""

    log_probabilities: Tensor
    """(rows, vocabulary) after the prefix"""
    vectors: Tensor
    """(rows, size) where the O-step has taken the blank"""
    gradient: Tensor
    """(rows, size) of the sentence's NLL with respect to the blank's input"""
    words: Tensor
    """(rows) what stands in the blank"""


class Proposed(NamedTuple):
    """What is worth a trial."""

    candidates: Tensor
    """(rows, K) the words with the highest scores"""
    hopeless: Tensor
    """(rows, K) those that the estimate puts out of reach"""


class Proposer:
    """The rule that the settings name; K words at a time."""

    def __init__(self, settings: MethodConfig, word_vectors: Tensor, *, forbidden: Tensor) -> None:
        self.word_vectors, self.forbidden, self.distance = word_vectors, forbidden, settings.distance
        self.score = _SCORES[settings.proposal]
        self.takes_o_step = settings.proposal == "nearest"
        self.takes_gradient = settings.proposal.startswith("first-order")
        # Its scores are nats; those of the others are not, or leave out what follows.
        self.reach = settings.reach if settings.proposal == "first-order-prefix" else float("inf")
        everything = settings.proposal == "all"
        n_allowed = int((~forbidden).sum())
        self.n_candidates = n_allowed if everything else count_candidates(settings.n_candidates, n_allowed)
        # Of the squared distance to a vector this part is always the same.
        self.squares = (word_vectors**2).sum(dim=1)  # (vocabulary)

    def __call__(self, visit: Visit) -> Proposed:
        """The words to try at one blank of each sentence."""
        scores = self.score(self, visit)  # (rows, vocabulary)
        least = scores.gather(1, visit.words[:, None]) - self.reach  # (rows, 1)
        highest, candidates = scores.masked_fill(self.forbidden, float("-inf")).topk(self.n_candidates, dim=1)
        return Proposed(candidates, highest < least)


def count_candidates(wanted: float, n_words: int) -> int:
    """K: a number, or a share of the words."""
    number = max(1, round(wanted * n_words)) if wanted < 1 else int(wanted)
    if wanted >= 1 and wanted != number:
        raise ConfigError(
            f"method.n_candidates={wanted:g} is no number of words",
            remedy="Give a whole number, or a share of the vocabulary below 1",
        )
    if number > n_words:
        raise ConfigError(
            f"method.n_candidates={wanted:g} is more than the {n_words} words of the vocabulary",
            remedy="Lower it, or give a share of the vocabulary below 1",
        )
    return number


def _nearest(proposer: Proposer, visit: Visit) -> Tensor:
    if proposer.distance == "cosine":
        return F.normalize(visit.vectors, dim=1) @ F.normalize(proposer.word_vectors, dim=1).t()
    return torch.addmm(proposer.squares, visit.vectors, proposer.word_vectors.t(), beta=-1, alpha=2)


def _first_order(proposer: Proposer, visit: Visit) -> Tensor:
    return -(visit.gradient @ proposer.word_vectors.t())


def _prefix(proposer: Proposer, visit: Visit) -> Tensor:
    return visit.log_probabilities


def _first_order_prefix(proposer: Proposer, visit: Visit) -> Tensor:
    return torch.addmm(visit.log_probabilities, visit.gradient, proposer.word_vectors.t(), alpha=-1)


_SCORES: dict[str, Callable[[Proposer, Visit], Tensor]] = {
    "nearest": _nearest,
    "first-order": _first_order,
    "prefix": _prefix,
    "first-order-prefix": _first_order_prefix,
    "all": _prefix,
}
