"""A tiny trained evaluator for each task, and prediction files on the built-in sample's test sets."""

from __future__ import annotations

import random
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tigs.composition import compose, to_plain
from tigs.data.prepare import prepare
from tigs.data.special import BLANK
from tigs.inference.predictions import FORMAT_VERSION, Header, Prediction, write_predictions
from tigs.training.fit import model_folder, train_model

TINY = (
    "data.sample_pairs=1200",
    "test_sets.size=40",
    "test_sets.ratios=[0.5]",
    "model.hidden=16",
    "trainer.max_epochs=2",
    "trainer.batch_size=32",
    "trainer.accelerator=cpu",
)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """The configuration of a task whose evaluator is trained, each trained once."""
    root = tmp_path_factory.mktemp("trained")
    done = {}

    def make(task):
        if task not in done:
            words = [*TINY, f"task={task}", f"output_dir={root / 'runs'}", f"data.cache_dir={root / 'cache'}"]
            done[task] = compose([*words, "model=evaluator"])
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("WANDB_MODE", "disabled")
                train_model(done[task])
        return done[task]

    return make


@pytest.fixture
def experiment(trained, tmp_path):
    """The same in a folder of its own."""

    def make(task):
        config = replace(trained(task), output_dir=str(tmp_path / "runs"))
        shutil.copytree(model_folder(trained(task)), model_folder(config))
        return config

    return make


@pytest.fixture
def predicted():
    """Write predictions of a made-up method that finds the missing word with some probability."""

    def write(
        config, method="tigs", *, name="random-50", skill=0.5, limit=None, change=lambda prediction: {}, **header
    ):
        prepared = prepare(config)
        test_set = next(found for found in prepared.test_sets() if found.name == name)
        words = prepared.vocabulary.tokens[5:]
        predictions = []
        for item in test_set.items[:limit]:
            prediction = _made_up(item, words, method, skill)
            predictions.append(Prediction(**{**vars(prediction), **change(prediction)}))
        values = {
            "format_version": FORMAT_VERSION,
            "task": config.task.name,
            "profile": config.profile,
            "corpus": prepared.summary["corpus"],
            "method": method,
            "strategy": test_set.strategy,
            "ratio": test_set.ratio,
            "n": len(predictions),
            "test_set_hash": test_set.hash,
            "checkpoints": {}
            if method == "template"
            else {"forward": {"path": "p", "hash": "h", "validation_nll": 1.0}},
            "config": to_plain(config),
            "seconds": 4.0,
            "devices": 1,
            "git_revision": None,
        }
        folder = Path(config.output_dir) / config.task.name / config.profile / "predictions" / method
        path = folder / f"{test_set.name}.jsonl"
        write_predictions(path, Header(**{**values, **header}), predictions)
        return path

    return write


def _made_up(item, words, method, skill):
    template = item.template
    rest = {"id": template.id, "context": template.context, "template": template.tokens, "reference": item.reference}
    if method == "template":
        blanks = tuple(BLANK for _ in item.reference_fill)
        costs = {"nll": None, "forward_nll": None, "trace": (), "rounds": 0, "model_steps": 0, "seconds": 0.0}
        return Prediction(**rest, fill=blanks, **costs)
    draw = random.Random(f"{method}/{template.id}")
    fill = tuple(word if draw.random() < skill else draw.choice(words) for word in item.reference_fill)
    trace = tuple(sorted((draw.uniform(10, 90) for _ in range(draw.randint(1, 4))), reverse=True))
    costs = {"rounds": len(trace) - 1, "model_steps": draw.randint(10, 99), "seconds": draw.random()}
    return Prediction(**rest, fill=fill, nll=trace[-1], forward_nll=trace[-1] + 1, trace=trace, **costs)
