"""One W&B run per method: what it was, what it came to, and some of its fills, under keys that are the same for all methods."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from statistics import fmean
from typing import Any

from tigs import tracking
from tigs.config import Config
from tigs.evaluation.metrics import Metrics
from tigs.inference.predictions import Prediction, read_predictions

N_EXAMPLES = 200
COLUMNS = ("set", "id", "context", "template", "reference", "sentence", "nll_at_start", "nll", "forward_nll")
# Costs that are worth one number over all test sets.
_COSTS = ("seconds", "model_steps", "rounds")


def track(config: Config, evaluated: Sequence[Metrics], files: Sequence[Path]) -> None:
    """Send the figures of one method on all its test sets; predictions that were made in the same way continue the same run.

    Args:
        config: of the search.
        evaluated: figures, one per test set.
        files: the predictions they were made from, in the same order.
    """
    logger = tracking.make_logger(
        config,
        name=config.method.name,
        job_type="eval",
        folder=files[0].parent,
        variant=f"-{read_predictions(files[0]).header.identity}",
    )
    if logger is None:
        return
    try:
        tracking.log_result(logger, config=_origin(evaluated), summary=summary(evaluated))
        tracking.log_table(logger, "fills", COLUMNS, _examples(files))
    finally:
        tracking.finish()


def summary(evaluated: Sequence[Metrics]) -> dict[str, float]:
    """`nll/random-50` and so on for every figure and test set, and the mean cost of a sentence over all of them."""
    figures = {
        f"{name}/{metrics.set_name}": figure.value for metrics in evaluated for name, figure in metrics.figures.items()
    }
    numbers: dict[str, float] = {f"sentences/{metrics.set_name}": metrics.n for metrics in evaluated}
    for name in _COSTS:
        values = [metrics.figures[name].value for metrics in evaluated if name in metrics.figures]
        if values:
            numbers[f"{name}_per_sentence"] = fmean(values)
    return figures | numbers


def _origin(evaluated: Sequence[Metrics]) -> dict[str, Any]:
    """Whatever could explain a difference and is not among the settings."""
    first = evaluated[0]
    return {
        "corpus": first.corpus,
        "checkpoints": {name: about["hash"] for name, about in first.checkpoints.items()},
        "evaluator": (first.evaluator or {}).get("hash"),
        "test_set_hashes": {metrics.set_name: metrics.test_set_hash for metrics in evaluated},
        "n_references": first.n_references,
        "bleu_signature": first.bleu_signature,
        "processes": first.devices,
        "git_revision": first.git_revision,
    }


def _examples(files: Sequence[Path]) -> list[tuple[object, ...]]:
    """The first fills of every test set in turn."""
    by_set = [[(file.stem, prediction) for prediction in read_predictions(file).predictions] for file in files]
    in_turn = [example for examples in zip_longest(*by_set) for example in examples if example is not None]
    return [_row(name, prediction) for name, prediction in in_turn[:N_EXAMPLES]]


def _row(name: str, prediction: Prediction) -> tuple[object, ...]:
    texts = (prediction.context, prediction.template, prediction.reference, prediction.sentence)
    start = prediction.trace[0] if prediction.trace else None
    return (name, prediction.id, *(" ".join(text) for text in texts), start, prediction.nll, prediction.forward_nll)
