"""Mask-Self-attn: a Transformer that reads `x </s> template` and writes the whole sentence (Vaswani et al. 2017; Zhu et al. 2019).

It offers the same start / step / run as the recurrent decoder. Its state is the keys and values of the prefix, so stepping
token by token and running the whole sentence are the same computation. Layers are pre-norm, which trains without fuss.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tigs.data.batch import Batch, Padded
from tigs.data.special import PAD_ID
from tigs.models.autoregressive import Autoregressive
from tigs.models.nll import NLL


class KeysValues(NamedTuple):
    """What one attention layer looks at."""

    keys: Tensor
    """(batch, heads, time, head size)"""
    values: Tensor
    """(batch, heads, time, head size)"""

    def select(self, rows: Tensor) -> KeysValues:
        """Chosen rows."""
        return KeysValues(self.keys[rows], self.values[rows])

    def extended(self, new: KeysValues) -> KeysValues:
        """With more time steps behind."""
        return KeysValues(torch.cat([self.keys, new.keys], dim=2), torch.cat([self.values, new.values], dim=2))


class TransformerState(NamedTuple):
    """Everything the decoder knows after a prefix."""

    prefix: tuple[KeysValues, ...]
    """of the target so far, one per layer"""
    memory: tuple[KeysValues, ...]
    """of the encoded context, one per layer"""
    memory_mask: Tensor
    """(batch, 1, 1, context) true at tokens"""

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.prefix[0].keys.shape[2]

    def select(self, rows: Tensor) -> TransformerState:
        """The state of chosen rows, in that order; a row may be chosen many times."""
        return TransformerState(
            tuple(layer.select(rows) for layer in self.prefix),
            tuple(layer.select(rows) for layer in self.memory),
            self.memory_mask[rows],
        )


class Attention(nn.Module):
    """Multi-head attention in two halves, so that keys and values can be kept."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(hidden, hidden)
        self.key_value = nn.Linear(hidden, 2 * hidden)
        self.output = nn.Linear(hidden, hidden)

    def keys_values(self, states: Tensor) -> KeysValues:
        """Of states (batch, time, hidden)."""
        keys, values = self.key_value(states).chunk(2, dim=-1)
        return KeysValues(self._split(keys), self._split(values))

    def forward(self, states: Tensor, memory: KeysValues, mask: Tensor) -> Tensor:
        """Attend from (batch, time, hidden); `mask` is true where looking is allowed."""
        attended = F.scaled_dot_product_attention(
            self._split(self.query(states)), memory.keys, memory.values, attn_mask=mask
        )  # (batch, heads, time, head size)
        return self.output(attended.transpose(1, 2).flatten(2))

    def _split(self, states: Tensor) -> Tensor:
        return states.unflatten(-1, (self.heads, -1)).transpose(1, 2)


