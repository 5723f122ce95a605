"""birnn-gsn: resample each blank in turn from P(word | all others, x) (Berglund et al. 2015).

Within a round the words to the right of a blank have not changed since the round began, and those to the left are read on the
way: one reading from each end serves all blanks of a round. The answer is the likeliest sentence seen, by pseudo-likelihood.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import FillResult, Templates, TwoSidedModel
from tigs.inference.randomness import generators
from tigs.inference.rounds import Seen, best_seen, go_round
from tigs.inference.start import Start
from tigs.inference.two_sided import read_left, read_right


class Gsn:
    """The method; at temperature 0 it takes the likeliest word instead of drawing one."""

    def __init__(
        self, model: TwoSidedModel, start: Start, settings: MethodConfig, *, forbidden: Tensor, seed: int
    ) -> None:
        self.model, self.start, self.settings = model, start, settings
        self.forbidden, self.seed = forbidden, seed

    def fill(self, templates: Templates) -> list[FillResult]:
        """Rounds until one changes nothing, or T of them."""
        with search_mode():
            search = _Search(self, own_copy(templates))
            go_round(
                search.round,
                search.templates.blanks,
                max_rounds=self.settings.max_rounds,
                patience=self.settings.patience,
            )
            return search.results()


@dataclass
class _Search:
    """A batch of sentences and all that is remembered of them."""

    method: Gsn
    templates: Templates
    sentences: Padded = field(init=False)
    """The current words."""
    left: Tensor = field(init=False)
    """(batch, longest, size) outputs of the reader from the left on the current words"""
    right: Tensor = field(init=False)
    """(batch, longest, size) of the reader from the right"""
    states: tuple[Any, Any] = field(init=False)
    """of both readers before the first word"""
    steps: Tensor = field(init=False)
    """(batch)"""
    traces: list[list[float]] = field(init=False)
    """best pseudo-likelihood so far, negative, after each round"""
    seen: list[Seen] = field(init=False)
    """every sentence visited, with its pseudo-likelihood"""

    def __post_init__(self) -> None:
        started, lengths = self.method.start(self.templates), self.templates.target.lengths
        self.sentences = Padded(started.words, lengths)
        self.states = self.method.model.start_both(self.templates.context)
        self.left = read_left(self.method.model.left_reader, self.states[0], self.sentences)
        self.right = read_right(self.method.model.right_reader, self.states[1], self.sentences)
        self.steps = started.steps + 2 * lengths
        self.generators = generators(self.method.seed, self.templates.ids)
        self.traces, self.seen = [[] for _ in self.templates.ids], [{} for _ in self.templates.ids]
        self._score(torch.arange(len(lengths), device=lengths.device))

    def round(self, active: Tensor) -> Tensor:
        """Visit every blank of the active sentences; returns (active) which of them changed."""
        reader, words = self.method.model.left_reader, self.sentences.ids
        before = words[active].clone()
        tokens, state = torch.full_like(active, reader.first_token), self.states[0].select(active)
        for position in range(words.shape[1]):
            outputs, state = reader.step(state, tokens)  # (active, size)
            self.left[active, position] = outputs
            here = self.templates.blanks[active, position].nonzero().squeeze(1)  # (visited) into active
            if len(here):
                rows = active[here]
                words[rows, position] = self._draw(rows, outputs[here], self.right[rows, position])
            tokens = words[active, position]
        current = Padded(words[active], self.sentences.lengths[active])
        self.right[active] = read_right(self.method.model.right_reader, self.states[1].select(active), current)
        self.steps[active] += 2 * current.lengths
        self._score(active)
        return (words[active] != before).any(dim=1)

    def _draw(self, rows: Tensor, left: Tensor, right: Tensor) -> Tensor:
        """A word (rows) for the blank between what both readers say (rows, size)."""
        model, temperature = self.method.model, self.method.settings.temperature
        scores = model.joint_log_probabilities(model.joint_outputs(left, right))  # (rows, vocabulary)
        scores = scores.masked_fill(self.method.forbidden, float("-inf"))
        if temperature > 0:
            # The maximum of scores with Gumbel noise is a draw from their softmax.
            noise = torch.stack(
                [torch.empty(scores.shape[1]).exponential_(generator=self.generators[row]) for row in rows.tolist()]
            )
            scores = scores / temperature - noise.log().to(scores)
        return scores.argmax(dim=1)

    def _score(self, rows: Tensor) -> None:
        """Remember the current sentences of some rows by their pseudo-likelihood."""
        model = self.method.model
        current = Padded(self.sentences.ids[rows], self.sentences.lengths[rows])
        mask = current.mask
        joint = model.joint_outputs(self.left[rows][mask], self.right[rows][mask])  # (tokens, size)
        nll = torch.zeros(mask.shape, dtype=joint.dtype, device=joint.device)  # (rows, longest)
        nll[mask] = model.joint_nll(joint, current.ids[mask]).per_token
        blanks = self.templates.blanks[rows]
        for place, (row, total) in enumerate(zip(rows.tolist(), nll.sum(dim=1).tolist(), strict=True)):
            self.seen[row][tuple(current.ids[place][blanks[place]].tolist())] = total
            self.traces[row].append(min([total, *self.traces[row][-1:]]))

    def results(self) -> list[FillResult]:
        """The best sentences seen."""
        return best_seen(self.seen, self.traces, self.steps, n_best=self.method.settings.n_best)
