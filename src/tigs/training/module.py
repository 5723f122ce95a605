"""The LightningModule around any of the models: loss, optimiser, validation figures. Networks know nothing of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytorch_lightning as lightning
import torch
from torch import Tensor, nn
from torchmetrics import MeanMetric

from tigs.config import Config
from tigs.data.batch import Batch
from tigs.data.prepare import PreparedData
from tigs.models.build import count_parameters
from tigs.models.nll import NLL
from tigs.training.checkpoint import describe
from tigs.training.schedule import learning_rate_factor

MONITOR = "validation/nll"
_SECONDS = "trained_seconds"


class TrainingModule(lightning.LightningModule):
    """Minimises the NLL per token of whatever heads a model has; validates on its first, `nll`."""

    def __init__(self, model: nn.Module, config: Config, prepared: PreparedData) -> None:
        super().__init__()
        self.model = model
        self.config = config
        self.prepared = prepared
        self.validation_means: dict[str, MeanMetric] = {}
        self._tokens_since, self._time_since = 0, time.monotonic()
        self._seconds_before, self._started = 0.0, time.monotonic()

    @property
    def trained_seconds(self) -> float:
        """Since the training began, interruptions not counted."""
        return self._seconds_before + time.monotonic() - self._started

    def on_train_batch_start(self, batch: Batch, batch_index: int) -> None:
        """Dropout of an epoch depends on seed and epoch alone, so a resumed training equals an undisturbed one.

        Not in `on_train_epoch_start`, which Lightning leaves out in the first epoch after a continuation.
        """
        if batch_index == 0:
            seed = self.config.seed + self.config.model.seed_offset
            torch.manual_seed(1_000_003 * seed + 1009 * self.current_epoch + self.global_rank)
            self._tokens_since, self._time_since = 0, time.monotonic()

    def training_step(self, batch: Batch, batch_index: int) -> Tensor:
        """The mean over the tokens of the global batch, however these are spread over processes."""
        nlls: Mapping[str, NLL] = self.model(batch)
        n_tokens = len(nlls["nll"].per_token)
        # DDP averages gradients over processes, so each divides by the mean number of tokens per process.
        mean_tokens = self._mean_over_processes(n_tokens)
        loss = torch.stack([nll.total for nll in nlls.values()]).sum() / mean_tokens
        self._tokens_since += n_tokens
        if self._logs_this_step():
            self._log_step(nlls["nll"].per_token)
        return loss

    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Clip by the global norm, which is logged on the way."""
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.config.trainer.gradient_clip)
        if self._logs_this_step():
            self.log("train/gradient_norm", norm)

    def on_validation_epoch_start(self) -> None:
        """Forget the last validation."""
        for metric in self.validation_means.values():
            metric.reset()

    def validation_step(self, batch: Batch, batch_index: int) -> None:
        """Add to the figures of each head."""
        for name, nll in self.model(batch).items():
            if name not in self.validation_means:
                self.validation_means[name] = MeanMetric().to(self.device)
            self.validation_means[name].update(nll.per_token)

    def on_validation_epoch_end(self) -> None:
        """NLL per token over the whole split and all processes."""
        for name, metric in self.validation_means.items():
            self.log(f"validation/{name}", metric.compute(), prog_bar=name == "nll", sync_dist=True)
        self.log("validation/perplexity", self.validation_means["nll"].compute().exp(), sync_dist=True)

    def configure_optimizers(self) -> Any:
        """Adam under the schedule."""
        settings = self.config.trainer
        optimizer = torch.optim.Adam(self.model.parameters(), lr=settings.learning_rate, fused=True)
        total_steps = int(self.trainer.estimated_stepping_batches)
        scheduler = torch.optim.lr_scheduler.LambdaLR(
            optimizer,
            lambda step: learning_rate_factor(step, total_steps=total_steps, warmup_steps=settings.warmup_steps),
        )
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": scheduler, "interval": "step"}}

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Every checkpoint says what it is."""
        checkpoint[_SECONDS] = self.trained_seconds
        checkpoint |= describe(
            self.config,
            self.prepared,
            n_parameters=count_parameters(self.model),
            epochs=self.current_epoch + 1,
            validation_nll=float(self.trainer.callback_metrics.get(MONITOR, float("nan"))),
        )

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """The clock goes on where it stopped."""
        self._seconds_before, self._started = checkpoint[_SECONDS], time.monotonic()

    def _mean_over_processes(self, n_tokens: int) -> Tensor:
        count = torch.tensor(float(n_tokens), device=self.device)
        return self.trainer.strategy.reduce(count, reduce_op="mean") if self.trainer.world_size > 1 else count

    def _logs_this_step(self) -> bool:
        """Whether Lightning writes a row after this step; what was logged at other steps would be stale by then."""
        return (self.trainer.global_step + 1) % int(getattr(self.trainer, "log_every_n_steps", 1)) == 0

    def _log_step(self, per_token: Tensor) -> None:
        now = time.monotonic()
        nll = per_token.mean()
        self.log("train/nll", nll, prog_bar=True, sync_dist=True)
        self.log("train/perplexity", nll.exp(), sync_dist=True)
        self.log("train/learning_rate", self.trainer.optimizers[0].param_groups[0]["lr"])
        rate = self._tokens_since * self.trainer.world_size / max(now - self._time_since, 1e-9)
        self.log("train/tokens_per_second", rate)
        self._tokens_since, self._time_since = 0, now
