"""birnn-bibs: beams from both ends in turn, each guided by the other (Sun et al. 2017).

A round is a beam from the left and one from the right. Where a beam branches, a word is scored by log P(word | prefix) and by
the best that any hypothesis of the other direction, which stays fixed meanwhile, makes of it: its own score so far and
log P(word | suffix). A sentence's objective is its NLL in both directions together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.inference.beam import BeamSearch
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
    """Every sentence that came out of a beam, with its objective."""

    def __post_init__(self) -> None:
        model = self.method.model
        self.states = model.start_both(self.templates.context)
        sentences = Padded(self.start_words, self.templates.target.lengths)
        outputs = read_right(model.right_reader, self.states[1], sentences)  # (batch, longest, size)
        blanks = self.templates.blanks
        self.from_right = outputs.new_zeros(*blanks.shape, len(self.method.forbidden))
        # What the only hypothesis has scored so far is the same for all words and would choose nothing.
        self.from_right[blanks] = model.right_reader.log_probabilities(outputs[blanks])
        self.seen = [{} for _ in self.templates.ids]
        everyone = torch.arange(len(blanks), device=blanks.device)
        self._remember(everyone, self.start_words[:, None], outputs.new_zeros(len(blanks), 1))
        self.traces = [[_best(seen)[1]] for seen in self.seen]

    def round(self, active: Tensor) -> Tensor:
        """A beam from the left and one from the right; returns (active) whether a better sentence was found."""
        before = [_best(self.seen[row]) for row in active.tolist()]
        model = self.method.model
        part = self.templates.select(active)
        # (active, longest, 1) where each position lies when the sentence is read from its end, and the other way round
        turned = part.target.reversal[:, :, None].expand(-1, -1, len(self.method.forbidden))

        left = self._beam(model.left_reader, self.states[0].select(active), part, self.from_right[active])
        beams = left.run()
        self._remember(active, beams.words, beams.scores)
        self.steps[active] += beams.steps
        assert left.messages is not None  # a guided search always leaves some

        right = self._beam(
            model.right_reader, self.states[1].select(active), part.reversed, left.messages.gather(1, turned)
        )
        beams = right.run()
        words = torch.stack([Padded(row, part.target.lengths).reversed.ids for row in beams.words.unbind(1)], dim=1)
        self._remember(active, words, beams.scores)
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

    def _remember(self, rows: Tensor, words: Tensor, scores: Tensor) -> None:
        """Score sentences (rows, width, longest) in both directions; -inf in `scores` (rows, width) marks an empty place.

        The beams of a later round bring much that was seen before, and that is not read again.
        """
        blanks, usable = self.templates.blanks[rows], (scores != float("-inf")).tolist()
        new, found = [], []
        for place, row in enumerate(rows.tolist()):
            for rank, fill in enumerate(map(tuple, words[place][:, blanks[place]].tolist())):
                if usable[place][rank] and fill not in self.seen[row]:
                    new.append((row, fill))
                    found.append((place, rank))
        if not new:
            return
        places, ranks = torch.tensor(found, device=rows.device).unbind(1)  # (new) each
        origin = rows[places]  # (new)
        sentences = Padded(words[places, ranks], self.templates.target.lengths[origin])  # (new, longest)
        self.steps.index_add_(0, origin, 2 * sentences.lengths)
        for (row, fill), nll in zip(new, self._objective(origin, sentences).tolist(), strict=True):
            self.seen[row][fill] = nll

    def _objective(self, origin: Tensor, sentences: Padded) -> Tensor:
        """(sentences) NLL in both directions together, of fills of the templates at `origin` (sentences)."""
        model = self.method.model
        left, right = (state.select(origin) for state in self.states)
        from_left = masked_nll(model.left_reader, read_left(model.left_reader, left, sentences), sentences)
        from_right = masked_nll(model.right_reader, read_right(model.right_reader, right, sentences), sentences)
        return (from_left + from_right).sum(dim=1)

    def results(self) -> list[FillResult]:
        """The best sentences seen."""
        return best_seen(self.seen, self.traces, self.steps, n_best=self.method.settings.n_best)


def _best(seen: Seen) -> tuple[tuple[int, ...], float]:
    return min(seen.items(), key=lambda item: item[1])
