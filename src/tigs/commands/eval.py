"""`tigs eval`: fill the test sets by one method or by all of them, score the answers, compare."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tigs.commands.eval_tables import Evaluated, print_comparison, print_method
from tigs.composition import compose
from tigs.config import METHODS, Config
from tigs.console import print_json, print_text, say
from tigs.data.prepare import prepare
from tigs.errors import EvaluationError
from tigs.evaluation.compare import compare_all
from tigs.evaluation.evaluate import evaluate
from tigs.evaluation.track import track
from tigs.inference.predict import predict
from tigs.inference.predictions import predictions_folder
from tigs.inference.required import models_for, require_models
from tigs.tracking import is_first_process


def run(config: Config, options: argparse.Namespace) -> None:
    """One method after the other; figures are printed as each is done, the comparison at the end."""
    names = _chosen_methods(config, options.settings)
    # The bare template is judged by BLEU alone.
    require_models(config, names, also=("evaluator",) if any(map(models_for, names)) else ())
    about = f"{config.task.name}, profile {config.profile}, {prepare(config).summary['corpus']}"
    evaluated = []
    for number, name in enumerate(names, start=1):
        own = compose([*(word for word in options.settings if not word.startswith("method=")), f"method={name}"])
        if is_first_process():
            say(f"[{number}/{len(names)}] {name}: {about}")
        files = predict(own)
        if is_first_process():
            figures = tuple(evaluate(own, file) for file in files)
            track(own, figures, files)
            evaluated.append(Evaluated(name, tuple(files), figures))
            if not options.json:
                print_method(evaluated[-1], about)
    if is_first_process():
        _compare(config)
        _finish(config, evaluated, about, as_json=options.json)


def _chosen_methods(config: Config, settings: Sequence[str]) -> Sequence[str]:
    """The last word about it counts, as for every setting."""
    chosen = [word for word in settings if word.startswith("method=")]
    return METHODS if chosen and chosen[-1] == "method=all" else [config.method.name]


def _compare(config: Config) -> None:
    """Each method against TIGS; figures that must not be compared are no reason to lose the others."""
    try:
        compare_all(Path(config.output_dir), task=config.task.name, profile=config.profile)
    except EvaluationError as error:
        say(f"No comparison: {error}")


def _finish(config: Config, evaluated: Sequence[Evaluated], about: str, *, as_json: bool) -> None:
    folder = predictions_folder(config).parents[1]
    if as_json:
        figures = [asdict(metrics) for method in evaluated for metrics in method.figures]
        print_json({"task": config.task.name, "profile": config.profile, "folder": str(folder), "metrics": figures})
        return
    if len(evaluated) > 1:
        print_comparison(evaluated, about)
    print_text(f"predictions: {folder / 'predictions'}\nmetrics: {folder / 'metrics'}")
