"""Two processes over gloo are one process with twice the hands."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tigs.composition import compose
from tigs.training.checkpoint import load_model
from tigs.training.fit import model_folder

ENVIRONMENT = {**os.environ, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1"}


def _run(*command):
    finished = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=300, check=False)
    assert finished.returncode == 0, finished.stderr
    return finished


@pytest.mark.parametrize("task", [pytest.param("poetry", marks=pytest.mark.slow), "dialog"])
def test_the_averaged_gradient_equals_that_of_one_process(tiny_words, tmp_path, task):
    script = Path(__file__).parent / "ddp_gradient.py"
    # Dialogues differ in length, so that the two halves of a batch hold different numbers of tokens.
    words = [*tiny_words, f"task={task}", "model.dropout=0", "trainer.batch_size=32"]
    gradients = []
    for n_processes in (1, 2):
        path = tmp_path / f"{n_processes}.pt"
        _run(sys.executable, str(script), str(n_processes), str(path), *words)
        gradients.append(torch.load(path, weights_only=True))
    one, two = gradients
    assert max(value.abs().max().item() for value in one.values()) > 1e-3
    for name in one:
        torch.testing.assert_close(two[name], one[name], rtol=0, atol=1e-5)


def test_two_processes_train_all_the_way_to_the_same_kind_of_checkpoint(tiny_words, tmp_path):
    words = [*tiny_words, "model.dropout=0"]
    results = []
    for n_processes in (1, 2):
        own = [*words, f"output_dir={tmp_path / str(n_processes)}"]
        # Two models one after the other: the processes must stay together.
        for name in ("forward", "mask-seq2seq"):
            strategy = "ddp" if n_processes > 1 else "auto"
            arguments = [*own, f"model={name}", f"trainer.devices={n_processes}", f"trainer.strategy={strategy}"]
            finished = _run(sys.executable, "-m", "tigs", "train", *arguments, "--json")
            assert finished.stdout.count('"models"') == 1, "only the first process prints"
        results.append(load_model(model_folder(compose([*own, "model=forward"])) / "best.ckpt"))
    one, two = results
    assert two.description.vocabulary == one.description.vocabulary
    assert two.description.validation_nll == pytest.approx(one.description.validation_nll, abs=2e-3)
    assert set(two.network.state_dict()) == set(one.network.state_dict())


@pytest.mark.slow
def test_one_command_trains_several_models_with_two_processes(tiny_words):
    arguments = [*tiny_words, "trainer.devices=2", "trainer.strategy=ddp", "trainer.max_epochs=1"]
    finished = _run(sys.executable, "-m", "tigs", "train", *arguments, "--json")
    assert finished.stdout.count('"checkpoint"') == 6
