"""Reading whole sentences from both ends, for the methods on a two-sided model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.interfaces import SequenceModel
from tigs.models.lstm import reverse


def read_left(reader: SequenceModel, state: Any, sentences: Padded) -> Tensor:
    """Outputs (batch, longest, size), each of which predicts the word at its position from those before it."""
    outputs, _ = reader.run(state, sentences.shifted(reader.first_token))
    return outputs


def read_right(reader: SequenceModel, state: Any, sentences: Padded) -> Tensor:
    """Outputs (batch, longest, size), each of which predicts the word at its position from those after it."""
    return reverse(read_left(reader, state, sentences.reversed), sentences)


def masked_nll(reader: SequenceModel, outputs: Tensor, sentences: Padded) -> Tensor:
    """NLL (batch, longest) of each word from the outputs (batch, longest, size); 0 at padding."""
    mask = sentences.mask
    per_token = torch.zeros(mask.shape, dtype=outputs.dtype, device=outputs.device)
    per_token[mask] = reader.nll(outputs[mask], sentences.ids[mask]).per_token
    return per_token
