"""`runs/report.html`: one page with tables, pictures and examples that opens from the disk and loads nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from tigs import __version__
from tigs.config import TASKS
from tigs.console import say
from tigs.errors import TigsError
from tigs.report.charts import Looks, make_charts
from tigs.report.drawing import marker_svg, save_png
from tigs.report.examples import PER_SET, make_examples
from tigs.report.experiment import Experiment, Problem, load_readable
from tigs.report.fragments import (
    chart_html,
    comparison_html,
    figures_html,
    human_html,
    missing_html,
    ranks_html,
)
from tigs.report.style import css_variables, styles
from tigs.report.tables import eval_command, make_table
from tigs.whole_file import whole_file, write_text

_NOTHING = f"""<section><h2>No figures yet</h2><p>This command makes them, for one task on the built-in sample:
<code>{eval_command("poetry", "small", "all")}</code>. Then make this page again.</p></section>"""

_NO_EXAMPLES = """<section id="examples"><h2>Examples</h2><p>No predictions lie beside the figures; copy
<code>runs/&lt;task&gt;/&lt;profile&gt;/predictions</code> here, or run <code>make eval</code>.</p></section>"""


def make_page(output_dir: Path) -> str:
    """The whole page, from whatever figures and predictions lie below a folder.

    What is damaged or must not be compared is named on standard error and at the top of the page, which goes on without it.
    """
    experiments, problems = load_readable(output_dir)
    looks = styles(method for experiment in experiments for method in experiment.methods)
    examples, damaged = _all_examples(output_dir, experiments)
    problems += damaged
    for problem in problems:
        say(f"{problem.name}: {problem.error}")
    keys = {method: marker_svg(style, f"key-{method}") for method, style in looks.items()}
    sections = [_problem_section(problem) for problem in problems]
    sections += [_experiment_section(experiment, looks, keys) for experiment in experiments]
    links = [(f"{one.task}-{one.profile}", one.name) for one in experiments]
    if experiments:
        sections += [_human_section(experiments), _examples_section(examples)]
        links.append(("examples", "Examples"))
    return Template(_asset("page.html")).substitute(
        light=css_variables(dark=False),
        dark=css_variables(dark=True),
        css=_asset("page.css"),
        links="".join(f'<a href="#{escape(anchor)}">{escape(name)}</a>' for anchor, name in links),
        sections="\n".join(sections) or _NOTHING,
        version=escape(__version__),
        data=_script_json(examples),
        script=_asset("page.js"),
    )


def write_page(output_dir: Path) -> Path:
    """The page as `report.html` in that folder."""
    page = make_page(output_dir)
    path = output_dir / "report.html"
    write_text(path, page)
    return path


def write_pngs(output_dir: Path, folder: Path) -> list[Path]:
    """The page's charts as pictures, one file each: `<task>-<profile>-<chart>.png`."""
    experiments, _ = load_readable(output_dir)  # the page says what is wrong with the others
    looks = styles(method for experiment in experiments for method in experiment.methods)
    paths = []
    for experiment in experiments:
        for chart in make_charts(experiment, looks):
            path = folder / f"{experiment.task}-{experiment.profile}-{chart.name}.png"
            with whole_file(path) as unfinished:
                save_png(chart, looks, experiment.about, unfinished)
            paths.append(path)
    return paths


def _all_examples(output_dir: Path, experiments: Sequence[Experiment]) -> tuple[list[dict[str, Any]], list[Problem]]:
    examples, problems = [], []
    for experiment in experiments:
        try:
            examples.append(make_examples(output_dir, experiment))
        except TigsError as error:
            problems.append(Problem(f"{experiment.name}, examples", error))
    return [one for one in examples if one["sets"]], problems


def _problem_section(problem: Problem) -> str:
    return f"<section><h2>{escape(problem.name)}: not shown</h2><p>{escape(str(problem.error))}</p></section>"


def _experiment_section(experiment: Experiment, looks: Looks, keys: dict[str, str]) -> str:
    table = make_table(experiment)
    anchor = f"{experiment.task}-{experiment.profile}"
    parts = [f"<h2>{escape(experiment.name)}</h2>"]
    for block in table.blocks:
        parts.append(f'<h3>{escape(block.title)}</h3><p class="note">{escape(table.caption)}.</p>')
        parts.append(comparison_html(table, block))
    parts += [f'<p class="note">{escape(note)}</p>' for note in table.notes]
    parts.append(missing_html(table))
    parts += [chart_html(chart, experiment.about, anchor, keys) for chart in make_charts(experiment, looks)]
    parts += [ranks_html(table, block) for block in table.blocks]
    parts.append(f"<h3>All other figures</h3>{figures_html(experiment)}")
    return f'<section id="{escape(anchor)}">{"".join(parts)}</section>'


def _human_section(experiments: Sequence[Experiment]) -> str:
    tasks = [task for task in TASKS if any(experiment.task == task for experiment in experiments)]
    note = (
        "The paper's Table 2: 50 instances, ten judges; the best of four fills gets 4, the worst 1. Not repeated here."
    )
    return f'<section><h2>Human evaluation</h2><p class="note">{note}</p>{human_html(tasks)}</section>'


def _examples_section(examples: list[dict[str, Any]]) -> str:
    return Template(_asset("examples.html")).substitute(limit=PER_SET) if examples else _NO_EXAMPLES


def _script_json(value: object) -> str:
    """JSON that cannot end the element it stands in."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _asset(name: str) -> str:
    return (files("tigs.report") / "assets" / name).read_text(encoding="utf-8")
