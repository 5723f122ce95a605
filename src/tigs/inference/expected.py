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

# Rows leave when this share of those that are read is left: to leave one by one would cost more than reading them on.
_SPARED = 0.75


def expected_gradient(model: SequenceModel, state: Any, templates: Templates, *, forbidden: Tensor) -> Tensor:
    """(batch, longest, size) of the NLL of each sentence's known words, `</s>` among them, with respect to each vector read.

    Args:
        model: what reads.
        state: before the first token, one row per sentence.
        templates: what is read.
        forbidden: (vocabulary) words that are not expected.
    """
    # (batch), so that those that end first stand last
    order = templates.target.lengths.argsort(descending=True, stable=True)
    target = Padded(templates.target.ids[order], templates.target.lengths[order])
    blanks, state = templates.blanks[order], state.select(order)
    _, targets, inside = target.bracketed()  # each (batch, longest + 1)
    counted = inside & F.pad(~blanks, (0, 1), value=True)
    read: list[Tensor] = []  # (rows, size) each, for all but the first token
    predicting, predicted = [], []
    with gradients():
        vectors = model.word_vectors[torch.full_like(order, model.first_token)]  # (rows, size)
        for position in range(targets.shape[1]):
            outputs, state = model.step(state, vectors)  # (rows, size)
            here = counted[: len(outputs), position]  # (rows)
            predicting.append(outputs[here])
            predicted.append(targets[: len(outputs), position][here])
            n_left = int((target.lengths > position).sum())
            if n_left <= _SPARED * len(outputs):
                outputs, state = outputs[:n_left], state.select(torch.arange(n_left, device=order.device))
            if not n_left:
                break
            words, blank = target.ids[: len(outputs), position], blanks[: len(outputs), position]
            vectors = _vectors(model, outputs.detach(), words, blank, forbidden).requires_grad_()
            read.append(vectors)
        nll = model.nll(torch.cat(predicting), torch.cat(predicted))
        found = torch.autograd.grad(nll.total, read) if read else ()
    gradient = model.word_vectors.new_zeros(*blanks.shape, model.word_vectors.shape[1])
    for position, own in enumerate(found):
        gradient[order[: len(own)], position] = own
    return gradient


@torch.no_grad()
def _vectors(model: SequenceModel, outputs: Tensor, words: Tensor, blank: Tensor, forbidden: Tensor) -> Tensor:
    """(rows, size) of known words, and the mean of what outputs (rows, size) expect where a `blank` (rows) stands instead."""
    vectors = model.word_vectors[words]
    if blank.any():
        log_probabilities = model.log_probabilities(outputs[blank])  # (blanks, vocabulary)
        probabilities = log_probabilities.masked_fill_(forbidden, float("-inf")).softmax(dim=1)
        vectors[blank] = probabilities @ model.word_vectors
    return vectors
