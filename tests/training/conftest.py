from __future__ import annotations

import pytest


@pytest.fixture
def tiny_words(tiny, tmp_path, shared_cache):
    """Settings of a training of a few seconds, in a folder of its own."""
    return [*tiny, f"output_dir={tmp_path / 'runs'}", f"data.cache_dir={shared_cache}"]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    """Prepared data for all tests of a process."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
