"""Beam search that keeps the known words where they are (paper, section 5.2).

Sentences of different lengths and with blanks at different places go through it together: all read position by position; where
a sentence has a blank its hypotheses branch, elsewhere they read the known word. Only live hypotheses are stepped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from tigs.data.special import END_ID
from tigs.inference.beams import Beams, concatenate, in_parts
from tigs.inference.interfaces import SequenceModel, Templates
from tigs.models.nll import logits_at_once

Guide = Callable[[Tensor, int], Tensor]
"""From some sentences of a batch and a position to (sentences, vocabulary) what is added to each word's score."""

_NEVER = float("-inf")


class Ends(NamedTuple):
    """Hypotheses of sentences that end at the same place; their last word has been chosen, but not read."""

    rows: Tensor
    """(ended) their sentences"""
    slots: Tensor
    """(ended) their places among the hypotheses of each; those that the last blank has chosen first stand first"""
    state: Any
    """before the last word"""


def beam_search(
    model: SequenceModel,
    state: Any,
    templates: Templates,
    *,
    width: int | Tensor,
    forbidden: Tensor,
    score_known: bool = True,
) -> Beams:
    """The `width` best fills found from left to right.

    Args:
        model: what scores them.
        state: of the model after the contexts.
        templates: a backward model must be given reversed ones.
        width: hypotheses kept per sentence, the same for all or (batch).
        forbidden: (vocabulary) words that may not be filled in.
        score_known: whether known words, `</s>` among them, help to choose between hypotheses.
    """
    lengths = templates.target.lengths
    widths = torch.as_tensor(width, device=lengths.device).expand_as(lengths)  # (batch)
    found = [
        BeamSearch(
            model,
            part.state,
            part.templates,
            widths=part.widths,
            forbidden=forbidden,
            score_known=score_known,
        ).run()
        for part in in_parts(state, templates, widths, n_words=len(forbidden))
    ]
    return concatenate(found, templates.target.ids.shape[1])


