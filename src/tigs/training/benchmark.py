"""How fast training is on the CPU, as ratios of things measured side by side in one run: seconds say more about the machine."""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import islice, pairwise
from pathlib import Path

import pytorch_lightning as lightning
import torch
from torch import nn

from tigs.config import Config
from tigs.data.batch import Batch
from tigs.data.bucket import BucketSampler
from tigs.data.datamodule import FitDataModule
from tigs.data.dataset import PairDataset
from tigs.errors import ConfigError
from tigs.models.build import MASKED_MODELS, build_model
from tigs.training.checkpoint import has_context
from tigs.training.fit import quiet_lightning
from tigs.training.memory import peak_memory
from tigs.training.module import TrainingModule

_WARMUP = 3
_STEPS = 12
_REPEATS = 3


@dataclass(frozen=True)
class TrainingBenchmark:
    """What `tigs bench train` measures."""

    lightning_over_bare: float
    """time of our training step under Lightning, over the same step in a bare PyTorch loop"""
    loading_share: float
    """share of a training step that goes into making its batch"""
    padding_bucketed: float
    """share of padded positions in the batches"""
    padding_unbucketed: float
    two_processes_over_one: float
    """sentences a second of two DDP processes with one thread each, over one process with one thread; each process has
    `trainer.batch_size` sentences a step, so that two of them do twice the work"""
    peak_memory_in_logits: float
    """peak memory of a step above weights and optimiser, in units of one batch of logits"""
    sentences_per_second: float
    """of the Lightning loop on this machine, for orientation"""


def benchmark_training(config: Config) -> TrainingBenchmark:
    """Measure on the configured model and data."""
    data = FitDataModule(config, masked=config.model.name in MASKED_MODELS)
    n_batches = 2 * (_WARMUP + _STEPS)  # two processes take twice as many
    if len(data.train_dataloader()) < n_batches:
        raise ConfigError(
            f"the training data makes fewer than the {n_batches} batches that are timed",
            remedy="Give more data, or lower trainer.batch_size",
        )
    bare, framework, loading = [], [], []
    for _ in range(_REPEATS):  # in turn, so that a slow minute of the machine falls on both
        bare.append(_timed(data, _BareLoop(config, data).step))
        framework.append(_lightning_steps(config, data, n_processes=1))
        loading.append(_timed(data, lambda batch: None))
    bare_step, framework_step, loading_step = (_typical(runs) for runs in (bare, framework, loading))
    one, two = (_typical([_one_thread_steps(config, data, n) for _ in range(2)]) for n in (1, 2))
    bucketed, unbucketed = (_padding(config, data, bucketed=flag) for flag in (True, False))
    return TrainingBenchmark(
        lightning_over_bare=framework_step / bare_step,
        loading_share=loading_step / framework_step,
        padding_bucketed=bucketed,
        padding_unbucketed=unbucketed,
        two_processes_over_one=2 * one / two,
        peak_memory_in_logits=_peak_memory(config, data),
        sentences_per_second=config.trainer.batch_size / framework_step,
    )


def _typical(runs: list[list[float]]) -> float:
    """The mean step, each step at the best of its repeats: every run has the same batches, so the rest is disturbance."""
    return statistics.mean(min(times) for times in zip(*runs, strict=True))


def _steps(times: list[float]) -> list[float]:
    """Durations between points in time, without those of the first steps."""
    return [after - before for before, after in pairwise(times)][_WARMUP:]


def _new_module(config: Config, data: FitDataModule) -> TrainingModule:
    torch.manual_seed(config.seed)
    vocabulary = data.prepared.vocabulary
    network = build_model(config.model, n_tokens=len(vocabulary), has_context=has_context(data.prepared))
    return TrainingModule(network, config, data.prepared)


