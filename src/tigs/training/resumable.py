"""What Lightning needs so that a killed, moved or requeued training goes on as if nothing had happened."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
import torch
from lightning_fabric.plugins.environments.slurm import SLURMEnvironment
from pytorch_lightning.callbacks import EarlyStopping, ModelCheckpoint
from pytorch_lightning.plugins import TorchCheckpointIO


class AtomicCheckpointIO(TorchCheckpointIO):
    """Saves beside the target and renames.

    Lightning's own way goes through the system's folder for temporary files, and if that is on another disk the last step is
    a copy, which a kill can cut short.
    """

    def save_checkpoint(self, checkpoint: dict[str, Any], path: Any, storage_options: Any | None = None) -> None:
        """Called by Lightning."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f"{target.name}.part")
        with part.open("wb") as handle:
            torch.save(checkpoint, handle)
            os.fsync(handle.fileno())
        part.replace(target)


class MovableCheckpoint(ModelCheckpoint):
    """Knows its best score even when the folder was moved since; Lightning's forgets it and takes the next epoch for the best."""

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Called by Lightning."""

        def moved(path: str) -> str:
            return str(Path(self.dirpath or "") / Path(path).name) if path else path

        state = {**state_dict, "dirpath": self.dirpath}
        for name in ("best_model_path", "kth_best_model_path", "last_model_path"):
            state[name] = moved(state[name])
        state["best_k_models"] = {moved(path): score for path, score in state_dict["best_k_models"].items()}
        super().load_state_dict(state)


class RememberingEarlyStopping(EarlyStopping):
    """Stays stopped: a training killed between its last epoch and its end does not train on."""

    def on_train_start(self, trainer: lightning.Trainer, pl_module: lightning.LightningModule) -> None:
        """Called by Lightning, after the state was loaded."""
        if self.wait_count >= self.patience:
            trainer.should_stop = True


def plugins() -> list[Any]:
    """For the Trainer. SLURM's own requeueing is off: its checkpoint would be loaded into whatever model comes first."""
    cluster = [SLURMEnvironment(auto_requeue=False)] if SLURMEnvironment.detect() else []
    return [AtomicCheckpointIO(), *cluster]
