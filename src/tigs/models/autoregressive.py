"""What every network that reads a sentence from one end offers to those who search in it: `inference/interfaces.py` asks for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import torch
from torch import Tensor, nn

from tigs.data.batch import Padded
from tigs.data.special import START_ID
from tigs.models.attention import Encoder, encode
from tigs.models.decoder import Decoder, DecoderState
from tigs.models.nll import NLL, least_nll, projected_nll


class Autoregressive(ABC):
    """P(y | x), one token after the other, over the words of `embedding` and `projection`. Holds no weights of its own."""

    first_token: int = START_ID
    embedding: nn.Embedding
    projection: nn.Linear

    @property
    def word_vectors(self) -> Tensor:
        """(vocabulary, hidden) the input vectors of all words."""
        return self.embedding.weight

    @abstractmethod
    def start(self, context: Padded) -> Any:
        """The state before the first token is read, one row per context."""

    @abstractmethod
    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read one token per row, ids (batch) or vectors (batch, hidden); the output predicts the next token."""

    @abstractmethod
    def run(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read a whole suffix, ids (batch, time) or vectors (batch, time, hidden)."""

    def embed(self, tokens: Tensor) -> Tensor:
        """Vectors (..., hidden) of ids; vectors are passed through, so a search may feed either."""
        return tokens if tokens.is_floating_point() else self.embedding(tokens)

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """(..., vocabulary) of the next token, from outputs (..., hidden)."""
        return torch.log_softmax(self.projection(outputs), dim=-1)

    def nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        """NLL of targets (tokens), from outputs (tokens, hidden); no batch of logits is held."""
        return projected_nll(outputs, self.projection, targets)

    def least_nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(tokens) what the NLL of each target is at least, for a fraction of its price."""
        return least_nll(outputs, self.projection, targets)


class Recurrent(Autoregressive):
    """The same with the recurrent decoder behind it."""

    dropout: nn.Dropout
    encoder: Encoder | None
    decoder: Decoder

    def start(self, context: Padded) -> DecoderState:
        """The state before the first token is read, one row per context."""
        return self.decoder.start(len(context.lengths), *encode(self.encoder, context))

    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read one token per row, ids (batch) or vectors (batch, hidden); the output predicts the next token."""
        return self.decoder.step(state, self.dropout(self.embed(tokens)))

    def run(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read a whole suffix, ids (batch, time) or vectors (batch, time, hidden)."""
        return self.decoder.run(state, self.dropout(self.embed(tokens)))
