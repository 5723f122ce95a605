"""TIGS: text infilling with gradient search (paper, Algorithm 1), and what we add to it.

Each blank has a vector, first that of its word. A round visits every blank from left to right: the O-step moves the vector
against the gradient of the sentence's NLL, the P-step tries the words nearest to it and keeps the best. Sentences are read from
blank to blank together (`front.py`), so the state before each blank is at hand and only what follows is read again.

Other proposals (`proposals.py`) need no vector that wanders: they take the gradient of the sentence as it is, once per round.
Before the rounds, whole sentences may be refilled by beams that follow the gradient of the known words' NLL (`refill.py`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import isinf
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.inference.budget import TokenBudget
from tigs.inference.front import Front
from tigs.inference.gradient import GRADIENT_STEPS, gradients, input_gradient, own_copy, search_mode
from tigs.inference.interfaces import FillResult, SequenceModel, Templates
from tigs.inference.o_step import OptimiserState, o_step, penalty_gradient
from tigs.inference.p_step import Scored, Suffix, from_place, limits_within, of_rows, score_candidates
from tigs.inference.proposals import Proposer, Visit
from tigs.inference.ragged import read_ragged
from tigs.inference.refill import refill
from tigs.inference.rounds import Seen, best_seen, go_round, n_best_of, nth_best
from tigs.inference.score import mean_gradients, token_nll_from, word_gradients
from tigs.inference.start import Start

# A word replaces another only if the sentence gains more than rounding could: in nats over the whole sentence.
TOLERANCE = 1e-4


class Tigs:
    """tigs and tigs-plus; the settings tell them apart."""

    def __init__(self, model: SequenceModel, start: Start, settings: MethodConfig, *, forbidden: Tensor) -> None:
        self.model, self.start, self.settings, self.forbidden = model, start, settings, forbidden
        self.propose = Proposer(settings, model.word_vectors, forbidden=forbidden)
        self.budget = TokenBudget()

    def fill(self, templates: Templates) -> list[FillResult]:
        """Rounds until no sentence changes any more, or T of them."""
        with search_mode():
            search = _Search(self, own_copy(templates))
            blanks = search.templates.blanks
            go_round(search.refill_pairs, blanks & search.is_pair[:, None], max_rounds=1, patience=1)
            go_round(search.refill_all, blanks, max_rounds=self.settings.refills, patience=1)
            go_round(search.round, blanks, max_rounds=self.settings.max_rounds, patience=self.settings.patience)
            return search.results()


@dataclass
class _Search:
    """A batch of sentences and all that is remembered of them."""

    method: Tigs
    templates: Templates
    sentences: Padded = field(init=False)
    """The current words."""
    nll: Tensor = field(init=False)
    """(batch, longest + 1) of each current word"""
    gradient: Tensor = field(init=False)
    """(batch, longest, size) of the sentence's NLL with respect to each word's vector, when it was last taken"""
    stale: Tensor = field(init=False)
    """(batch) whether words have changed since then"""
    settled: Tensor = field(init=False)
    """(batch, longest) blanks that were visited, and nothing of their sentence has changed since"""
    tried: Tensor = field(init=False)
    """(batch, longest, vocabulary) words that were tried in the sentence as it is; another trial would end the same"""
    vectors: Tensor = field(init=False)
    """(batch, longest, size) where the O-step has taken each blank"""
    memory: OptimiserState = field(init=False)
    first_blank: Tensor = field(init=False)
    """(batch) its place; what stands before it never changes and need be read only once"""
    begin: int = field(init=False)
    """the first blank of all sentences"""
    start_state: Any = field(init=False)
    """before `<s>`"""
    begin_state: Any = field(init=False)
    """before the word in front of `begin`, or `<s>`"""
    is_pair: Tensor = field(init=False)
    """(batch) whether it has two blanks, and such sentences are refilled"""
    steps: Tensor = field(init=False)
    """(batch)"""
    traces: list[list[float]] = field(init=False)
    seen: list[Seen] = field(init=False)
    """The best fills so far of each sentence, where more than one is asked for."""

    def __post_init__(self) -> None:
        model, target = self.method.model, self.templates.target
        started = self.method.start(self.templates)
        self.sentences = Padded(started.words, target.lengths)
        self.steps = started.steps
        self.vectors = model.word_vectors[self.sentences.ids]
        self.gradient = torch.zeros_like(self.vectors)
        self.memory = OptimiserState.fresh(self.vectors)
        self.stale = torch.ones_like(target.lengths, dtype=torch.bool)
        self.settled = torch.zeros_like(target.ids, dtype=torch.bool)
        self.tried = self.settled.new_zeros(*target.ids.shape, len(self.method.forbidden))
        self.start_state = model.start(self.templates.context) if started.state is None else started.state
        self.begin_state = self.start_state
        self.first_blank = self.templates.blanks.int().argmax(dim=1)
        self.is_pair = (self.templates.blanks.sum(dim=1) == 2) & (self.method.settings.pair_width > 0)
        self._read_first()
        totals = self.nll.sum(dim=1).tolist()
        self.traces = [[total] for total in totals]
        fills = self.templates.fills(self.sentences.ids)
        self.seen = [{fill: total} for fill, total in zip(fills, totals, strict=True)]
        if self.method.settings.n_best > 1 and started.beams is not None:
            self._remember(torch.arange(len(totals)), started.beams.words, started.beams.nll)

    def _read_first(self) -> None:
        """The NLL of every token, and the state before the first blank of all."""
        method, model, sentences = self.method, self.method.model, self.sentences
        has_blanks = self.templates.blanks.any(dim=1)  # (batch)
        self.begin = int(self.first_blank[has_blanks].min()) if has_blanks.any() else 0
        before = sentences.ids[:, : self.begin]  # (batch, begin)
        outputs = None
        if self.begin:
            inputs = sentences.shifted(model.first_token)  # (batch, longest)
            outputs, self.begin_state = model.run(self.start_state, inputs[:, : self.begin])  # (batch, begin, size)
        self.steps = self.steps + self.first_blank
        # Where the first round takes the gradient of the same sentences, their NLL comes with it.
        begins = method.propose.takes_gradient and not method.settings.refills and method.settings.max_rounds > 0
        is_due = has_blanks & begins & ~self.is_pair  # (batch)
        others, due = (~is_due).nonzero().squeeze(1), is_due.nonzero().squeeze(1)
        precise = torch.promote_types(self.vectors.dtype, torch.float32)
        self.nll = self.vectors.new_zeros(len(is_due), sentences.ids.shape[1] + 1, dtype=precise)
        if len(others):
            own = Padded(sentences.ids[others], sentences.lengths[others])
            self.nll[others] = token_nll_from(model, self.start_state.select(others), own).to(precise)
            self.steps[others] += own.lengths + 1
        if len(due):
            if outputs is not None:
                nll = model.nll(outputs[due].flatten(0, 1), before[due].flatten()).per_token
                self.nll[due, : self.begin] = nll.view(len(due), self.begin).to(precise)
            self._take_gradients(due)

    def refill_all(self, active: Tensor) -> Tensor:
        """Refill all blanks of the active sentences at once; returns (active) which of them changed."""
        return self._refill(active, at_least=self.method.settings.refill_least)

    def refill_pairs(self, active: Tensor) -> Tensor:
        """The same for sentences with two blanks."""
        return self._refill(active, at_least=self.method.settings.pair_width)

    def _refill(self, active: Tensor, *, at_least: int) -> Tensor:
        method, templates = self.method, self.templates.select(active)
        known = F.pad(~templates.blanks, (0, 1), value=True)  # (active, longest + 1) `</s>` is known too
        _, gradient = self._gradients(active, counted=known)
        beams = refill(
            method.model,
            self.start_state.select(active),
            templates,
            gradient,
            per_blank=method.settings.refill_width,
            at_least=at_least,
            margin=method.settings.margin,
            margin_decay=method.settings.effective_refill_margin_decay,
            forbidden=method.forbidden,
            budget=method.budget,
            only_best=method.settings.n_best == 1,
        )
        self.steps[active] += beams.steps
        if method.settings.n_best > 1:
            self._remember(active, beams.words, beams.nll)
        nll, best = beams.nll.min(dim=1)  # (active)
        better = nll < self.nll[active].sum(dim=1) - TOLERANCE
        changed = active[better]
        self.sentences.ids[changed] = beams.words[better, best[better]]
        self.vectors[changed] = method.model.word_vectors[self.sentences.ids[changed]]
        self.stale[changed] = True
        self._take_gradients(changed)
        self._trace(active)
        return better

    def round(self, active: Tensor) -> Tensor:
        """Visit every blank of the active sentences; returns (active) which of them changed."""
        model = self.method.model
        if self.method.propose.takes_gradient:
            self._take_gradients(active)
        blanks = self.templates.blanks[active]  # (active, longest)
        changed = torch.zeros_like(active, dtype=torch.bool)
        last_visited = torch.full_like(active, -1)  # (active)
        words = self.sentences.ids
        last_read = words[active, self.begin - 1] if self.begin else torch.full_like(active, model.first_token)
        front = Front(model, self.begin_state.select(active), last_read, self.begin)
        # A word that changes sends the search to all blanks of its sentence again, to those behind it in this round.
        for stop in front.stops(
            words=lambda rows: words[active[rows]], due=lambda rows: blanks[rows] & ~self.settled[active[rows]]
        ):
            changed[stop.rows] |= self._visit(active[stop.rows], stop.places, stop.state, stop.outputs)
            last_visited[stop.rows] = stop.places
        # What was read for its neighbours' sake is not counted.
        self.steps[active] += (last_visited + 1 - self.first_blank[active]).clamp(min=0)
        self._trace(active)
        return changed

    def _trace(self, active: Tensor) -> None:
        for row in active.tolist():
            self.traces[row].append(float(self.nll[row].sum()))

    def _take_gradients(self, rows: Tensor) -> None:
        """Read sentences whose words have changed since the last time: their NLL, and its gradient at every word's vector."""
        rows = rows[self.stale[rows]]
        if not len(rows):
            return
        nll, self.gradient[rows] = self._gradients(rows)
        self.nll[rows, self.begin :] = nll[:, self.begin :].to(self.nll)
        self.stale[rows] = False

    def _gradients(self, rows: Tensor, counted: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """NLL (rows, longest + 1) and its gradient (rows, longest, size); `counted` (rows, longest + 1) as in `score.py`."""
        method, state = self.method, self.begin_state.select(rows)
        sentences = Padded(self.sentences.ids[rows], self.sentences.lengths[rows])
        steps = GRADIENT_STEPS * (sentences.lengths + 1 - self.first_blank[rows])  # (rows)
        if method.settings.gradient == "word":
            self.steps[rows] += steps
            return word_gradients(method.model, state, sentences, begin=self.begin, counted=counted)
        self.steps[rows] += 2 * steps
        blanks = self.templates.blanks[rows]
        return mean_gradients(
            method.model, state, sentences, blanks, forbidden=method.forbidden, begin=self.begin, counted=counted
        )

    def _visit(self, rows: Tensor, places: Tensor, state: Any, outputs: Tensor) -> Tensor:
        """O-step and P-step at one blank of each row, at `places` (rows); returns (rows) which words changed."""
        method, words = self.method, self.sentences.ids
        suffix = Suffix.after(Padded(words[rows], self.sentences.lengths[rows]), places)
        if method.propose.takes_o_step:
            self._o_step(rows, places, state, suffix)
        else:
            # A proposal by a gradient from before the last change deserves another one.
            self.settled[rows, places] = ~self.stale[rows] if method.propose.takes_gradient else True
        log_probabilities = method.model.log_probabilities(outputs)  # (rows, vocabulary)
        vectors, gradient = self.vectors[rows, places], self.gradient[rows, places]
        candidates, hopeless = method.propose(Visit(log_probabilities, vectors, gradient, words[rows, places]))
        own_nll = -log_probabilities.gather(1, candidates)  # (rows, candidates)
        # The current word and those that were tried in this very sentence are not tried again. A forbidden word is a candidate
        # only if the vector has gone where no number reaches.
        self.tried[rows, places, words[rows, places]] = True
        tried = self.tried[rows[:, None], places[:, None], candidates]  # (rows, candidates)
        own_nll.masked_fill_(tried | method.forbidden[candidates] | hopeless, float("inf"))
        self.tried[rows[:, None], places[:, None], candidates] = tried | ~hopeless
        incumbent = from_place(self.nll[rows], places, 1 + suffix.targets.shape[1])  # (rows, longest + 2)
        total = incumbent.sum(dim=1)  # (rows) from the blank on
        # Not the whole less the rest: both may be infinite.
        is_before = torch.arange(self.nll.shape[1], device=rows.device) < places[:, None]  # (rows, longest + 1)
        before = self.nll[rows].where(is_before, 0.0).sum(dim=1)  # (rows)
        settings = method.settings
        scored = score_candidates(
            method.model,
            of_rows(state, candidates.shape[1]),
            candidates,
            own_nll,
            suffix,
            limits=limits_within(
                incumbent, self._bound(rows, before, total), settings.margin, settings.effective_margin_decay
            ),
            budget=method.budget,
            context_length=self.templates.context.ids.shape[1],
            only_best=settings.n_best == 1,
            # Candidates that an estimate has sifted stay within the margin for longer than those of the paper.
            limits_are_tight=not isinf(settings.margin) and isinf(method.propose.reach),
            precision=settings.precision,
        )
        self.steps[rows] += scored.steps
        if settings.n_best > 1:
            sentences = words[rows][:, None].repeat(1, candidates.shape[1], 1)  # (rows, candidates, longest)
            sentences.scatter_(2, places[:, None, None].expand_as(sentences[:, :, :1]), candidates[:, :, None])
            self._remember(rows, sentences, scored.totals + before[:, None])
        return self._keep_best(rows, places, candidates, own_nll, scored, total)

    def _o_step(self, rows: Tensor, places: Tensor, state: Any, suffix: Suffix) -> None:
        """Move the vectors of one blank each against the gradient of the mean NLL and the penalties."""
        model, settings = self.method.model, self.method.settings
        vectors = self.vectors[rows, places]  # (rows, size)
        with gradients():
            inputs = vectors.clone().requires_grad_()
            # Words before the blank do not depend on its vector.
            read = torch.cat([inputs[:, None], model.word_vectors[suffix.words]], dim=1)  # (rows, longest + 1, size)
            outputs = read_ragged(model, state, read, suffix.lengths)  # (rows, longest + 1, size)
            loss = model.nll(outputs[suffix.mask], suffix.targets[suffix.mask]).total
            gradient = input_gradient(loss, inputs)
        self.steps[rows] += GRADIENT_STEPS * suffix.lengths
        gradient = gradient / (self.sentences.lengths[rows] + 1)[:, None]
        gradient = gradient + penalty_gradient(vectors, model.word_vectors, settings)
        self.vectors[rows, places] = o_step(vectors, gradient, self.memory, rows, places, settings)

    def _bound(self, rows: Tensor, before: Tensor, total: Tensor) -> Tensor:
        """(rows) what a candidate's part of the sentence must stay below to be of interest.

        Args:
            rows: which sentences.
            before: (rows) what the sentence costs in front of the blank.
            total: (rows) what it costs from there on, with the current word.
        """
        n_best = self.method.settings.n_best
        if n_best == 1:
            return total - TOLERANCE
        return self.nll.new_tensor([nth_best(self.seen[row], n_best) for row in rows.tolist()]) - before

    def _keep_best(
        self, rows: Tensor, places: Tensor, candidates: Tensor, own_nll: Tensor, scored: Scored, total: Tensor
    ) -> Tensor:
        totals, best = scored.totals.min(dim=1)  # (rows)
        better = totals < total - TOLERANCE
        best, changed, place = best[better], rows[better], places[better]
        word = candidates[better, best]  # (changed)
        self.sentences.ids[changed, place] = word
        self.vectors[changed, place] = self.method.model.word_vectors[word]
        new_nll = torch.cat(
            [own_nll[better, best][:, None], scored.suffix_nll[better]], dim=1
        )  # (changed, longest + 2)
        columns = place[:, None] + torch.arange(new_nll.shape[1], device=rows.device)  # (changed, longest + 2)
        inside = columns <= self.sentences.lengths[changed, None]
        self.nll[changed[:, None].expand_as(columns)[inside], columns[inside]] = new_nll[inside]
        self.stale[changed] = True
        self.settled[changed] = False
        tried_here = self.tried[changed, place]  # (changed, vocabulary)
        self.tried[changed] = False
        if isinf(self.method.settings.margin):
            # The new word is better than all of them. What a margin has dropped may yet be better beside the new word.
            self.tried[changed, place] = tried_here
        return better

    def _remember(self, rows: Tensor, sentences: Tensor, nll: Tensor) -> None:
        """Of whole sentences (rows, several, longest) with their NLL (rows, several), those that may be among the n best."""
        for place, row in enumerate(rows.tolist()):
            possible = nll[place].isfinite()  # (several)
            fills = sentences[place, possible][:, self.templates.blanks[row]].tolist()
            found = dict(zip(map(tuple, fills), nll[place, possible].tolist(), strict=True))
            self.seen[row] = n_best_of(self.seen[row] | found, self.method.settings.n_best)

    def results(self) -> list[FillResult]:
        """One answer per sentence."""
        for seen, fill, trace in zip(self.seen, self.templates.fills(self.sentences.ids), self.traces, strict=True):
            seen[fill] = trace[-1]
        return best_seen(self.seen, self.traces, self.steps, n_best=self.method.settings.n_best)
