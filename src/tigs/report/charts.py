"""What is drawn: charts of one experiment, each of a few panels. How they become SVG or PNG is in `drawing.py`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from tigs.report.experiment import Experiment
from tigs.report.methods import set_label
from tigs.report.style import MUTED, Style

Looks = dict[str, Style]
Point = tuple[float, float]
Limits = tuple[float, float]

# Of a method's place beside the others at the same ratio, so that intervals do not hide each other.
_DODGE = 0.04
# A smaller difference on the whole axis would look like more than it is.
_SMALLEST_RANGE = 0.05


@dataclass(frozen=True)
class Panel:
    """One pair of axes."""

    title: str
    draw: Callable[[Axes], None]


@dataclass(frozen=True)
class Chart:
    """Panels that belong together."""

    name: str
    """Part of file names."""
    title: str
    note: str
    methods: list[str]
    """Those that appear, for the legend."""
    panels: list[Panel]


def make_charts(experiment: Experiment, looks: Looks) -> list[Chart]:
    """Every chart for which there are figures."""
    charts = [
        _by_ratio(experiment, looks, "nll", title="NLL by mask ratio", axis="NLL per token"),
        _by_ratio(experiment, looks, experiment.bleu, title="BLEU by mask ratio", axis=_bleu_axis(experiment)),
    ]
    if experiment.bleu == "bleu_xy":
        charts.append(_by_ratio(experiment, looks, "bleu_y", title="BLEU of y alone by mask ratio", axis="BLEU-4 of y"))
    charts += [
        _against_cost(experiment, looks, "seconds", title="NLL against time", axis="seconds per sentence"),
        _against_cost(
            experiment, looks, "model_steps", title="NLL against model steps", axis="model steps per sentence"
        ),
        _by_round(experiment, looks),
    ]
    return [chart for chart in charts if chart.panels]


def _bleu_axis(experiment: Experiment) -> str:
    numbers = " or ".join(f"{n:,}" for n in experiment.n_references)
    return "BLEU-4" if experiment.bleu == "bleu_xy" else f"BLEU-4, {numbers} references"


def _by_ratio(experiment: Experiment, looks: Looks, name: str, *, title: str, axis: str) -> Chart:
    """One panel for each strategy, with the same scale."""
    shown = _methods_with(experiment, name)
    figures = [figure for key in experiment.metrics if (figure := experiment.figure(*key, name))]
    present = {key[1] for key in experiment.metrics if experiment.figure(*key, name)}
    strategies = dict.fromkeys(one.rpartition("-")[0] for one in experiment.sets if one in present)
    limits = _padded([bound for figure in figures for bound in (figure.low, figure.high)])

    def draw(axes: Axes, strategy: str) -> None:
        sets = [one for one in experiment.sets if one.rpartition("-")[0] == strategy]
        for place, method in enumerate(shown):
            offset = (place - (len(shown) - 1) / 2) * _DODGE
            found = [
                (at + offset, figure) for at, one in enumerate(sets) if (figure := experiment.figure(method, one, name))
            ]
            if not found:
                continue
            x, y = [at for at, _ in found], [figure.value for _, figure in found]
            errors = [[f.value - f.low for _, f in found], [f.high - f.value for _, f in found]]
            axes.errorbar(x, y, yerr=errors, linewidth=0.7, elinewidth=0.9, **look(looks[method]))
        axes.set_xticks(range(len(sets)), [f"{one.rpartition('-')[2]} %" for one in sets])
        axes.set_xlim(-0.5, len(sets) - 0.5)
        axes.set_ylim(limits)
        _label(axes, "share of blanks", axis)

    return Chart(
        name.replace("_", "-"),
        title,
        "Bars are 95 % intervals (bootstrap over sentences). Methods stand side by side at each ratio.",
        shown,
        [Panel(strategy, partial(draw, strategy=strategy)) for strategy in strategies],
    )


def _against_cost(experiment: Experiment, looks: Looks, cost: str, *, title: str, axis: str) -> Chart:
    """One panel for each test set; the cost has the same scale in all."""
    shown = _methods_with(experiment, cost)
    points: dict[str, dict[str, Point]] = {one: {} for one in _by_strategy(experiment.sets)}
    for method, one in experiment.metrics:
        paid, nll = experiment.figure(method, one, cost), experiment.figure(method, one, "nll")
        if paid and nll and paid.value > 0:
            points[one][method] = (paid.value, nll.value)
    limits = _decades([x for of_set in points.values() for x, _ in of_set.values()])

    def draw(axes: Axes, of_set: dict[str, Point]) -> None:
        axes.set_xscale("log")
        front = pareto_front(list(of_set.values()))
        axes.step(*zip(*front, strict=True), where="post", color=MUTED.light, linewidth=0.8, linestyle="--", zorder=1)
        for method in shown:
            if method in of_set:
                axes.plot(*of_set[method], linestyle="", **look(looks[method]))
        axes.set_xlim(limits)
        axes.set_ylim(_padded([y for _, y in of_set.values()]))
        axes.xaxis.set_major_locator(LogLocator(numticks=6))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
        axes.xaxis.set_minor_locator(NullLocator())
        _label(axes, axis, "NLL per token")

    return Chart(
        f"cost-{cost.replace('_', '-')}",
        title,
        "Further left is cheaper, further down is better; the dashed line joins what nothing beats in both.",
        shown,
        [Panel(set_label(one), partial(draw, of_set=of_set)) for one, of_set in points.items() if of_set],
    )


def _by_round(experiment: Experiment, looks: Looks) -> Chart:
    """TIGS and its kin, which search the same model and so have the same measure."""
    kin = [method for method in experiment.methods if method.startswith("tigs")]
    traces = {
        one: {method: experiment.metrics[method, one].trace for method in kin if (method, one) in experiment.metrics}
        for one in _by_strategy(experiment.sets)
    }
    traces = {one: {method: trace for method, trace in of_set.items() if trace} for one, of_set in traces.items()}

    def draw(axes: Axes, of_set: dict[str, tuple[float, ...]]) -> None:
        for method, trace in of_set.items():
            every = math.ceil(len(trace) / 12)  # more markers would hide the line
            axes.plot(range(len(trace)), trace, linewidth=1, markevery=every, **look(looks[method]))
        axes.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))
        axes.margins(x=0.05)
        axes.set_ylim(_padded([nll for trace in of_set.values() for nll in trace]))
        _label(axes, "round", "own NLL per token")

    return Chart(
        "rounds",
        "NLL by round of TIGS",
        "Under the searched model, mean over all sentences; round 0 is the start, and a sentence that stopped keeps its value.",
        [method for method in kin if any(method in of_set for of_set in traces.values())],
        [Panel(set_label(one), partial(draw, of_set=of_set)) for one, of_set in traces.items() if of_set],
    )


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Those to which no other is cheaper and better, from cheap to dear."""
    front: list[Point] = []
    for x, y in sorted(points):
        if not front or y < front[-1][1]:
            front.append((x, y))
    return front


