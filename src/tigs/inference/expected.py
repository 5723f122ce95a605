"""What a model expects in blanks before any of them is filled, and what its known words think of that.

A sentence is read from left to right; a blank reads the mean of all words' vectors, weighted by their probabilities there. The
gradient of the known words' NLL then says, to first order, what any word in a blank would do to all known words behind it.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.gradient import gradients
from tigs.inference.interfaces import SequenceModel, Templates
from tigs.inference.ragged import SPARED


def expected_vectors(model: SequenceModel, outputs: Tensor, *, forbidden: Tensor) -> Tensor:
    """(blanks, size) the mean of the allowed words' vectors, each weighted by what outputs (blanks, size) give it."""
    log_probabilities = model.log_probabilities(outputs)  # (blanks, vocabulary)
    return log_probabilities.masked_fill(forbidden, float("-inf")).softmax(dim=1) @ model.word_vectors


def expected_gradient(model: SequenceModel, state: Any, templates: Templates, *, forbidden: Tensor) -> Tensor:
    """(batch, longest, size) of the NLL of each sentence's known words, `</s>` among them, at the vectors read in blanks.

    It is 0 where no blank stands.

    Args:
        model: what reads.
        state: before the first token, one row per sentence.
        templates: what is read.
        forbidden: (vocabulary) words that are not expected.
    """
    gradient = model.word_vectors.new_zeros(*templates.blanks.shape, model.word_vectors.shape[1])
    if not templates.blanks.any():
        return gradient
    # (batch), so that those that end first stand last
    order = templates.target.lengths.argsort(descending=True, stable=True)
    target = Padded(templates.target.ids[order], templates.target.lengths[order])
    blanks, state, lengths = templates.blanks[order], state.select(order), target.lengths.tolist()
    begin = int(blanks.any(dim=0).int().argmax())  # no word before it depends on what is expected
    _, targets, inside = target.bracketed()  # each (batch, longest + 1)
    counted = inside & F.pad(~blanks, (0, 1), value=True) & F.pad(blanks.cumsum(dim=1) > 0, (1, 0))
    read: list[Tensor] = []  # (rows, size) each, from `begin` on
    predicting, predicted = [], []
    with gradients():
        vectors = model.word_vectors[torch.full_like(order, model.first_token)]  # (rows, size)
        for position in range(targets.shape[1]):
            outputs, state = model.step(state, vectors)  # (rows, size)
            here = counted[: len(outputs), position]  # (rows)
            predicting.append(outputs[here])
            predicted.append(targets[: len(outputs), position][here])
            n_left = sum(length > position for length in lengths)
            if not n_left:
                break
            if n_left <= SPARED * len(outputs):
                outputs, state = outputs[:n_left], state.select(torch.arange(n_left, device=order.device))
            vectors = model.word_vectors[target.ids[: len(outputs), position]]
            blank = blanks[: len(outputs), position]
            if blank.any():
                vectors[blank] = expected_vectors(model, outputs[blank].detach(), forbidden=forbidden)
            if position >= begin:
                vectors = vectors.detach().requires_grad_()
                read.append(vectors)
        nll = model.nll(torch.cat(predicting), torch.cat(predicted))
        # Longer neighbours without a blank read vectors that nothing depends on.
        found = torch.autograd.grad(nll.total, read, allow_unused=True, materialize_grads=True)
    for position, own in enumerate(found, start=begin):
        gradient[order[: len(own)], position] = own
    return gradient.masked_fill_(~templates.blanks[:, :, None], 0.0)
