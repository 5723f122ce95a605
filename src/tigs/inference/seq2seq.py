"""The unidirectional baselines: beam search from the left, from the right, and the better of both (paper, section 5.2)."""

from __future__ import annotations

import math

from torch import Tensor

from tigs.config import MethodConfig
from tigs.errors import InferenceError
from tigs.inference.beam import beam_search
from tigs.inference.beams import Beams
from tigs.inference.gradient import own_copy, search_mode
from tigs.inference.interfaces import Alternative, FillResult, Infiller, SequenceModel, Templates


class BeamInfiller:
    """seq2seq-f and, with a model that reads backward, seq2seq-b."""

    def __init__(self, model: SequenceModel, settings: MethodConfig, *, forbidden: Tensor, backward: bool) -> None:
        self.model, self.settings, self.forbidden, self.backward = model, settings, forbidden, backward

    def fill(self, templates: Templates) -> list[FillResult]:
        """One pass over the sentences."""
        with search_mode():
            templates = own_copy(templates)
            read = templates.reversed if self.backward else templates
            beams = beam_search(
                self.model,
                self.model.start(read.context),
                read,
                width=self.settings.beam_width,
                forbidden=self.forbidden,
                score_known=self.settings.score_known,
            )
            results = beam_results(read, beams, n_best=self.settings.n_best)
        return [_reversed(result) for result in results] if self.backward else results


class BothWays:
    """seq2seq-fb: fill from both ends, keep the answer to which its own model gives the higher probability."""

    def __init__(self, forward: Infiller, backward: Infiller) -> None:
        self.forward, self.backward = forward, backward

    def fill(self, templates: Templates) -> list[FillResult]:
        """Both passes."""
        pairs = zip(self.forward.fill(templates), self.backward.fill(templates), strict=True)
        return [_better(left, right) for left, right in pairs]


def beam_results(templates: Templates, beams: Beams, *, n_best: int) -> list[FillResult]:
    """The first hypothesis of every sentence, and the next ones as alternatives."""
    by_rank = [templates.fills(beams.words[:, rank]) for rank in range(min(n_best, beams.words.shape[1]))]
    scores, nlls, steps = beams.scores.tolist(), beams.nll.tolist(), beams.steps.tolist()
    results = []
    for row, n_steps in enumerate(steps):
        alternatives = tuple(
            Alternative(fills[row], nlls[row][rank])
            for rank, fills in enumerate(by_rank)
            if scores[row][rank] != float("-inf")
        )
        if not alternatives:
            raise InferenceError(
                f"template {templates.ids[row]}: the model holds every sentence with its known words for impossible",
                remedy="Use a model that gives every word some probability",
            )
        best = alternatives[0]
        results.append(
            FillResult(best.fill, best.nll, (best.nll,), rounds=1, model_steps=n_steps, alternatives=alternatives)
        )
    return results


def _reversed(result: FillResult) -> FillResult:
    alternatives = tuple(Alternative(other.fill[::-1], other.nll) for other in result.alternatives)
    return FillResult(
        result.fill[::-1],
        result.nll,
        result.trace,
        rounds=result.rounds,
        model_steps=result.model_steps,
        alternatives=alternatives,
    )


def _better(left: FillResult, right: FillResult) -> FillResult:
    for result in (left, right):
        if result.nll is None or not math.isfinite(result.nll):
            return result  # a broken model must be seen, not passed over
    best = min(left.alternatives[0], right.alternatives[0], key=lambda alternative: alternative.nll)
    # The same fill can come from both ends; each model's figure for it is its own, the lower one counts.
    merged = {best.fill: best.nll}
    for other in sorted(left.alternatives + right.alternatives, key=lambda alternative: alternative.nll):
        merged.setdefault(other.fill, other.nll)
    alternatives = tuple(Alternative(fill, nll) for fill, nll in merged.items())[: len(left.alternatives)]
    return FillResult(
        best.fill,
        best.nll,
        (best.nll,),
        rounds=1,
        model_steps=left.model_steps + right.model_steps,
        alternatives=alternatives,
    )
