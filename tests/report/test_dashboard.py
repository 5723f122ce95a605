"""The W&B workspace as it would be sent, and what somebody without an account is told."""

from __future__ import annotations

import json

import pytest

from tigs.composition import compose
from tigs.report.dashboard import comparison_workspace

SETS = ("random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75")


def strings_in(value):
    if isinstance(value, dict):
        return [text for part in value.values() for text in strings_in(part)]
    if isinstance(value, list):
        return [text for part in value for text in strings_in(part)]
    return [value] if isinstance(value, str) else []


def test_the_workspace_compares_the_eval_runs_of_one_task_and_profile_on_every_test_set():
    workspace = comparison_workspace(compose(["task=dialog", "profile=cpu"]), entity="somebody", project="tigs")
    texts = strings_in(json.loads(workspace._to_model().model_dump_json()))
    for figure in ("nll", "bleu_xy", "bleu_y"):
        for name in SETS:
            assert any(text.endswith(f"{figure}/{name}") for text in texts), (figure, name)
    assert any(text.endswith("seconds_per_sentence") for text in texts)
    assert any("n_candidates" in text for text in texts)
    assert {"eval", "dialog/cpu"} <= set(texts)


def test_reviews_have_no_context_and_are_compared_against_many_references():
    workspace = comparison_workspace(compose(["task=aprc"]), entity="somebody", project="tigs")
    texts = strings_in(json.loads(workspace._to_model().model_dump_json()))
    for figure, shown in (("nll", True), ("bleu_references", True), ("bleu_y", True), ("bleu_xy", False)):
        for name in SETS:
            assert any(text.endswith(f"{figure}/{name}") for text in texts) == shown, (figure, name)


@pytest.fixture
def nobody(monkeypatch, tmp_path):
    for name in ("WANDB_MODE", "WANDB_API_KEY", "WANDB_BASE_URL", "NETRC"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def test_without_an_account_one_is_told_what_to_do(nobody, tigs, tmp_path):
    (tmp_path / "runs" / "wandb" / "offline-run-1").mkdir(parents=True)
    ran = tigs("dashboard", "task=poetry", f"output_dir={tmp_path / 'runs'}")
    assert ran.code == 0
    for words in ("wandb login", "wandb sync", "tigs dashboard task=poetry profile=small", "1 runs", "poetry/small"):
        assert words in ran.out


def test_a_server_that_cannot_be_reached_is_one_line(nobody, tigs, monkeypatch, tmp_path):
    monkeypatch.setenv("WANDB_API_KEY", "k" * 40)
    monkeypatch.setenv("WANDB_BASE_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("WANDB_ENTITY", "somebody")
    monkeypatch.setenv("WANDB_HTTP_TIMEOUT", "1")
    ran = tigs("dashboard", f"output_dir={tmp_path}")
    assert ran.code == 2
    assert "W&B gives no answer" in ran.err
    assert "Traceback" not in ran.err
