"""How methods look: always the same colour and marker, in every picture and on both backgrounds.

Colours are Okabe and Ito's and Paul Tol's for colour-blind readers; the darkest are lighter on a dark background. Markers
differ too, so that no method is told apart by its colour alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from tigs.report.methods import LABELS, in_order


class Ink(NamedTuple):
    """A colour on a light and on a dark background. The light one stands for it in pictures, so no two may be the same."""

    name: str
    light: str
    dark: str


class Style(NamedTuple):
    """How a method is drawn."""

    ink: Ink
    marker: str
    """matplotlib's name of it."""


TEXT = Ink("text", "#1c2127", "#e4e7ea")
MUTED = Ink("muted", "#5a646e", "#9aa5af")
GRID = Ink("grid", "#dce0e4", "#39414a")

_STYLES = {
    "template": Style(Ink("template", "#7f7f80", "#a3a3a4"), "x"),
    "seq2seq-f": Style(Ink("seq2seq-f", "#56b4e9", "#56b4e8"), "o"),
    "seq2seq-b": Style(Ink("seq2seq-b", "#0072b2", "#3d9bd6"), "s"),
    "seq2seq-fb": Style(Ink("seq2seq-fb", "#332288", "#9c8ff0"), "D"),
    "birnn-bibs": Style(Ink("birnn-bibs", "#44aa99", "#44aa98"), "^"),
    "birnn-gsn": Style(Ink("birnn-gsn", "#117733", "#3fae66"), "v"),
    "mask-seq2seq": Style(Ink("mask-seq2seq", "#ddaa22", "#e6b93f"), "P"),
    "mask-selfattn": Style(Ink("mask-selfattn", "#cc79a7", "#d88fb8"), "X"),
    "tigs": Style(Ink("tigs", "#d55e00", "#f27a1a"), "*"),
    "tigs-plus": Style(Ink("tigs-plus", "#882255", "#d0608f"), "h"),
}
_FURTHER = (
    Style(Ink("further-1", "#661100", "#c97a62"), "p"),
    Style(Ink("further-2", "#999933", "#b5b54a"), "<"),
    Style(Ink("further-3", "#000000", "#ffffff"), ">"),
)
INKS = (TEXT, MUTED, GRID, *(style.ink for style in (*_STYLES.values(), *_FURTHER)))


def styles(methods: Iterable[str]) -> dict[str, Style]:
    """One for each method, in their order; those the paper does not know take the further ones in turn."""
    ordered = in_order(methods)
    further = [method for method in ordered if method not in LABELS]
    return {
        method: _STYLES[method] if method in LABELS else _FURTHER[further.index(method) % len(_FURTHER)]
        for method in ordered
    }


def css_variables(*, dark: bool) -> str:
    """`--ink-tigs: #d55e00; ...` for one of the backgrounds."""
    return " ".join(f"--ink-{ink.name}: {ink.dark if dark else ink.light};" for ink in INKS)
