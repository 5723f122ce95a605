"""The P-step: of the words proposed for a blank, find the one that makes the whole sentence likeliest (paper, equation 8).

The prefix is known, so the state after it is kept and only the suffix is read. NLL only grows along a sentence: a
candidate whose sum has passed that of the best whole sentence cannot win any more and is dropped. This changes no answer. A
margin also drops candidates that have fallen too far behind the current word at the same place, which seldom changes one; what a
word does to those behind it fades with the distance, and so may the margin.
Where a GPU is faster in less than float32, candidates may be read in that first; what is left of them is then read in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import isinf
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import END_ID
from tigs.inference.budget import TokenBudget
from tigs.inference.interfaces import SequenceModel
from tigs.inference.precision import FULL, SLACK, reading_in

# Tokens read, over all candidates together, between two looks at the limits; one each where more candidates are left.
_TOKENS_AT_ONCE = 32
# Nats by which rounding may put what a sentence costs at least above what it costs.
_ROUNDING = 1e-3


class Suffix(NamedTuple):
    """What follows a blank in each of some sentences."""

    words: Tensor
    """(rows, longest) read after the blank's word"""
    targets: Tensor
    """(rows, longest + 1) predicted from the blank's word on: the words and `</s>`"""
    lengths: Tensor
    """(rows) number of targets"""

    @classmethod
    def after(cls, sentences: Padded, places: Tensor) -> Suffix:
        """Of sentences with a blank each at `places` (rows)."""
        lengths = sentences.lengths - places  # the words behind it and `</s>`
        longest = int(lengths.max()) - 1
        words = from_place(sentences.ids, places + 1, longest)
        targets = F.pad(words, (0, 1)).scatter(1, (lengths - 1)[:, None], END_ID)
        return cls(words, targets, lengths)

    @property
    def mask(self) -> Tensor:
        """(rows, longest + 1) true where a target stands."""
        return torch.arange(self.targets.shape[1], device=self.targets.device) < self.lengths[:, None]


def from_place(values: Tensor, places: Tensor, n: int) -> Tensor:
    """(rows, n) of values (rows, longest) those from `places` (rows) on; 0 behind the last."""
    columns = places[:, None] + torch.arange(n, device=places.device)  # (rows, n)
    return F.pad(values, (0, n)).gather(1, columns)


