"""`tigs sweep`: try settings of methods on validation templates, to tune them or to see what each option is worth."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_table, print_text, say
from tigs.errors import ConfigError
from tigs.inference.sweep_results import Row, best_rows, criterion, results_path
from tigs.inference.sweep_settings import sweep_settings
from tigs.whole_file import write_text

_CRITERIA = {"evaluator_nll": "NLL per token by the evaluator", "forward_nll": "NLL per token under the forward model"}
_FORMATS = {"unk_share": ".1%", "model_steps": ",.0f"}


def run(config: Config, options: argparse.Namespace) -> None:
    """Search what is not known yet, then print all settings side by side."""
    settings = sweep_settings(options.settings, one_at_a_time=options.one_at_a_time)
    methods = list(dict.fromkeys(setting.config.method.name for setting in settings))
    # Of all settings; `config` has been made without the words that hold lists.
    base = settings[0].config
    path = results_path(base, _file_name(options.name, methods))
    # Only now, so that a mistake in a list is answered before anything heavy is loaded.
    from tigs.data.prepare import prepare
    from tigs.inference.sweep import sweep, validation_sets
    from tigs.report.render import plain_markdown

    prepared = prepare(base)
    cells = [name for name in options.cells.split(",") if name]
    test_sets = validation_sets(base, prepared, n_templates=options.templates, cells=cells)
    about = (
        f"{base.task.name}, profile {base.profile}, {prepared.summary['corpus']}; validation templates (no test sentence), "
        f"{len(test_sets[0].items):,} in each cell, seed {base.test_sets.seed}"
    )
    say(f"{', '.join(methods)}: {about}; settings: {len(settings)}, cells: {len(test_sets)}")
    try:
        rows = sweep(settings, prepared, test_sets, path)
    except KeyboardInterrupt:
        say("The same command goes on from the last finished cell")
        raise
    figure, (header, lines) = _CRITERIA[criterion(rows)], _table(rows)
    title = f"{', '.join(methods)}, {figure}: {about}"
    best = [f"* lowest mean of the cells, {figure}: {row.setting.words}" for row in best_rows(rows)]
    table = path.with_suffix(".md")  # of this sweep; the results are those of every sweep of the name
    write_text(table, plain_markdown(title, header, lines, best))
    if options.json:
        print_json(_document(base, rows, path) | {"table": str(table)})
        return
    print_table(title, header, lines)
    print_text("\n".join([*best, f"results: {path}", f"table: {table}"]))


def _file_name(name: str | None, methods: Sequence[str]) -> str:
    name = "+".join(methods) if name is None else name
    if not name or Path(name).name != name or name.startswith("."):
        raise ConfigError(f"--name '{name}' is no name for a file", remedy="Give a word, for example --name step-size")
    return name


def _table(rows: Sequence[Row]) -> tuple[list[str], list[list[str]]]:
    """Header and lines; a star stands before the best of each method."""
    figure, best = criterion(rows), best_rows(rows)
    more = _further_columns(rows, figure)
    header = ["setting", *(result.subject.cell for result in rows[0].results), "mean", *more.values()]
    lines = [
        [
            f"{'*' if row in best else ' '} {row.setting.label}",
            *(f"{value:.4f}" for value in row.values(figure)),
            f"{row.mean(figure):.4f}",
            *(format(row.mean(name), _FORMATS.get(name, ".4f")) for name in more),
        ]
        for row in rows
    ]
    return header, lines


def _further_columns(rows: Sequence[Row], figure: str) -> dict[str, str]:
    """Figures of which the mean over all cells is shown, and their titles."""
    columns = {} if figure == "forward_nll" else {"forward_nll": "forward model"}
    if any(row.results[0].subject.checkpoints.keys() - {"forward", "evaluator"} for row in rows):
        columns["own_nll"] = "own objective"  # the method searches another model
    if any(row.setting.config.method.allow_unk for row in rows):
        columns["unk_share"] = "<unk>"
    return columns | {"model_steps": "steps", "seconds": "seconds"}


def _document(config: Config, rows: Sequence[Row], path: Path) -> dict[str, object]:
    figure = criterion(rows)
    names = list(asdict(rows[0].results[0].figures))
    known = [name for name in names if name != "evaluator_nll" or figure == name]
    return {
        "task": config.task.name,
        "profile": config.profile,
        "split": "validation",
        "n": rows[0].results[0].n,
        "template_seed": config.test_sets.seed,
        "criterion": figure,
        "best": [row.setting.words for row in best_rows(rows)],
        "file": str(path),
        "settings": [
            {
                "words": row.setting.words,
                "varied": row.setting.varied,
                "mean": {name: row.mean(name) for name in known},
                "cells": {result.subject.cell: asdict(result.figures) for result in row.results},
            }
            for row in rows
        ],
    }
