from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tigs.config import TASKS, compose
from tigs.data.datamodule import FitDataModule, PredictDataModule
from tigs.data.special import BLANK_ID, PAD_ID


@pytest.fixture
def config(small_words):
    def make(task, *words):
        return compose(small_words(task, "trainer.batch_size=16", *words))

    return make


def rows(padded):
    return [tuple(ids[:length].tolist()) for ids, length in zip(padded.ids, padded.lengths, strict=True)]


def pairs_of(batches):
    return [pair for batch in batches for pair in zip(rows(batch.context), rows(batch.target), strict=True)]


def stored_pairs(module, split):
    return [(tuple(row["context_ids"]), tuple(row["target_ids"])) for row in module.prepared.split(split)]


def at(module, rank, n_processes):
    """The module as the Trainer of one of several processes sees it."""
    module.trainer = SimpleNamespace(global_rank=rank, world_size=n_processes)
    return module


# Fitting


@pytest.mark.parametrize("task", TASKS)
def test_an_epoch_of_batches_is_the_training_split(config, task):
    module = FitDataModule(config(task), masked=False)
    module.prepare_data()
    batches = list(module.train_dataloader())
    assert sorted(pairs_of(batches)) == sorted(stored_pairs(module, "train"))
    assert max(len(batch.target.lengths) for batch in batches) == 16


@pytest.mark.parametrize("task", TASKS)
def test_validation_is_the_validation_split_in_the_same_batches_every_time(config, task):
    module = FitDataModule(config(task), masked=True)
    loader = module.val_dataloader()
    first = list(loader)
    loader.sampler.set_epoch(1)
    second = list(loader)
    assert sorted(target for _, target in pairs_of(first)) == sorted(
        target for _, target in stored_pairs(module, "validation")
    )
    assert [rows(batch.context) for batch in first] == [rows(batch.context) for batch in second]


def test_the_epoch_changes_batches_and_templates(config):
    loader = FitDataModule(config("dialog"), masked=True).train_dataloader()
    epochs = []
    for epoch in (0, 1, 0):
        loader.sampler.set_epoch(epoch)
        epochs.append(pairs_of(loader))
    assert epochs[0] == epochs[2]
    assert sorted(target for _, target in epochs[0]) == sorted(target for _, target in epochs[1])
    assert len(set(epochs[0]) & set(epochs[1])) < len(epochs[0]) / 2


def test_a_model_with_a_seed_of_its_own_sees_other_batches(config):
    forward, evaluator = (
        pairs_of(FitDataModule(config("dialog", f"model={name}"), masked=False).train_dataloader())
        for name in ("forward", "evaluator")
    )
    assert forward != evaluator
    assert sorted(forward) == sorted(evaluator)


def test_processes_share_the_batches_of_one(config):
    module = FitDataModule(config("poetry"), masked=False)
    alone = list(module.train_dataloader())
    shared = [list(at(module, rank, 2).train_dataloader()) for rank in (0, 1)]
    assert len(shared[0]) == len(shared[1]) == len(alone)
    for one, *parts in zip(alone, *shared, strict=True):
        assert sorted(pairs_of([one])) == sorted(pairs_of(parts))
    validation = [batch for rank in (0, 1) for batch in at(module, rank, 2).val_dataloader()]
    assert sorted(pairs_of(validation)) == sorted(stored_pairs(module, "validation"))


# Predicting


@pytest.mark.parametrize("task", TASKS)
def test_every_template_of_every_set_comes_exactly_once(config, task):
    module = PredictDataModule(config(task), batch_size=7)
    loaders, test_sets = module.predict_dataloader(), module.prepared.test_sets()
    assert len(loaders) == len(test_sets) == 6
    for loader, test_set in zip(loaders, test_sets, strict=True):
        batches = list(loader)
        items = [item for batch in batches for item in batch.items]
        assert sorted(items, key=lambda item: item.template.id) == sorted(
            test_set.items, key=lambda item: item.template.id
        )
        assert len(loader) == len(batches)
        lengths = [len(item.template.tokens) for item in items]
        assert lengths == sorted(lengths)


@pytest.mark.parametrize("n_processes", [2, 3, 50])
def test_processes_share_the_templates_without_repeats(config, n_processes):
    module = PredictDataModule(config("dialog"), batch_size=7)
    parts = [at(module, rank, n_processes).predict_dataloader()[0] for rank in range(n_processes)]
    ids = [[item.template.id for batch in loader for item in batch.items] for loader in parts]
    assert sorted(identifier for own in ids for identifier in own) == sorted(
        item.template.id for item in module.prepared.test_sets()[0].items
    )
    assert max(map(len, ids)) - min(map(len, ids)) <= 1


@pytest.mark.parametrize("task", TASKS)
def test_the_tensors_of_a_batch_are_its_templates(config, task):
    module = PredictDataModule(config(task), batch_size=7)
    vocabulary = module.prepared.vocabulary
    for batch in module.predict_dataloader()[3]:
        for number, item in enumerate(batch.items):
            ids = batch.target.ids[number]
            assert (ids == BLANK_ID).nonzero()[:, 0].tolist() == list(item.template.blank_positions)
            assert rows(batch.target)[number] == tuple(vocabulary.encode(item.template.tokens))
            assert rows(batch.context)[number] == tuple(vocabulary.encode(item.template.context))
            assert (ids[len(item.template.tokens) :] == PAD_ID).all()


def test_a_batch_moves_to_its_device_with_its_items(config):
    module = PredictDataModule(config("poetry"), batch_size=7)
    batch = next(iter(module.predict_dataloader()[0]))
    moved = module.transfer_batch_to_device(batch, torch.device("meta"), 0)
    assert moved.items == batch.items
    tensors = (*moved.context, *moved.target)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
