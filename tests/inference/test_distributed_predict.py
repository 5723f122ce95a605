"""Two processes over gloo write what one writes."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch

from tigs.composition import compose
from tigs.config import METHODS, MODELS
from tigs.data.prepare import prepare
from tigs.inference.predict import predict
from tigs.inference.predictions import predictions_folder, read_predictions
from tigs.inference.required import checkpoint_path
from tigs.inference.writer import read_parts

TWO = ["trainer.devices=2", "trainer.strategy=ddp", "trainer.accelerator=cpu"]


@pytest.fixture(autouse=True)
def _one_thread():
    """As each of two processes has: sums over several threads may differ in the last digit."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def words(trained, tmp_path):
    """Settings with the models in a folder of the test's own; `eval.batch_size=3` gives four batches of ten templates."""

    def make(folder, *more, models=("forward", "evaluator")):
        own = trained("poetry", *models)
        for name in models:
            target = tmp_path / folder / f"poetry/small/models/{name}"
            target.mkdir(parents=True)
            shutil.copy(checkpoint_path(compose(own), name), target)
        quick = ["test_sets.ratios=[0.5]", "method.max_rounds=2", "eval.batch_size=3"]
        return [*own, f"output_dir={tmp_path / folder}", *quick, *more]

    return make


def start(words):
    return subprocess.Popen(
        [sys.executable, "-m", "tigs", "eval", *words, "--json"],
        env={**os.environ, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(words, code=0):
    process = start(words)
    out, err = process.communicate(timeout=300)
    assert process.returncode == code, err
    return out, err


def predictions_of(config):
    """What stands in the files, without times."""
    folder = predictions_folder(config)
    assert not (folder / "parts").exists()
    files = {path.stem: read_predictions(path) for path in sorted(folder.glob("*.jsonl"), reverse=True)}
    return {name: [replace(own, seconds=0.0) for own in file.predictions] for name, file in files.items()}


def test_two_processes_write_the_predictions_of_one_even_if_there_are_fewer_templates_than_processes(words):
    one, two = (words(name, models=MODELS) for name in "ab")
    for settings in (one, two):
        # Leaves one template of each set for two processes.
        predict(compose([*settings, "method=seq2seq-f", "eval.limit=9"]))
    out, err = run([*two, "method=all", *TWO])
    assert len(json.loads(out)["metrics"]) == 2 * len(METHODS), "printed by the first process only"
    assert err.count(f"[1/{len(METHODS)}]") == 1
    for method in METHODS:
        alone, shared = compose([*one, f"method={method}"]), compose([*two, f"method={method}"])
        predict(alone)
        assert predictions_of(shared) == predictions_of(alone)
        assert list(predictions_of(alone)) == ["random-50", "middle-50"]
        header = read_predictions(predictions_folder(shared) / "random-50.jsonl").header
        assert (header.n, header.devices) == (10, 2)


def test_two_killed_processes_are_continued_by_one(words):
    slow = ["method=tigs", "method.max_rounds=4", "method.patience=9", "eval.batch_size=1"]
    settings = words("rough", *slow)
    calm, rough = compose(words("calm", *slow)), compose(settings)
    process = start([*settings, *TWO])
    folder = predictions_folder(rough) / "parts" / "random-50"
    while len(list(folder.glob("*/*.jsonl"))) < 2 and process.poll() is None:
        time.sleep(0.002)
    children = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True)
    for child in (process.pid, *map(int, children.stdout.split())):
        os.kill(child, 9)
    process.communicate()
    (identity,) = folder.glob("*")
    done = read_parts(identity)
    assert {path.name[0] for path in identity.iterdir()} == {"0", "1"}
    assert 2 <= len(done) < 10
    predict(calm)
    predict(rough)
    assert predictions_of(rough) == predictions_of(calm)
    stored = {own.id: own for own in read_predictions(folder.parents[1] / "random-50.jsonl").predictions}
    assert {name: stored[name] for name in done} == done


def test_an_error_of_one_process_is_told_once_by_the_first(words):
    settings = words("nan", "method=seq2seq-f", "eval.batch_size=1")
    config = compose(settings)
    prepared = prepare(config)
    by_length = sorted(prepared.test_sets()[0].items, key=lambda item: len(item.template.tokens))
    # A word that only the second process reads.
    seen = {word for item in by_length[0::2] for word in item.template.context}
    (broken, word) = next(
        (item.template, word) for item in by_length[1::2] for word in item.template.context if word not in seen
    )
    path = checkpoint_path(config, "forward")
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"]["model.encoder.embedding.weight"][prepared.vocabulary.encode([word])] = float("nan")
    torch.save(checkpoint, path)
    out, err = run([*settings, *TWO], code=2)
    assert out == ""
    assert err.count("tigs eval: ") == 1
    assert f"template {broken.id}: the model forward gives it an NLL of nan" in err
    assert "Traceback" not in err
    (identity,) = (predictions_folder(config) / "parts" / "random-50").glob("*")
    assert len(read_parts(identity)) >= 5, "the first process finished its part"