def _by_strategy(sets: Sequence[str]) -> list[str]:
    """A row of panels for each strategy, where three stand side by side."""
    strategies = list(dict.fromkeys(one.rpartition("-")[0] for one in sets))
    return sorted(sets, key=lambda one: strategies.index(one.rpartition("-")[0]))


def _methods_with(experiment: Experiment, name: str) -> list[str]:
    return [
        method for method in experiment.methods if any(experiment.figure(method, one, name) for one in experiment.sets)
    ]


def short(value: float) -> str:
    """`0.01`, `10`, `100k`, `1M`: at most five characters for what a sentence may cost."""
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def look(style: Style) -> dict[str, Any]:
    """How matplotlib is told."""
    # A star is drawn smaller than its size says.
    size = 8 if style.marker == "*" else 4.5
    return {"color": style.ink.light, "marker": style.marker, "markersize": size, "markeredgewidth": 0.6}


def _label(axes: Axes, x: str, y: str) -> None:
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6, steps=[1, 2, 5, 10]))
    axes.grid(visible=True, which="major")


def _padded(values: Sequence[float]) -> Limits:
    """A little more than the range of the values, and never so little that labels need a third decimal."""
    low, high = min(values, default=0.0), max(values, default=1.0)
    missing = max(0.0, _SMALLEST_RANGE - (high - low))
    margin = 0.08 * (high - low) + missing / 2
    return low - margin, high + margin


def _decades(values: Sequence[float]) -> Limits:
    """From power of ten to power of ten, so that both ends have a label; with room for a marker that stands on one."""
    low = math.floor(math.log10(min(values, default=1.0) / 1.2))
    high = math.ceil(math.log10(max(values, default=1.0) * 1.2))
    return 10.0**low, 10.0**high
