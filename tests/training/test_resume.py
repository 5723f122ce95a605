"""Killed in the middle, started again: the same weights to the last bit."""

from __future__ import annotations

import csv
import os
import signal
import subprocess
import sys
import time

import pytest
import torch

from tigs.composition import compose
from tigs.training.fit import model_folder


def _start(words):
    return subprocess.Popen(
        [sys.executable, "-m", "tigs", "train", *words],
        env={**os.environ, "WANDB_MODE": "disabled"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def _wait(process):
    output, _ = process.communicate(timeout=300)
    assert process.returncode == 0, output


def _weights(folder):
    return {name: torch.load(folder / f"{name}.ckpt", weights_only=True)["state_dict"] for name in ("best", "last")}


@pytest.mark.parametrize("name", [pytest.param("forward", marks=pytest.mark.slow), "mask-seq2seq"])
def test_a_killed_training_ends_with_the_weights_of_an_undisturbed_one(tiny_words, tmp_path, name):
    words = [*tiny_words, f"model={name}", "trainer.max_epochs=6", "trainer.batch_size=16", "model.dropout=0.3"]
    calm, rough = [*words, f"output_dir={tmp_path / 'calm'}"], [*words, f"output_dir={tmp_path / 'rough'}"]
    _wait(_start(calm))
    folder = model_folder(compose(rough))
    killed = _start(rough)
    while not (folder / "last.ckpt").is_file() and killed.poll() is None:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert killed.returncode == -signal.SIGKILL, "it was finished before it could be killed"
    assert not (folder / "finished.json").exists()
    reached = torch.load(folder / "last.ckpt", weights_only=True)["epoch"]
    assert reached < 5
    _wait(_start(rough))
    expected, found = _weights(model_folder(compose(calm))), _weights(folder)
    for kind in expected:
        assert all(torch.equal(expected[kind][key], found[kind][key]) for key in expected[kind]), kind
    figures = [_figures(model_folder(compose(words))) for words in (calm, rough)]
    assert figures[0] == figures[1]
    fills = [(model_folder(compose(words)) / "sample_fills.csv").read_text() for words in (calm, rough)]
    assert fills[0] == fills[1]


def _figures(folder):
    """All but what depends on the clock."""
    with (folder / "metrics.csv").open() as stream:
        return [tuple(row.values()) for row in csv.DictReader(stream) if row["name"] != "train/tokens_per_second"]
