"""Reading sentences of different lengths together without reading on behind their ends."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.inference.interfaces import SequenceModel

# Rows leave when this share of those that are read is left: to leave one by one would cost more than reading them on.
SPARED = 0.75


def read_ragged(model: SequenceModel, state: Any, inputs: Tensor, lengths: Tensor) -> Tensor:
    """Outputs (rows, longest, size) as of `model.run`; what stands behind the end of a row is of no use.

    Args:
        model: what reads.
        state: before the first input, one row each.
        inputs: (rows, longest) ids or (rows, longest, size) vectors.
        lengths: (rows) how many of them count.
    """
    if not len(lengths):
        return model.run(state, inputs)[0]
    longest = inputs.shape[1]
    order = lengths.argsort(descending=True, stable=True)  # (rows), so that those that leave stand last
    inputs, state = inputs[order], state.select(order)
    pieces, begin = [], 0
    for end, n_rows in _pieces(lengths[order].tolist()):
        if n_rows < len(inputs):
            inputs, state = inputs[:n_rows], state.select(torch.arange(n_rows, device=lengths.device))
        outputs, state = model.run(state, inputs[:, begin:end])
        pieces.append(F.pad(outputs, (0, 0, 0, 0, 0, len(lengths) - n_rows)))
        begin = end
    return F.pad(torch.cat(pieces, dim=1), (0, 0, 0, longest - begin))[order.argsort()]


def _pieces(lengths: list[int]) -> list[tuple[int, int]]:
    """From falling lengths: up to which place how many rows are read together."""
    pieces, n_rows = [], len(lengths)
    while n_rows:
        # The place where enough of them have ended.
        n_left = int(SPARED * n_rows)
        end = lengths[n_left]
        pieces.append((end, n_rows))
        n_rows = sum(length > end for length in lengths[:n_rows])
    return pieces
