"""NLL against time of every search, one panel a cell, from the figures of `tigs bench search`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Text
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from tigs.report.charts import Chart, Looks, Panel, look, short
from tigs.report.drawing import save_png
from tigs.report.methods import set_label, sets_in_order
from tigs.report.style import MUTED, styles

_BEAMS = "seq2seq-f"
_FONT_SIZE = 6.5
# Where a label may stand: directions from its point, and how far from it in points; tried in this order.
_DIRECTIONS = (
    *((1, 0), (0, 1), (0, -1), (-1, 0)),
    *((x, y) for x in (1, -1, 0.5, -0.5) for y in (1, -1)),
)
_GAPS = (5, 8, 11, 15, 20, 26)
# Half the side of a marker, in points.
_MARKER = 3.0


class Dot(NamedTuple):
    """A variant in a cell."""

    variant: str
    seconds: float
    nll: float
    is_whole: bool
    """Whether it was run on all templates."""


class _Box(NamedTuple):
    """A rectangle by its middle and half its sides, in pixels."""

    x: float
    y: float
    half_width: float
    half_height: float

    def overlap(self, other: _Box) -> float:
        """The area that both cover."""
        width = min(self.x + self.half_width, other.x + other.half_width) - max(
            self.x - self.half_width, other.x - other.half_width
        )
        height = min(self.y + self.half_height, other.y + other.half_height) - max(
            self.y - self.half_height, other.y - other.half_height
        )
        return max(0.0, width) * max(0.0, height)


def save_search_front(document: Mapping[str, Any], path: Path) -> None:
    """A PNG of all cells that the document holds."""
    about = document["about"]
    caption = (
        f"{about['task']}, profile {about['profile']}, {about['corpus']}, {about['templates']} templates a cell, "
        f"K = {about['K']}, threads: {about['threads']}"
    )
    looks = styles(_kind(one["variant"]) for cell in document["cells"] for one in cell["variants"])
    save_png(make_chart(document, looks), looks, caption, path)


def make_chart(document: Mapping[str, Any], looks: Looks) -> Chart:
    """One panel for each cell, the random ones above those in the middle."""
    cells = {cell["cell"]: dots_of(cell["variants"]) for cell in document["cells"]}
    names = sorted(sets_in_order(cells), key=lambda name: not name.startswith("random-"))
    title = "NLL against time; the line joins beams of growing width"
    if any(not dot.is_whole for dots in cells.values() for dot in dots):
        title += "; hollow: fewer templates"
    panels = [Panel(set_label(name), partial(_draw, dots=cells[name], looks=looks)) for name in names]
    return Chart("search-front", title, "", list(looks), panels)


def dots_of(variants: Sequence[Mapping[str, Any]]) -> list[Dot]:
    """Where each variant stands.

    The templates of one that was run on fewer may be shorter and easier than the others. So its time is the reference's, divided by
    what it was faster there; and its NLL is that of the variant before it, plus the difference between the two there.
    """
    dots: list[Dot] = []
    reference = whole = next(one for one in variants if one["variant"] == "reference")
    for one in variants:
        is_whole = one["n"] == reference["n"]
        whole = one if is_whole else whole
        nll = whole["nll"] + (0 if is_whole else one["nll_common"] - whole["nll_common"])
        dots.append(Dot(one["variant"], reference["seconds"] / one["seconds_ratio"], nll, is_whole))
    return dots


def _kind(variant: str) -> str:
    """What shares a look: all beams do."""
    return _BEAMS if variant == "greedy" or variant.startswith("beam-") else variant


def _draw(axes: Axes, dots: Sequence[Dot], looks: Looks) -> None:
    axes.set_xscale("log")
    beams = [(dot.seconds, dot.nll) for dot in dots if _kind(dot.variant) == _BEAMS]
    axes.plot(*zip(*beams, strict=True), color=looks[_BEAMS].ink.light, linewidth=0.8, zorder=1)
    for dot in dots:
        drawn = look(looks[_kind(dot.variant)])
        if not dot.is_whole:
            drawn["markerfacecolor"] = "white"
        axes.plot(dot.seconds, dot.nll, linestyle="", **drawn)
    seconds = [dot.seconds for dot in dots]
    axes.set_xlim(min(seconds) / 2, max(seconds) * 3)  # room for labels
    low, high = min(dot.nll for dot in dots), max(dot.nll for dot in dots)
    margin = 0.15 * (high - low) or 0.01
    axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel("seconds per sentence")
    axes.set_ylabel("NLL per token (nats)")
    axes.xaxis.set_major_locator(LogLocator(numticks=8))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.grid(visible=True, which="major")
    _place_labels(axes, dots)


def _place_labels(axes: Axes, dots: Sequence[Dot]) -> None:
    """The name beside each point, where it covers neither a point nor another name if there is such a place."""
    pixels = axes.figure.dpi / 72  # in a point
    extent = axes.get_window_extent()
    inside = _Box((extent.x0 + extent.x1) / 2, (extent.y0 + extent.y1) / 2, extent.width / 2, extent.height / 2)
    anchors = {dot: tuple(map(float, axes.transData.transform((dot.seconds, dot.nll)))) for dot in dots}
    taken = [_Box(x, y, _MARKER * pixels, _MARKER * pixels) for x, y in anchors.values()]
    beams = [anchors[dot] for dot in dots if _kind(dot.variant) == _BEAMS]
    taken += [_Box(*place, pixels, pixels) for pair in pairwise(beams) for place in _along(*pair)]
    for dot in sorted(dots, key=lambda dot: dot.nll):
        label = axes.annotate(
            dot.variant.removeprefix("beam-"),
            (dot.seconds, dot.nll),
            (0, 0),
            textcoords="offset points",
            ha="center",
            va="center",
            zorder=1.5,  # its line must not cross markers
            fontsize=_FONT_SIZE,
            arrowprops={"arrowstyle": "-", "linewidth": 0.4, "color": MUTED.light, "shrinkA": 0, "shrinkB": 4},
        )
        size = Text.get_window_extent(label)  # without its line
        half_width, half_height = size.width / 2, size.height / 2
        # A place is where the middle of the label stands, in pixels from its point.
        places = [
            (x * (gap * pixels + half_width), y * (gap * pixels + half_height)) for gap in _GAPS for x, y in _DIRECTIONS
        ]
        boxes = [_Box(anchors[dot][0] + x, anchors[dot][1] + y, half_width, half_height) for x, y in places]
        covered = [box.overlap(box) - box.overlap(inside) + sum(box.overlap(other) for other in taken) for box in boxes]
        best = covered.index(min(covered))
        x, y = places[best]
        label.set_position((x / pixels, y / pixels))
        taken.append(boxes[best])


def _along(start: Sequence[float], end: Sequence[float]) -> list[tuple[float, float]]:
    """Places on the way between two others."""
    n = 20
    return [
        (start[0] + (end[0] - start[0]) * step / n, start[1] + (end[1] - start[1]) * step / n) for step in range(n + 1)
    ]
