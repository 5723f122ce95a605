"""Batches of sentences of like length, the same for any number of processes.

A global batch is cut among the processes, so two processes with half a batch each see what one process would see. An epoch's
batches depend on the seed and the epoch alone: a training that goes on after an interruption sees the batches it would have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from torch.utils.data import Sampler

from tigs.errors import ConfigError, DataError

# Sentences are sorted by length within pools of this many batches: enough to waste little padding, and still shuffled.
_POOL_BATCHES = 50


class BatchKey(NamedTuple):
    """Which sentences make a batch over all processes, which of them are this process's, and the seed of random choices."""

    indices: npt.NDArray[np.int64]
    seed: tuple[int, ...]
    own: slice = slice(None)


class BucketSampler(Sampler[BatchKey]):
    """Yields one key per batch; Lightning tells it the epoch."""

    def __init__(
        self,
        lengths: Sequence[npt.NDArray[np.int64]],
        *,
        batch_size: int,
        seed: int,
        shuffle: bool,
        rank: int = 0,
        n_processes: int = 1,
        bucketed: bool = True,
    ) -> None:
        """Prepare to batch.

        Args:
            lengths: the sort keys, the most costly length first, each (sentences).
            batch_size: sentences per batch over all processes together.
            seed: of the shuffling.
            shuffle: new batches every epoch; otherwise always the same, and none is left out.
            rank: this process.
            n_processes: all processes.
            bucketed: false leaves the sentences as the shuffling put them (for measuring what bucketing saves).
        """
        self.lengths, self.batch_size, self.seed, self.shuffle = lengths, batch_size, seed, shuffle
        self.rank, self.n_processes, self.bucketed = rank, n_processes, bucketed
        self.epoch = 0
        if batch_size < n_processes:
            raise ConfigError(
                f"trainer.batch_size={batch_size} is less than a sentence for each of {n_processes} processes",
                remedy="Raise it, or lower trainer.devices",
            )
        if len(lengths[0]) < n_processes:
            raise DataError(
                f"{len(lengths[0])} sentences are too few for {n_processes} processes",
                remedy="Lower trainer.devices, or give more data",
            )
        self._n_batches = len(self._global_batches())

    def set_epoch(self, epoch: int) -> None:
        """Called by Lightning before each epoch."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self._n_batches

    def __iter__(self) -> Iterator[BatchKey]:
        epoch = self.epoch if self.shuffle else 0
        for number, indices in enumerate(self._global_batches()):
            yield BatchKey(indices, (self.seed, epoch, number), slice(self.rank, None, self.n_processes))

    def _global_batches(self) -> list[npt.NDArray[np.int64]]:
        generator = np.random.default_rng((self.seed, self.epoch))
        n_sentences = len(self.lengths[0])
        order = generator.permutation(n_sentences) if self.shuffle else np.arange(n_sentences)
        pool = self.batch_size * _POOL_BATCHES if self.shuffle else n_sentences
        batches = []
        for first in range(0, n_sentences, pool):
            part = order[first : first + pool]
            if self.bucketed:
                # lexsort's last key is the first to count.
                part = part[np.lexsort([length[part] for length in reversed(self.lengths)])]
            batches += [part[start : start + self.batch_size] for start in range(0, len(part), self.batch_size)]
        # Every process must have a sentence in every batch, or the others would wait for it for ever.
        if len(batches[-1]) < self.n_processes:
            rest = batches.pop()
            if not self.shuffle:
                batches[-1] = np.concatenate([batches[-1], rest])
        return [batches[number] for number in generator.permutation(len(batches))] if self.shuffle else batches
