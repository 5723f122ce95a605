"""TIGS: text infilling with gradient search (paper, Algorithm 1).

Each blank has a vector, first that of its word. A round visits every blank from left to right: the O-step moves the vector
against the gradient of the sentence's NLL, the P-step tries the words nearest to it and keeps the best. All sentences are read
position by position together, so the state before each blank is at hand and only what follows is read again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.errors import ConfigError
from tigs.inference.gradient import gradients, input_gradient, own_copy, search_mode
from tigs.inference.interfaces import FillResult, SequenceModel, Templates
from tigs.inference.o_step import OptimiserState, o_step, penalty_gradient
from tigs.inference.p_step import Scored, Suffix, nearest, score_candidates
from tigs.inference.rounds import Seen, best_seen, go_round
from tigs.inference.score import token_nll
from tigs.inference.start import Start

# A word replaces another only if the sentence gains more than rounding could: in nats over the whole sentence.
TOLERANCE = 1e-4
# Reading a token with gradients costs its forward step and about two more on the way back.
GRADIENT_STEPS = 3


class Tigs:
    """The method of the paper."""

    def __init__(self, model: SequenceModel, start: Start, settings: MethodConfig, *, forbidden: Tensor) -> None:
        self.model, self.start, self.settings, self.forbidden = model, start, settings, forbidden
        self.n_candidates = count_candidates(settings.n_candidates, forbidden)

    def fill(self, templates: Templates) -> list[FillResult]:
        """Rounds until no sentence changes any more, or T of them."""
        with search_mode():
            search = _Search(self, own_copy(templates))
            go_round(search.round, search.templates.blanks, self.settings)
            return search.results()


def count_candidates(wanted: float, forbidden: Tensor) -> int:
    """K: a number, or a share of the vocabulary."""
    n_words = int((~forbidden).sum())
    number = max(1, round(wanted * n_words)) if wanted < 1 else int(wanted)
    if wanted >= 1 and wanted != number:
        raise ConfigError(
            f"method.n_candidates={wanted:g} is no number of words",
            remedy="Give a whole number, or a share of the vocabulary below 1",
        )
    if number > n_words:
        raise ConfigError(
            f"method.n_candidates={wanted:g} is more than the {n_words} words of the vocabulary",
            remedy="Lower it, or give a share of the vocabulary below 1",
        )
    return number


@dataclass
class _Search:
    """A batch of sentences and all that is remembered of them."""

    method: Tigs
    templates: Templates
    sentences: Padded = field(init=False)
    """The current words."""
    nll: Tensor = field(init=False)
    """(batch, longest + 1) of each current word"""
    vectors: Tensor = field(init=False)
    """(batch, longest, size) where the gradient has taken each blank"""
    memory: OptimiserState = field(init=False)
    start_state: Any = field(init=False)
    steps: Tensor = field(init=False)
    """(batch)"""
    traces: list[list[float]] = field(init=False)
    seen: list[Seen] = field(init=False)
    """The best fills so far of each sentence, where more than one is asked for."""

    def __post_init__(self) -> None:
        model, target = self.method.model, self.templates.target
        started = self.method.start(self.templates)
        self.sentences = Padded(started.words, target.lengths)
        self.nll = token_nll(model, self.templates.context, self.sentences)
        self.vectors = model.word_vectors[self.sentences.ids]
        self.memory = OptimiserState.fresh(self.vectors)
        self.start_state = model.start(self.templates.context)
        self.steps = started.steps + target.lengths + 1
        totals = self.nll.sum(dim=1).tolist()
        self.traces = [[total] for total in totals]
        fills = self.templates.fills(self.sentences.ids)
        self.seen = [{fill: total} for fill, total in zip(fills, totals, strict=True)]

    def round(self, active: Tensor) -> Tensor:
        """Visit every blank of the active sentences; returns (active) which of them changed."""
        model = self.method.model
        blanks = self.templates.blanks[active]  # (active, longest)
        last_blank = blanks.shape[1] - 1 - blanks.flip(1).int().argmax(dim=1)  # (active)
        last = int(last_blank.max())
        changed = torch.zeros_like(active, dtype=torch.bool)
        outputs, state = model.step(self.start_state.select(active), torch.full_like(active, model.first_token))
        for position in range(last + 1):
            here = blanks[:, position].nonzero().squeeze(1)  # (visited) into active
            if len(here):
                changed[here] |= self._visit(active[here], position, state.select(here), outputs[here])
            if position < last:
                outputs, state = model.step(state, self.sentences.ids[active, position])
        self.steps[active] += last_blank + 1
        for row in active.tolist():
            self.traces[row].append(float(self.nll[row].sum()))
        return changed

    def _visit(self, rows: Tensor, position: int, state: Any, outputs: Tensor) -> Tensor:
        """O-step and P-step at one blank of each row; returns (rows) which words changed."""
        model, settings, words = self.method.model, self.method.settings, self.sentences.ids
        suffix = Suffix.after(Padded(words[rows], self.sentences.lengths[rows]), position)
        vectors = self.vectors[rows, position]  # (rows, size)
        gradient = self._gradient(vectors, rows, state, suffix)
        vectors = o_step(vectors, gradient, self.memory, rows, position, settings)
        self.vectors[rows, position] = vectors

        candidates = nearest(
            vectors,
            model.word_vectors,
            self.method.n_candidates,
            distance=settings.distance,
            forbidden=self.method.forbidden,
        )
        own_nll = -model.log_probabilities(outputs).gather(1, candidates)  # (rows, candidates)
        # The current word is a candidate too, but what it makes of the sentence is known. A forbidden word is one only if the
        # vector has gone where no number reaches.
        excluded = (candidates == words[rows, position][:, None]) | self.method.forbidden[candidates]
        own_nll.masked_fill_(excluded, float("inf"))
        incumbent = self.nll[rows, position:].sum(dim=1)  # (rows)
        scored = score_candidates(model, state, candidates, own_nll, suffix, bound=self._bound(rows, incumbent))
        self.steps[rows] += scored.steps
        return self._keep_best(rows, position, candidates, own_nll, scored, incumbent)

    def _gradient(self, vectors: Tensor, rows: Tensor, state: Any, suffix: Suffix) -> Tensor:
        """Of the mean NLL and the penalties, (rows, size); words before the blank do not depend on its vector."""
        model = self.method.model
        with gradients():
            inputs = vectors.clone().requires_grad_()
            read = torch.cat([inputs[:, None], model.word_vectors[suffix.words]], dim=1)  # (rows, longest + 1, size)
            outputs, _ = model.run(state, read)
            loss = model.nll(outputs[suffix.mask], suffix.targets[suffix.mask]).total
            gradient = input_gradient(loss, inputs)
        self.steps[rows] += GRADIENT_STEPS * suffix.lengths
        gradient = gradient / (self.sentences.lengths[rows] + 1)[:, None]
        return gradient + penalty_gradient(vectors, model.word_vectors, self.method.settings)

    def _bound(self, rows: Tensor, incumbent: Tensor) -> Tensor:
        """(rows) what a candidate's part of the sentence, from the blank on, must stay below to be of interest."""
        n_best = self.method.settings.n_best
        if n_best == 1:
            return incumbent - TOLERANCE
        worst = [
            sorted(seen.values())[n_best - 1] if len(seen) >= n_best else float("inf")
            for seen in (self.seen[row] for row in rows.tolist())
        ]
        prefix = self.nll[rows].sum(dim=1) - incumbent  # (rows)
        return torch.tensor(worst, dtype=incumbent.dtype, device=incumbent.device) - prefix

    def _keep_best(
        self, rows: Tensor, position: int, candidates: Tensor, own_nll: Tensor, scored: Scored, incumbent: Tensor
    ) -> Tensor:
        if self.method.settings.n_best > 1:
            self._remember(rows, position, candidates, scored, incumbent)
        totals, best = scored.totals.min(dim=1)  # (rows)
        better = totals < incumbent - TOLERANCE
        best, changed = best[better], rows[better]
        word = candidates[better, best]  # (changed)
        self.sentences.ids[changed, position] = word
        self.vectors[changed, position] = self.method.model.word_vectors[word]
        self.nll[changed, position] = own_nll[better, best]
        suffix_nll = scored.suffix_nll[better, best]  # (changed, longest + 1)
        self.nll[changed, position + 1 : position + 1 + suffix_nll.shape[1]] = suffix_nll
        return better

    def _remember(self, rows: Tensor, position: int, candidates: Tensor, scored: Scored, incumbent: Tensor) -> None:
        """Every whole sentence that was scored may be one of the n best."""
        totals = scored.totals + (self.nll[rows].sum(dim=1) - incumbent)[:, None]  # (rows, candidates) whole sentences
        for place, row in enumerate(rows.tolist()):
            words = self.sentences.ids[row].clone()
            for number in totals[place].isfinite().nonzero().squeeze(1).tolist():
                words[position] = candidates[place, number]
                self.seen[row][tuple(words[self.templates.blanks[row]].tolist())] = float(totals[place, number])
            best = sorted(self.seen[row].items(), key=lambda item: item[1])
            self.seen[row] = dict(best[: self.method.settings.n_best])

    def results(self) -> list[FillResult]:
        """One answer per sentence."""
        for seen, fill, trace in zip(self.seen, self.templates.fills(self.sentences.ids), self.traces, strict=True):
            seen[fill] = trace[-1]
        return best_seen(self.seen, self.traces, self.steps, n_best=self.method.settings.n_best)
