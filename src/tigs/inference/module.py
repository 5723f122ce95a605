"""The LightningModule around a method: a batch of templates in, predictions out. Searches know nothing of it."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from typing import cast

import pytorch_lightning as lightning
from torch import nn

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.data.datamodule import TemplateBatch
from tigs.data.special import BLANK_ID
from tigs.data.test_sets import TestItem
from tigs.data.vocabulary import Vocabulary
from tigs.errors import InferenceError
from tigs.inference.interfaces import FillResult, FreeWriter, Infiller, SequenceModel, Templates
from tigs.inference.methods import build_infiller, models_of
from tigs.inference.predictions import Prediction
from tigs.inference.score import sentence_nll

FORWARD = "forward"


class InferenceModule(lightning.LightningModule):
    """Runs one method. With a network called `forward`, all answers are scored by it, whatever model found them."""

    def __init__(
        self, settings: MethodConfig, networks: Mapping[str, nn.Module], vocabulary: Vocabulary, *, seed: int
    ) -> None:
        super().__init__()
        self.settings, self.vocabulary, self.seed = settings, vocabulary, seed
        self.networks = dict(networks)
        # So that they move to the device; not a ModuleDict, in which nothing can be called `forward`.
        self.registered = nn.ModuleList(networks.values())
        self.infiller = self._build()

    def on_predict_start(self) -> None:
        """Once more, now that the networks are on their device."""
        self.infiller = self._build()

    def predict_step(self, batch: TemplateBatch, batch_idx: int, dataloader_idx: int = 0) -> list[Prediction]:
        """Fill the templates of a batch."""
        started = time.perf_counter()
        ids = tuple(item.template.id for item in batch.items)
        templates = Templates(ids, batch.context, batch.target)
        results = self.infiller.fill(templates)
        seconds = (time.perf_counter() - started) / len(ids)
        predictions = [
            self._prediction(item, result, forward_nll, seconds)
            for item, result, forward_nll in zip(batch.items, results, self._forward_nlls(batch, results), strict=True)
        ]
        if isinstance(self.infiller, FreeWriter):
            for prediction, written in zip(predictions, self.infiller.write_freely(templates), strict=True):
                prediction.unforced = tuple(self.vocabulary.decode(written))
        return predictions

    def _build(self) -> Infiller:
        return build_infiller(self.settings, self.networks, seed=self.seed)

    def _forward_nlls(self, batch: TemplateBatch, results: list[FillResult]) -> list[float] | list[None]:
        if FORWARD not in self.networks:
            return [None] * len(results)
        sentences = batch.target.ids.clone()  # (batch, longest)
        sentences[sentences == BLANK_ID] = sentences.new_tensor([word for result in results for word in result.fill])
        model = cast(SequenceModel, self.networks[FORWARD])
        return sentence_nll(model, batch.context, Padded(sentences, batch.target.lengths)).tolist()

    def _prediction(self, item: TestItem, result: FillResult, forward_nll: float | None, seconds: float) -> Prediction:
        self._require_number(item.template.id, result.nll, models_of(self.settings.name))
        self._require_number(item.template.id, forward_nll, (FORWARD,))
        words = self.vocabulary.decode
        return Prediction(
            id=item.template.id,
            context=item.template.context,
            template=item.template.tokens,
            reference=item.reference,
            fill=tuple(words(result.fill)),
            nll=result.nll,
            forward_nll=forward_nll,
            trace=result.trace,
            rounds=result.rounds,
            model_steps=result.model_steps,
            seconds=round(seconds, 6),
            alternatives=tuple((" ".join(words(other.fill)), other.nll) for other in result.alternatives[1:]),
        )

    def _require_number(self, template: str, nll: float | None, models: tuple[str, ...]) -> None:
        if nll is None or math.isfinite(nll):
            return
        broken = [name for name in models if not all(p.isfinite().all() for p in self.networks[name].parameters())]
        suspects = " and ".join(broken or models)
        raise InferenceError(
            f"template {template}: the model {suspects} gives it an NLL of {nll}",
            remedy=f"Train {suspects} again, with a lower trainer.learning_rate; what was filled before is kept",
        )
