"""The two DataModules: pairs to fit a model, templates to fill."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader

from tigs.config import Config
from tigs.data.batch import Batch, Padded, pad
from tigs.data.bucket import BucketSampler
from tigs.data.dataset import PairDataset
from tigs.data.prepare import PreparedData, prepare
from tigs.data.test_sets import TestItem
from tigs.data.vocabulary import Vocabulary


class _PreparedDataModule(lightning.LightningDataModule):
    """Data that every process loads, after whichever comes first has prepared it."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.config = config
        self._prepared: PreparedData | None = None

    @property
    def prepared(self) -> PreparedData:
        """Made now if nobody did before; other processes wait meanwhile."""
        if self._prepared is None:
            self._prepared = prepare(self.config)
        return self._prepared

    def _place(self) -> tuple[int, int]:
        """This process and the number of processes."""
        return (self.trainer.global_rank, self.trainer.world_size) if self.trainer else (0, 1)


class FitDataModule(_PreparedDataModule):
    """Padded, length-bucketed batches of training and validation pairs.

    The Trainer must be made with `use_distributed_sampler=False`: the sampler shares batches among processes itself.
    """

    def __init__(self, config: Config, *, masked: bool) -> None:
        super().__init__(config)
        self.masked = masked

    def train_dataloader(self) -> DataLoader[Batch]:
        """New batches every epoch."""
        return self._loader("train", shuffle=True)

    def val_dataloader(self) -> DataLoader[Batch]:
        """Always the same batches and, for masked models, the same templates."""
        return self._loader("validation", shuffle=False)

    def _loader(self, split: str, *, shuffle: bool) -> DataLoader[Batch]:
        dataset = PairDataset(self.prepared.split(split), masked=self.masked)
        rank, n_processes = self._place()
        sampler = BucketSampler(
            (dataset.target.lengths, dataset.context.lengths),
            batch_size=self.config.trainer.batch_size,
            seed=self.config.seed + self.config.model.seed_offset,
            shuffle=shuffle,
            rank=rank,
            n_processes=n_processes,
        )
        # The sampler's keys are whole batches, hence no batch size; making one takes about a millisecond, hence no workers.
        return DataLoader(dataset, sampler=sampler, batch_size=None)


class TemplateBatch(NamedTuple):
    """Templates to fill together."""

    items: tuple[TestItem, ...]
    context: Padded
    target: Padded
    """The template's ids, `<blank>` in the holes."""

    @classmethod
    def make(cls, items: Sequence[TestItem], vocabulary: Vocabulary) -> TemplateBatch:
        """Pad the templates of some items."""
        contexts = pad([vocabulary.encode(item.template.context) for item in items])
        targets = pad([vocabulary.encode(item.template.tokens) for item in items])
        return cls(tuple(items), contexts, targets)


class PredictDataModule(_PreparedDataModule):
    """Templates in batches of like length that depend neither on the number of processes nor on what was done before.

    So a sentence has the same neighbours, and its figures the same last digit, in every run. The Trainer must be made with
    `use_distributed_sampler=False`: each process takes whole batches of its own.
    """

    def __init__(
        self, config: Config, items: Sequence[TestItem], *, done: Callable[[], Collection[str]] = frozenset
    ) -> None:
        """Hold the templates.

        Args:
            config: names the data, and the size of batches in `eval.batch_size`.
            items: what to fill.
            done: ids of templates to leave out. It is asked by every process before any of them has begun, because
                Lightning lets none go on until all have their loaders; so all of them hear the same.
        """
        super().__init__(config)
        self.items, self.done = items, done
        # With fewer batches than processes some have nothing to do.
        self.allow_zero_length_dataloader_with_multiple_devices = True

    def predict_dataloader(self) -> DataLoader[TemplateBatch]:
        """Shortest first; of a batch that is partly done, the rest."""
        rank, n_processes = self._place()
        done, size = set(self.done()), self.config.eval.batch_size
        by_length = sorted(self.items, key=lambda item: len(item.template.tokens))
        batches = [by_length[first : first + size] for first in range(0, len(by_length), size)]
        left = [[item for item in batch if item.template.id not in done] for batch in batches]
        vocabulary = self.prepared.vocabulary
        return DataLoader(
            [batch for batch in left if batch][rank::n_processes],  # type: ignore[arg-type]
            batch_size=None,
            collate_fn=lambda items: TemplateBatch.make(items, vocabulary),
        )

    def transfer_batch_to_device(
        self, batch: TemplateBatch, device: torch.device, dataloader_idx: int
    ) -> TemplateBatch:
        """Only the tensors move."""
        return TemplateBatch(batch.items, batch.context.to(device), batch.target.to(device))
