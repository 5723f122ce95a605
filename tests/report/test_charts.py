"""Charts: what is drawn is what the files say, nothing overlaps, and methods look the same everywhere."""

from __future__ import annotations

import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg

from tigs.config import METHODS
from tigs.report.charts import make_charts, pareto_front, short
from tigs.report.drawing import marker_svg, panel_figure, panel_svg, save_png
from tigs.report.style import INKS, css_variables, styles


@pytest.fixture(scope="module")
def looks():
    return styles(METHODS)


@pytest.fixture(scope="module")
def charts(experiments, looks):
    return {task: {chart.name: chart for chart in make_charts(experiments[task], looks)} for task in experiments}


def draw(panel):
    figure = panel_figure(panel)
    FigureCanvasAgg(figure)
    return figure.axes[0]


def points(axes):
    """Colour -> the points of its line."""
    return {
        line.get_color(): list(zip(*line.get_data(), strict=True))
        for line in axes.get_lines()
        if line.get_marker() not in ("None", "", None)
    }


def test_every_chart_is_there(charts):
    assert list(charts["poetry"]) == ["nll", "bleu-xy", "bleu-y", "cost-seconds", "cost-model-steps", "rounds"]
    assert list(charts["aprc"]) == ["nll", "bleu-references", "cost-seconds", "cost-model-steps", "rounds"]
    for of_task in charts.values():
        for name, chart in of_task.items():
            sets = ["25 % random", "50 % random", "75 % random", "25 % middle", "50 % middle", "75 % middle"]
            by_ratio = name.startswith(("nll", "bleu"))
            assert [panel.title for panel in chart.panels] == (["random", "middle"] if by_ratio else sets)


@pytest.mark.parametrize("task", ["poetry", "aprc"])
def test_lines_by_ratio_go_through_the_figures(charts, experiments, looks, task):
    experiment = experiments[task]
    for panel in charts[task]["nll"].panels:
        drawn = points(draw(panel))
        methods = [m for m in experiment.methods if experiment.figure(m, "random-25", "nll")]
        assert set(drawn) == {looks[method].ink.light for method in methods}
        for method in methods:
            found = [experiment.figure(method, f"{panel.title}-{ratio}", "nll") for ratio in (25, 50, 75)]
            assert [y for _, y in drawn[looks[method].ink.light]] == [figure.value for figure in found if figure]


def test_costs_stand_on_a_logarithmic_axis_where_the_files_say(charts, experiments, looks):
    experiment = experiments["poetry"]
    for cost in ("seconds", "model_steps"):
        for panel in charts["poetry"][f"cost-{cost.replace('_', '-')}"].panels:
            axes = draw(panel)
            assert axes.get_xscale() == "log"
            ratio, strategy = re.fullmatch(r"(\d+) % (\w+)", panel.title).groups()
            for method in set(METHODS) - {"template"}:
                figures = experiment.metrics[method, f"{strategy}-{ratio}"].figures
                assert points(axes)[looks[method].ink.light] == [(figures[cost].value, figures["nll"].value)]
                low, high = axes.get_xlim()
                assert low < figures[cost].value < high


def test_rounds_are_those_of_tigs_and_its_kin_alone(charts, experiments, looks):
    for task in ("poetry", "aprc"):
        assert charts[task]["rounds"].methods == ["tigs", "tigs-plus"]
    drawn = points(draw(charts["aprc"]["rounds"].panels[0]))
    for method in ("tigs", "tigs-plus"):
        trace = experiments["aprc"].metrics[method, "random-25"].trace
        assert drawn[looks[method].ink.light] == list(enumerate(trace))


@pytest.mark.parametrize("task", ["poetry", "aprc"])
def test_no_labels_overlap_or_leave_the_picture(charts, task):
    for chart in charts[task].values():
        for panel in chart.panels:
            assert_labels_are_apart(panel)


@pytest.mark.parametrize(
    "trace", [(1.66896, 1.6681, 1.6681), (2.0, 2.0), (9.5, 9.4999), tuple(9 / n for n in range(1, 52))]
)
def test_labels_stay_short_however_little_a_search_gains(experiments, looks, trace):
    metrics = experiments["poetry"].metrics
    one = {("tigs", "random-25"): replace(metrics["tigs", "random-25"], trace=trace)}
    rounds = make_charts(replace(experiments["poetry"], metrics=one), looks)[-1]
    assert rounds.name == "rounds"
    assert_labels_are_apart(rounds.panels[0])


