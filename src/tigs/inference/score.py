"""The NLL of whole sentences, and its gradient, computed apart from any search."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.expected import expected_vectors
from tigs.inference.gradient import gradients, input_gradient
from tigs.inference.interfaces import SequenceModel
from tigs.inference.ragged import read_ragged


@torch.no_grad()
def token_nll(model: SequenceModel, context: Padded, sentences: Padded) -> Tensor:
    """NLL (batch, longest + 1) of each token and of `</s>`; 0 behind it."""
    return token_nll_from(model, model.start(context), sentences)


@torch.no_grad()
def token_nll_from(model: SequenceModel, state: Any, sentences: Padded) -> Tensor:
    """The same where the context has been read: the state before `<s>`, one row per sentence."""
    inputs, targets, mask = sentences.bracketed()  # each (batch, longest + 1)
    outputs = read_ragged(model, state, inputs, mask.sum(dim=1))  # (batch, longest + 1, size)
    per_token = torch.zeros(mask.shape, dtype=outputs.dtype, device=outputs.device)
    per_token[mask] = model.nll(outputs[mask], targets[mask]).per_token
    return per_token


def sentence_nll(model: SequenceModel, context: Padded, sentences: Padded) -> Tensor:
    """NLL (batch) in nats over the whole sentence, `</s>` included."""
    return token_nll(model, context, sentences).sum(dim=1)


def word_gradients(
    model: SequenceModel, state: Any, sentences: Padded, *, begin: int = 0, counted: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """NLL (batch, longest + 1) of each token and of `</s>`, and its sum's gradient (batch, longest, size) at each word's vector.

    Args:
        model: what scores them.
        state: after the first `begin` tokens, `<s>` being one of them; one row per sentence.
        sentences: whole ones.
        begin: tokens that were read before; the NLL and the gradient of so many words are left at 0.
        counted: (batch, longest + 1) tokens that count; all by default.
    """
    inputs, targets, mask = _to_read(sentences, begin, counted)
    lengths = sentences.lengths + 1 - begin
    _, nll, gradient = _read(model, state, model.word_vectors[inputs], lengths, targets, mask)
    return F.pad(nll, (begin, 0)), F.pad(gradient, (0, 0, begin, 0))


def mean_gradients(
    model: SequenceModel,
    state: Any,
    sentences: Padded,
    blanks: Tensor,
    *,
    forbidden: Tensor,
    begin: int = 0,
    counted: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """As `word_gradients`, but the mean of two gradients: at the words, and with what the model expects in the blanks instead.

    From one word to another is a long way for a first-order estimate. The words in question lie about the mean of all words,
    weighted by their probabilities, so the second gradient is taken nearer to them (docs/performance.md has the gain).

    Args:
        model: what scores them.
        state: as in `word_gradients`.
        sentences: whole ones.
        blanks: (batch, longest) true where another word may be expected; none among the first `begin` words.
        forbidden: (vocabulary) words that may not.
        begin: as in `word_gradients`.
        counted: (batch, longest + 1) tokens that count; all by default.
    """
    inputs, targets, mask = _to_read(sentences, begin, counted)
    blanks, lengths = blanks[:, begin:], sentences.lengths + 1 - begin
    vectors = model.word_vectors[inputs]  # (batch, rest + 1, size)
    outputs, nll, at_words = _read(model, state, vectors, lengths, targets, mask)
    vectors[:, 1:][blanks] = expected_vectors(model, outputs[:, :-1][blanks], forbidden=forbidden)
    _, _, at_expected = _read(model, state, vectors, lengths, targets, mask)
    return F.pad(nll, (begin, 0)), F.pad((at_words + at_expected) / 2, (0, 0, begin, 0))


def _to_read(sentences: Padded, begin: int, counted: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
    """What is read, what is to be said and whether it counts, each (batch, rest + 1), after the first `begin` tokens."""
    inputs, targets, mask = sentences.bracketed()  # each (batch, longest + 1)
    mask = mask if counted is None else mask & counted
    return inputs[:, begin:], targets[:, begin:], mask[:, begin:]


def _read(
    model: SequenceModel, state: Any, vectors: Tensor, lengths: Tensor, targets: Tensor, mask: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs, NLL of the targets in the mask, and the gradient of their sum at all but the first of the vectors read.

    Of the vectors of each row the first `lengths` (batch) are read.
    """
    with gradients():
        read = vectors.clone().requires_grad_()  # (batch, longest + 1, size)
        outputs = read_ragged(model, state, read, lengths)  # (batch, longest + 1, size)
        nll = model.nll(outputs[mask], targets[mask])
        gradient = input_gradient(nll.total, read)
    per_token = torch.zeros(mask.shape, dtype=outputs.dtype, device=outputs.device)
    per_token[mask] = nll.per_token
    return outputs.detach(), per_token, gradient[:, 1:]
