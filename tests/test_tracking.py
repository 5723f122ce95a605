"""W&B without a network: offline by itself, readable afterwards, and silent."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tigs import tracking


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    """A user who never logged in and set nothing."""
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def test_offline_for_somebody_who_never_logged_in(nobody):
    assert tracking.mode() == "offline"


def test_online_with_a_key_or_a_netrc_entry_for_the_right_host(nobody, monkeypatch):
    (nobody / ".netrc").write_text("machine other.example login user password secret\n")
    assert tracking.mode() == "offline"
    (nobody / ".netrc").write_text("machine api.wandb.ai login user password secret\n")
    assert tracking.mode() == "online"
    monkeypatch.setenv("WANDB_BASE_URL", "https://wandb.example")
    assert tracking.mode() == "offline"
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    assert tracking.mode() == "online"


@pytest.mark.parametrize(("given", "meant"), [("offline", "offline"), ("dryrun", "offline"), ("disabled", "disabled")])
def test_the_environment_has_the_last_word(nobody, monkeypatch, given, meant):
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_MODE", given)
    assert tracking.mode() == meant


def test_online_without_a_key_would_prompt_so_it_stays_offline(nobody, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "online")
    assert tracking.mode() == "offline"


def test_a_training_that_goes_on_keeps_its_run_and_a_new_one_gets_another(tmp_path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.mkdir()
    second.mkdir()
    assert tracking._run_id(first) == tracking._run_id(first) != tracking._run_id(second)


def test_an_offline_training_can_be_read_back_with_its_figures_and_fills(tmp_path):
    words = ["task=poetry", "model=forward", "data.sample_pairs=400", "test_sets.size=5", "model.hidden=16"]
    words += ["trainer.max_epochs=2", f"output_dir={tmp_path / 'runs'}", f"data.cache_dir={tmp_path / 'cache'}"]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WANDB")}
    environment |= {"HOME": str(tmp_path)}
    finished = subprocess.run(
        [sys.executable, "-m", "tigs", "train", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    assert "wandb" not in finished.stdout + finished.stderr
    (run,) = (tmp_path / "runs" / "wandb").glob("offline-run-*")
    inspected = subprocess.run(
        [str(Path(sys.executable).with_name("wandb")), "leet", "inspect", "--json", str(run)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    json.loads(inspected.splitlines()[0])
    for fact in ("poetry/small", '"train"', "validation/nll", "train/tokens_per_second", "train/gradient_norm"):
        assert fact in inspected, fact
    (table,) = sorted(run.glob("files/media/table/*.table.json"))[-1:]
    columns = json.loads(table.read_text())["columns"]
    assert columns == ["epoch", "context", "template", "fill", "reference"]