def of_rows(state: Any, n_candidates: int) -> Callable[[Tensor], Any]:
    """For `score_candidates`, where all candidates of a row follow the same prefix: the state after it, one row each."""
    return lambda place: state.select(place // n_candidates)


class Scored(NamedTuple):
    """Candidates with what they make of the rest of the sentence."""

    totals: Tensor
    """(rows, candidates) `own_nll` and the NLL of the suffix; inf where it was dropped"""
    suffix_nll: Tensor
    """(rows, longest + 1) per target, after each row's best candidate"""
    steps: Tensor
    """(rows) tokens read, each candidate's up to the one that drops it; more candidates than the budget has room for are read one
    part after the other, and the best of one part spares steps in the next, which depends on how many sentences share the budget"""


def limits_within(incumbent_nll: Tensor, bound: Tensor, margin: float, decay: float = 1.0) -> Tensor:
    """(rows, longest + 2) what a candidate's sum must stay below after its own word and after each target.

    Args:
        incumbent_nll: (rows, longest + 2) of the current word and of each target behind it.
        bound: (rows) a total that a candidate must stay below.
        margin: nats above the incumbent's sum at the same place; inf drops only what cannot win.
        decay: what is left of the margin after each further word.
    """
    bounds = bound[:, None].expand_as(incumbent_nll)
    if isinf(margin):  # an infinite margin times a vanishing decay would be no number
        return bounds
    distance = torch.arange(incumbent_nll.shape[1], device=incumbent_nll.device).to(incumbent_nll)  # (longest + 2)
    return torch.minimum(incumbent_nll.cumsum(dim=1) + margin * decay**distance, bounds)


def score_candidates(
    model: SequenceModel,
    state_of: Callable[[Tensor], Any],
    candidates: Tensor,
    own_nll: Tensor,
    suffix: Suffix,
    *,
    limits: Tensor,
    budget: TokenBudget,
    context_length: int = 0,
    only_best: bool = True,
    limits_are_tight: bool = False,
    precision: str = FULL,
) -> Scored:
    """Read the suffix after each candidate, the likeliest first, dropping those that pass a limit.

    Args:
        model: the searched model.
        state_of: the states after the prefixes of candidates (some), given as numbers into rows * candidates.
        candidates: (rows, candidates) words for the blank.
        own_nll: (rows, candidates) of each candidate after the prefix, and of the prefix where candidates differ in it; inf
            excludes a candidate.
        suffix: what follows.
        limits: (rows, longest + 2), see `limits_within`.
        budget: how many candidates are read side by side.
        context_length: tokens of context, which a model may hold a memory of for each of them.
        only_best: whether a candidate is dropped as soon as another is known to be better.
        limits_are_tight: whether most candidates fall behind after a word or two, as within a margin; changes the price alone.
        precision: of a first reading, which drops only what has passed a limit by more than its error.
    """
    steps = torch.zeros_like(suffix.lengths)  # (rows)
    if precision != FULL:
        with reading_in(precision, own_nll.device):
            rough = score_candidates(
                model,
                state_of,
                candidates,
                own_nll,
                suffix,
                limits=limits + SLACK[precision],
                budget=budget,
                context_length=context_length,
                only_best=False,
                limits_are_tight=limits_are_tight,
            )
        own_nll, steps = own_nll.masked_fill(rough.totals.isinf(), float("inf")), rough.steps
    n_candidates = candidates.shape[1]
    own_nll_of, word_of = own_nll.flatten(), candidates.flatten()  # (rows * candidates)
    first = torch.arange(0, own_nll.numel(), n_candidates, device=own_nll.device)  # (rows) where each row begins
    best = _Best(torch.full_like(own_nll, float("inf")), own_nll.new_zeros(suffix.targets.shape))
    # The likeliest candidate of every row, then the second of every row: (waiting) into rows * candidates
    waiting = (first[:, None] + own_nll.argsort(dim=1)).t().flatten()
    while True:
        waiting = waiting[own_nll_of[waiting] < limits[waiting // n_candidates, 0]]
        if not len(waiting):
            return Scored(best.totals, best.suffix_nll, steps)

        def read(n_rows: int, waiting: Tensor = waiting, limits: Tensor = limits) -> tuple[Tensor, _Reading]:
            place = waiting[:n_rows]
            row = place // n_candidates
            reading = _read_suffix(
                model,
                state_of(place),
                word_of[place],
                own_nll_of[place],
                row,
                suffix,
                limits,
                are_tight=limits_are_tight,
            )
            return place, reading

        place, reading = budget.spend(read, tokens_per_row=suffix.targets.shape[1] + context_length)
        steps.index_add_(0, place // n_candidates, reading.steps)
        best.update(place, reading)
        waiting = waiting[len(place) :]
        if only_best:
            limits = torch.minimum(limits, best.totals.amin(dim=1, keepdim=True))


@dataclass
class _Best:
    """Results so far."""

    totals: Tensor
    """(rows, candidates)"""
    suffix_nll: Tensor
    """(rows, longest + 1) after the best candidate"""

    def update(self, place: Tensor, reading: _Reading) -> None:
        """With candidates that stand at `place` (read) in rows * candidates."""
        before = self.totals.amin(dim=1)  # (rows)
        self.totals.view(-1)[place] = reading.totals
        after, number = self.totals.min(dim=1)  # (rows)
        better = (after < before).nonzero().squeeze(1)
        index = torch.zeros_like(self.totals, dtype=torch.long).view(-1)  # (rows * candidates) into those read
        index[place] = torch.arange(len(place), device=place.device)
        self.suffix_nll[better] = reading.suffix_nll[index.view_as(self.totals)[better, number[better]]]


class _Reading(NamedTuple):
    """Some candidates on their way to the end."""

    totals: Tensor
    """(read) inf where dropped"""
    suffix_nll: Tensor
    """(read, longest + 1) of those that were not"""
    steps: Tensor
    """(read)"""


class _Suffixes:
    """What follows each of some candidates, as far as it has been read."""

    def __init__(self, model: SequenceModel, own_nll: Tensor, row: Tensor, suffix: Suffix) -> None:
        """Of candidates that cost `own_nll` (read) themselves and belong to sentences `row` (read)."""
        self.model, self.own_nll, self.row, self.suffix = model, own_nll, row, suffix
        self.nll = own_nll.new_zeros(len(row), suffix.targets.shape[1])  # (read, longest + 1)
        self.outputs: Tensor | None = None  # (read, longest + 1, size)

    def keep(self, place: Tensor, offset: int, outputs: Tensor) -> None:
        """Outputs (place, some, size) that predict the targets from `offset` on."""
        if self.outputs is None:
            self.outputs = outputs.new_empty(*self.nll.shape, outputs.shape[2])
        self.outputs[place, offset : offset + outputs.shape[1]] = outputs

    def settle(self, place: Tensor, offset: int, end: int) -> Tensor:
        """(place, end - offset) the NLL of targets, 0 behind the last, of which only a bound was known."""
        assert self.outputs is not None
        row = self.row[place]
        mask = torch.arange(offset, end, device=row.device) < self.suffix.lengths[row, None]
        targets = self.suffix.targets[row, offset:end]
        nll = self.nll.new_zeros(mask.shape)
        number, column = mask.nonzero(as_tuple=True)  # (tokens) each, in the order of the mask
        outputs = self.outputs[place[number], offset + column]  # (tokens, size)
        nll[mask] = self.model.nll(outputs, targets[mask]).per_token.to(nll)
        self.nll[place, offset:end] = nll
        return nll

    def whole(self, arrived: Tensor, limits: Tensor) -> Tensor:
        """(arrived) NLL of candidates that were read to the end, of which only bounds were known; inf where it passes a limit."""
        row = self.row[arrived]
        running = self.own_nll[arrived, None] + self.settle(arrived, 0, self.nll.shape[1]).cumsum(dim=1)
        passed = self.suffix.mask[row] & ~(running < limits[row, 1:])
        return running[:, -1].masked_fill(passed.any(dim=1), float("inf"))


def _read_suffix(
    model: SequenceModel,
    state: Any,
    tokens: Tensor,
    own_nll: Tensor,
    row: Tensor,
    suffix: Suffix,
    limits: Tensor,
    *,
    are_tight: bool,
) -> _Reading:
    """Read on after candidates `tokens` (read), which cost `own_nll` (read) themselves and belong to sentences `row` (read).

    What a candidate costs at least is enough to drop it; NLL itself is computed for the others. What bounds leave out adds up:
    if limits are tight, it is computed after every look at them, otherwise for those that come to the end.
    """
    suffixes = _Suffixes(model, own_nll, row, suffix)
    totals = torch.full_like(own_nll, float("inf"))  # (read)
    steps = torch.zeros_like(row)  # (read)
    place, sums = torch.arange(len(row), device=row.device), own_nll  # (alive) into read, and their NLL so far
    n_targets, offset = suffix.targets.shape[1], 0
    while True:
        # The fewer are left, the more words each reads at once: a small product with the vocabulary costs as much as a larger one.
        end = min(n_targets, offset + max(1, _TOKENS_AT_ONCE // len(place)))
        own_row = row[place]
        outputs, state = model.run(state, torch.cat([tokens[:, None], suffix.words[own_row, offset : end - 1]], dim=1))
        suffixes.keep(place, offset, outputs)
        targets = suffix.targets[own_row, offset:end]  # (alive, at once), as all of the following
        # A sentence that has ended may still be read on beside longer ones.
        inside = torch.arange(offset, end, device=row.device) < suffix.lengths[own_row, None]
        limit, running = limits[own_row, offset + 1 : end + 1], sums[:, None].repeat(1, end - offset)
        passed = torch.zeros_like(inside)
        # Several words of few candidates: where a bound drops one would depend on how many are read at once.
        if not (are_tight and end > offset + 1):
            least = model.least_nll(outputs.flatten(0, 1), targets.flatten()).view_as(targets).where(inside, 0.0)
            running += least.cumsum(dim=1)
            passed = inside & ~(running < limit + _ROUNDING)  # what is no number passes too
        if are_tight:
            left = (~passed.any(dim=1)).nonzero().squeeze(1)  # (left) into alive
            running[left] = sums[left, None] + suffixes.settle(place[left], offset, end).cumsum(dim=1)
            passed[left] = inside[left] & ~(running[left] < limit[left])
        # Counted up to the word that drops a candidate: how many are read at once depends on a sentence's neighbours.
        steps[place] += (inside & (passed.cumsum(dim=1) <= passed)).sum(dim=1)
        dropped, ended = passed.any(dim=1), suffix.lengths[own_row] <= end  # (alive)
        whole = ended & ~dropped
        totals[place[whole]] = running[whole, -1]
        kept = (~ended & ~dropped).nonzero().squeeze(1)
        offset = end
        if not len(kept):
            break
        if len(kept) < len(place):
            place, running, state = place[kept], running[kept], state.select(kept)
        sums, tokens = running[:, -1], suffix.words[row[place], offset - 1]
    if not are_tight:
        arrived = totals.isfinite().nonzero().squeeze(1)
        totals[arrived] = suffixes.whole(arrived, limits)
    return _Reading(totals, suffixes.nll, steps)
