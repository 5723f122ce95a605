"""Predictions on their way to a file: every process appends to a part of its own as batches finish.

A part is never written to again by a later command, so whatever a kill has left of its last line is simply passed over, and
parts of any number of processes can be read together.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import pytorch_lightning as lightning
from pytorch_lightning.callbacks import BasePredictionWriter

from tigs.errors import PredictionError, disk_errors
from tigs.inference.predictions import Prediction, prediction_from_line, to_line


class PartWriter(BasePredictionWriter):
    """Appends the predictions of each batch to this process's part."""

    def __init__(self, folder: Path) -> None:
        super().__init__(write_interval="batch")
        self.folder = folder
        self._command = uuid.uuid4().hex[:8]

    def write_on_batch_end(
        self,
        trainer: lightning.Trainer,
        pl_module: lightning.LightningModule,
        prediction: list[Prediction],
        batch_indices: Sequence[int] | None,
        batch: Any,
        batch_idx: int,
        dataloader_idx: int,
    ) -> None:
        """Called by Lightning. Closed every time, so that nothing waits in a buffer."""
        with write_errors(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            path = self.folder / f"{trainer.global_rank}-{self._command}.jsonl"
            with path.open("a", encoding="utf-8") as stream:
                stream.write("".join(map(to_line, prediction)))


def read_parts(folder: Path) -> dict[str, Prediction]:
    """All predictions in the parts, by the id of their template; lines that are damaged or cut off are left out."""
    predictions = {}
    for path in sorted(folder.glob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            try:
                prediction = prediction_from_line(line.decode(), str(path))
            except (PredictionError, UnicodeDecodeError):
                continue
            predictions[prediction.id] = prediction
    return predictions


def write_errors(folder: Path) -> AbstractContextManager[None]:
    """Around whatever writes predictions."""
    return disk_errors(
        PredictionError,
        f"{folder}: cannot write the predictions",
        remedy="Make room or make it writable, or set output_dir to another folder; the same command goes on",
    )
