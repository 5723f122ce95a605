"""`tigs table`: the paper's Table 1 with our figures beside the paper's, printed and written as Markdown, CSV and LaTeX."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_text, say
from tigs.errors import EvaluationError
from tigs.report.experiment import load_readable
from tigs.report.render import to_csv, to_latex, to_markdown
from tigs.report.tables import Table, eval_command, make_table
from tigs.report.terminal import print_comparison
from tigs.whole_file import write_text

FORMATS = {"md": to_markdown, "csv": to_csv, "tex": to_latex}


def run(config: Config, options: argparse.Namespace) -> None:
    """One table for each task and profile that has figures; `task=` and `profile=` choose among them."""
    output_dir = Path(config.output_dir)
    task, profile = _chosen(config, options.settings)
    chosen, problems = load_readable(output_dir, task=task, profile=profile)
    if not chosen and not problems:
        raise EvaluationError(
            f"{output_dir}: there are no figures for task={config.task.name} profile={config.profile}",
            remedy=f"Make them with `{eval_command(config.task.name, config.profile, 'all', output_dir=config.output_dir)}`",
        )
    tables = [make_table(experiment) for experiment in chosen]
    files = [_write(output_dir, table) for table in tables]
    if options.json and chosen:
        print_json({"tables": [asdict(table) | {"files": paths} for table, paths in zip(tables, files, strict=True)]})
    elif not options.json:
        for table, paths in zip(tables, files, strict=True):
            print_comparison(table)
            print_text()
            say(f"Written: {' '.join(paths)}")
    for problem in problems[1:]:
        say(f"{problem.name}: {problem.error}")
    if problems:
        raise problems[0].error


def _chosen(config: Config, settings: list[str]) -> tuple[str | None, str | None]:
    """Task and profile that the words of the command line name; None stands for every one, as `task=all` does."""
    # The last word about it counts, as for every setting.
    named = dict(word.partition("=")[::2] for word in settings)
    task = None if named.get("task", "all") == "all" else config.task.name
    return task, config.profile if "profile" in named else None


def _write(output_dir: Path, table: Table) -> list[str]:
    folder = output_dir / table.task / table.profile
    paths = []
    for suffix, render in FORMATS.items():
        path = folder / f"table.{suffix}"
        write_text(path, render(table))
        paths.append(str(path))
    return paths
