"""birnn-bibs: beams from both ends in turn, each guided by the other (Sun et al. 2017).

A round is a beam from the left and one from the right. Where a beam branches, a word is scored by log P(word | prefix) and by
the best that any hypothesis of the other direction, which stays fixed meanwhile, makes of it: its own score so far and
log P(word | suffix). A sentence's objective is its NLL in both directions together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.inference.beam import BeamSearch
from tigs.inference.beams import Beams
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import FillResult, Templates, TwoSidedModel
from tigs.inference.rounds import Seen, best_seen, go_round
from tigs.inference.start import Start
from tigs.inference.two_sided import masked_nll, read_left, read_right


class Bibs:
    """The method."""

    def __init__(self, model: TwoSidedModel, start: Start, settings: MethodConfig, *, forbidden: Tensor) -> None:
        self.model, self.start, self.settings, self.forbidden = model, start, settings, forbidden

    def fill(self, templates: Templates) -> list[FillResult]:
        """Rounds until the best sentence stays the same, or T of them."""
        with search_mode():
            templates = own_copy(templates)
            started = self.start(templates)
            search = _Search(self, templates, started.words, started.steps.clone())
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

    method: Bibs
    templates: Templates
    start_words: Tensor
    """(batch, longest)"""
    steps: Tensor
    """(batch)"""
    states: tuple[Any, Any] = field(init=False)
    """of both readers before the first word"""
    from_right: Tensor = field(init=False)
    """(batch, longest, vocabulary) at blanks: the best score of any hypothesis from the right that goes on with each word"""
    traces: list[list[float]] = field(init=False)
    seen: list[Seen] = field(init=False)
    """The start and every sentence that came out of a beam, with its objective."""

    def __post_init__(self) -> None:
        model, blanks = self.method.model, self.templates.blanks
        left, right = model.left_reader, model.right_reader
        self.states = model.start_both(self.templates.context)
        sentences = Padded(self.start_words, self.templates.target.lengths)
        from_left = read_left(left, self.states[0], sentences)  # (batch, longest, size)
        from_right = read_right(right, self.states[1], sentences)  # (batch, longest, size)
        self.steps = self.steps + 2 * sentences.lengths
        self.from_right = from_right.new_zeros(*blanks.shape, len(self.method.forbidden))
        # What the only hypothesis has scored so far is the same for all words and would choose nothing.
        self.from_right[blanks] = right.log_probabilities(from_right[blanks])
        nll = masked_nll(left, from_left, sentences) + masked_nll(right, from_right, sentences)  # (batch, longest)
        totals = nll.sum(dim=1).tolist()
        fills = self.templates.fills(self.start_words)
        self.seen = [{fill: total} for fill, total in zip(fills, totals, strict=True)]
        self.traces = [[total] for total in totals]

    def round(self, active: Tensor) -> Tensor:
        """A beam from the left and one from the right; returns (active) whether a better sentence was found."""
        before = [_best(self.seen[row]) for row in active.tolist()]
        model = self.method.model
        part = self.templates.select(active)
        # (active, longest, 1) where each position lies when the sentence is read from its end, and the other way round
        turned = part.target.reversal[:, :, None].expand(-1, -1, len(self.method.forbidden))

        left = self._beam(model.left_reader, self.states[0].select(active), part, self.from_right[active])
        beams = left.run()
        self._remember(active, beams, beams.words, self._nll_from_right)
        self.steps[active] += beams.steps
        assert left.messages is not None  # a guided search always leaves some

        right = self._beam(
            model.right_reader, self.states[1].select(active), part.reversed, left.messages.gather(1, turned)
        )
        beams = right.run()
        words = torch.stack([Padded(row, part.target.lengths).reversed.ids for row in beams.words.unbind(1)], dim=1)
        self._remember(active, beams, words, self._nll_from_left)
        self.steps[active] += beams.steps
        assert right.messages is not None
        self.from_right[active] = right.messages.gather(1, turned)

        after = [_best(self.seen[row]) for row in active.tolist()]
        for row, (_, nll) in zip(active.tolist(), after, strict=True):
            self.traces[row].append(nll)
        changed = [old[0] != new[0] for old, new in zip(before, after, strict=True)]
        return torch.tensor(changed, device=active.device)

    def _beam(self, reader: Any, state: Any, templates: Templates, guide: Tensor) -> BeamSearch:
        settings = self.method.settings
        return BeamSearch(
            reader,
            state,
            templates,
            widths=torch.full_like(templates.target.lengths, settings.beam_width),
            forbidden=self.method.forbidden,
            score_end=False,
            guide=lambda rows, position: guide[rows, position],
            keep_messages=True,
        )

    def _remember(self, rows: Tensor, beams: Beams, words: Tensor, other: Callable[[Tensor, Padded], Tensor]) -> None:
        """Score what a beam has found, if it was not seen before: the other direction must read it too.

        Args:
            rows: (rows) into the batch.
            beams: of these rows.
            words: (rows, width, longest) the beam's sentences from left to right.
            other: NLL (sentences) in the direction that the beam did not go, of fills of the rows (sentences).
        """
        blanks, usable = self.templates.blanks[rows], (beams.scores != float("-inf")).tolist()
        new = [
            (row, fill, place, rank)
            for place, row in enumerate(rows.tolist())
            for rank, fill in enumerate(map(tuple, words[place][:, blanks[place]].tolist()))
            if usable[place][rank] and fill not in self.seen[row]
        ]
        if not new:
            return
        places, ranks = torch.tensor([one[2:] for one in new], device=rows.device).unbind(1)  # (new) each
        origin = rows[places]  # (new)
        sentences = Padded(words[places, ranks], self.templates.target.lengths[origin])  # (new, longest)
        totals = beams.nll[places, ranks] + other(origin, sentences)  # (new)
        self.steps.index_add_(0, origin, sentences.lengths)
        for (row, fill, _, _), total in zip(new, totals.tolist(), strict=True):
            self.seen[row][fill] = total

    def _nll_from_left(self, rows: Tensor, sentences: Padded) -> Tensor:
        reader = self.method.model.left_reader
        return masked_nll(reader, read_left(reader, self.states[0].select(rows), sentences), sentences).sum(dim=1)

    def _nll_from_right(self, rows: Tensor, sentences: Padded) -> Tensor:
        reader = self.method.model.right_reader
        return masked_nll(reader, read_right(reader, self.states[1].select(rows), sentences), sentences).sum(dim=1)

    def results(self) -> list[FillResult]:
        """The best sentences seen."""
        return best_seen(self.seen, self.traces, self.steps, n_best=self.method.settings.n_best)


def _best(seen: Seen) -> tuple[tuple[int, ...], float]:
    return min(seen.items(), key=lambda item: item[1])
