"""The benchmark measures what it says; how fast a machine is, no test asserts."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tigs.__main__ import main


@pytest.mark.slow
def test_every_ratio_is_measured_and_makes_sense(tiny_words):
    words = [*tiny_words, "task=dialog", "data.sample_pairs=600", "trainer.batch_size=16"]
    finished = subprocess.run(
        [sys.executable, "-m", "tigs", "bench", "train", *words, "--json"],
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    figures = json.loads(finished.stdout)
    assert "built-in sample corpus" in figures.pop("about")
    assert all(value > 0 for value in figures.values())
    assert figures["padding_bucketed"] < figures["padding_unbucketed"] < 1
    assert figures["loading_share"] < 1


def test_too_little_data_is_said_in_one_line(tiny_words, capsys):
    assert main(["bench", "train", *tiny_words, "trainer.batch_size=200"]) == 2
    assert "fewer than the 30 batches" in capsys.readouterr().err
