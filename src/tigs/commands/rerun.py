"""`tigs rerun`: one figure again from nothing: train what it needs, fill its test set, and say whether it comes out as before."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tigs.composition import compose, from_plain, own_words
from tigs.config import MODELS, Config
from tigs.console import print_json, print_table, print_text, say
from tigs.data.prepare import prepare
from tigs.errors import EvaluationError
from tigs.evaluation.evaluate import evaluate
from tigs.evaluation.metrics import Metrics, read_metrics
from tigs.inference.predict import predict
from tigs.inference.required import models_for
from tigs.tracking import is_first_process
from tigs.training.fit import train_model

EVALUATOR = "evaluator"
# What stands in the paper's table, and the same under the searched model and over the sentence alone.
_FIGURES = ("nll", "forward_nll", "bleu_xy", "bleu_y", "bleu_references")
# Where things lay and what they ran on when the figures were made.
_PLACES = (
    "output_dir",
    "data.dir",
    "data.source",
    "data.cache_dir",
    "trainer.accelerator",
    "trainer.devices",
    "trainer.nodes",
    "trainer.strategy",
)


def run(config: Config, options: argparse.Namespace) -> None:
    """Models that are trained and sentences that are filled already are taken as they are."""
    path = Path(options.figures)
    before = read_metrics(path)
    words = _words(before, path, options.settings)
    own = compose([*words, f"method={before.method}"])
    _require_same_test_set(own, before, path)
    models = {*models_for(before.method), *([EVALUATOR] if before.evaluator else [])}
    for model in (name for name in MODELS if name in models):
        _say(f"{model}: training, unless it is finished")
        train_model(compose([*words, f"model={model}"]))
    (predictions,) = predict(own, cells=[before.set_name])
    if is_first_process():
        _print(before, evaluate(own, predictions), path, as_json=options.json)


def _words(before: Metrics, path: Path, settings: Sequence[str]) -> list[str]:
    """The settings of the figures but for where their files lay, and then the user's."""
    made_with = own_words(from_plain(before.config, str(path)))
    kept = [f"{key}={value}" for key, value in made_with.items() if key not in _PLACES]
    return [f"task={before.task}", f"profile={before.profile}", *kept, *settings]


def _require_same_test_set(config: Config, before: Metrics, path: Path) -> None:
    """Before anything is trained: figures of other sentences could not be compared."""
    hashes = {test_set.name: test_set.hash for test_set in prepare(config).test_sets()}
    if hashes.get(before.set_name) != before.test_set_hash:
        raise EvaluationError(
            f"{path}: made of other sentences than the test set {before.set_name} that the data here gives",
            remedy=f"Name the folder of the same corpus ({before.corpus}) with data.dir=PATH, and leave other settings out",
        )


def _print(before: Metrics, again: Metrics, path: Path, *, as_json: bool) -> None:
    compared = [name for name in _FIGURES if name in before.figures and name in again.figures]
    rows = []
    for name in compared:
        old, new = before.figures[name], again.figures[name].value
        rows.append((name, old, new, old.low <= new <= old.high))
    if as_json:
        figures = {name: {"before": asdict(old), "again": new, "within": within} for name, old, new, within in rows}
        print_json({"file": str(path), "n": again.n, "figures": figures})
        return
    title = f"{before.method} on {before.set_name} of {before.task}, profile {before.profile}, {before.corpus}, n = {again.n}"
    lines = [
        (name, f"{old.value:.4f}", f"{old.low:.4f} to {old.high:.4f}", f"{new:.4f}", "yes" if within else "NO")
        for name, old, new, within in rows
    ]
    print_table(title, ("figure", "before", "95 % interval", "again", "within"), lines)
    print_text(f"before: {path}")


def _say(message: str) -> None:
    if is_first_process():
        say(message)
