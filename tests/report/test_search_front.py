"""The picture of `tigs bench search`: every search stands where its figures say, under a name that can be read."""

from __future__ import annotations

import itertools

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.text import Annotation, Text

from tigs.report.drawing import panel_figure
from tigs.report.search_front import make_chart, save_search_front
from tigs.report.style import styles

# Seconds, and NLL above the reference: crowded in the corner where it matters.
PLACES = {
    "reference": (1.2, 0.0),
    "exact": (0.15, 0.0),
    "margin": (0.09, 0.0005),
    "tigs-plus": (0.04, -0.02),
    "greedy": (0.002, 0.12),
    "beam-5": (0.005, 0.03),
    "beam-40": (0.02, -0.005),
    "beam-200": (0.1, -0.018),
    "beam-1000": (0.6, -0.022),
    "birnn-gsn": (0.05, 0.2),
    "birnn-bibs": (0.15, 0.1),
}
CELLS = ("random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75")


def figures(nll, variant):
    seconds, above = PLACES[variant]
    is_slow = variant == "beam-1000"
    # Fewer templates, all of them half as long and easier: what it is on those says little; and the reference, which is a method
    # of another kind, happens to do very well there.
    return {
        "variant": variant,
        "n": 50 if is_slow else 200,
        "seconds": seconds / 2 if is_slow else seconds,
        "seconds_ratio": PLACES["reference"][0] / seconds,
        "nll": nll + above - (1 if is_slow else 0),
        "nll_common": nll + above - (1.5 if variant == "reference" else 1),
    }


@pytest.fixture(scope="module")
def document():
    about = {"task": "poetry", "profile": "cpu", "corpus": "some", "templates": 200, "K": 40, "threads": 2}
    cells = [{"cell": cell, "variants": [figures(4 - n / 5, name) for name in PLACES]} for n, cell in enumerate(CELLS)]
    return {"about": about, "cells": cells}


@pytest.fixture(scope="module")
def looks():
    return styles([*(name for name in PLACES if not name.startswith(("beam-", "greedy"))), "seq2seq-f"])


@pytest.fixture(scope="module")
def panels(document, looks):
    """Title -> axes, drawn."""
    drawn = {}
    for panel in make_chart(document, looks).panels:
        figure = panel_figure(panel)
        FigureCanvasAgg(figure).draw()
        drawn[panel.title] = figure.axes[0]
    return drawn


def labels(axes):
    return [child for child in axes.get_children() if isinstance(child, Annotation)]


def test_the_random_cells_stand_above_those_in_the_middle(panels):
    assert list(panels) == [f"{ratio} % {strategy}" for strategy in ("random", "middle") for ratio in (25, 50, 75)]


def test_every_search_is_named_at_its_place(panels):
    for axes in panels.values():
        found = {label.get_text(): label.xy for label in labels(axes)}
        assert found.keys() == {name.removeprefix("beam-") for name in PLACES}
        base = found["reference"][1]
        for name, (seconds, above) in PLACES.items():
            assert found[name.removeprefix("beam-")] == pytest.approx((seconds, base + above))


def test_no_name_covers_another_or_leaves_the_panel(panels):
    for axes in panels.values():
        boxes = [Text.get_window_extent(label) for label in labels(axes)]
        assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
        inside = axes.get_window_extent()
        assert all(inside.containsx(x) and inside.containsy(y) for box in boxes for x, y in box.corners())
        points = [axes.transData.transform(label.xy) for label in labels(axes)]
        assert not any(box.contains(*point) for box in boxes for point in points)


def test_beams_are_joined_in_the_order_of_their_width(panels, looks):
    for axes in panels.values():
        (line,) = [line for line in axes.get_lines() if len(line.get_xdata()) > 1]
        assert list(line.get_xdata()) == pytest.approx(
            [PLACES[name][0] for name in PLACES if name.startswith(("g", "beam"))]
        )
        assert line.get_color() == looks["seq2seq-f"].ink.light


def test_only_what_ran_on_fewer_templates_is_hollow(panels):
    for axes in panels.values():
        hollow = [line.get_xdata()[0] for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
        assert hollow == pytest.approx([PLACES["beam-1000"][0]])


def test_axes_say_what_and_in_which_unit(panels):
    for axes in panels.values():
        assert axes.get_xscale() == "log"
        assert (axes.get_xlabel(), axes.get_ylabel()) == ("seconds per sentence", "NLL per token (nats)")


@pytest.mark.parametrize("n_cells", [1, 2, 6])
def test_it_is_saved_as_png(document, tmp_path, n_cells):
    path = tmp_path / "front.png"
    save_search_front({**document, "cells": document["cells"][:n_cells]}, path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) > 10_000
