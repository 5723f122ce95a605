"""What the paper says of its results (section 6), asked of ours: does it hold, and which figures speak against it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tigs.evaluation.metrics import Figure
from tigs.report.experiment import Experiment
from tigs.report.methods import TASK_LABELS, label, set_label
from tigs.report.paper import paper_sets

TIGS = "tigs"
_ONE_SIDED = ("seq2seq-f", "seq2seq-b")
_TWO_SIDED = ("seq2seq-fb", "birnn-bibs", "birnn-gsn")
_MASKED = ("mask-seq2seq", "mask-selfattn")
BASELINES = (*_ONE_SIDED, *_TWO_SIDED, *_MASKED)
_CONDITIONAL = ("dialog", "poetry")


@dataclass(frozen=True)
class Claim:
    """A statement of the paper and what our figures say to it."""

    statement: str
    holds: bool | None
    """None where figures are missing"""
    summary: str
    """In how many cells it holds, or what is missing."""
    against: tuple[str, ...] = ()
    """Cells in which it does not, with their figures."""


class _MissingError(Exception):
    """A figure that a claim needs was not made."""


@dataclass(frozen=True)
class _Cell:
    """One test set of one task."""

    experiment: Experiment
    set_name: str

    @property
    def name(self) -> str:
        return f"{TASK_LABELS[self.experiment.task]} {set_label(self.set_name)}"

    def figure(self, method: str, name: str) -> Figure:
        found = self.experiment.figure(method, self.set_name, name)
        if found is None:
            raise _MissingError(f"{label(method)} on {self.name}")
        return found

    def value(self, method: str, name: str) -> float:
        return self.figure(method, name).value


# For a cell: whether the statement holds there, and the figures in words.
_Ask = Callable[[_Cell], tuple[bool, str]]


def make_claims(experiments: Sequence[Experiment], with_unk: Sequence[Experiment] = ()) -> list[Claim]:
    """Every claim, over all six test sets of the tasks it is about.

    Args:
        experiments: one for each task, of one profile.
        with_unk: the same searched with `method.allow_unk=true`, for the claim about `<unk>`.
    """
    cells = _cells(experiments)
    conditional = [cell for cell in cells if cell.experiment.task in _CONDITIONAL]
    return [
        _claim("TIGS has the lowest NLL in all cells", cells, _is_lowest("nll"), in_all=True),
        _claim("The same by the NLL under the model that is searched", cells, _is_lowest("forward_nll"), in_all=True),
        _claim(
            "Two-sided methods (Seq2Seq-f+b, BiRNN-BiBS, BiRNN-GSN) have a lower NLL than one-sided ones in most cells",
            cells,
            _two_sided_are_lower,
        ),
        _claim("Mask-Self-attn has a lower NLL than Mask-Seq2Seq in all cells", cells, _self_attention, in_all=True),
        _claim(
            "TIGS has the best BLEU, or one within the interval of the best, in most cells with a context",
            conditional,
            _has_best_bleu,
        ),
        _claim("BiRNN-BiBS fills in <unk> more often than any other method", _cells(with_unk), _bibs_fills_unk),
        _claim("Masked models left to themselves lose the template in a share of cases", cells, _template_is_lost),
    ]


def _cells(experiments: Sequence[Experiment]) -> list[_Cell]:
    return [_Cell(experiment, name) for experiment in experiments for name in paper_sets()]


def _claim(statement: str, cells: Sequence[_Cell], ask: _Ask, *, in_all: bool = False) -> Claim:
    """Asked of every cell; it holds if more than half of them say so, or all of them where it must hold `in_all`."""
    if not cells:
        return Claim(statement, None, "no figures were made for it")
    try:
        answers = [(cell, *ask(cell)) for cell in cells]
    except _MissingError as missing:
        return Claim(statement, None, f"there are no figures of {missing}")
    n_holding = sum(holds for _, holds, _ in answers)
    against = tuple(f"{cell.name}: {words}" for cell, holds, words in answers if not holds)
    holds = not against if in_all else n_holding > len(answers) / 2
    return Claim(statement, holds, f"in {n_holding} of {len(answers)} cells", against)


def _is_lowest(figure: str) -> _Ask:
    def ask(cell: _Cell) -> tuple[bool, str]:
        own = cell.value(TIGS, figure)
        best = min(BASELINES, key=lambda method: cell.value(method, figure))
        return own <= cell.value(best, figure), f"{own:.3f}, {label(best)} {cell.value(best, figure):.3f}"

    return ask


def _two_sided_are_lower(cell: _Cell) -> tuple[bool, str]:
    """Of all pairs of a two-sided and a one-sided method, whether most are in this order."""
    pairs = [(cell.value(two, "nll"), cell.value(one, "nll")) for two in _TWO_SIDED for one in _ONE_SIDED]
    n_lower = sum(two < one for two, one in pairs)
    return n_lower > len(pairs) / 2, f"{n_lower} of {len(pairs)} pairs"


def _self_attention(cell: _Cell) -> tuple[bool, str]:
    recurrent, attention = (cell.value(method, "nll") for method in _MASKED)
    return attention < recurrent, f"{attention:.3f} and {recurrent:.3f}"


def _has_best_bleu(cell: _Cell) -> tuple[bool, str]:
    bleu = cell.experiment.bleu
    best = max((*BASELINES, TIGS), key=lambda method: cell.value(method, bleu))
    own, other = cell.value(TIGS, bleu), cell.figure(best, bleu)
    return own >= other.low, f"{own:.3f}, {label(best)} {other.value:.3f} (from {other.low:.3f})"


def _bibs_fills_unk(cell: _Cell) -> tuple[bool, str]:
    own = cell.value("birnn-bibs", "unk_share")
    others = [method for method in (*BASELINES, TIGS) if method != "birnn-bibs"]
    most = max(others, key=lambda method: cell.value(method, "unk_share"))
    return own > cell.value(most, "unk_share"), f"{own:.1%}, {label(most)} {cell.value(most, 'unk_share'):.1%}"


def _template_is_lost(cell: _Cell) -> tuple[bool, str]:
    shares = {method: cell.value(method, "template_failure") for method in _MASKED}
    return all(shares.values()), ", ".join(f"{label(method)} {share:.1%}" for method, share in shares.items())
