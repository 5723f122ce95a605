"""Sentences of different lengths as padded tensors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tigs.data.special import BLANK_ID, END_ID, PAD_ID, START_ID


class Padded(NamedTuple):
    """Sequences of ids, padded on the right."""

    ids: Tensor
    """(batch, longest)"""
    lengths: Tensor
    """(batch)"""

    @property
    def mask(self) -> Tensor:
        """(batch, longest) true where a token stands."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return positions < self.lengths[:, None]

    @property
    def reversal(self) -> Tensor:
        """(batch, longest) where each position of the reversed sequence comes from: length - 1, ..., 0; padding stays."""
        positions = torch.arange(self.ids.shape[1], device=self.ids.device)
        return torch.where(self.mask, self.lengths[:, None] - 1 - positions, positions)

    @property
    def reversed(self) -> Padded:
        """Each sequence from its last token to its first, still padded on the right."""
        return Padded(self.ids.gather(1, self.reversal), self.lengths)

    def shifted(self, first_token: int) -> Tensor:
        """(batch, longest) what is read before each token: `<first> y_1 ... y_{m-1}`; nothing follows the last one."""
        return torch.cat([torch.full_like(self.ids[:, :1], first_token), self.ids[:, :-1]], dim=1)

    def bracketed(self) -> tuple[Tensor, Tensor, Tensor]:
        """What a decoder reads and what it must say: `<s> y`, `y </s>` and the mask of both, each (batch, longest + 1)."""
        column = self.lengths[:, None]  # (batch, 1)
        inputs = torch.cat([torch.full_like(column, START_ID), self.ids], dim=1)
        targets = torch.cat([self.ids, torch.full_like(column, PAD_ID)], dim=1)
        targets = targets.scatter(1, self.lengths[:, None], END_ID)
        positions = torch.arange(targets.shape[1], device=self.ids.device)
        return inputs, targets, positions <= self.lengths[:, None]

    def to(self, device: torch.device) -> Padded:
        """The same on another device."""
        return Padded(self.ids.to(device), self.lengths.to(device))


class Batch(NamedTuple):
    """What a model is trained on: contexts and targets; `context` has no columns where the task has none."""

    context: Padded
    target: Padded

    @property
    def n_tokens(self) -> int:
        """Tokens that are predicted, `</s>` included."""
        return int(self.target.lengths.sum()) + len(self.target.lengths)


def pad(sequences: Sequence[Sequence[int]]) -> Padded:
    """Pad sequences of ids to the longest."""
    lengths = torch.tensor([len(sequence) for sequence in sequences])
    ids = torch.full((len(sequences), int(lengths.max()) if len(sequences) else 0), PAD_ID)
    for row, sequence in zip(ids, sequences, strict=True):
        row[: len(sequence)] = torch.as_tensor(sequence, dtype=torch.long)
    return Padded(ids, lengths)


def concatenate(first: Padded, second: Padded) -> Padded:
    """Row by row `first </s> second`: how a context and a template become one input."""
    lengths = first.lengths + 1 + second.lengths
    ids = torch.full((len(lengths), int(lengths.max())), PAD_ID, device=first.ids.device)  # (batch, longest)
    ids[:, : first.ids.shape[1]] = first.ids
    ids.scatter_(1, first.lengths[:, None], END_ID)
    columns = torch.arange(second.ids.shape[1], device=ids.device)
    places = (first.lengths + 1)[:, None] + columns  # (batch, longest of second)
    ids[second.mask.nonzero()[:, 0], places[second.mask]] = second.ids[second.mask]
    return Padded(ids, lengths)


def blank_out(target: Padded, *, generator: torch.Generator) -> Padded:
    """A random template of every sentence: a strategy and a number of blanks drawn for each, `<blank>` in the holes."""
    n_rows, longest = target.ids.shape
    # (batch, 1): from one blank to all of them, each number as likely as any other.
    n_blanks = 1 + (torch.rand(n_rows, generator=generator) * target.lengths).int()[:, None]
    positions = torch.arange(longest)
    order = torch.rand(n_rows, longest, generator=generator).masked_fill(~target.mask, 2.0)
    random_blanks = order.argsort(dim=1).argsort(dim=1) < n_blanks  # (batch, longest)
    first = (target.lengths[:, None] - n_blanks) // 2
    middle_blanks = (positions >= first) & (positions < first + n_blanks)
    is_middle = torch.rand(n_rows, 1, generator=generator) < 0.5
    blanks = torch.where(is_middle, middle_blanks, random_blanks) & target.mask
    return Padded(target.ids.masked_fill(blanks, BLANK_ID), target.lengths)
