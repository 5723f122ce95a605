"""What a decoder remembers of its context: the encoder, and attention over its states (Luong et al. 2015, "general" score)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tigs.data.batch import Padded
from tigs.data.special import PAD_ID
from tigs.models.lstm import BiLSTM


class Memory(NamedTuple):
    """The encoded context, ready to be attended to."""

    values: Tensor
    """(batch, context, hidden)"""
    keys: Tensor
    """(batch, context, hidden)"""
    bias: Tensor
    """(batch, context) 0 at tokens, -inf at padding"""

    def select(self, rows: Tensor) -> Memory:
        """The memory of chosen rows, in that order; a row may be chosen many times."""
        return Memory(self.values[rows], self.keys[rows], self.bias[rows])


class Encoder(nn.Module):
    """Bidirectional LSTM over the context."""

    def __init__(self, embedding: nn.Embedding, *, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.embedding = embedding
        self.dropout = nn.Dropout(dropout)
        self.lstm = BiLSTM(inputs=embedding.embedding_dim, hidden=hidden // 2, layers=layers, dropout=dropout)
        self.key = nn.Linear(hidden, hidden, bias=False)

    def forward(self, context: Padded) -> tuple[Memory, Tensor]:
        """The memory, and (batch, hidden) a summary of the context to start a decoder from."""
        values, summary = self.lstm(self.dropout(self.embedding(context.ids)), context)
        bias = torch.zeros(context.ids.shape, dtype=values.dtype, device=values.device)
        bias.masked_fill_(~context.mask, float("-inf"))  # (batch, context)
        return Memory(values, self.key(values), bias), summary


def build_encoder(n_tokens: int, *, hidden: int, layers: int, dropout: float) -> Encoder:
    """An encoder with word vectors of its own."""
    embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
    return Encoder(embedding, hidden=hidden, layers=layers, dropout=dropout)


def encode(encoder: Encoder | None, context: Padded) -> tuple[Memory, Tensor] | tuple[None, None]:
    """What a decoder starts from; nothing without an encoder."""
    return (None, None) if encoder is None else encoder(context)


def attend(query: Tensor, memory: Memory) -> Tensor:
    """The context vector (batch, hidden) for a query (batch, hidden)."""
    # The fused kernel takes (batch, heads, time, hidden): one head, one query; no scaling, the score has its own weight.
    attended = F.scaled_dot_product_attention(
        query[:, None, None],
        memory.keys[:, None],
        memory.values[:, None],
        attn_mask=memory.bias[:, None, None],
        scale=1.0,
    )
    return attended[:, 0, 0]
