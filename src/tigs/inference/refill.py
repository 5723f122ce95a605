"""Refill all blanks of a sentence at once, by a beam that looks at the words to come.

A plain beam knows nothing of what stands behind a blank. Here the sentence has been read once, with some fill or with what the
model expects in its blanks (`expected.py`), and the gradient of the *known* words' NLL with respect to each input says, to first
order, what a word would do to all known words behind it. (The words in other blanks do not count: they will be chosen anew.) A
hypothesis is chosen by what it has paid and this estimate for its newest word; what it pays later is then its own. So whole runs
of blanks are filled together with what follows them, where one-word moves get stuck and a plain beam is blind. Of hypotheses that
fill a blank with the same word only the best goes on: what follows depends on that word more than on those before it, and the
width is left for words that differ.

Behind its last blank nothing is chosen any more, and hypotheses are read as the P-step reads candidates: the one with the best
estimate first, the others as long as they may be better.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.beam import BeamSearch, Ends
from tigs.inference.beams import Beams, Part, concatenate, in_parts
from tigs.inference.budget import TokenBudget
from tigs.inference.interfaces import JoinableState, SequenceModel, Templates
from tigs.inference.p_step import Scored, Suffix, limits_within, score_candidates

_INFINITE = float("inf")


def refill(
    model: SequenceModel,
    state: Any,
    templates: Templates,
    gradient: Tensor,
    *,
    per_blank: int,
    at_least: int,
    margin: float,
    margin_decay: float,
    forbidden: Tensor,
    budget: TokenBudget,
    only_best: bool,
) -> Beams:
    """The best fills found by one beam.

    Args:
        model: the searched model.
        state: before the first token, one row per sentence.
        templates: what is refilled.
        gradient: (batch, longest, size) of the known words' NLL with respect to what was read in each blank.
        per_blank: hypotheses kept for every blank of a sentence's longest run: inside a run no known word chooses between them.
        at_least: hypotheses kept however short that run is: now and then the estimate ranks the best word of a blank low.
        margin: nats by which a hypothesis may fall behind the best of its sentence in what both have paid, and behind the last
            blank that with the best estimate.
        margin_decay: what is left of the margin after each known word since the last blank.
        forbidden: (vocabulary) words that may not be filled in.
        budget: how many hypotheses are read side by side behind the last blank.
        only_best: whether those that are known to be worse than another may be dropped there.
    """
    widths = (per_blank * longest_runs(templates.blanks)).clamp(min=at_least)  # (batch)
    # What is no number says nothing.
    gradient = gradient.nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)
    keeping = _Keeping(margin, margin_decay, forbidden, budget, only_best)
    found = [
        _refill_part(model, part, gradient[part.first : part.first + len(part.widths)], keeping)
        for part in in_parts(state, templates, widths, n_words=len(forbidden))
    ]
    return concatenate(found, templates.target.ids.shape[1])


class _Keeping(NamedTuple):
    """Which hypotheses go on; see `refill`."""

    margin: float
    margin_decay: float
    forbidden: Tensor
    budget: TokenBudget
    only_best: bool


def _refill_part(model: SequenceModel, part: Part, gradient: Tensor, keeping: _Keeping) -> Beams:
    target, blanks = part.templates.target, part.templates.blanks
    # (batch) the last blank; the first word where there is none
    last = (blanks * torch.arange(blanks.shape[1], device=blanks.device)).amax(dim=1)

    def gain(rows: Tensor, position: int) -> Tensor:
        # What was read there is the same for all hypotheses of a sentence and chooses nothing.
        return -(gradient[rows, position] @ model.word_vectors.t())  # (rows, vocabulary)

    search = BeamSearch(
        model,
        part.state,
        part.templates._replace(target=Padded(target.ids, last + 1)),
        widths=part.widths,
        forbidden=keeping.forbidden,
        score_end=False,
        guide=gain,
        recombine=True,
        margin=keeping.margin,
        margin_decay=keeping.margin_decay,
        keep_ends=True,
    )
    search.read()
    rows = torch.arange(len(last), device=last.device)
    word = search.words[rows, :, last]  # (batch, width) in the last blank
    suffix, context_length = Suffix.after(target, last), part.templates.context.ids.shape[1]
    totals, steps = torch.full_like(search.nll, _INFINITE), search.steps  # (batch, width), (batch)
    for ends in _together(search.ends or []):
        own_totals, own_steps = _read_rest(
            model, ends, word=word, paid=search.nll, suffix=suffix, keeping=keeping, context_length=context_length
        )
        totals, steps = torch.minimum(totals, own_totals), steps + own_steps
    totals, order = totals.sort(dim=1, stable=True)
    words = search.words.gather(1, order[:, :, None].expand_as(search.words))
    return Beams(words, -totals, totals, steps)


def _together(ends: list[Ends]) -> list[Ends]:
    """All hypotheses at once, if states that have been read up to different places can be joined."""
    if len(ends) < 2 or not isinstance(ends[0].state, JoinableState):
        return ends
    joined = ends[0].state.join([other.state for other in ends[1:]])
    return [Ends(torch.cat([one.rows for one in ends]), torch.cat([one.slots for one in ends]), joined)]


def _read_rest(
    model: SequenceModel,
    ends: Ends,
    *,
    word: Tensor,
    paid: Tensor,
    suffix: Suffix,
    keeping: _Keeping,
    context_length: int,
) -> tuple[Tensor, Tensor]:
    """NLL (batch, width) of whole sentences, inf where it is not known, and steps (batch).

    Args:
        model: the searched model.
        ends: the hypotheses that are read.
        word: (batch, width) in the last blank of all hypotheses.
        paid: (batch, width) NLL up to there.
        suffix: what follows in each sentence.
        keeping: which of them are read to the end.
        context_length: tokens of context.
    """
    number = torch.full_like(word, -1)  # (batch, width) into `ends`
    number[ends.rows, ends.slots] = torch.arange(len(ends.rows), device=word.device)
    is_here = number >= 0
    first = is_here.int().argmax(dim=1, keepdim=True)  # (batch, 1) that with the best estimate
    is_first = torch.zeros_like(is_here).scatter_(1, first, True) & is_here

    def read(chosen: Tensor, limits: Tensor) -> Scored:
        return score_candidates(
            model,
            lambda place: ends.state.select(number.flatten()[place]),
            word,
            paid.masked_fill(~chosen, _INFINITE),
            suffix,
            limits=limits,
            budget=keeping.budget,
            context_length=context_length,
            only_best=keeping.only_best,
        )

    n_places = 1 + suffix.targets.shape[1]
    leader = read(is_first, paid.new_full((len(word), n_places), _INFINITE))
    total = leader.totals.amin(dim=1)  # (batch)
    leader_nll = torch.cat([paid.gather(1, first), leader.suffix_nll], dim=1)  # (batch, longest + 2)
    leader_nll = leader_nll.masked_fill(total.isinf()[:, None], _INFINITE)  # of what cannot be said not all is read
    bound = total if keeping.only_best else torch.full_like(total, _INFINITE)
    others = read(is_here & ~is_first, limits_within(leader_nll, bound, keeping.margin, keeping.margin_decay))
    return torch.minimum(leader.totals, others.totals), leader.steps + others.steps


def longest_runs(blanks: Tensor) -> Tensor:
    """(batch) the most blanks that stand together in each sentence, from (batch, longest)."""
    so_far = blanks.cumsum(dim=1)  # (batch, longest)
    before_run = (so_far * ~blanks).cummax(dim=1).values  # (batch, longest) blanks up to the last known word
    return (so_far - before_run).amax(dim=1)
