from __future__ import annotations

import pytest
import torch

from tigs.config import ModelConfig
from tigs.data.batch import Batch, concatenate, pad
from tigs.models.build import MASKED_MODELS, build_model

N_TOKENS = 23


@pytest.fixture
def make_model():
    """A small random network in eval mode, by the name of its model."""

    def make(name, *, has_context=True, layers=2, dropout=0.0):
        torch.manual_seed(0)
        settings = ModelConfig(name=name, hidden=16, layers=layers, heads=2, dropout=dropout)
        return build_model(settings, n_tokens=N_TOKENS, has_context=has_context).eval()

    return make


@pytest.fixture
def make_batch():
    """Random pairs of given target lengths; a masked model gets a context with a template behind."""

    def make(name, *, lengths=(7, 3, 5), seed=0, has_context=True):
        generator = torch.Generator().manual_seed(seed)

        def draw(length):
            return torch.randint(5, N_TOKENS, (length,), generator=generator).tolist()

        target = pad([draw(length) for length in lengths])
        context = pad([draw(1 + number % 4) if has_context else [] for number in range(len(lengths))])
        if name in MASKED_MODELS:
            context = concatenate(context, target)
        return Batch(context, target)

    return make
