"""Whether a fill can be improved by any one word: the coordinate optimum, found by trying the whole vocabulary at every blank."""

from __future__ import annotations

from collections.abc import Sequence
from math import isinf

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.budget import TokenBudget
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import SequenceModel, Templates
from tigs.inference.p_step import Suffix, limits_within, of_rows, score_candidates
from tigs.inference.score import token_nll_from
from tigs.inference.tigs import TOLERANCE


def at_coordinate_optimum(
    model: SequenceModel,
    templates: Templates,
    fills: Sequence[Sequence[int]],
    *,
    forbidden: Tensor,
    margin: float = float("inf"),
    margin_decay: float = 1.0,
) -> list[bool]:
    """Of each filled template, whether no other allowed word in any one blank lowers its NLL by more than `TOLERANCE`.

    Exhaustive with an infinite margin: a word is left out only when what was read of the sentence already costs as much as the
    whole. That takes seconds for a sentence; a wide margin is faster, and may miss a word.

    Args:
        model: whose NLL it is.
        templates: what was filled.
        fills: one word per blank.
        forbidden: (vocabulary) words that may not be filled in.
        margin: a word is also left out when what was read costs so many nats more than in the sentence as it is.
        margin_decay: what is left of the margin after each word behind it.
    """
    budget = TokenBudget()
    with search_mode():
        templates = own_copy(templates)
        sentences = whole_sentences(templates, fills)
        state = model.start(templates.context)
        nll = token_nll_from(model, state, sentences)  # (batch, longest + 1)
        optimal = torch.ones_like(sentences.lengths, dtype=torch.bool)  # (batch)
        outputs, state = model.step(state, torch.full_like(sentences.lengths, model.first_token))
        for position in range(sentences.ids.shape[1]):
            rows = (templates.blanks[:, position] & optimal).nonzero().squeeze(1)  # (rows) into batch
            if len(rows):
                places = torch.full_like(rows, position)
                suffix = Suffix.after(Padded(sentences.ids[rows], sentences.lengths[rows]), places)
                own_nll = -model.log_probabilities(outputs[rows])  # (rows, vocabulary)
                own_nll.masked_fill_(forbidden, float("inf"))
                own_nll.scatter_(1, sentences.ids[rows, position, None], float("inf"))
                bound = nll[rows, position:].sum(dim=1) - TOLERANCE  # (rows)
                scored = score_candidates(
                    model,
                    of_rows(state.select(rows), len(forbidden)),
                    torch.arange(len(forbidden), device=rows.device).expand_as(own_nll),
                    own_nll,
                    suffix,
                    limits=limits_within(
                        nll[rows, position : position + 1 + suffix.targets.shape[1]], bound, margin, margin_decay
                    ),
                    budget=budget,
                    limits_are_tight=not isinf(margin),
                    context_length=templates.context.ids.shape[1],
                )
                optimal[rows] = (scored.totals >= bound[:, None]).all(dim=1)
            outputs, state = model.step(state, sentences.ids[:, position])
        return optimal.tolist()


def whole_sentences(templates: Templates, fills: Sequence[Sequence[int]]) -> Padded:
    """The templates with their blanks filled."""
    words = templates.target.ids.clone()  # (batch, longest)
    words[templates.blanks] = words.new_tensor([word for fill in fills for word in fill])
    return Padded(words, templates.target.lengths)
