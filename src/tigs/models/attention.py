"""What a decoder remembers of its context: the encoder, and attention over its states (Luong et al. 2015, "general" score)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tigs.data.batch import Padded
from tigs.data.special import PAD_ID
from tigs.models.lstm import BiLSTM


class Readers(NamedTuple):
    """Which context each row of a decoder attends to, where several rows share one."""

    context: Tensor
    """(rows) its number"""
    place: Tensor
    """(rows) the row's own number among those of its context"""
    most: int
    """rows of one context, at most"""

    @classmethod
    def of(cls, context: Tensor) -> Readers:
        """Rows that attend to contexts (rows)."""
        counts = context.bincount()  # (contexts)
        first = counts.cumsum(dim=0) - counts
        by_context = context.argsort(stable=True)  # (rows)
        place = torch.empty_like(context)
        place[by_context] = torch.arange(len(context), device=context.device) - first[context[by_context]]
        return cls(context, place, int(counts.max()))


class Memory(NamedTuple):
    """Encoded contexts, ready to be attended to."""

    values: Tensor
    """(contexts, time, hidden)"""
    keys: Tensor
    """(contexts, time, hidden)"""
    bias: Tensor
    """(contexts, time) 0 at tokens, -inf at padding"""
    readers: Readers | None = None
    """None: each row has a context of its own"""

    def select(self, rows: Tensor) -> Memory:
        """The memory of chosen rows, in that order; a row may be chosen many times.

        A search has many hypotheses of one sentence. What they attend to is the largest part of their states, so it is held
        once for all of them.
        """
        context = rows if self.readers is None else self.readers.context[rows]  # (chosen)
        used, number = context.unique(return_inverse=True)
        if len(used) == len(context):
            return self._of(context, None)
        readers = Readers.of(number)
        if len(used) == len(self.values):
            return Memory(self.values, self.keys, self.bias, readers)
        return self._of(used, readers)

    def _of(self, context: Tensor, readers: Readers | None) -> Memory:
        """Chosen contexts (contexts), no longer padded than they need."""
        bias = self.bias[context]
        longest = max(1, int((bias == 0).sum(dim=1).max())) if len(context) else 1
        return Memory(self.values[context, :longest], self.keys[context, :longest], bias[:, :longest], readers)


def join(memories: Sequence[Memory]) -> Memory:
    """The rows of several memories, one after the other."""
    longest = max(memory.bias.shape[1] for memory in memories)

    def padded(values: Tensor) -> Tensor:
        return F.pad(values, (0, 0, 0, longest - values.shape[1]))

    readers, n_before = [], 0
    for memory in memories:
        n_contexts = len(memory.values)
        own = torch.arange(n_contexts, device=memory.bias.device) if memory.readers is None else memory.readers.context
        readers.append(n_before + own)
        n_before += n_contexts
    return Memory(
        torch.cat([padded(memory.values) for memory in memories]),
        torch.cat([padded(memory.keys) for memory in memories]),
        torch.cat(
            [F.pad(memory.bias, (0, longest - memory.bias.shape[1]), value=float("-inf")) for memory in memories]
        ),
        None if all(memory.readers is None for memory in memories) else Readers.of(torch.cat(readers)),
    )


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
    """The context vector (rows, hidden) for a query (rows, hidden)."""
    readers = memory.readers
    if readers is None:
        return _attend(query[:, None], memory)[:, 0]
    queries = query.new_zeros(len(memory.values), readers.most, query.shape[1])  # (contexts, most, hidden)
    queries = queries.index_put((readers.context, readers.place), query)
    return _attend(queries, memory)[readers.context, readers.place]


def _attend(queries: Tensor, memory: Memory) -> Tensor:
    """Context vectors (contexts, queries, hidden), several for each context."""
    # The fused kernel takes (batch, heads, time, hidden): one head; no scaling, the score has its own weight.
    attended = F.scaled_dot_product_attention(
        queries[:, None], memory.keys[:, None], memory.values[:, None], attn_mask=memory.bias[:, None, None], scale=1.0
    )
    return attended[:, 0]
