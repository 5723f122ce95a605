"""What a decoder remembers of its context: the encoder, and attention over its states (Luong et al. 2015, "general" score)."""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tigs.data.batch import Padded


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
        self.lstm = nn.LSTM(
            embedding.embedding_dim,
            hidden // 2,
            layers,
            batch_first=True,
            bidirectional=True,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.key = nn.Linear(hidden, hidden, bias=False)

    def forward(self, context: Padded) -> tuple[Memory, Tensor]:
        """The memory, and (batch, hidden) a summary of the context to start a decoder from."""
        embedded = self.dropout(self.embedding(context.ids))  # (batch, context, hidden)
        # Packed, so that the right-to-left direction starts at the last token and not in the padding.
        packed = nn.utils.rnn.pack_padded_sequence(
            embedded, context.lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        states, (last, _) = self.lstm(packed)
        values, _ = nn.utils.rnn.pad_packed_sequence(states, batch_first=True, total_length=context.ids.shape[1])
        bias = torch.zeros(context.ids.shape, dtype=values.dtype, device=values.device)
        bias.masked_fill_(~context.mask, float("-inf"))  # (batch, context)
        return Memory(values, self.key(values), bias), torch.cat([last[-2], last[-1]], dim=1)


def attend(query: Tensor, memory: Memory) -> Tensor:
    """The context vector (batch, hidden) for a query (batch, hidden)."""
    # The fused kernel takes (batch, heads, time, hidden): one head, one query, and no scaling, as the score has a weight of its own.
    attended = F.scaled_dot_product_attention(
        query[:, None, None], memory.keys[:, None], memory.values[:, None], attn_mask=memory.bias[:, None, None], scale=1.0
    )
    return attended[:, 0, 0]
