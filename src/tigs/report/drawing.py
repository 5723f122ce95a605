"""Charts as inline SVG for the page and as PNG files. SVG colours are the page's CSS variables, so they follow light and dark."""

from __future__ import annotations

import io
import math
import re
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from tigs.report.charts import Chart, Looks, Panel, look
from tigs.report.methods import label
from tigs.report.style import GRID, INKS, MUTED, TEXT, Style

_PANEL_INCHES = (3.3, 2.3)
_SETTINGS: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: small, searchable, in the reader's font
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.edgecolor": MUTED.light,
    "axes.labelcolor": TEXT.light,
    "axes.titlecolor": TEXT.light,
    "axes.facecolor": "none",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "axes.axisbelow": True,
    "grid.color": GRID.light,
    "grid.linewidth": 0.6,
    "xtick.color": MUTED.light,
    "ytick.color": MUTED.light,
    "figure.facecolor": "none",
    "legend.frameon": False,
}

_CUTS = [
    (re.compile(pattern, re.DOTALL), replacement)
    for pattern, replacement in (
        (r"<metadata>.*?</metadata>|<style.*?</style>", ""),
        (r'(?<=<g) id="[^"]*"', ""),
        (r' (?:width|height)="[\d.]+pt"| version="1.1"| transform="rotate\(-0 [^"]*"', ""),
        (r"font-family: [^;]*; ", ""),
        (r"(\.\d\d)\d+(?=[^<>]*>)", r"\1"),  # coordinates, not the text between tags
        (r"\s*\n\s*", "\n"),
    )
]


def panel_figure(panel: Panel) -> Figure:
    """One panel without its title."""
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=_PANEL_INCHES)
        # Fixed, because finding room by itself takes matplotlib longer than drawing.
        panel.draw(figure.add_axes((0.17, 0.18, 0.78, 0.79)))
        return figure


def panel_svg(panel: Panel, name: str) -> str:
    """The same for the page.

    Args:
        panel: what to draw.
        name: different for every picture of a page, so that their inner names do not clash.
    """
    return _inline(panel_figure(panel), name)


def marker_svg(style: Style, name: str) -> str:
    """A method's line and marker, for legends."""
    figure = Figure(figsize=(0.3, 0.15), facecolor="none")
    figure.add_artist(Line2D([0.05, 0.5, 0.95], [0.5] * 3, markevery=[1], **look(style)))
    return _inline(figure, name)


def save_png(chart: Chart, looks: Looks, caption: str, path: Path) -> None:
    """All panels of a chart with their legend, on white."""
    n_columns = min(3, len(chart.panels))
    n_rows = math.ceil(len(chart.panels) / n_columns)
    # The legend needs the room of two panels.
    width, height = _PANEL_INCHES[0] * max(2, n_columns), (_PANEL_INCHES[1] + 0.3) * n_rows + 1.2
    with matplotlib.rc_context({**_SETTINGS, "figure.facecolor": "white"}):
        figure = Figure(figsize=(width, height))
        grid = figure.subplots(n_rows, n_columns, squeeze=False).ravel()
        figure.subplots_adjust(
            left=0.65 / width,
            right=1 - 0.15 / width,
            bottom=1.05 / height,
            top=1 - 0.75 / height,
            wspace=0.25,
            hspace=0.4,
        )
        for axes, panel in zip(grid, chart.panels, strict=False):
            panel.draw(axes)
            axes.set_title(panel.title)
        for axes in grid[len(chart.panels) :]:
            axes.set_axis_off()
        handles = [Line2D([], [], label=label(method), **look(looks[method])) for method in chart.methods]
        figure.legend(handles=handles, loc="lower center", ncols=min(5, len(handles)))
        figure.suptitle(f"{chart.title}\n{caption}", fontsize=9, wrap=True)
        figure.savefig(path, format="png", dpi=160)


def _inline(figure: Figure, name: str) -> str:
    """SVG to stand inside HTML: without what the page says once for all, and no longer than need be."""
    stream = io.StringIO()
    with matplotlib.rc_context({**_SETTINGS, "svg.hashsalt": name}):
        figure.savefig(stream, format="svg", metadata={"Date": None})
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    for pattern, replacement in _CUTS:
        svg = pattern.sub(replacement, svg)
    for ink in INKS:
        svg = svg.replace(ink.light, f"var(--ink-{ink.name})")
    return svg