class _BareLoop:
    """The training step as one would write it without a framework."""

    def __init__(self, config: Config, data: FitDataModule) -> None:
        self.network = _new_module(config, data).model.train()
        self.clip = config.trainer.gradient_clip
        self.optimizer = torch.optim.Adam(self.network.parameters(), lr=config.trainer.learning_rate, fused=True)

    def step(self, batch: Batch) -> None:
        nlls = self.network(batch)
        loss = torch.stack([nll.total for nll in nlls.values()]).sum() / len(nlls["nll"].per_token)
        self.optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        self.optimizer.step()


def _timed(data: FitDataModule, work: Callable[[Batch], object]) -> list[float]:
    """Of each step: making a batch, and the work on it."""
    times = [time.perf_counter()]
    for batch in islice(data.train_dataloader(), _WARMUP + _STEPS):
        work(batch)
        times.append(time.perf_counter())
    return _steps(times)


class _StepTimes(lightning.Callback):
    """Writes the time of every step to a file, which a spawned process can leave behind."""

    def __init__(self, path: Path, n_threads: int | None) -> None:
        self.path, self.n_threads = path, n_threads
        self.times: list[float] = []

    def on_train_start(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        if self.n_threads:
            torch.set_num_threads(self.n_threads)
        self.times = [time.perf_counter()]

    def on_train_batch_end(self, trainer: lightning.Trainer, *_: object) -> None:
        self.times.append(time.perf_counter())

    def on_train_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        if trainer.is_global_zero:
            self.path.write_text(json.dumps(_steps(self.times)))


def _lightning_steps(
    config: Config, data: FitDataModule, *, n_processes: int, n_threads: int | None = None
) -> list[float]:
    # A fresh DataModule: one that was attached to a Trainer keeps that Trainer's number of processes.
    data = FitDataModule(config, masked=data.masked)
    with tempfile.TemporaryDirectory() as folder, quiet_lightning():
        path = Path(folder) / "times.json"
        trainer = lightning.Trainer(
            accelerator="cpu",
            devices=n_processes,
            strategy="ddp_spawn" if n_processes > 1 else "auto",
            max_epochs=1,
            limit_train_batches=_WARMUP + _STEPS,
            limit_val_batches=0,
            callbacks=[_StepTimes(path, n_threads)],
            logger=False,
            enable_checkpointing=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            use_distributed_sampler=False,
            log_every_n_steps=50,
        )
        trainer.fit(_new_module(config, data), datamodule=data)
        times: list[float] = json.loads(path.read_text())
    return times


def _one_thread_steps(config: Config, data: FitDataModule, n_processes: int) -> list[float]:
    n_threads = torch.get_num_threads()
    config = replace(config, trainer=replace(config.trainer, batch_size=config.trainer.batch_size * n_processes))
    try:
        return _lightning_steps(config, data, n_processes=n_processes, n_threads=1)
    finally:
        torch.set_num_threads(n_threads)


def _padding(config: Config, data: FitDataModule, *, bucketed: bool) -> float:
    """The share of positions in an epoch's batches that hold no token."""
    dataset = PairDataset(data.prepared.split("train"), masked=False)
    lengths = (dataset.target.lengths, dataset.context.lengths)
    sampler = BucketSampler(
        lengths, batch_size=config.trainer.batch_size, seed=config.seed, shuffle=True, bucketed=bucketed
    )
    n_positions = n_tokens = 0
    for key in sampler:
        for length in lengths:
            n_positions += len(key.indices) * int(length[key.indices].max())
            n_tokens += int(length[key.indices].sum())
    return 1 - n_tokens / n_positions


def _peak_memory(config: Config, data: FitDataModule) -> float:
    """Of the second step; the first has made gradients and optimiser state."""
    loop = _BareLoop(config, data)
    batches = iter(data.train_dataloader())
    loop.step(next(batches))
    loop.optimizer.zero_grad()  # gradients are neither weights nor optimiser, so they count
    batch = next(batches)
    return peak_memory(lambda: loop.step(batch)) / (batch.n_tokens * len(data.prepared.vocabulary) * 4)
