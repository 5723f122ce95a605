from __future__ import annotations

import numpy as np
import pytest
import torch

from tigs.composition import compose
from tigs.config import TASKS
from tigs.data.bucket import BatchKey
from tigs.data.dataset import PairDataset
from tigs.data.prepare import prepare
from tigs.data.special import BLANK_ID, END_ID


@pytest.fixture(params=TASKS)
def split(request, small_words):
    return prepare(compose(small_words(request.param))).split("train")


def key(indices, seed=(0,)):
    return BatchKey(np.array(indices), seed)


def rows(padded):
    return [ids[:length].tolist() for ids, length in zip(padded.ids, padded.lengths, strict=True)]


def test_a_batch_is_exactly_the_pairs_of_the_stored_file(split):
    dataset = PairDataset(split, masked=False)
    assert len(dataset) == len(split)
    for indices in (range(len(split)), [5, 3, 3, 0], [len(split) - 1]):
        batch = dataset[key(indices)]
        assert rows(batch.context) == [split[index]["context_ids"] for index in indices]
        assert rows(batch.target) == [split[index]["target_ids"] for index in indices]


def test_lengths_are_those_of_the_stored_pairs(split):
    dataset = PairDataset(split, masked=False)
    assert dataset.context.lengths.tolist() == [len(row["context_ids"]) for row in split]
    assert dataset.target.lengths.tolist() == [len(row["target_ids"]) for row in split]


def test_a_task_without_contexts_has_no_columns_for_them(small_words):
    dataset = PairDataset(prepare(compose(small_words("aprc"))).split("train"), masked=False)
    context = dataset[key([0, 1, 2])].context
    assert context.ids.shape == (3, 0)
    assert context.ids.dtype == torch.long
    assert context.lengths.tolist() == [0, 0, 0]


def test_a_masked_model_reads_the_context_and_a_template_of_the_target(split):
    indices = list(range(40))
    plain, masked = (PairDataset(split, masked=masked)[key(indices)] for masked in (False, True))
    assert torch.equal(masked.target.ids, plain.target.ids)
    for joined, context, target in zip(rows(masked.context), rows(plain.context), rows(plain.target), strict=True):
        assert joined[: len(context) + 1] == [*context, END_ID]
        template = joined[len(context) + 1 :]
        assert all(token in (BLANK_ID, original) for token, original in zip(template, target, strict=True))
        assert BLANK_ID in template


@pytest.mark.parametrize("n_processes", [2, 3])
def test_templates_do_not_depend_on_the_number_of_processes(split, n_processes):
    dataset, indices = PairDataset(split, masked=True), np.arange(40)
    whole = rows(dataset[BatchKey(indices, (7,))].context)
    for rank in range(n_processes):
        part = dataset[BatchKey(indices, (7,), slice(rank, None, n_processes))]
        assert rows(part.context) == whole[rank::n_processes]


def test_templates_are_drawn_from_the_seed_of_the_batch(split):
    dataset = PairDataset(split, masked=True)
    one, again, other = (
        dataset[key(range(40), seed)].context.ids for seed in ((0, 1, 2, 0), (0, 1, 2, 0), (0, 1, 3, 0))
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
