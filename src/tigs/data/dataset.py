"""Prepared pairs in memory, handed out a padded batch at a time."""

from __future__ import annotations

import datasets
import numpy as np
import numpy.typing as npt
import torch
from torch.utils.data import Dataset

from tigs.data.batch import Batch, Padded, blank_out, concatenate
from tigs.data.bucket import BatchKey
from tigs.data.special import PAD_ID

Integers = npt.NDArray[np.int64]


class Sequences:
    """Many sequences of ids in two flat arrays, so that a batch is cut out without a loop."""

    def __init__(self, ids: Integers, offsets: Integers) -> None:
        self.ids, self.offsets = ids, offsets

    @classmethod
    def from_column(cls, column: datasets.Dataset, name: str) -> Sequences:
        """One column of lists, straight from Arrow."""
        lists = column.with_format("arrow")[:][name].combine_chunks()
        lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return cls(lists.flatten().to_numpy(zero_copy_only=False).astype(np.int64), offsets)

    @property
    def lengths(self) -> Integers:
        """(sequences)"""
        return np.diff(self.offsets)

    def padded(self, indices: Integers) -> Padded:
        """The chosen sequences."""
        starts, lengths = self.offsets[indices], self.lengths_of(indices)
        positions = np.arange(int(lengths.max(initial=0)))
        is_token = positions < lengths[:, None]  # (batch, longest)
        ids = np.full(is_token.shape, PAD_ID, dtype=np.int64)
        ids[is_token] = self.ids[(starts[:, None] + positions)[is_token]]
        return Padded(torch.from_numpy(ids), torch.from_numpy(lengths))

    def lengths_of(self, indices: Integers) -> Integers:
        """(batch)"""
        return self.offsets[indices + 1] - self.offsets[indices]


class PairDataset(Dataset[Batch]):
    """Batches of pairs; for a masked model, the context is `x </s> template` with a template drawn from the batch's seed."""

    def __init__(self, split: datasets.Dataset, *, masked: bool) -> None:
        self.context = Sequences.from_column(split, "context_ids")
        self.target = Sequences.from_column(split, "target_ids")
        self.masked = masked

    def __len__(self) -> int:
        return len(self.target.lengths)

    def __getitem__(self, key: BatchKey) -> Batch:
        own = key.indices[key.own]
        context, target = self.context.padded(own), self.target.padded(own)
        if self.masked:
            # Drawn for the whole batch and then cut, so that templates do not depend on the number of processes.
            seed = np.random.SeedSequence(key.seed).generate_state(1, np.uint64)[0]
            generator = torch.Generator().manual_seed(int(seed))
            template = blank_out(self.target.padded(key.indices), generator=generator).ids[key.own]
            context = concatenate(context, Padded(template[:, : target.ids.shape[1]], target.lengths))
        return Batch(context, target)
