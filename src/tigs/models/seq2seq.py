"""The attention seq2seq (paper, section 3.1), left to right or right to left, with a context or as a plain language model.

It also serves as Mask-Seq2Seq: the same network whose context is `x </s> template`.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from tigs.data.batch import Batch, Padded
from tigs.data.special import PAD_ID
from tigs.models.attention import Encoder
from tigs.models.decoder import Decoder, DecoderState
from tigs.models.nll import NLL, projected_nll


class Seq2Seq(nn.Module):
    """P(y | x), one token after the other."""

    def __init__(
        self, *, n_tokens: int, hidden: int, layers: int, dropout: float, has_context: bool, backward: bool = False
    ) -> None:
        super().__init__()
        self.reads_backward = backward
        self.embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
        self.dropout = nn.Dropout(dropout)
        self.encoder = (
            Encoder(nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID), hidden=hidden, layers=layers, dropout=dropout)
            if has_context
            else None
        )
        self.decoder = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.projection = nn.Linear(hidden, n_tokens)

    def start(self, context: Padded) -> DecoderState:
        """The state before `<s>` is read, one row per context."""
        if self.encoder is None:
            return self.decoder.start(len(context.lengths), None, None)
        memory, summary = self.encoder(context)
        return self.decoder.start(len(context.lengths), memory, summary)

    def embed(self, tokens: Tensor) -> Tensor:
        """Vectors (..., hidden) of ids; vectors are passed through, so a search may feed either."""
        return tokens if tokens.is_floating_point() else self.embedding(tokens)

    def step(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read one token per row, ids (batch) or vectors (batch, hidden); the output predicts the next token."""
        return self.decoder.step(state, self.dropout(self.embed(tokens)))

    def run(self, state: DecoderState, tokens: Tensor) -> tuple[Tensor, DecoderState]:
        """Read a whole suffix, ids (batch, time) or vectors (batch, time, hidden)."""
        return self.decoder.run(state, self.dropout(self.embed(tokens)))

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """(..., vocabulary) of the next token, from outputs (..., hidden)."""
        return torch.log_softmax(self.projection(outputs), dim=-1)

    def forward(self, batch: Batch) -> dict[str, NLL]:
        """NLL of the targets, `</s>` included; a backward model reads them from their end."""
        target = batch.target.reversed if self.reads_backward else batch.target
        inputs, targets, mask = target.bracketed()  # each (batch, time)
        outputs, _ = self.run(self.start(batch.context), inputs)
        return {"nll": projected_nll(outputs[mask], self.projection, targets[mask])}
