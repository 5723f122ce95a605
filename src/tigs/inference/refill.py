"""Refill all blanks of a sentence at once, by a beam that looks at the words to come.

A plain beam knows nothing of what stands behind a blank. Here the sentence has been read once, with some fill or with what the
model expects in its blanks (`expected.py`), and the gradient of the *known* words' NLL with respect to each input says, to first
order, what a word would do to all known words behind it. (The words in other blanks do not count: they will be chosen anew.) A
hypothesis is chosen by what it has paid and this estimate for its newest word; what it pays later is then its own. So whole runs
of blanks are filled together with what follows them, where one-word moves get stuck and a plain beam is blind. Of hypotheses that
fill a blank with the same word only the best goes on: what follows depends on that word more than on those before it, and the
width is left for words that differ.
"""

from __future__ import annotations

from typing import Any

from torch import Tensor

from tigs.inference.beam import Beams, beam_search
from tigs.inference.interfaces import SequenceModel, Templates


def refill(
    model: SequenceModel,
    state: Any,
    templates: Templates,
    gradient: Tensor,
    *,
    per_blank: int,
    at_least: int,
    margin: float,
    margin_decay: float,
    forbidden: Tensor,
) -> Beams:
    """The best fills found by one beam.

    Args:
        model: the searched model.
        state: before the first token, one row per sentence.
        templates: what is refilled.
        gradient: (batch, longest, size) of the known words' NLL with respect to what was read in each blank.
        per_blank: hypotheses kept for every blank of a sentence's longest run: inside a run no known word chooses between them.
        at_least: hypotheses kept however short that run is: now and then the estimate ranks the best word of a blank low.
        margin: nats by which a hypothesis may fall behind the best of its sentence in what both have paid.
        margin_decay: what is left of the margin after each known word since the last blank.
        forbidden: (vocabulary) words that may not be filled in.
    """

    def gain(rows: Tensor, position: int) -> Tensor:
        # What was read there is the same for all hypotheses of a sentence and chooses nothing. What is no number says nothing.
        slope = gradient[rows, position].nan_to_num(nan=0.0, posinf=0.0, neginf=0.0)  # (rows, size)
        return -(slope @ model.word_vectors.t())  # (rows, vocabulary)

    widths = (per_blank * longest_runs(templates.blanks)).clamp(min=at_least)  # (batch)
    return beam_search(
        model,
        state,
        templates,
        width=widths,
        forbidden=forbidden,
        guide=gain,
        recombine=True,
        margin=margin,
        margin_decay=margin_decay,
    )


def longest_runs(blanks: Tensor) -> Tensor:
    """(batch) the most blanks that stand together in each sentence, from (batch, longest)."""
    so_far = blanks.cumsum(dim=1)  # (batch, longest)
    before_run = (so_far * ~blanks).cummax(dim=1).values  # (batch, longest) blanks up to the last known word
    return (so_far - before_run).amax(dim=1)
