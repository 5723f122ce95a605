"""The simplest fill: the best word at each blank in turn. Shows during training what a model has learned; no search."""

from __future__ import annotations

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS, UNK_ID
from tigs.models.autoregressive import Autoregressive
from tigs.models.birnn import BiRNN


def fill_left_to_right(model: Autoregressive, context: Padded, template: Padded) -> Padded:
    """Known words are read as they are, each blank takes the likeliest word after what stands before it."""
    state, token = model.start(context), torch.full_like(template.ids[:, 0], model.first_token)
    filled = template.ids.clone()  # (batch, longest)
    for position in range(template.ids.shape[1]):
        outputs, state = model.step(state, token)
        best = _without_special(model.log_probabilities(outputs)).argmax(dim=-1)  # (batch)
        token = torch.where(filled[:, position] == BLANK_ID, best, filled[:, position])
        filled[:, position] = token
    return Padded(filled, template.lengths)


def fill_one_by_one(model: BiRNN, context: Padded, template: Padded) -> Padded:
    """Each blank in turn takes the likeliest word given both sides; blanks not yet visited count as unknown words."""
    blanks = template.ids == BLANK_ID  # (batch, longest)
    filled = Padded(template.ids.masked_fill(blanks, UNK_ID), template.lengths)
    for position in range(template.ids.shape[1]):
        if not blanks[:, position].any():
            continue
        outputs = model.head_states(context, filled).joint[:, position]  # (batch, hidden)
        scores = model.joint_log_probabilities(outputs)  # (batch, vocabulary)
        best = _without_special(scores).argmax(dim=-1)
        column = torch.where(blanks[:, position], best, filled.ids[:, position])
        ids = filled.ids.clone()
        ids[:, position] = column
        filled = Padded(ids, template.lengths)
    return filled


def _without_special(scores: Tensor) -> Tensor:
    """Scores (batch, vocabulary) under which no special token can win."""
    forbidden = torch.arange(scores.shape[1], device=scores.device) < len(SPECIAL_TOKENS)
    return scores.masked_fill(forbidden, float("-inf"))