class BeamSearch:
    """One batch on its way from left to right."""

    def __init__(
        self,
        model: SequenceModel,
        state: Any,
        templates: Templates,
        *,
        widths: Tensor,
        forbidden: Tensor,
        score_known: bool = True,
        score_end: bool = True,
        guide: Guide | None = None,
        recombine: bool = False,
        margin: float = float("inf"),
        margin_decay: float = 1.0,
        keep_messages: bool = False,
        keep_ends: bool = False,
    ) -> None:
        """See `beam_search`.

        Args:
            widths: (batch) hypotheses kept per sentence.
            score_end: false for a model that gives `</s>` no probability, or where it is read elsewhere.
            guide: added to a word's score when hypotheses are chosen, and only then.
            recombine: whether of hypotheses that fill a blank with the same word only the best goes on.
            margin: nats by which a hypothesis may fall behind the best of its sentence; the guide does not count.
            margin_decay: what is left of the margin after each known word since the last blank.
            keep_messages: for a search in the other direction.
            keep_ends: whether the states before the last words are kept, for a search that reads on from there.
        """
        self.model, self.widths, self.forbidden = model, widths, forbidden
        self.forbidden_ids = forbidden.nonzero().squeeze(1)  # (forbidden)
        self.score_known, self.score_end, self.guide = score_known, score_end, guide
        self.recombine, self.margin, self.margin_decay = recombine, margin, margin_decay
        # (batch, longest, vocabulary) at blanks: the best score of any hypothesis that goes on with each word
        self.messages = (
            model.word_vectors.new_zeros(*templates.target.ids.shape, len(forbidden)) if keep_messages else None
        )
        self.ends: list[Ends] | None = [] if keep_ends else None
        self.target = templates.target
        self.blanks = templates.blanks
        n_rows = len(templates.ids)
        self.state = state
        self.words = self.target.ids[:, None].clone()  # (batch, 1, longest), later (batch, width, longest)
        self.scores = self.words.new_zeros(n_rows, 1, dtype=model.word_vectors.dtype)  # (batch, width)
        self.nll = torch.zeros_like(self.scores)  # (batch, width)
        self.steps = self.target.lengths.new_zeros(n_rows)  # (batch)

    def run(self) -> Beams:
        """Read every sentence to its end; the hypotheses, best first."""
        self.read()
        return self._sorted()

    def read(self) -> None:
        """Read every sentence to its `</s>`, or to its last word where `</s>` does not count."""
        lengths, longest = self.target.lengths, self.target.ids.shape[1]
        last = lengths if self.score_end else lengths - 1  # (batch) the position of what is said last
        live = self.scores != _NEVER  # (batch, width): one row of `state` each, in this order
        tokens = torch.full_like(lengths, self.model.first_token)  # (live)
        distance = torch.zeros_like(lengths)  # (batch) known words since the last blank
        for position in range(int(last.max()) + 1):
            outputs, self.state = self.model.step(self.state, tokens)  # (live, size)
            self.steps += live.sum(dim=1)
            if position < longest:
                blank = self.blanks[:, position]  # (batch)
                known = torch.where(position < lengths, self.target.ids[:, position], END_ID)  # (batch)
            else:
                blank, known = torch.zeros_like(lengths, dtype=torch.bool), torch.full_like(lengths, END_ID)
            self._read_known(live & ~blank[:, None], ~blank[:, None].expand_as(live)[live], outputs, known)
            parents = torch.arange(live.shape[1], device=live.device).expand_as(live)  # (batch, width)
            if blank.any():
                parents = self._branch(blank, live, outputs, position)
            # It stands still behind the end: what is left of a sentence there must not depend on longer neighbours.
            distance = torch.where(blank, 0, distance + (position <= last))
            if self.margin < float("inf"):
                least = self.scores.amax(dim=1) - self.margin * self.margin_decay ** distance.to(self.scores)  # (batch)
                self.scores[self.scores < least[:, None]] = _NEVER
            possible = self.scores != _NEVER  # (batch, width)
            still = possible & (position < last)[:, None]  # (batch, width)
            if not torch.equal(still, live) or blank.any():
                row_of = torch.zeros_like(live, dtype=torch.long)  # (batch, width before)
                row_of[live] = torch.arange(len(outputs), device=live.device)
                row_of = row_of.gather(1, parents)  # (batch, width)
                here = possible & last.eq(position)[:, None]  # (batch, width)
                if self.ends is not None and here.any():
                    rows, slots = here.nonzero(as_tuple=True)  # (ended) each
                    self.ends.append(Ends(rows, slots, self.state.select(row_of[here])))
                self.state = self.state.select(row_of[still])
            live, tokens = still, self.words[:, :, min(position, longest - 1)][still]

    def _read_known(self, slots: Tensor, rows: Tensor, outputs: Tensor, known: Tensor) -> None:
        """Add the NLL of known words at `slots` (batch, width), whose outputs stand at `rows` (live)."""
        if not slots.any():
            return
        per_token = self.model.nll(outputs[rows], known[:, None].expand_as(slots)[slots]).per_token
        self.nll[slots] += per_token
        if self.score_known:
            self.scores[slots] -= per_token

    def _branch(self, blank: Tensor, live: Tensor, outputs: Tensor, position: int) -> Tensor:
        """Keep the best continuations of sentences with a blank here; returns (batch, new width) where each comes from."""
        width = live.shape[1]
        n_ends = int((~self.forbidden).sum()) * (1 if self.recombine else width)
        new_width = min(int(self.widths.max()), n_ends)
        grown = max(width, new_width)
        parent, word, spent = self._continue(blank, live, outputs, position, new_width)  # (blanks, new width) each
        gains = self.scores[blank].gather(1, parent) + spent

        places = torch.arange(grown, device=live.device).clamp(max=width - 1)
        parents = places.repeat(len(live), 1)  # (batch, grown)
        parents[blank, :new_width] = parent
        self.words = self.words.gather(1, parents[:, :, None].expand(-1, -1, self.words.shape[2]))
        self.nll = self.nll.gather(1, parents)
        self.scores = F.pad(self.scores, (0, grown - width), value=_NEVER)
        column = self.words[:, :, position]
        column[blank, :new_width] = word
        self.nll[blank, :new_width] -= spent
        self.scores[blank] = F.pad(gains, (0, grown - new_width), value=_NEVER)
        return parents

    def _continue(
        self, blank: Tensor, live: Tensor, outputs: Tensor, position: int, n_chosen: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The best continuations of `blank` (batch) sentences: hypotheses, words and log P of the words, (blanks, chosen) each.

        Tables of hypotheses x words are made for a few sentences at a time, so that they stay in a core's cache.
        """
        here = live[blank]  # (blanks, width)
        sentences = blank.nonzero().squeeze(1)  # (blanks)
        counts = here.sum(dim=1).tolist()
        outputs = outputs[blank[:, None].expand_as(live)[live]]  # (live at blanks, size)
        guide = None if self.guide is None else self.guide(sentences, position)  # (blanks, vocabulary)
        chosen, first, first_output = [], 0, 0
        for size in _group(counts, logits_at_once(outputs.device) // len(self.forbidden)):
            some = slice(first, first + size)
            n_live = sum(counts[some])
            n_rows = max(*counts[some], math.ceil(n_chosen / len(self.forbidden)))
            # The places of live hypotheses first, in their order: (sentences, rows)
            places = here[some].sort(dim=1, descending=True, stable=True).indices[:, :n_rows]
            own = self._continue_some(
                sentences[some],
                places,
                here[some].gather(1, places),
                self.model.log_probabilities(outputs[first_output : first_output + n_live]),
                None if guide is None else guide[some],
                position=position,
                n_chosen=n_chosen,
            )
            chosen.append(own)
            first, first_output = first + size, first_output + n_live
        parent, word, spent = (torch.cat(parts) for parts in zip(*chosen, strict=True))
        return parent, word, spent

    def _continue_some(
        self,
        sentences: Tensor,
        places: Tensor,
        here: Tensor,
        log_probabilities: Tensor,
        guide: Tensor | None,
        *,
        position: int,
        n_chosen: int,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """As `_continue`, for some sentences whose hypotheses stand at `places` (sentences, rows), live ones where `here`."""
        scores = self.scores[sentences].gather(1, places)  # (sentences, rows)
        if here.all():
            table = log_probabilities.view(*here.shape, -1) + scores[:, :, None]  # (sentences, rows, vocabulary)
        else:
            table = scores.new_full((*here.shape, log_probabilities.shape[1]), _NEVER)
            table[here] = log_probabilities + scores[here][:, None]
        table.index_fill_(2, self.forbidden_ids, _NEVER)
        if self.messages is not None:
            self.messages[sentences, position] = table.amax(dim=1)
        row, word = self._choose(table, guide, n_chosen)  # (sentences, chosen) each
        # Fewer may be allowed for a sentence than for its neighbours, and fewer may be possible, even none.
        allowed = torch.arange(n_chosen, device=here.device) < self.widths[sentences, None]
        allowed &= ~self.forbidden[word] & here.gather(1, row)  # (sentences, chosen)
        number = here.flatten().cumsum(dim=0).view_as(here) - 1  # (sentences, rows) into log_probabilities
        spent = self.scores.new_full(word.shape, _NEVER)  # (sentences, chosen)
        spent[allowed] = log_probabilities[number.gather(1, row)[allowed], word[allowed]]
        return places.gather(1, row), word, spent

    def _choose(self, table: Tensor, guide: Tensor | None, n_chosen: int) -> tuple[Tensor, Tensor]:
        """Of scores (sentences, rows, vocabulary) the best: (sentences, chosen) rows that go on, and by which word."""
        if self.recombine:
            # The guide speaks of words, whatever stands before them, and need not be added to every row.
            best = table.amax(dim=1)  # (sentences, vocabulary)
            word = (best if guide is None else best + guide).topk(n_chosen, dim=1).indices  # (sentences, chosen)
            return table.gather(2, word[:, None].expand(-1, table.shape[1], -1)).argmax(dim=1), word
        if guide is not None:
            table += guide[:, None]
        index = table.flatten(1).topk(n_chosen, dim=1).indices  # (sentences, chosen)
        return index // table.shape[2], index % table.shape[2]

    def _sorted(self) -> Beams:
        scores, order = self.scores.sort(dim=1, descending=True, stable=True)
        words = self.words.gather(1, order[:, :, None].expand_as(self.words))
        nll = self.nll.gather(1, order).masked_fill(scores == _NEVER, float("inf"))
        return Beams(words, scores, nll, self.steps)


def _group(counts: Sequence[int], most: int) -> list[int]:
    """How many neighbours go together, so that as many tables as they are, each as large as the largest, have `most` rows."""
    sizes, largest = [0], 0
    for count in counts:
        largest = max(largest, count)
        if sizes[-1] and largest * (sizes[-1] + 1) > most:
            sizes.append(0)
            largest = count
        sizes[-1] += 1
    return sizes
