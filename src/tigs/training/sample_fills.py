"""A few validation templates, filled after every epoch: what the model has learned, for people to read."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any, cast

import pytorch_lightning as lightning
import torch
from pytorch_lightning.loggers import WandbLogger

from tigs import tracking
from tigs.config import Config
from tigs.data.batch import Padded, concatenate, pad
from tigs.data.prepare import PreparedData
from tigs.data.template import apply_fill, make_template
from tigs.models.autoregressive import Autoregressive
from tigs.models.birnn import BiRNN
from tigs.models.build import MASKED_MODELS
from tigs.models.greedy import fill_left_to_right, fill_one_by_one
from tigs.training.module import TrainingModule

COLUMNS = ("epoch", "context", "template", "fill", "reference")
_RATIO = 0.5


class SampleFills(lightning.Callback):
    """Fills greedily and shows the result as a W&B table and in `sample_fills.csv`."""

    def __init__(self, config: Config, prepared: PreparedData, folder: Path) -> None:
        self.config, self.folder, self.vocabulary = config, folder, prepared.vocabulary
        n_templates = min(config.trainer.sample_fills, prepared.summary["pairs"]["validation"])
        rows = prepared.split("validation").select(range(n_templates))
        self.references = [tuple(row["target"].split(" ")) for row in rows]
        self.templates = [
            make_template(
                f"validation/{number}",
                tuple(row["context"].split()),
                reference,
                strategy=config.test_sets.strategies[number % len(config.test_sets.strategies)],
                ratio=_RATIO,
                seed=config.test_sets.seed,
            )
            for number, (row, reference) in enumerate(zip(rows, self.references, strict=True))
        ]
        self.rows: list[tuple[object, ...]] = []

    def state_dict(self) -> dict[str, Any]:
        """Earlier epochs' fills, for a training that goes on after an interruption."""
        return {"rows": self.rows}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Called by Lightning."""
        self.rows = list(state_dict["rows"])

    def on_validation_epoch_end(self, trainer: lightning.Trainer, module: lightning.LightningModule) -> None:
        """Fill, on the first process only."""
        if not trainer.is_global_zero or not self.templates or not isinstance(module, TrainingModule):
            return
        for template, reference, fill in zip(self.templates, self.references, self._fill(module), strict=True):
            texts = (template.context, template.tokens, apply_fill(template, fill), reference)
            self.rows.append((trainer.current_epoch, *(" ".join(text) for text in texts)))
        with (self.folder / "sample_fills.csv").open("w", encoding="utf-8", newline="") as stream:
            csv.writer(stream).writerows([COLUMNS, *self.rows])
        for logger in trainer.loggers:
            if isinstance(logger, WandbLogger):
                tracking.log_table(logger, "sample_fills", COLUMNS, self.rows)

    @torch.no_grad()
    def _fill(self, module: TrainingModule) -> list[list[str]]:
        encoded = [self.vocabulary.encode(template.tokens) for template in self.templates]
        context = pad([self.vocabulary.encode(template.context) for template in self.templates]).to(module.device)
        target = pad(encoded).to(module.device)
        filled = _fill_with(module, self.config.model.name, context, target).ids.tolist()
        return [
            self.vocabulary.decode(ids[position] for position in template.blank_positions)
            for ids, template in zip(filled, self.templates, strict=True)
        ]


def _fill_with(module: TrainingModule, name: str, context: Padded, template: Padded) -> Padded:
    network = module.model
    if isinstance(network, BiRNN):
        return fill_one_by_one(network, context, template)
    if name in MASKED_MODELS:
        context = concatenate(context, template)
    reader = cast(Autoregressive, network)
    if name == "backward":
        return fill_left_to_right(reader, context, template.reversed).reversed
    return fill_left_to_right(reader, context, template)
