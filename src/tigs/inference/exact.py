"""The best fill there is, for small cases: depth-first branch and bound (after Stahlberg and Byrne 2019).

NLL only grows along a sentence. A beginning that is as unlikely as the best whole sentence known is therefore dead, and when no
other is left that sentence is proven best. The first one known is the answer of a search. The longest beginnings are read on
first, the likeliest of them before the others, so that the bound falls early and little has to be remembered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import BLANK_ID, END_ID
from tigs.errors import InferenceError
from tigs.inference.interfaces import SequenceModel, Templates
from tigs.inference.score import sentence_nll
from tigs.inference.tigs import TOLERANCE


@dataclass(frozen=True)
class Optimum:
    """The best fill of one sentence."""

    fill: tuple[int, ...]
    """One id per blank, from left to right."""
    nll: float
    """In nats over the whole sentence, `</s>` included."""
    proven: bool
    """No other fill is better by more than rounding could be; false if the steps ran out first: `fill` is the best seen."""
    model_steps: int
    """Tokens read by the decoder for one hypothesis; reading the first fill is among them."""


@torch.no_grad()
def solve(
    model: SequenceModel,
    templates: Templates,
    fills: Sequence[tuple[int, ...]],
    *,
    forbidden: Tensor,
    max_steps: int,
    block: int = 512,
) -> list[Optimum]:
    """The optimum of each sentence, one after the other.

    Args:
        model: what scores them; a backward model must be given reversed templates.
        templates: any number of blanks, but the work is the vocabulary's size to the power of that number at worst.
        fills: what a search found; the better, the less is read.
        forbidden: (vocabulary) words that may not be filled in.
        max_steps: model steps that a sentence may cost.
        block: hypotheses that are read together.
    """
    optima = []
    for row, (name, fill) in enumerate(zip(templates.ids, fills, strict=True)):
        template = templates.part(row, row + 1)
        if len(fill) != int(template.blanks.sum()) or any(forbidden[word] for word in fill):
            raise InferenceError(
                f"{fill} does not fill the blanks of the template {name}", remedy="Give one allowed word per blank"
            )
        optima.append(_Search(model, template, fill, forbidden=forbidden, max_steps=max_steps, block=block).run())
    return optima


class _Hypotheses(NamedTuple):
    """Beginnings of the sentence, all of the same length, that may still become the best."""

    state: Any
    """before `tokens` are read"""
    tokens: Tensor
    """(rows) the last word of each"""
    words: Tensor
    """(rows, blanks so far) the words in the blanks"""
    sums: Tensor
    """(rows) NLL so far"""

    def select(self, rows: Tensor) -> _Hypotheses:
        """Some of them."""
        return _Hypotheses(self.state.select(rows), self.tokens[rows], self.words[rows], self.sums[rows])


@dataclass
class _Branches:
    """Words for a blank after each of some beginnings, the best first, waiting to be read.

    They are many, so they have no states of their own before their turn.
    """

    state: Any
    """of the beginnings"""
    words: Tensor
    """(beginnings, blanks so far) the words in the blanks before this one"""
    beginning: Tensor
    """(branches) which of the beginnings each continues"""
    word: Tensor
    """(branches) what it puts into the blank"""
    sums: Tensor
    """(branches) NLL so far, from the lowest to the highest"""
    position: int
    """The place of the blank."""

    def take(self, number: int, bound: float) -> _Hypotheses:
        """At most the first `number` of those below the bound, which wait no longer."""
        number = int((self.sums[:number] < bound).sum())
        beginning, word, sums = self.beginning[:number], self.word[:number], self.sums[:number]  # (rows) each
        self.beginning, self.word, self.sums = self.beginning[number:], self.word[number:], self.sums[number:]
        words = torch.cat([self.words[beginning], word[:, None]], dim=1)  # (rows, blanks so far)
        return _Hypotheses(self.state.select(beginning), word, words, sums)


class _OutOfSteps(Exception):
    """The sentence has cost as much as it may."""


class _Search:
    """One sentence, the best fill known, and what it has cost."""

    def __init__(
        self,
        model: SequenceModel,
        template: Templates,
        fill: tuple[int, ...],
        *,
        forbidden: Tensor,
        max_steps: int,
        block: int,
    ) -> None:
        self.model, self.template, self.fill = model, template, fill
        self.forbidden, self.max_steps, self.block = forbidden, max_steps, block
        self.targets = [*template.target.ids[0].tolist(), END_ID]
        words = template.target.ids.clone()  # (1, length)
        words[template.blanks] = words.new_tensor(fill)
        self.nll = sentence_nll(model, template.context, Padded(words, template.target.lengths)).item()
        self.steps = len(self.targets)

    @property
    def bound(self) -> float:
        """What a sentence must stay below to be better."""
        return self.nll - TOLERANCE

    def run(self) -> Optimum:
        """Follow every beginning until it is dead, or until the steps run out."""
        try:
            if self.fill:
                self._follow_all()
            proven = True
        except _OutOfSteps:
            proven = False
        return Optimum(self.fill, self.nll, proven, self.steps)

    def _follow_all(self) -> None:
        token = torch.full_like(self.template.target.lengths, self.model.first_token)  # (1)
        sums = self.model.word_vectors.new_zeros(1)
        root = _Hypotheses(self.model.start(self.template.context), token, token.new_empty(1, 0), sums)
        waiting = self._read_on(root, 0)
        while waiting:
            hypotheses = waiting[-1].take(self.block, self.bound)
            if len(hypotheses.sums):
                waiting += self._read_on(hypotheses, waiting[-1].position + 1)
            else:
                waiting.pop()

    def _read_on(self, hypotheses: _Hypotheses, position: int) -> list[_Branches]:
        """Read the known words from `position` to the next blank, and branch there; nothing branches at the end."""
        for place in range(position, len(self.targets)):
            outputs, hypotheses = self._step(hypotheses, self.targets[place])
            if self.targets[place] == BLANK_ID:
                return [self._branch(hypotheses, outputs, place)]
            sums = hypotheses.sums + self.model.nll(outputs, hypotheses.tokens).per_token  # (rows)
            alive = (sums < self.bound).nonzero().squeeze(1)
            hypotheses = hypotheses._replace(sums=sums)
            if len(alive) < len(sums):
                hypotheses = hypotheses.select(alive)
            if not len(alive):
                return []
        best = int(hypotheses.sums.argmin())
        self.fill, self.nll = tuple(hypotheses.words[best].tolist()), float(hypotheses.sums[best])
        return []

    def _step(self, hypotheses: _Hypotheses, next_token: int) -> tuple[Tensor, _Hypotheses]:
        """Outputs (rows, size) that predict the next token, which is then the one to be read."""
        n_rows = len(hypotheses.tokens)
        if self.steps + n_rows > self.max_steps:
            raise _OutOfSteps
        self.steps += n_rows
        outputs, state = self.model.step(hypotheses.state, hypotheses.tokens)
        return outputs, hypotheses._replace(state=state, tokens=torch.full_like(hypotheses.tokens, next_token))

    def _branch(self, hypotheses: _Hypotheses, outputs: Tensor, position: int) -> _Branches:
        """Every allowed word after each hypothesis, as far as it stays below the bound."""
        totals = hypotheses.sums[:, None] - self.model.log_probabilities(outputs)  # (rows, vocabulary)
        row, word = ((totals < self.bound) & ~self.forbidden).nonzero(as_tuple=True)  # (branches) each
        sums, order = totals[row, word].sort(stable=True)
        return _Branches(hypotheses.state, hypotheses.words, row[order], word[order], sums, position)
