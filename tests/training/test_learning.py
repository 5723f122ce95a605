"""The models learn: little data by heart, and more than word frequencies from the sample."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
import torch

from tigs.composition import compose
from tigs.config import MODELS, TASKS
from tigs.data.bucket import BatchKey
from tigs.data.dataset import PairDataset
from tigs.data.prepare import prepare
from tigs.models.build import MASKED_MODELS, build_model
from tigs.training.checkpoint import has_context
from tigs.training.fit import model_folder, train_model

QUICK = (
    "data.sample_pairs=2500",
    "test_sets.size=10",
    "model.hidden=64",
    "model.dropout=0.1",
    "trainer.max_epochs=4",
    "trainer.batch_size=32",
    "trainer.learning_rate=4e-3",
    "trainer.sample_fills=0",
    "trainer.accelerator=cpu",
)


@pytest.mark.parametrize("name", MODELS)
def test_thirty_two_sentences_are_learned_by_heart(shared_cache, name):
    config = compose([*QUICK, f"model={name}", f"data.cache_dir={shared_cache}", "model.dropout=0"])
    prepared = prepare(config)
    dataset = PairDataset(prepared.split("train").select(range(32)), masked=name in MASKED_MODELS)
    torch.manual_seed(0)
    network = build_model(config.model, n_tokens=len(prepared.vocabulary), has_context=True)
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for epoch in range(400):
        nlls = network(dataset[BatchKey(np.arange(32), (epoch,))])
        loss = torch.stack([nll.per_token.mean().detach() for nll in nlls.values()]).max()
        if loss < 0.08:
            break
        optimizer.zero_grad()
        torch.stack([nll.total for nll in nlls.values()]).sum().div(len(nlls["nll"].per_token)).backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 5.0)
        optimizer.step()
    with torch.no_grad():
        for head, nll in network(dataset[BatchKey(np.arange(32), (1000,))]).items():
            assert nll.per_token.mean() < 0.1, head


def _unigram_entropy(prepared, *, with_end):
    """Of the validation targets under their own word frequencies: what a model without any context could reach at best."""
    sentences = prepared.split("validation")["target_ids"]
    counts = Counter(token for sentence in sentences for token in [*sentence, *(["</s>"] if with_end else [])])
    total = counts.total()
    return -sum(count / total * math.log(count / total) for count in counts.values())


def _quickly_all_then_slowly_the_rest():
    """Every model on the poems and one model on every task, with every change; all the others take another minute."""
    for task in TASKS:
        for name in MODELS:
            is_quick = task == "poetry" or name == "forward"
            yield pytest.param(task, name, id=f"{name}-{task}", marks=() if is_quick else pytest.mark.slow)


@pytest.mark.parametrize(("task", "name"), list(_quickly_all_then_slowly_the_rest()))
def test_every_model_beats_the_unigram_entropy_by_thirty_percent(tmp_path, shared_cache, task, name):
    config = compose(
        [*QUICK, f"task={task}", f"model={name}", f"data.cache_dir={shared_cache}", f"output_dir={tmp_path}"]
    )
    trained = train_model(config)
    prepared = prepare(config)
    entropy = _unigram_entropy(prepared, with_end=name != "birnn")
    assert trained.validation_nll < 0.7 * entropy
    assert has_context(prepared) == (task != "aprc")
    if name == "birnn":
        figures = [line.split(",") for line in (model_folder(config) / "metrics.csv").read_text().splitlines()]
        last = {figure[2]: float(figure[3]) for figure in figures[1:]}
        assert last["validation/nll"] < min(last["validation/nll_left_to_right"], last["validation/nll_right_to_left"])