class EncoderLayer(nn.Module):
    """Self-attention and feed-forward; each on normalised input, each added."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.self_norm, self.self_attention = nn.LayerNorm(hidden), Attention(hidden, heads)
        self.feed_norm = nn.LayerNorm(hidden)
        self.feed = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(), nn.Linear(4 * hidden, hidden))
        self.dropout = nn.Dropout(dropout)

    def forward(self, states: Tensor, mask: Tensor) -> Tensor:
        """New states (batch, time, hidden)."""
        normalised = self.self_norm(states)
        seen = self.self_attention.keys_values(normalised)
        states = states + self.dropout(self.self_attention(normalised, seen, mask))
        return states + self.dropout(self.feed(self.feed_norm(states)))


class DecoderLayer(EncoderLayer):
    """The same with attention to the context in between, and to a prefix that was read before."""

    def __init__(self, hidden: int, heads: int, dropout: float) -> None:
        super().__init__(hidden, heads, dropout)
        self.memory_norm, self.memory_attention = nn.LayerNorm(hidden), Attention(hidden, heads)

    def memory_keys_values(self, states: Tensor) -> KeysValues:
        """Of the encoded context (batch, context, hidden)."""
        return self.memory_attention.keys_values(states)

    def read(
        self, states: Tensor, mask: Tensor, prefix: KeysValues, memory: KeysValues, memory_mask: Tensor
    ) -> tuple[Tensor, KeysValues]:
        """New states (batch, time, hidden), and the keys and values of prefix and states together."""
        normalised = self.self_norm(states)
        seen = prefix.extended(self.self_attention.keys_values(normalised))
        states = states + self.dropout(self.self_attention(normalised, seen, mask))
        states = states + self.dropout(self.memory_attention(self.memory_norm(states), memory, memory_mask))
        return states + self.dropout(self.feed(self.feed_norm(states))), seen


class Transformer(Autoregressive, nn.Module):
    """P(y | context), one token after the other."""

    def __init__(self, *, n_tokens: int, hidden: int, layers: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.hidden, self.heads = hidden, heads
        self.embedding = nn.Embedding(n_tokens, hidden, padding_idx=PAD_ID)
        # Unit-variance vectors after scaling by sqrt(hidden), as in the original Transformer.
        nn.init.normal_(self.embedding.weight, std=hidden**-0.5)
        self.dropout = nn.Dropout(dropout)
        self.encoder = nn.ModuleList(EncoderLayer(hidden, heads, dropout) for _ in range(layers))
        self.encoder_norm = nn.LayerNorm(hidden)
        self.decoder = nn.ModuleList(DecoderLayer(hidden, heads, dropout) for _ in range(layers))
        self.decoder_norm = nn.LayerNorm(hidden)
        self.projection = nn.Linear(hidden, n_tokens)

    def start(self, context: Padded) -> TransformerState:
        """The state before `<s>` is read, one row per context."""
        mask = context.mask[:, None, None, :]  # (batch, 1, 1, context)
        states = self._with_positions(self.embed(context.ids), first=0)
        for layer in self.encoder:
            states = layer(states, mask)
        states = self.encoder_norm(states)
        memory = tuple(layer.memory_keys_values(states) for layer in cast(Iterable[DecoderLayer], self.decoder))
        nothing = states.new_zeros(len(states), self.heads, 0, self.hidden // self.heads)
        return TransformerState(tuple(KeysValues(nothing, nothing) for _ in self.decoder), memory, mask)

    def step(self, state: TransformerState, tokens: Tensor) -> tuple[Tensor, TransformerState]:
        """Read one token per row, ids (batch) or vectors (batch, hidden); the output predicts the next token."""
        outputs, state = self.run(state, tokens[:, None])
        return outputs[:, 0], state

    def run(self, state: TransformerState, tokens: Tensor) -> tuple[Tensor, TransformerState]:
        """Read a whole suffix, ids (batch, time) or vectors (batch, time, hidden)."""
        first, n_new = state.length, tokens.shape[1]
        positions = torch.arange(first + n_new, device=tokens.device)
        causal = positions <= positions[first:, None]  # (new, prefix + new)
        states = self._with_positions(self.embed(tokens), first=first)
        prefix = []
        layers = cast(Iterable[DecoderLayer], self.decoder)
        for layer, before, memory in zip(layers, state.prefix, state.memory, strict=True):
            states, seen = layer.read(states, causal, before, memory, state.memory_mask)
            prefix.append(seen)
        return self.decoder_norm(states), TransformerState(tuple(prefix), state.memory, state.memory_mask)

    def forward(self, batch: Batch) -> dict[str, NLL]:
        """NLL of the targets, `</s>` included."""
        inputs, targets, mask = batch.target.bracketed()  # each (batch, time)
        outputs, _ = self.run(self.start(batch.context), inputs)
        return {"nll": self.nll(outputs[mask], targets[mask])}

    def _with_positions(self, vectors: Tensor, *, first: int) -> Tensor:
        """Scaled vectors (batch, time, hidden) with sinusoids added; computed, so no sentence is too long for a table."""
        positions = torch.arange(first, first + vectors.shape[1], device=vectors.device)[:, None]
        frequencies = torch.exp(torch.arange(0, self.hidden, 2, device=vectors.device) * (-math.log(1e4) / self.hidden))
        angles = positions * frequencies  # (time, hidden / 2)
        waves = torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(1)[:, : self.hidden]
        return self.dropout(vectors * math.sqrt(self.hidden) + waves.to(vectors.dtype))
