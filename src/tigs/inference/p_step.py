"""The P-step: propose words for a blank and find the one that makes the whole sentence likeliest (paper, equations 7 and 8).

The prefix is the same for all candidates, so its state is kept and only the suffix is read. NLL only grows along a sentence: a
candidate whose sum has passed that of the best whole sentence cannot win any more and is dropped. This changes no answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import END_ID
from tigs.inference.interfaces import SequenceModel

# Survivors are gathered together when fewer than this share of the rows is left; each gathering copies their states.
_GATHER_BELOW = 0.75


class Suffix(NamedTuple):
    """What follows a blank in each of some sentences."""

    words: Tensor
    """(rows, longest) read after the blank's word"""
    targets: Tensor
    """(rows, longest + 1) predicted from the blank's word on: the words and `</s>`"""
    lengths: Tensor
    """(rows) number of targets"""

    @classmethod
    def after(cls, sentences: Padded, position: int) -> Suffix:
        """Of sentences that all have a blank at `position`."""
        lengths = sentences.lengths - position  # the words behind it and `</s>`
        longest = int(lengths.max()) - 1
        words = sentences.ids[:, position + 1 : position + 1 + longest]
        targets = F.pad(words, (0, 1)).scatter(1, (lengths - 1)[:, None], END_ID)
        return cls(words, targets, lengths)

    @property
    def mask(self) -> Tensor:
        """(rows, longest + 1) true where a target stands."""
        return torch.arange(self.targets.shape[1], device=self.targets.device) < self.lengths[:, None]


class Scored(NamedTuple):
    """Candidates with what they make of the rest of the sentence."""

    totals: Tensor
    """(rows, candidates) NLL of the candidate and the suffix; inf where it was dropped"""
    suffix_nll: Tensor
    """(rows, candidates, longest + 1) per target"""
    steps: Tensor
    """(rows) tokens read"""


def nearest(vectors: Tensor, word_vectors: Tensor, n_candidates: int, *, distance: str, forbidden: Tensor) -> Tensor:
    """(rows, n_candidates) the words whose vectors are nearest to `vectors` (rows, size)."""
    if distance == "cosine":
        farness = -F.normalize(vectors, dim=1) @ F.normalize(word_vectors, dim=1).t()  # (rows, vocabulary)
    else:
        # The squared distance less the part that is the same for all words.
        farness = torch.addmm((word_vectors**2).sum(dim=1), vectors, word_vectors.t(), alpha=-2)
    return farness.masked_fill(forbidden, float("inf")).topk(n_candidates, dim=1, largest=False).indices


def score_candidates(
    model: SequenceModel,
    state: Any,
    candidates: Tensor,
    own_nll: Tensor,
    suffix: Suffix,
    *,
    bound: Tensor,
) -> Scored:
    """Read the suffix after each candidate, dropping those that cannot stay below the bound.

    Args:
        model: the searched model.
        state: after the prefix, one row per sentence.
        candidates: (rows, candidates) words for the blank.
        own_nll: (rows, candidates) of each candidate after the prefix; inf excludes it.
        suffix: what follows.
        bound: (rows) a total that a candidate must stay below.
    """
    n_candidates = candidates.shape[1]
    totals = torch.full_like(own_nll, float("inf")).flatten()  # (rows * candidates)
    suffix_nll = own_nll.new_zeros(own_nll.numel(), suffix.targets.shape[1])  # (rows * candidates, longest + 1)
    place = (own_nll < bound[:, None]).flatten().nonzero().squeeze(1)  # (alive) into rows * candidates
    row = place // n_candidates  # (alive)
    sums, tokens = own_nll.flatten()[place], candidates.flatten()[place]  # (alive)
    state = state.select(row)
    steps = torch.zeros_like(suffix.lengths)  # (rows)
    for offset in range(suffix.targets.shape[1]):
        if not len(place):
            break
        outputs, state = model.step(state, tokens)
        # Only those still in the race count; when the others are gathered away depends on a sentence's neighbours.
        steps.index_add_(0, row, sums.isfinite().to(steps))
        per_token = model.nll(outputs, suffix.targets[row, offset]).per_token  # (alive)
        # A sentence that has ended may still be read on beside longer ones.
        suffix_nll[place, offset] = torch.where(offset < suffix.lengths[row], per_token, 0.0)
        sums = sums + per_token
        ended = suffix.lengths[row] == offset + 1  # (alive)
        totals[place[ended]] = sums[ended]
        # A dropped candidate that is not yet gathered away has no more part in anything.
        sums = torch.where(ended | (sums >= bound[row]), torch.full_like(sums, float("inf")), sums)
        alive = sums.isfinite()
        if int(alive.sum()) < _GATHER_BELOW * len(alive):
            kept = alive.nonzero().squeeze(1)
            place, row, sums, state = place[kept], row[kept], sums[kept], state.select(kept)
        if offset < suffix.words.shape[1]:
            tokens = suffix.words[row, offset]
    shape = own_nll.shape
    return Scored(totals.view(shape), suffix_nll.view(*shape, -1), steps)
