"""Run as a program: one training step under Lightning with a number of processes; leaves the gradient in a file."""

from __future__ import annotations

import sys

import pytorch_lightning as lightning
import torch

from tigs.composition import compose
from tigs.data.datamodule import FitDataModule
from tigs.models.build import build_model
from tigs.training.module import TrainingModule


class SaveGradient(lightning.Callback):
    def __init__(self, path):
        self.path = path

    def on_before_optimizer_step(self, trainer, module, optimizer):
        if trainer.is_global_zero:
            torch.save({name: value.grad for name, value in module.named_parameters()}, self.path)


def main(n_processes, path, words):
    config = compose(words)
    data = FitDataModule(config, masked=False)
    torch.manual_seed(0)
    network = build_model(config.model, n_tokens=len(data.prepared.vocabulary), has_context=True)
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=n_processes,
        strategy="ddp" if n_processes > 1 else "auto",
        max_steps=1,
        limit_val_batches=0,
        callbacks=[SaveGradient(path)],
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        use_distributed_sampler=False,
    )
    trainer.fit(TrainingModule(network, config, data.prepared), datamodule=data)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
