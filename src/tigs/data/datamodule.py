"""The two DataModules: pairs to fit a model, templates to fill."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pytorch_lightning as lightning
import torch
from torch.utils.data import DataLoader, Sampler

from tigs.config import Config
from tigs.data.batch import Batch, Padded, pad
from tigs.data.bucket import BucketSampler
from tigs.data.dataset import PairDataset
from tigs.data.prepare import PreparedData, prepare
from tigs.data.test_sets import TestItem, TestSet
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
    """The test sets of a task, one loader each, in batches of like length. Each process gets its own part, without repeats."""

    def __init__(self, config: Config, *, batch_size: int) -> None:
        super().__init__(config)
        self.batch_size = batch_size

    def predict_dataloader(self) -> list[DataLoader[TemplateBatch]]:
        """In the order of `PreparedData.test_sets()`."""
        return [self._loader(test_set) for test_set in self.prepared.test_sets()]

    def transfer_batch_to_device(
        self, batch: TemplateBatch, device: torch.device, dataloader_idx: int
    ) -> TemplateBatch:
        """Only the tensors move."""
        return TemplateBatch(batch.items, batch.context.to(device), batch.target.to(device))

    def _loader(self, test_set: TestSet) -> DataLoader[TemplateBatch]:
        rank, n_processes = self._place()
        vocabulary = self.prepared.vocabulary
        return DataLoader(
            test_set.items,  # type: ignore[arg-type]
            batch_size=self.batch_size,
            sampler=_LengthOrder(test_set.items, rank, n_processes),
            collate_fn=lambda items: TemplateBatch.make(items, vocabulary),
        )


class _LengthOrder(Sampler[int]):
    """The items of one process, shortest first."""

    def __init__(self, items: Iterable[TestItem], rank: int, n_processes: int) -> None:
        lengths = [len(item.template.tokens) for item in items]
        self.order = sorted(range(len(lengths)), key=lengths.__getitem__)[rank::n_processes]

    def __iter__(self) -> Iterator[int]:
        return iter(self.order)

    def __len__(self) -> int:
        return len(self.order)
