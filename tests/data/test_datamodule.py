from __future__ import annotations

from types import SimpleNamespace

import pytest
import torch

from tigs.composition import compose
from tigs.config import TASKS
from tigs.data.datamodule import FitDataModule, PredictDataModule
from tigs.data.prepare import prepare
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


def ids_of(loader):
    return [[item.template.id for item in batch.items] for batch in loader]


@pytest.fixture
def predicting(config):
    def make(task, number=0, **arguments):
        own = config(task, "eval.batch_size=7")
        return PredictDataModule(own, prepare(own).test_sets()[number].items, **arguments)

    return make


@pytest.mark.parametrize("task", TASKS)
def test_every_template_comes_exactly_once_among_those_of_like_length(predicting, task):
    module = predicting(task)
    loader = module.predict_dataloader()
    batches = list(loader)
    assert len(loader) == len(batches)
    assert [len(batch.items) for batch in batches[:-1]] == [7] * (len(batches) - 1)
    items = [item for batch in batches for item in batch.items]
    assert sorted(items, key=lambda item: item.template.id) == sorted(module.items, key=lambda item: item.template.id)
    lengths = [len(item.template.tokens) for item in items]
    assert lengths == sorted(lengths)


@pytest.mark.parametrize("n_processes", [2, 3, 50])
def test_processes_share_the_batches_of_one_without_repeats(predicting, n_processes):
    module = predicting("dialog")
    alone = ids_of(module.predict_dataloader())
    parts = [ids_of(at(module, rank, n_processes).predict_dataloader()) for rank in range(n_processes)]
    assert sorted(batch for part in parts for batch in part) == sorted(alone)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_what_is_done_is_left_out_and_the_rest_keeps_its_neighbours(predicting):
    alone = ids_of(predicting("dialog").predict_dataloader())
    done = {*alone[0], *alone[2][:3]}
    left = ids_of(predicting("dialog", done=lambda: done).predict_dataloader())
    assert left == [alone[1], alone[2][3:], *alone[3:]]
    assert (
        ids_of(predicting("dialog", done=lambda: {name for batch in alone for name in batch}).predict_dataloader())
        == []
    )


@pytest.mark.parametrize("task", TASKS)
def test_the_tensors_of_a_batch_are_its_templates(predicting, task):
    module = predicting(task, 3)
    vocabulary = module.prepared.vocabulary
    for batch in module.predict_dataloader():
        for number, item in enumerate(batch.items):
            ids = batch.target.ids[number]
            assert (ids == BLANK_ID).nonzero()[:, 0].tolist() == list(item.template.blank_positions)
            assert rows(batch.target)[number] == tuple(vocabulary.encode(item.template.tokens))
            assert rows(batch.context)[number] == tuple(vocabulary.encode(item.template.context))
            assert (ids[len(item.template.tokens) :] == PAD_ID).all()


def test_a_batch_moves_to_its_device_with_its_items(predicting):
    module = predicting("poetry")
    batch = next(iter(module.predict_dataloader()))
    moved = module.transfer_batch_to_device(batch, torch.device("meta"), 0)
    assert moved.items == batch.items
    tensors = (*moved.context, *moved.target)
    assert {tensor.device.type for tensor in tensors} == {"meta"}
