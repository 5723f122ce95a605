"""TIGS as the original code does it: one sentence, every candidate read over the whole sentence, nothing kept, nothing left out.

The yardstick of the fast one, for its answers and for its speed; so nothing in it may be slower than the original's way of doing it
makes it. (That way encodes the context for every reading anew.) It differs from the original where the paper or good sense does:
special tokens are no candidates, a word must be better by more than rounding to replace another, the O-step reads the words of all
other blanks instead of their vectors, and rounds without a change count from the first on instead of the third.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded, pad
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID, UNK_ID
from tigs.inference.gradient import GRADIENT_STEPS, search_mode
from tigs.inference.interfaces import FillResult, Templates
from tigs.inference.start import Start
from tigs.inference.tigs import TOLERANCE
from tigs.models.seq2seq import Seq2Seq


class Reference(NamedTuple):
    """The answer, and what it cost."""

    fill: tuple[int, ...]
    nll: float
    n_rounds: int
    n_model_steps: int


def reference_tigs(
    network: Seq2Seq,
    context_ids: Sequence[int],
    template_ids: Sequence[int],
    start_words: Sequence[int],
    settings: MethodConfig,
) -> Reference:
    """Search from `start_words`, one per blank of the template."""
    table = network.embedding.weight.detach()  # (vocabulary, hidden)
    allowed = torch.arange(len(table)) >= len(SPECIAL_TOKENS)
    allowed[UNK_ID] = settings.allow_unk
    blanks = [position for position, token in enumerate(template_ids) if token == BLANK_ID]
    words = torch.tensor(template_ids)  # (length)
    words[blanks] = torch.tensor(start_words, dtype=torch.long)
    vectors = {position: table[words[position]].clone().requires_grad_() for position in blanks}
    optimisers = {position: _optimiser(vectors[position], settings) for position in blanks}
    n_rounds = n_model_steps = unchanged = 0
    while blanks and n_rounds < settings.max_rounds and unchanged < settings.patience:
        before = words.clone()
        for position in blanks:
            vector = vectors[position]
            # O-step
            inputs = table[words].index_put((torch.tensor(position),), vector)  # (length, hidden)
            loss = token_nll(network, context_ids, inputs[None], words[None]).mean()
            loss = loss + _penalties(vector, table, settings)
            (vector.grad,) = torch.autograd.grad(loss, vector)
            optimisers[position].step()
            # P-step
            nearest = _farness(vector.detach(), table, settings).masked_fill(~allowed, torch.inf).argsort()
            candidates = torch.cat([words[position : position + 1], nearest[: _n_candidates(settings, allowed)]])
            sentences = words.repeat(len(candidates), 1)  # (candidates, length)
            sentences[:, position] = candidates
            with torch.no_grad():
                nll = token_nll(network, context_ids, table[sentences], sentences).sum(dim=1)  # (candidates)
            best = int(nll.argmin())
            if nll[best] < nll[0] - TOLERANCE:
                words[position] = candidates[best]
                vector.data = table[candidates[best]].clone()
            n_model_steps += (GRADIENT_STEPS + len(candidates)) * (len(words) + 1)
        n_rounds += 1
        unchanged = unchanged + 1 if torch.equal(words, before) else 0
    with torch.no_grad():
        nll = token_nll(network, context_ids, table[words][None], words[None]).sum()
    return Reference(tuple(words[blanks].tolist()), float(nll), n_rounds, n_model_steps)


class ReferenceTigs:
    """The same as a method among others: it starts from their start, then goes through the sentences one by one."""

    def __init__(self, network: Seq2Seq, start: Start, settings: MethodConfig) -> None:
        self.network, self.start, self.settings = network, start, settings

    def fill(self, templates: Templates) -> list[FillResult]:
        """One sentence after the other."""
        with search_mode():
            started = self.start(templates)
        contexts, targets = _unpadded(templates.context), _unpadded(templates.target)
        results = []
        for context, target, start_words, n_start_steps in zip(
            contexts, targets, templates.fills(started.words), started.steps.tolist(), strict=True
        ):
            found = reference_tigs(self.network, context, target, start_words, self.settings)
            n_steps = n_start_steps + found.n_model_steps
            results.append(FillResult(found.fill, found.nll, rounds=found.n_rounds, model_steps=n_steps))
        return results


def token_nll(network: Seq2Seq, context_ids: Sequence[int], vectors: Tensor, words: Tensor) -> Tensor:
    """NLL (sentences, length + 1) of each word and of `</s>`, where `vectors` (sentences, length, hidden) are read."""
    n_sentences = len(words)
    start = network.embedding.weight[START_ID].detach().expand(n_sentences, 1, -1)
    state = network.start(pad([context_ids])).select(torch.zeros(n_sentences, dtype=torch.long))
    outputs, _ = network.run(state, torch.cat([start, vectors], dim=1))
    targets = torch.cat([words, torch.full((n_sentences, 1), END_ID)], dim=1)  # (sentences, length + 1)
    # Flat: a softmax over any but the last dimension takes nearly twice as long.
    logits = network.projection(outputs).flatten(0, 1)  # (sentences * (length + 1), vocabulary)
    return F.cross_entropy(logits, targets.flatten(), reduction="none").view_as(targets)


def _unpadded(padded: Padded) -> list[list[int]]:
    return [row[:length].tolist() for row, length in zip(padded.ids, padded.lengths, strict=True)]


def _optimiser(vector: Tensor, settings: MethodConfig) -> torch.optim.Optimizer:
    if settings.optimiser == "adam":
        return torch.optim.Adam([vector], lr=settings.step_size)
    if settings.optimiser == "sgd":
        return torch.optim.SGD([vector], lr=settings.step_size)
    return torch.optim.SGD([vector], lr=settings.step_size, momentum=settings.momentum, nesterov=True)


def _penalties(vector: Tensor, table: Tensor, settings: MethodConfig) -> Tensor:
    total = vector.new_zeros(())
    if settings.penalty:
        total = total + settings.penalty * vector.norm()
    if settings.nearest_penalty:
        total = total + settings.nearest_penalty * (vector - table).norm(dim=1).min()
    return total


def _farness(vector: Tensor, table: Tensor, settings: MethodConfig) -> Tensor:
    if settings.distance == "cosine":
        return -F.cosine_similarity(vector[None], table)
    return (vector - table).norm(dim=1)


def _n_candidates(settings: MethodConfig, allowed: Tensor) -> int:
    share = settings.n_candidates < 1
    return max(1, round(settings.n_candidates * int(allowed.sum()))) if share else int(settings.n_candidates)
