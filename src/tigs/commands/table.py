"""`tigs table`: the paper's Table 1 with our figures beside the paper's, printed and written as Markdown, CSV and LaTeX."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_text, say
from tigs.errors import EvaluationError
from tigs.report.experiment import Experiment, load_experiments
from tigs.report.render import to_csv, to_latex, to_markdown
from tigs.report.tables import Table, eval_command, make_table
from tigs.report.terminal import print_comparison

FORMATS = {"md": to_markdown, "csv": to_csv, "tex": to_latex}


def run(config: Config, options: argparse.Namespace) -> None:
    """One table for each task and profile that has figures; `task=` and `profile=` choose among them."""
    output_dir = Path(config.output_dir)
    chosen = _choose(load_experiments(output_dir), config, options.settings)
    if not chosen:
        raise EvaluationError(
            f"{output_dir}: there are no figures for task={config.task.name} profile={config.profile}",
            remedy=f"Make them with `{eval_command(config.task.name, config.profile, 'all')}`",
        )
    tables = [make_table(experiment) for experiment in chosen]
    files = [_write(output_dir, table) for table in tables]
    if options.json:
        print_json({"tables": [asdict(table) | {"files": paths} for table, paths in zip(tables, files, strict=True)]})
        return
    for table, paths in zip(tables, files, strict=True):
        print_comparison(table)
        print_text()
        say(f"Written: {' '.join(paths)}")


def _choose(experiments: list[Experiment], config: Config, settings: list[str]) -> list[Experiment]:
    """Those that the words of the command line name; all of them without such a word, or with `task=all`."""
    # The last word about it counts, as for every setting.
    named = dict(word.partition("=")[::2] for word in settings)
    any_task, any_profile = named.get("task", "all") == "all", "profile" not in named
    return [
        experiment
        for experiment in experiments
        if (any_task or experiment.task == config.task.name) and (any_profile or experiment.profile == config.profile)
    ]


def _write(output_dir: Path, table: Table) -> list[str]:
    folder = output_dir / table.task / table.profile
    paths = []
    for suffix, render in FORMATS.items():
        path = folder / f"table.{suffix}"
        path.write_text(render(table), encoding="utf-8")
        paths.append(str(path))
    return paths
