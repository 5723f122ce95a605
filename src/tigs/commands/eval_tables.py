"""What `tigs eval` prints: the figures of one method, and all methods side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tigs.console import print_table, print_text
from tigs.evaluation.metrics import Metrics
from tigs.evaluation.standing import BEAM, TIGS, ahead_of_tigs, paper_bleu, unchanged_share


class Evaluated(NamedTuple):
    """One method on all test sets."""

    method: str
    files: tuple[Path, ...]
    figures: tuple[Metrics, ...]


_COLUMNS = {
    "nll": ("NLL", ".3f"),
    "forward_nll": ("NLL, searched model", ".3f"),
    "bleu_xy": ("BLEU x ⊕ y", ".3f"),
    "bleu_y": ("BLEU y", ".3f"),
    "bleu_references": ("BLEU, {} references", ".3f"),
    "exact_match": ("exact", ".1%"),
    "unk_share": ("<unk>", ".1%"),
    "template_failure": ("template lost", ".1%"),
    "rounds": ("rounds", ".1f"),
    "model_steps": ("steps", ",.0f"),
    "seconds": ("seconds", ".4f"),
}


def print_method(evaluated: Evaluated, about: str) -> None:
    """One row per test set; NLL is per token by the evaluator unless its column says otherwise, costs are per sentence."""
    names = [name for name in _COLUMNS if any(name in metrics.figures for metrics in evaluated.figures)]
    rows = [
        (metrics.set_name, f"{metrics.n:,}", *(_cell(metrics, name) for name in names)) for metrics in evaluated.figures
    ]
    titles = [_title(evaluated.figures, name) for name in names]
    print_table(f"{evaluated.method}: {about}", ("set", "n", *titles), rows)
    _print_signatures(evaluated.figures, names)


def print_comparison(methods: Sequence[Evaluated], about: str) -> None:
    """All methods side by side, and how TIGS stands."""
    everything = [metrics for method in methods for metrics in method.figures]
    n_sentences = sorted({metrics.n for metrics in everything})
    about = f"{about}, n = {' or '.join(map(str, n_sentences))}"
    sets = [metrics.set_name for metrics in methods[0].figures]
    bleu = paper_bleu(everything)
    for name, title in (
        ("nll", "NLL per token by the evaluator"),
        ("forward_nll", "NLL per token under the searched (forward) model"),
        (bleu, f"BLEU-4, {_title(everything, bleu).removeprefix('BLEU').strip(', ')}"),
        ("seconds", "seconds per sentence"),
    ):
        rows = [(method.method, *(_cell(metrics, name) for metrics in method.figures)) for method in methods]
        print_table(f"{title}: {about}", ("method", *sets), rows)
        _print_signatures(everything, [name])
    _print_standing(methods, everything, sets, bleu)


def _print_standing(
    methods: Sequence[Evaluated], everything: Sequence[Metrics], sets: Sequence[str], bleu: str
) -> None:
    by_name = {method.method: method for method in methods}
    if TIGS not in by_name:
        return
    if BEAM in by_name:
        pairs = zip(by_name[TIGS].files, by_name[BEAM].files, strict=True)
        shares = ", ".join(f"{tigs.stem} {unchanged_share(tigs, beam):.0%}" for tigs, beam in pairs)
        print_text(f"TIGS leaves the beam's answer as it is in: {shares}")
    rows = [
        (words, *(_best_rival(everything, figure, tigs.set_name) for tigs in by_name[TIGS].figures))
        for figure, words in (
            ("forward_nll", "NLL under the searched model"),
            ("nll", "NLL by the evaluator"),
            (bleu, "BLEU-4"),
        )
    ]
    print_table("Where another method is ahead of TIGS, and by how much", ("", *sets), rows)


def _best_rival(everything: Sequence[Metrics], figure: str, set_name: str) -> str:
    rivals = [rival for rival in ahead_of_tigs(everything, figure) if rival.set_name == set_name]
    best = max(rivals, key=lambda rival: abs(rival.value - rival.tigs), default=None)
    return "" if best is None else f"{best.method} {best.value - best.tigs:+.3f}"


def _title(everything: Sequence[Metrics], name: str) -> str:
    """Of a column; without its number of references a BLEU says nothing."""
    numbers = sorted({metrics.references_of(name) for metrics in everything if name in metrics.figures})
    return _COLUMNS[name][0].format(" or ".join(f"{number:,}" for number in numbers))


def _print_signatures(everything: Sequence[Metrics], names: Sequence[str]) -> None:
    """One line with sacrebleu's own for the BLEU figures that were printed; nothing if there are none."""
    bleu = [name for name in names if name.startswith("bleu")]
    having = [(metrics, name) for name in bleu for metrics in everything if name in metrics.figures]
    if having:
        signatures = dict.fromkeys(metrics.signature(name) for metrics, name in having)
        print_text(f"sacrebleu {' and '.join(signatures)}")


def _cell(metrics: Metrics, name: str) -> str:
    figure = metrics.figures.get(name)
    return "" if figure is None else format(figure.value, _COLUMNS[name][1])
