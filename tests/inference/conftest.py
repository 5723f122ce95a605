from __future__ import annotations

import pytest

from tigs.composition import compose
from tigs.config import MODELS
from tigs.data.prepare import prepare
from tigs.inference.required import checkpoint_path
from tigs.training.checkpoint import load_model

from .worlds import World, markov_world


@pytest.fixture(scope="session")
def worlds(trained):
    """`worlds(name)`: `poetry` (with a context), `aprc` (without) or `markov`; each is made once."""
    made: dict[str, World] = {"markov": markov_world()}

    def get(name: str) -> World:
        if name not in made:
            config = compose(trained(name))
            networks = {model: load_model(checkpoint_path(config, model)).network for model in MODELS}
            train = prepare(config).split("train")
            pairs = list(zip(train["context_ids"], train["target_ids"], strict=True))
            made[name] = World(networks, len(prepare(config).vocabulary), pairs)
        return made[name]

    return get


@pytest.fixture(params=["poetry", "aprc", "markov"])
def world(request, worlds):
    return worlds(request.param)
