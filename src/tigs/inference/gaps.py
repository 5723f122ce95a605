"""How far each search stays from the global optimum, where an exact solver can prove it: few blanks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from torch import nn

from tigs.inference.benchmark import Runner, forbidden
from tigs.inference.coordinate import whole_sentences
from tigs.inference.exact import Optimum, solve
from tigs.inference.growth import Sentence, make_templates
from tigs.inference.interfaces import SequenceModel
from tigs.inference.score import sentence_nll
from tigs.inference.tigs import TOLERANCE
from tigs.progress import track

N_BLANKS = (1, 2, 3)
# Whose answers are compared; the best of them gives the solver its first bound.
MEASURED = ("tigs-plus", "exact", "margin", "greedy", "beam-5", "beam-40", "beam-200", "birnn-gsn", "birnn-bibs")


@dataclass(frozen=True)
class Gap:
    """One variant on sentences with a number of blanks. Shares and means are of the sentences whose optimum is proven."""

    n_blanks: int
    variant: str
    n: int
    """sentences"""
    n_proven: int
    at_optimum: float | None
    """share of the proven ones; None if there are none"""
    nll_above: float | None
    """mean, in nats over the whole sentence"""
    n_beaten: int
    """of all sentences, those for which the solver or another variant knows a better fill"""


def measure_gaps(
    runners: Sequence[Runner], network: nn.Module, sentences: Sequence[Sentence], *, n_blanks: int, max_steps: int
) -> list[Gap]:
    """All variants on the sentences with blanks at random places.

    Args:
        runners: those of `MEASURED` are measured.
        network: the forward model.
        sentences: without blanks, of at least as many words as there are to be blanks.
        n_blanks: of each sentence.
        max_steps: model steps after which the solver gives up a sentence.
    """
    model = cast(SequenceModel, network)
    own = sorted(
        (one for one in runners if one.variant.name in MEASURED), key=lambda one: MEASURED.index(one.variant.name)
    )
    templates = make_templates(sentences, n_blanks=n_blanks)
    fills = {one.variant.name: [result.fill for result in one.infiller.fill(templates)] for one in own}
    nll = {
        name: sentence_nll(model, templates.context, whole_sentences(templates, answers)).tolist()
        for name, answers in fills.items()
    }
    optima: list[Optimum] = []
    for row in track(range(len(sentences)), f"{n_blanks} blanks: proving optima"):
        part = templates.part(row, row + 1)
        # Not always the same search's: where its bound is loose nothing is proven, which would hide its misses.
        _, best = min((nll[name][row], answers[row]) for name, answers in fills.items())
        optima += solve(model, part, [best], forbidden=forbidden(network, own[0].settings), max_steps=max_steps)
    proven = [row for row, best in enumerate(optima) if best.proven]
    return [
        _gap(n_blanks, name, [value - best.nll for value, best in zip(own_nll, optima, strict=True)], proven)
        for name, own_nll in nll.items()
    ]


def _gap(n_blanks: int, variant: str, above: Sequence[float], proven: Sequence[int]) -> Gap:
    """Of a variant whose fills are so many nats `above` the best known ones, which are proven optima in the rows `proven`."""
    # The solver's optimum is one up to TOLERANCE, and so is every NLL.
    beaten = [value >= 2 * TOLERANCE for value in above]
    n = len(proven)
    return Gap(
        n_blanks,
        variant,
        len(above),
        n,
        at_optimum=sum(not beaten[row] for row in proven) / n if n else None,
        nll_above=sum(above[row] for row in proven) / n if n else None,
        n_beaten=sum(beaten),
    )
