"""The attention seq2seq (paper, section 3.1), left to right or right to left, with a context or as a plain language model.

It also serves as Mask-Seq2Seq: the same network whose context is `x </s> template`.
"""

from __future__ import annotations

from torch import nn

from tigs.data.batch import Batch
from tigs.data.special import PAD_ID
from tigs.models.attention import build_encoder
from tigs.models.autoregressive import Recurrent
from tigs.models.decoder import Decoder
from tigs.models.nll import NLL


class Seq2Seq(Recurrent, nn.Module):
    """P(y | x), one token after the other."""

    def __init__(
        self, *, n_tokens: int, hidden: int, layers: int, dropout: float, has_context: bool, backward: bool = False
    ) -> None:
        super().__init__()
        self.reads_backward = backward
        self.embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
        self.dropout = nn.Dropout(dropout)
        self.encoder = build_encoder(n_tokens, hidden=hidden, layers=layers, dropout=dropout) if has_context else None
        self.decoder = Decoder(hidden=hidden, layers=layers, dropout=dropout, has_context=has_context)
        self.projection = nn.Linear(hidden, n_tokens)

    def forward(self, batch: Batch) -> dict[str, NLL]:
        """NLL of the targets, `</s>` included; a backward model reads them from their end."""
        target = batch.target.reversed if self.reads_backward else batch.target
        inputs, targets, mask = target.bracketed()  # each (batch, time)
        outputs, _ = self.run(self.start(batch.context), inputs)
        return {"nll": self.nll(outputs[mask], targets[mask])}
