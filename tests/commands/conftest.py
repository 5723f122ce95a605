"""Trained models for commands, each test with a folder of its own."""

from __future__ import annotations

import shutil

import pytest

from tigs.composition import compose
from tigs.inference.required import checkpoint_path


@pytest.fixture
def trained_words(trained, tmp_path):
    """Settings that find tiny trained models in a folder of the test's own, under a profile."""

    def make(*more, models=("forward", "evaluator"), profile="small"):
        own = trained("poetry", *(models or ["forward"]))
        for name in models:
            target = tmp_path / f"runs/poetry/{profile}/models/{name}"
            target.mkdir(parents=True)
            shutil.copy(checkpoint_path(compose(own), name), target)
        return [*own, f"output_dir={tmp_path / 'runs'}", *more]

    return make
