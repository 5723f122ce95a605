"""`tigs rerun`: one file of figures again from nothing: train what it needs, fill its test set, compare with what it says.

It works in a folder of its own, `<output_dir>/rerun`, so that nothing is taken for a figure of another experiment.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tigs.composition import compose, from_plain, own_words
from tigs.config import MODELS, PLACES, Config
from tigs.console import print_json, print_table, print_text, say
from tigs.data.prepare import prepare
from tigs.errors import ConfigError, EvaluationError
from tigs.evaluation.evaluate import evaluate
from tigs.evaluation.metrics import Metrics, read_metrics
from tigs.inference.predict import predict
from tigs.inference.required import models_for
from tigs.tracking import is_first_process
from tigs.training.fit import train_model

FOLDER = "rerun"
EVALUATOR = "evaluator"
# What stands in the paper's table, and the same under the searched model and over the sentence alone.
_FIGURES = ("nll", "forward_nll", "bleu_xy", "bleu_y", "bleu_references")
_NOTE = (
    "The interval is that of other sentences with the same models. A model trained on another processor is a slightly different "
    "one; its validation NLL says how different. Settings of a training that were not the profile's own are not in the file."
)


def run(config: Config, options: argparse.Namespace) -> None:
    """An interrupted command goes on: models that are trained and sentences that are filled are taken as they are."""
    path = Path(options.figures)
    before = _read(path)
    words = [*_words(before, path, options.settings), f"output_dir={Path(config.output_dir) / FOLDER}"]
    own = compose([*words, f"method={before.method}"])
    if before.path(Path(own.output_dir)).resolve() == path.resolve():
        raise ConfigError(f"{path} would be written over by what it is compared with", remedy="Set another output_dir")
    _require_same_test_set(own, before, path)
    needed = {*models_for(before.method), *([EVALUATOR] if before.evaluator else [])}
    for model in (name for name in MODELS if name in needed):
        if is_first_process():
            say(f"{before.task} {model}, profile {before.profile}: training, or going on with it")
        train_model(compose([*words, f"model={model}"]))
    (predictions,) = predict(own, cell=before.set_name)
    if is_first_process():
        again = evaluate(own, predictions)
        if options.json:
            print_json(_document(before, again, path))
        else:
            _print(before, again, path)


def _read(path: Path) -> Metrics:
    try:
        return read_metrics(path.resolve())
    except EvaluationError as error:
        raise EvaluationError(
            f"{path}: no file of figures ({error.problem})",
            remedy="Name one as results/cpu/poetry/cpu/metrics/tigs/random-25.json",
        ) from error


def _words(before: Metrics, path: Path, settings: Sequence[str]) -> list[str]:
    """The settings of the figures but for where their files lay, and then where the user's lie.

    What differs from the profile as it is now holds for every model; of a single model's training the file knows only the outcome.
    """
    for word in settings:
        if word.partition("=")[0] not in PLACES:
            raise ConfigError(
                f"'{word}': figures are made again with their own settings",
                remedy=f"Set only where things are: {', '.join(PLACES)}",
            )
    made_with = own_words(from_plain(before.config, str(path)))
    kept = [f"{key}={value}" for key, value in made_with.items() if key not in PLACES]
    source = before.config["data"]["source"]
    # A folder is somebody's own; the built-in sample or a download is to be had everywhere.
    if source != "folder" and not any(word.startswith(("data.dir=", "data.source=")) for word in settings):
        kept.append(f"data.source={source}")
    # The first sentences may have been counted alone, of a file that held more.
    return [f"task={before.task}", f"profile={before.profile}", *kept, f"eval.limit={before.n}", *settings]


def _require_same_test_set(config: Config, before: Metrics, path: Path) -> None:
    """Before anything is trained: figures of other sentences could not be compared."""
    hashes = {test_set.name: test_set.hash for test_set in prepare(config).test_sets()}
    if hashes.get(before.set_name) != before.test_set_hash:
        raise EvaluationError(
            f"{path}: made of other sentences than the test set {before.set_name} that the data here gives",
            remedy=f"Take the same corpus ({before.corpus}): data.dir=PATH, or data.source=download or sample",
        )


def _models(metrics: Metrics) -> dict[str, float]:
    """The validation NLL of each model behind the figures."""
    evaluator = {EVALUATOR: metrics.evaluator} if metrics.evaluator else {}
    return {name: about["validation_nll"] for name, about in (metrics.checkpoints | evaluator).items()}


def _document(before: Metrics, again: Metrics, path: Path) -> dict[str, object]:
    own = _models(again)
    return {
        "file": str(path),
        "task": before.task,
        "profile": before.profile,
        "method": before.method,
        "set": before.set_name,
        "n": again.n,
        "validation_nll": {name: {"before": nll, "again": own[name]} for name, nll in _models(before).items()},
        "figures": {
            name: {"before": asdict(before.figures[name]), "again": asdict(again.figures[name])}
            | {"within": _is_within(before, again, name)}
            for name in _compared(before)
        },
    }


def _print(before: Metrics, again: Metrics, path: Path) -> None:
    title = f"{before.method} on {before.set_name}, {before.task}, profile {before.profile}, {before.corpus}"
    own = _models(again)
    rows = [(name, f"{nll:.4f}", f"{own[name]:.4f}") for name, nll in _models(before).items()]
    if rows:
        print_table("validation NLL of the models", ("model", "before", "again"), rows)
    lines = []
    for name in _compared(before):
        old, new = before.figures[name], again.figures[name]
        within = "yes" if _is_within(before, again, name) else "NO"
        lines.append((name, f"{old.value:.4f}", f"{old.low:.4f} to {old.high:.4f}", f"{new.value:.4f}", within))
    print_table(f"{title}, n = {again.n:,}", ("figure", "before", "95 % interval", "again", "within"), lines)
    print_text(f"{_NOTE}\nbefore: {path}")


def _compared(before: Metrics) -> list[str]:
    return [name for name in _FIGURES if name in before.figures]


def _is_within(before: Metrics, again: Metrics, name: str) -> bool:
    return before.figures[name].low <= again.figures[name].value <= before.figures[name].high
