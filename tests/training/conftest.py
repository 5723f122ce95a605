from __future__ import annotations

import pytest

TINY = (
    "data.sample_pairs=400",
    "test_sets.size=10",
    "model.hidden=16",
    "model.heads=2",
    "trainer.max_epochs=2",
    "trainer.batch_size=64",
    "trainer.accelerator=cpu",
)


@pytest.fixture
def tiny_words(tmp_path, shared_cache):
    """Settings of a training of a few seconds, in a folder of its own."""
    return [*TINY, f"output_dir={tmp_path / 'runs'}", f"data.cache_dir={shared_cache}"]


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory):
    """Prepared data for all tests of a process."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(autouse=True)
def _no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")
