"""How likely the evaluator finds sentences. It was trained apart, with a seed of its own, and no method ever searched it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch

from tigs.data.batch import pad
from tigs.data.vocabulary import Vocabulary
from tigs.errors import EvaluationError
from tigs.inference.interfaces import SequenceModel
from tigs.inference.score import token_nll
from tigs.progress import track
from tigs.training.checkpoint import identify, load_model, require_kind

_BATCH_SIZE = 256
# What stands in files is exactly what figures are made of, and the same on every machine: scores are made in double precision,
# where machines and batches differ in the 14th digit.
_DIGITS = 6

Tokens = Sequence[str]


@dataclass(frozen=True)
class Evaluator:
    """A model that scores, and what it says about itself."""

    network: torch.nn.Module
    vocabulary: Vocabulary
    device: torch.device
    task: str
    corpus: str
    about: dict[str, Any]
    """`path`, `hash`, `validation_nll`."""

    @classmethod
    def load(cls, path: Path, *, accelerator: str = "cpu") -> Evaluator:
        """From its checkpoint.

        Args:
            path: of the checkpoint.
            accelerator: `cpu`; anything else takes a GPU if there is one.
        """
        model = load_model(path)
        use_gpu = accelerator != "cpu" and torch.cuda.is_available()
        device = torch.device("cuda" if use_gpu else "cpu")
        description = model.description
        require_kind(description, path, task=description.task, model="evaluator")
        network = model.network.double().to(device)
        return cls(network, model.vocabulary, device, description.task, description.corpus, identify(path, description))

    def score(self, contexts: Sequence[Tokens], sentences: Sequence[Tokens]) -> list[tuple[float, ...]]:
        """NLL of each token of each sentence, in nats; the last of each is that of `</s>`.

        Raises:
            EvaluationError: if the model answers with something that is no number.
        """
        # Sentences of like length together, so that little is padded.
        order = sorted(range(len(sentences)), key=lambda index: len(sentences[index]))
        batches = [order[first : first + _BATCH_SIZE] for first in range(0, len(order), _BATCH_SIZE)]
        scores: list[tuple[float, ...]] = [()] * len(sentences)
        for batch in track(batches, "Scoring", total=len(batches)):
            context = pad([self.vocabulary.encode(contexts[index]) for index in batch]).to(self.device)
            target = pad([self.vocabulary.encode(sentences[index]) for index in batch]).to(self.device)
            per_token = token_nll(cast(SequenceModel, self.network), context, target)  # (batch, longest + 1)
            if not per_token.isfinite().all():
                raise EvaluationError(
                    f"{self.about['path']}: the evaluator gives a sentence an NLL that is no number",
                    remedy="Delete its folder and train it again with a lower trainer.learning_rate",
                )
            for index, row in zip(batch, per_token.tolist(), strict=True):
                scores[index] = tuple(round(nll, _DIGITS) for nll in row[: len(sentences[index]) + 1])
        return scores