def assert_labels_are_apart(panel):
    axes = draw(panel)
    axes.figure.canvas.draw()
    boxes = [
        text.get_window_extent()
        for axis in (axes.xaxis, axes.yaxis)
        for text in (axis.label, *axis.get_ticklabels())
        if text.get_text() and text.get_visible() and _in_view(axes, axis, text)
    ]
    assert len(boxes) >= 5
    whole = axes.figure.bbox
    for number, box in enumerate(boxes):
        assert whole.x0 <= box.x0 < box.x1 <= whole.x1
        assert whole.y0 <= box.y0 < box.y1 <= whole.y1
        assert not any(box.overlaps(other) for other in boxes[:number])


def _in_view(axes, axis, text):
    if text is axis.label:
        return True
    low, high = axis.get_view_interval()
    return low <= text.get_position()[0 if axis is axes.xaxis else 1] <= high


def test_missing_figures_leave_panels_out_but_break_nothing(experiments, looks):
    poetry = experiments["poetry"]
    only_template = {key: one for key, one in poetry.metrics.items() if key[0] == "template"}
    assert [chart.name for chart in make_charts(replace(poetry, metrics=only_template), looks)] == ["bleu-xy", "bleu-y"]
    one = {("tigs", "random-50"): poetry.metrics["tigs", "random-50"]}
    for chart in make_charts(replace(poetry, metrics=one), looks):
        assert len(chart.panels) == 1
        assert panel_svg(chart.panels[0], "x")


def test_svg_is_xml_in_the_colours_of_the_page_with_its_text_kept(charts):
    svg = panel_svg(charts["poetry"]["cost-seconds"].panels[0], "a")
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"seconds per sentence", "NLL per token", "0.001", "0.01", "0.1", "1"} <= set(texts)
    assert "var(--ink-tigs)" in svg
    assert not re.search(r"#[0-9a-f]{6}\b", re.sub(r'href="#\w+"|url\(#\w+\)|id="\w+"', "", svg))


def test_names_inside_one_picture_are_not_those_of_another(charts):
    panels = [panel for chart in charts["poetry"].values() for panel in chart.panels][:6]
    names = [set(re.findall(r'id="(\w+)"', panel_svg(panel, f"picture {n}"))) for n, panel in enumerate(panels)]
    assert all(names)
    assert sum(map(len, names)) == len(set().union(*names))


def test_the_same_figures_give_the_same_picture(charts):
    panel = charts["poetry"]["nll"].panels[0]
    assert panel_svg(panel, "a") == panel_svg(panel, "a")


def test_methods_keep_their_look_whatever_others_are_there():
    few, many = styles(["tigs", "seq2seq-f"]), styles([*METHODS, "zebra"])
    assert all(many[method] == few[method] for method in few)
    assert list(many)[-2:] == ["tigs-plus", "zebra"]
    for part in ("ink", "marker"):
        assert len({getattr(style, part) for style in many.values()}) == len(many)
    assert all("<svg" in marker_svg(style, method) for method, style in few.items())


def test_every_ink_can_be_told_from_the_others_and_has_a_variable_for_both_backgrounds():
    assert len({ink.light for ink in INKS}) == len({ink.name for ink in INKS}) == len(INKS)
    for ink in INKS:
        assert f"--ink-{ink.name}: {ink.light};" in css_variables(dark=False)
        assert f"--ink-{ink.name}: {ink.dark};" in css_variables(dark=True)


def _contrast(first, second):
    """WCAG's, from its definition."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_inks_stand_out_from_their_background():
    for ink in INKS:
        wanted = {"text": 7, "muted": 4.5, "grid": 1}.get(ink.name, 2)
        assert _contrast(ink.light, "#ffffff") >= wanted, ink
        assert _contrast(ink.dark, "#14181c") >= wanted, ink


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.001, "0.001"), (1, "1"), (100, "100"), (1000, "1k"), (1e5, "100k"), (1e6, "1M"), (2e7, "20M")],
)
def test_costs_are_written_short(value, text):
    assert short(value) == text


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1))
def test_the_front_holds_exactly_what_nothing_beats(dots):
    unbeaten = {
        dot for dot in dots if not any(other != dot and other[0] <= dot[0] and other[1] <= dot[1] for other in dots)
    }
    front = pareto_front(dots)
    assert front == sorted(unbeaten)


def test_a_chart_is_saved_as_png_with_all_its_panels(charts, looks, tmp_path):
    path = tmp_path / "chart.png"
    save_png(charts["poetry"]["cost-seconds"], looks, "about", path)
    data = path.read_bytes()
    assert data.startswith(b"\x89PNG")
    width, height = (int.from_bytes(data[at : at + 4], "big") for at in (16, 20))
    assert width > 1.5 * height > 0
