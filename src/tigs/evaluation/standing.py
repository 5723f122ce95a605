"""How TIGS stands among the other methods, cell by cell: where one is ahead of it, and where its start was already its answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tigs.evaluation.metrics import Metrics
from tigs.inference.predictions import read_predictions

TIGS, BEAM = "tigs", "seq2seq-f"
# Figures of one sentence differ by less when it is scored among other sentences.
_ROUNDING = 1e-5


@dataclass(frozen=True)
class Ahead:
    """A method with a better figure than TIGS on one test set."""

    set_name: str
    method: str
    figure: str
    value: float
    tigs: float


def paper_bleu(evaluated: Sequence[Metrics]) -> str:
    """Which BLEU is the paper's: over `x ⊕ y`, or against many references where there is no `x`."""
    return "bleu_references" if any("bleu_references" in metrics.figures for metrics in evaluated) else "bleu_xy"


def ahead_of_tigs(evaluated: Sequence[Metrics], figure: str) -> list[Ahead]:
    """Every method and test set with a better figure than TIGS: a lower NLL, a higher BLEU."""
    sign = 1 if "bleu" in figure else -1
    found = []
    for tigs in (metrics for metrics in evaluated if metrics.method == TIGS):
        own = tigs.figures[figure].value
        for other in evaluated:
            if other.cell == tigs.cell and figure in other.figures:
                value = other.figures[figure].value
                if sign * (value - own) > _ROUNDING:
                    found.append(Ahead(tigs.set_name, other.method, figure, value, own))
    return found


def unchanged_share(tigs_file: Path, beam_file: Path) -> float:
    """Share of templates where TIGS gives the answer of the beam, which it started from."""
    beam = {prediction.id: prediction.fill for prediction in read_predictions(beam_file).predictions}
    fills = [(prediction.fill, beam.get(prediction.id)) for prediction in read_predictions(tigs_file).predictions]
    return sum(own == other for own, other in fills) / len(fills)
