"""The LSTM's arithmetic, written out so that its large products can be made outside the loop over time."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn

from tigs.data.batch import Padded


def lstm_update(gates: Tensor, cell: Tensor) -> tuple[Tensor, Tensor]:
    """New hidden state and cell (batch, hidden) from the sums (batch, 4 hidden) that enter the gates."""
    size = cell.shape[1]
    sigmoids, candidate = gates.split([3 * size, size], dim=1)
    keep, write, show = torch.sigmoid(sigmoids).chunk(3, dim=1)  # (batch, hidden) each
    cell = torch.addcmul(keep * cell, write, torch.tanh(candidate))
    return show * torch.tanh(cell), cell


def reverse(states: Tensor, padded: Padded) -> Tensor:
    """States (batch, time, hidden) of padded sequences in the opposite order, padding left where it is."""
    return states.gather(1, padded.reversal[:, :, None].expand_as(states))


class BiLSTM(nn.Module):
    """A bidirectional LSTM over padded sequences.

    torch's own needs packing to keep the right-to-left direction out of the padding; on a CPU it is slower than this, and
    where it uses oneDNN it keeps twice the memory.
    """

    def __init__(self, *, inputs: int, hidden: int, layers: int, dropout: float) -> None:
        super().__init__()
        self.hidden = hidden
        self.dropout = nn.Dropout(dropout)
        widths = [inputs] + [2 * hidden] * (layers - 1)
        # Both directions' input parts in one product: [left to right, right to left].
        self.input_gates = nn.ModuleList(nn.Linear(width, 2 * 4 * hidden) for width in widths)
        self.left_gates = nn.ModuleList(nn.Linear(hidden, 4 * hidden, bias=False) for _ in widths)
        self.right_gates = nn.ModuleList(nn.Linear(hidden, 4 * hidden, bias=False) for _ in widths)

    def forward(self, vectors: Tensor, padded: Padded) -> tuple[Tensor, Tensor]:
        """States (batch, time, 2 hidden), and (batch, 2 hidden) the last state of each direction."""
        states, last = vectors, vectors
        for layer, (input_gates, left_gates, right_gates) in enumerate(
            zip(self.input_gates, self.left_gates, self.right_gates, strict=True)
        ):
            if layer > 0:
                states = self.dropout(states)
            left, right = input_gates(states).chunk(2, dim=2)  # (batch, time, 4 hidden) each
            left = self._read(left, cast(nn.Linear, left_gates).weight)
            # From the right: read each sequence from its end, which lies at different places, and put it back in order.
            right = self._read(reverse(right, padded), cast(nn.Linear, right_gates).weight)
            ends = (padded.lengths - 1)[:, None, None].expand(-1, 1, self.hidden)
            last = torch.cat([left.gather(1, ends), right.gather(1, ends)], dim=2).squeeze(1)
            states = torch.cat([left, reverse(right, padded)], dim=2)
        return states, last

    def _read(self, input_gates: Tensor, weight: Tensor) -> Tensor:
        """States (batch, time, hidden) of one direction."""
        hidden = cell = input_gates.new_zeros(len(input_gates), self.hidden)
        states = []
        for gates in input_gates.unbind(dim=1):
            hidden, cell = lstm_update(torch.addmm(gates, hidden, weight.t()), cell)
            states.append(hidden)
        return torch.stack(states, dim=1)
