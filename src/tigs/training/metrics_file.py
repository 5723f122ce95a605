"""Every figure of a training in a local CSV, one a line, so that nothing needs W&B.

Lightning's own CSV logger starts its file anew when a training goes on after an interruption; this one keeps what was there.
"""

from __future__ import annotations

import csv
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytorch_lightning.loggers.logger import Logger
from pytorch_lightning.utilities.rank_zero import rank_zero_only

COLUMNS = ("epoch", "step", "name", "value")


class MetricsFile(Logger):
    """Appends to a file with the columns epoch, step, name and value."""

    def __init__(self, path: Path, *, first_step: int) -> None:
        """Open the file.

        Args:
            path: of the CSV.
            first_step: rows of this step and later belong to what an interruption undid, and go.
        """
        super().__init__()
        self.path = path
        self._keep_rows_before(first_step)

    @property
    def name(self) -> str:
        """Lightning asks for it."""
        return ""

    @property
    def version(self) -> str:
        """Lightning asks for it."""
        return ""

    @property
    def save_dir(self) -> str:
        """The folder of the file."""
        return str(self.path.parent)

    @rank_zero_only
    def log_metrics(self, metrics: Mapping[str, float], step: int | None = None) -> None:
        """Append and close, so that a killed training leaves whole lines."""
        figures = dict(metrics)
        epoch = int(figures.pop("epoch", 0))
        with self.path.open("a", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows((epoch, step, name, value) for name, value in figures.items())

    @rank_zero_only
    def log_hyperparams(self, params: dict[str, Any] | Namespace, *args: Any, **kwargs: Any) -> None:
        """The configuration stands beside, in `config.yaml`."""

    @rank_zero_only
    def _keep_rows_before(self, first_step: int) -> None:
        rows: list[list[str]] = []
        if self.path.is_file():
            with self.path.open(encoding="utf-8", newline="") as stream:
                # A line that a full disk cut short is no figure.
                whole = [row for row in csv.reader(stream) if len(row) == len(COLUMNS) and row[1].isdigit()]
                rows = [row for row in whole if int(row[1]) < first_step]
        with self.path.open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([COLUMNS, *rows])
