"""Train one model, from whatever state its folder is in: nothing, interrupted, or finished."""

from __future__ import annotations

import json
import logging
import math
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import Callback, RichProgressBar
from pytorch_lightning.loggers import Logger
from pytorch_lightning.utilities.exceptions import MisconfigurationException

from tigs import tracking
from tigs.composition import save, to_plain
from tigs.config import PLACES, Config
from tigs.console import say
from tigs.data.datamodule import FitDataModule
from tigs.data.prepare import PreparedData
from tigs.errors import CheckpointError, ConfigError, disk_errors
from tigs.models.build import MASKED_MODELS, build_model
from tigs.training.checkpoint import description_in, has_context, read_checkpoint, read_description, require_fit
from tigs.training.metrics_file import MetricsFile
from tigs.training.module import MONITOR, TrainingModule
from tigs.training.resumable import MovableCheckpoint, RememberingEarlyStopping, plugins
from tigs.training.sample_fills import SampleFills
from tigs.validation import flatten

BEST, LAST = "best", "last"
_FINISHED = "finished.json"
# What may differ between a training and its continuation: where it runs and what it is tested on, not what it learns.
_FREE_SETTINGS = (*PLACES, "test_sets.", "method.", "eval.", "trainer.sample_fills")


@dataclass(frozen=True)
class TrainedModel:
    """A finished training."""

    model: str
    parameters: int
    epochs: int
    best_epoch: int
    validation_nll: float
    """per token, at the best epoch"""
    minutes: float
    checkpoint: str
    skipped: bool = False
    """It had been finished before."""


def model_folder(config: Config) -> Path:
    """Where a model and everything about its training stands."""
    return Path(config.output_dir) / config.task.name / config.profile / "models" / config.model.name


def train_model(config: Config) -> TrainedModel:
    """Train the configured model, or go on where it was interrupted, or find that it is finished."""
    folder = model_folder(config)
    data = FitDataModule(config, masked=config.model.name in MASKED_MODELS)
    finished = _read_finished(folder)
    if finished is not None:
        _read_same_training(config, data.prepared, folder / f"{BEST}.ckpt")
        return finished
    last = folder / f"{LAST}.ckpt"
    first_step = _read_same_training(config, data.prepared, last)["global_step"] if last.is_file() else 0
    with _write_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
        save(config, folder / "config.yaml")
    return _fit(config, data, folder, first_step=first_step)


def _fit(config: Config, data: FitDataModule, folder: Path, *, first_step: int) -> TrainedModel:
    last = folder / f"{LAST}.ckpt"
    lightning.seed_everything(config.seed + config.model.seed_offset, workers=True, verbose=False)
    network = build_model(config.model, n_tokens=len(data.prepared.vocabulary), has_context=has_context(data.prepared))
    module = TrainingModule(network, config, data.prepared)
    try:
        with quiet_lightning(), device_errors(), _write_errors(folder):
            trainer = make_trainer(config, data.prepared, folder, first_step=first_step)
            trainer.fit(module, datamodule=data, ckpt_path=last if last.is_file() else None, weights_only=True)
            return _finish(trainer, folder, minutes=module.trained_seconds / 60)
    except SystemExit as stop:  # how Lightning ends after Ctrl-C
        say("The same command goes on from the last finished epoch")
        raise KeyboardInterrupt from stop
    finally:
        tracking.finish()


