"""Templates and what each method made of them, small enough to stand inside the page."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tigs.data.special import BLANK
from tigs.evaluation.metrics import Metrics, read_sentences
from tigs.inference.predictions import Prediction, read_predictions
from tigs.report.experiment import Experiment
from tigs.report.methods import label

PER_SET = 200
"""Templates of each test set; with all of them the page would be too large to open."""

Fill = tuple[str, list[int], int | None]
"""Words in the blanks; the evaluator's NLL of each in tenths of a nat; that of the sentence per token in hundredths."""


def make_examples(output_dir: Path, experiment: Experiment) -> dict[str, Any]:
    """What the page's script shows of one experiment; without any test set where no predictions lie beside the figures.

    Raises:
        PredictionError: if a file of predictions is damaged.
        EvaluationError: if a file of sentences is damaged.
    """
    shown = {name: _read_set(output_dir, experiment, name) for name in experiment.sets}
    methods = [method for method in experiment.methods if any(method in of_set for of_set in shown.values())]
    sentences: dict[str, tuple[str, str]] = {}
    sets = []
    for name, of_set in shown.items():
        if not of_set:
            continue
        templates = next(iter(of_set.values()))
        sentences |= {key: (" ".join(one.context), " ".join(one.reference)) for key, (one, _) in templates.items()}
        rows = [
            (key, _blanks(one), [_fill(of_set.get(method, {}).get(key)) for method in methods])
            for key, (one, _) in templates.items()
        ]
        strategy, _, ratio = name.rpartition("-")
        n = next(metrics.n for (_, other), metrics in experiment.metrics.items() if other == name)
        sets.append({"strategy": strategy, "ratio": ratio, "n": n, "rows": rows})
    return {
        "task": experiment.task,
        "name": experiment.name,
        "methods": [{"id": method, "label": label(method)} for method in methods],
        "sentences": sentences,
        "sets": sets,
    }


_Scored = tuple[Prediction, tuple[float, ...]]


def _read_set(output_dir: Path, experiment: Experiment, set_name: str) -> dict[str, dict[str, _Scored]]:
    """Method -> id -> prediction and the NLL of its tokens; the same ids for all methods."""
    of_set: dict[str, dict[str, _Scored]] = {}
    chosen: set[str] = set()
    for method in experiment.methods:
        metrics = experiment.metrics.get((method, set_name))
        # The bare template stands above the fills anyway.
        if metrics is None or method == "template":
            continue
        predictions = _predictions(output_dir, metrics)
        if not predictions:
            continue
        sentences = read_sentences(output_dir, metrics)
        # A file may hold more than the figures are about: they were made again with a smaller limit.
        judged = set(sentences.ids)
        predictions = [one for one in predictions if one.id in judged]
        chosen = chosen or {one.id for one in predictions[:PER_SET]}
        nlls = sentences.nll_by_id
        scored = {one.id: (one, nlls.get(one.id, ())) for one in predictions if one.id in chosen}
        if scored:
            of_set[method] = scored
    return of_set


def _predictions(output_dir: Path, metrics: Metrics) -> Sequence[Prediction]:
    """Those from which the figures were made; none if the file is not there or was made by another search since."""
    path = output_dir / metrics.task / metrics.profile / "predictions" / metrics.method / f"{metrics.set_name}.jsonl"
    if not path.is_file():
        return ()
    file = read_predictions(path)
    made = (file.header.config, file.header.checkpoints, file.header.test_set_hash)
    return file.predictions if made == (metrics.config, metrics.checkpoints, metrics.test_set_hash) else ()


def _blanks(prediction: Prediction) -> list[int]:
    return [place for place, token in enumerate(prediction.template) if token == BLANK]


def _fill(scored: _Scored | None) -> Fill | None:
    if scored is None:
        return None
    prediction, nlls = scored
    tenths = [round(10 * nlls[place]) for place in _blanks(prediction)] if nlls else []
    return " ".join(prediction.fill), tenths, round(100 * math.fsum(nlls) / len(nlls)) if nlls else None
