"""The NLL of whole sentences, computed apart from any search."""

from __future__ import annotations

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.interfaces import SequenceModel


@torch.no_grad()
def token_nll(model: SequenceModel, context: Padded, sentences: Padded) -> Tensor:
    """NLL (batch, longest + 1) of each token and of `</s>`; 0 behind it."""
    inputs, targets, mask = sentences.bracketed()  # each (batch, longest + 1)
    outputs, _ = model.run(model.start(context), inputs)
    per_token = torch.zeros(mask.shape, dtype=outputs.dtype, device=outputs.device)
    per_token[mask] = model.nll(outputs[mask], targets[mask]).per_token
    return per_token


def sentence_nll(model: SequenceModel, context: Padded, sentences: Padded) -> Tensor:
    """NLL (batch) in nats over the whole sentence, `</s>` included."""
    return token_nll(model, context, sentences).sum(dim=1)