def make_trainer(config: Config, prepared: PreparedData, folder: Path, *, first_step: int) -> lightning.Trainer:
    """The Trainer that all models share; `first_step` is how many steps an interrupted training has made."""
    settings = config.trainer
    callbacks: list[Callback] = [
        SampleFills(config, prepared, folder),
        RememberingEarlyStopping(MONITOR, patience=settings.patience),
        MovableCheckpoint(folder, BEST, monitor=MONITOR, save_weights_only=True, enable_version_counter=False),
        # At the end of the epoch, when every other callback has seen it, so that a continuation knows all they know.
        MovableCheckpoint(folder, LAST, save_on_train_epoch_end=True, enable_version_counter=False),
    ]
    shows_progress = sys.stderr.isatty()
    if shows_progress:
        callbacks.append(RichProgressBar(console_kwargs={"stderr": True}))
    loggers: list[Logger] = [MetricsFile(folder / "metrics.csv", first_step=first_step)]
    wandb_logger = tracking.make_logger(config, name=config.model.name, job_type="train", folder=folder)
    if wandb_logger is not None:
        loggers.append(wandb_logger)
    return lightning.Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy=settings.strategy,
        precision=settings.precision,  # type: ignore[arg-type]
        plugins=plugins(),
        max_epochs=settings.max_epochs,
        callbacks=callbacks,
        logger=loggers,
        default_root_dir=folder,
        log_every_n_steps=max(1, min(50, prepared.summary["pairs"]["train"] // settings.batch_size)),
        num_sanity_val_steps=0,
        use_distributed_sampler=False,
        enable_model_summary=False,
        enable_progress_bar=shows_progress,
    )


def _finish(trainer: lightning.Trainer, folder: Path, *, minutes: float) -> TrainedModel:
    best = folder / f"{BEST}.ckpt"
    description = read_description(best)
    if not math.isfinite(description.validation_nll):
        raise CheckpointError(
            f"{folder}: the training diverged, its validation NLL is {description.validation_nll}",
            remedy="Delete the folder and train again with a lower trainer.learning_rate",
        )
    trained = TrainedModel(
        model=description.model,
        parameters=description.n_parameters,
        epochs=trainer.current_epoch,
        best_epoch=description.epochs,
        validation_nll=description.validation_nll,
        minutes=round(minutes, 2),
        checkpoint=str(best),
    )
    if trainer.is_global_zero:
        unfinished = folder / f"{_FINISHED}.part"
        unfinished.write_text(json.dumps(asdict(trained), indent=2) + "\n", encoding="utf-8")
        unfinished.replace(folder / _FINISHED)
    return trained


def _read_finished(folder: Path) -> TrainedModel | None:
    """What an earlier command finished here, if its checkpoint is still there."""
    best = folder / f"{BEST}.ckpt"
    try:
        values = json.loads((folder / _FINISHED).read_text(encoding="utf-8"))
        finished = TrainedModel(**{**values, "checkpoint": str(best), "skipped": True})
    except (OSError, ValueError, TypeError):
        return None
    return finished if best.is_file() else None


def _read_same_training(config: Config, prepared: PreparedData, path: Path) -> dict[str, Any]:
    """The raw checkpoint; refuse to go on with, or to pass off as this one, a training under other settings."""
    checkpoint = read_checkpoint(path)
    description = description_in(checkpoint)
    require_fit(description, prepared, path)
    before, now = flatten(description.config), flatten(to_plain(config))
    # A setting that did not exist yet cannot have been another one.
    changed = [key for key in before if now.get(key) != before[key] and not key.startswith(_FREE_SETTINGS)]
    if changed:
        differences = ", ".join(f"{key}={now.get(key)} (was {before[key]})" for key in changed)
        raise CheckpointError(
            f"{path}: this model was trained with other settings: {differences}",
            remedy="Delete its folder to train anew, or set output_dir to keep both",
        )
    return checkpoint


@contextmanager
def device_errors() -> Iterator[None]:
    """A machine without the devices that the settings ask for is the user's to know about."""
    try:
        yield
    except (MisconfigurationException, TypeError, ValueError) as error:
        if not isinstance(error, MisconfigurationException) and not _is_about_devices(error):
            raise
        raise ConfigError(
            f"trainer.accelerator, devices, nodes or strategy do not fit this machine ({str(error).splitlines()[0]})",
            remedy="Without a GPU set trainer.accelerator=cpu trainer.devices=1, or use another profile",
        ) from error


def _is_about_devices(error: Exception) -> bool:
    """Lightning has no exception of its own for a wrong number of devices."""
    return any(word in str(error) for word in ("`devices", "--ntasks", "num_nodes", "torchrun"))


def _write_errors(folder: Path) -> AbstractContextManager[None]:
    return disk_errors(
        CheckpointError,
        f"{folder}: cannot write the training",
        remedy="Make room or make it writable, or set output_dir to another folder; what was saved is kept",
    )


@contextmanager
def quiet_lightning() -> Iterator[None]:
    """Without the tips and device lists that Lightning prints for every Trainer; warnings that matter stay."""
    loggers = [logging.getLogger(name) for name in ("pytorch_lightning", "lightning_fabric", "lightning.pytorch")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.WARNING)
    with warnings.catch_warnings():
        # Batches are made in about a millisecond; workers would only cost.
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")
        # The folder holds config.yaml and, after an interruption, checkpoints: that is meant.
        warnings.filterwarnings("ignore", message=".*exists and is not empty.*")
        warnings.filterwarnings("ignore", message=".*Experiment logs directory.*")
        # Lightning's own use of a torch name that is going away.
        warnings.filterwarnings("ignore", message=".*LeafSpec.*")
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
