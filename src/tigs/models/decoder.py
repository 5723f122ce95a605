"""A unidirectional LSTM over the target with attention to the context, one token at a time or a whole suffix at once.

As in section 3.1 of the paper, each step's input is the word's embedding and the attention context, the query being the state
before the step. No fused LSTM, because the attention stands between the steps; and because cuDNN's LSTM gives no gradients in
eval mode, which the O-step needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from tigs.models.attention import Memory, attend, join
from tigs.models.lstm import lstm_update


class DecoderState(NamedTuple):
    """Everything a decoder knows after a prefix."""

    hidden: tuple[Tensor, ...]
    """one (batch, hidden) per layer"""
    cell: tuple[Tensor, ...]
    """one (batch, hidden) per layer"""
    memory: Memory | None

    def select(self, rows: Tensor) -> DecoderState:
        """The state of chosen rows, in that order; a row may be chosen many times."""
        return DecoderState(
            tuple(layer[rows] for layer in self.hidden),
            tuple(layer[rows] for layer in self.cell),
            None if self.memory is None else self.memory.select(rows),
        )

    def join(self, others: Sequence[DecoderState]) -> DecoderState:
        """The rows of several states, one after the other; they may have read prefixes of different lengths."""
        states = [self, *others]
        hidden, cell = (
            tuple(torch.cat(rows) for rows in zip(*layers, strict=True))
            for layers in zip(*(state[:2] for state in states), strict=True)
        )
        memories = [state.memory for state in states if state.memory is not None]
        return DecoderState(hidden, cell, join(memories) if memories else None)


class Decoder(nn.Module):
    """The recurrent part of a decoder; embedding and projection belong to the model around it."""

    def __init__(self, *, hidden: int, layers: int, dropout: float, has_context: bool) -> None:
        super().__init__()
        self.hidden = hidden
        self.n_layers = layers
        self.dropout = nn.Dropout(dropout)
        # The first layer's gates come from the word and from what the decoder knows. Words are known before the loop over
        # time, so their part is one large product instead of many small ones.
        self.word_gates = nn.Linear(hidden, 4 * hidden)
        self.state_gates = nn.Linear(2 * hidden if has_context else hidden, 4 * hidden, bias=False)
        self.upper_cells = nn.ModuleList(nn.LSTMCell(hidden, hidden) for _ in range(layers - 1))
        self.bridge = nn.Linear(hidden, hidden * layers) if has_context else None

    def start(self, n_rows: int, memory: Memory | None, summary: Tensor | None) -> DecoderState:
        """The state before `<s>` is read."""
        zeros = tuple(self.word_gates.bias.new_zeros(n_rows, self.hidden) for _ in range(self.n_layers))
        if self.bridge is None or summary is None:
            return DecoderState(zeros, zeros, None)
        hidden = torch.tanh(self.bridge(summary)).chunk(self.n_layers, dim=1)
        return DecoderState(hidden, zeros, memory)

    def step(self, state: DecoderState, embedded: Tensor) -> tuple[Tensor, DecoderState]:
        """Read one token each, given as (batch, hidden) vectors; the output (batch, hidden) predicts the next."""
        outputs, state = self.run(state, embedded[:, None])
        return outputs[:, 0], state

    def run(self, state: DecoderState, embedded: Tensor) -> tuple[Tensor, DecoderState]:
        """Read a whole suffix (batch, time, hidden) from any state; outputs are (batch, time, hidden)."""
        outputs = []
        for word_gates in self.word_gates(embedded).unbind(dim=1):  # (batch, 4 hidden) each
            state = self._advance(state, word_gates)
            outputs.append(state.hidden[-1])
        return self.dropout(torch.stack(outputs, dim=1)), state

    def compile_step(self) -> None:
        """Let torch fuse what is done for every token."""
        # Of the class, so that a step that is compiled already is not wrapped once more; shapes vary from call to call.
        self._advance = torch.compile(Decoder._advance.__get__(self), dynamic=True)  # type: ignore[method-assign]

    def _advance(self, state: DecoderState, word_gates: Tensor) -> DecoderState:
        known = state.hidden[0]
        if state.memory is not None:
            known = torch.cat([known, attend(state.hidden[-1], state.memory)], dim=1)  # (batch, 2 hidden)
        gates = torch.addmm(word_gates, known, self.state_gates.weight.t())  # (batch, 4 hidden)
        new_hidden, new_cell = lstm_update(gates, state.cell[0])
        hidden, cell = [new_hidden], [new_cell]
        for layer, lstm in enumerate(self.upper_cells, start=1):
            new_hidden, new_cell = lstm(self.dropout(hidden[-1]), (state.hidden[layer], state.cell[layer]))
            hidden.append(new_hidden)
            cell.append(new_cell)
        return DecoderState(tuple(hidden), tuple(cell), state.memory)


def compile_steps(network: nn.Module) -> None:
    """Compile the step of every recurrent decoder in a network."""
    for module in network.modules():
        if isinstance(module, Decoder):
            module.compile_step()
