"""What beams find, and how many sentences are searched together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.inference.interfaces import Templates

# Hypotheses times words; more sentences than fit are searched one part after the other, so that their states fit into memory.
_TABLE_SIZE = 2**26


class Beams(NamedTuple):
    """The hypotheses of every sentence, best first."""

    words: Tensor
    """(batch, width, longest)"""
    scores: Tensor
    """(batch, width) what they were chosen by; -inf where there are fewer"""
    nll: Tensor
    """(batch, width) over the whole sentence, `</s>` included"""
    steps: Tensor
    """(batch) tokens read, over all hypotheses"""


class Part(NamedTuple):
    """Neighbours in a batch that are searched together."""

    first: int
    """the row of the batch where it begins"""
    state: Any
    templates: Templates
    """no longer padded than they need"""
    widths: Tensor
    """(rows) hypotheses kept per sentence"""


def in_parts(state: Any, templates: Templates, widths: Tensor, *, n_words: int) -> Iterator[Part]:
    """Parts whose tables of hypotheses x words are small enough, of a batch with a state each and `widths` (batch)."""
    n_rows = max(1, _TABLE_SIZE // (int(widths.max()) * n_words))
    for rows in torch.arange(len(widths), device=widths.device).split(n_rows):
        first, last = int(rows[0]), int(rows[-1]) + 1
        yield Part(first, state.select(rows), templates.part(first, last), widths[rows])


def concatenate(parts: list[Beams], longest: int) -> Beams:
    """The parts of a batch, padded to the same width and length."""
    width = max((part.words.shape[1] for part in parts), default=1)

    def padded(values: Tensor, value: float) -> Tensor:
        return F.pad(values, (0, width - values.shape[1]), value=value)

    return Beams(
        torch.cat(
            [F.pad(part.words, (0, longest - part.words.shape[2], 0, width - part.words.shape[1])) for part in parts]
        ),
        torch.cat([padded(part.scores, float("-inf")) for part in parts]),
        torch.cat([padded(part.nll, float("inf")) for part in parts]),
        torch.cat([part.steps for part in parts]),
    )
