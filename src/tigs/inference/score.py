"""The NLL of whole sentences, and its gradient, computed apart from any search."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.gradient import gradients, input_gradient
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


def word_gradients(
    model: SequenceModel, state: Any, sentences: Padded, *, counted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """NLL (batch, longest + 1) of each token and of `</s>`, and its sum's gradient (batch, longest, size) at each word's vector.

    Args:
        model: what scores them.
        state: before the first token, one row per sentence.
        sentences: whole ones.
        counted: (batch, longest + 1) tokens that count; all by default.
    """
    inputs, targets, mask = sentences.bracketed()  # each (batch, longest + 1)
    mask = mask if counted is None else mask & counted
    with gradients():
        vectors = model.word_vectors[inputs].clone().requires_grad_()  # (batch, longest + 1, size)
        outputs, _ = model.run(state, vectors)
        nll = model.nll(outputs[mask], targets[mask])
        gradient = input_gradient(nll.total, vectors)
    per_token = torch.zeros(mask.shape, dtype=outputs.dtype, device=outputs.device)
    per_token[mask] = nll.per_token
    return per_token, gradient[:, 1:]
