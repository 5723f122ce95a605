"""Beam search that writes what it likes, as long as it likes, up to a limit."""

from __future__ import annotations

import itertools

import torch
from torch import Tensor

from tigs.data.special import BLANK_ID, END_ID, PAD_ID, START_ID
from tigs.inference.interfaces import SequenceModel, Templates

_NEVER = float("-inf")
# A sentence this much longer than its template has failed to reproduce it, whatever follows.
_EXTRA_LENGTH = 2


def write_freely(model: SequenceModel, templates: Templates, *, width: int) -> list[tuple[int, ...]]:
    """The likeliest sentence found for each context; `templates` only limit the length."""
    device, n_rows = templates.target.ids.device, len(templates.ids)
    limits = templates.target.lengths[:, None] + _EXTRA_LENGTH  # (batch, 1)
    limit = int(limits.max())
    state = model.start(templates.context).select(torch.arange(n_rows, device=device).repeat_interleave(width))
    words = torch.full((n_rows, width, limit + 1), PAD_ID, device=device)
    scores = torch.full((n_rows, width), _NEVER, device=device)
    scores[:, 0] = 0.0
    ended = torch.zeros(n_rows, width, dtype=torch.bool, device=device)
    tokens = torch.full((n_rows * width,), model.first_token, device=device)
    first_row = torch.arange(n_rows, device=device)[:, None] * width  # (batch, 1)
    for position in range(limit + 1):
        outputs, state = model.step(state, tokens)
        table = _continuations(model.log_probabilities(outputs).view(n_rows, width, -1), ended)
        n_tokens = table.shape[2]
        scores, index = (scores[:, :, None] + table).flatten(1).topk(width, dim=1)  # (batch, width)
        parent, word = index // n_tokens, index % n_tokens
        words = words.gather(1, parent[:, :, None].expand_as(words))
        words[:, :, position] = word
        ended = ended.gather(1, parent) | (word == END_ID) | (position >= limits)
        # Scores only fall: once the best hypothesis has ended, no other can pass it.
        if ended[:, 0].all():
            break
        state, tokens = state.select((first_row + parent).flatten()), word.flatten()
    return [_until_end(row) for row in words[:, 0].tolist()]


def _continuations(log_probabilities: Tensor, ended: Tensor) -> Tensor:
    """(batch, width, vocabulary): a hypothesis that has ended stays as it is, at no cost."""
    table = log_probabilities.clone()
    table[:, :, [PAD_ID, START_ID, BLANK_ID]] = _NEVER
    table[ended] = _NEVER
    table[:, :, PAD_ID] = torch.where(ended, 0.0, table[:, :, PAD_ID])
    return table


def _until_end(words: list[int]) -> tuple[int, ...]:
    return tuple(itertools.takewhile(lambda word: word not in (END_ID, PAD_ID), words))
