"""`tigs train`: train every model of a task, or the one that was named."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from tigs.composition import compose
from tigs.config import MODELS, Config
from tigs.console import print_json, print_table, say
from tigs.data.prepare import prepare
from tigs.tracking import is_first_process
from tigs.training.fit import TrainedModel, train_model


def run(config: Config, options: argparse.Namespace) -> None:
    """Train, then print what came of it."""
    settings = list(options.settings)
    names = [config.model.name] if any(word.startswith("model=") for word in settings) else list(MODELS)
    corpus = prepare(config).summary["corpus"]
    trained = []
    for number, name in enumerate(names, start=1):
        own = compose([*(word for word in settings if not word.startswith("model=")), f"model={name}"])
        _say(f"[{number}/{len(names)}] {config.task.name} {name}, profile {config.profile}, {corpus}")
        result = train_model(own)
        _say(_outcome(result))
        trained.append(result)
    if is_first_process():
        _print(config, corpus, trained, as_json=options.json)


def _say(message: str) -> None:
    if is_first_process():
        say(message)


def _outcome(result: TrainedModel) -> str:
    if result.skipped:
        return f"  finished before: {result.checkpoint}"
    return f"  validation NLL {result.validation_nll:.3f} per token after {result.minutes:.1f} min: {result.checkpoint}"


def _print(config: Config, corpus: str, trained: list[TrainedModel], *, as_json: bool) -> None:
    if as_json:
        figures = [asdict(result) for result in trained]
        print_json({"task": config.task.name, "profile": config.profile, "corpus": corpus, "models": figures})
        return
    print_table(
        f"{config.task.name}, profile {config.profile}, {corpus}",
        ("model", "parameters", "epochs", "best", "validation NLL", "minutes", "checkpoint"),
        [
            (
                result.model,
                f"{result.parameters:,}",
                result.epochs,
                result.best_epoch,
                f"{result.validation_nll:.3f}",
                f"{result.minutes:.1f}",
                result.checkpoint,
            )
            for result in trained
        ],
    )
