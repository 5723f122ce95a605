from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.data import bucket
from tigs.data.bucket import BucketSampler
from tigs.errors import ConfigError, DataError


@st.composite
def arguments(draw):
    """Lengths of sentences and contexts, and a batch size and number of processes that go together."""
    n_processes = draw(st.integers(1, 4))
    n_sentences = draw(st.integers(n_processes, 80))
    generator = np.random.default_rng(draw(st.integers(0, 9)))
    return {
        "lengths": (generator.integers(1, 30, n_sentences), generator.integers(0, 5, n_sentences)),
        "batch_size": draw(st.integers(n_processes, 20)),
        "seed": draw(st.integers(0, 5)),
        "n_processes": n_processes,
    }


def ranks(given, *, shuffle, epoch=0, **more):
    """The batches of every process: [rank][batch] indices."""
    batches = []
    for rank in range(given["n_processes"]):
        sampler = BucketSampler(**given, shuffle=shuffle, rank=rank, **more)
        sampler.set_epoch(epoch)
        batches.append([key.indices[key.own].tolist() for key in sampler])
        assert len(sampler) == len(batches[-1])
    return batches


def flat(batches):
    return [index for own in batches for batch in own for index in batch]


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    """Three batches a pool, so that small examples have several."""
    monkeypatch.setattr(bucket, "_POOL_BATCHES", 3)


@given(arguments(), st.integers(0, 3))
def test_without_shuffling_every_sentence_comes_exactly_once(arguments, epoch):
    batches = ranks(arguments, shuffle=False, epoch=epoch)
    assert sorted(flat(batches)) == list(range(len(arguments["lengths"][0])))
    assert batches == ranks(arguments, shuffle=False, epoch=0)


@given(arguments(), st.integers(0, 3))
def test_with_shuffling_only_a_rest_too_small_to_share_is_left_out(arguments, epoch):
    indices = flat(ranks(arguments, shuffle=True, epoch=epoch))
    n_sentences = len(arguments["lengths"][0])
    rest = n_sentences % arguments["batch_size"]
    assert len(set(indices)) == len(indices)
    assert len(indices) == n_sentences - (rest if rest < arguments["n_processes"] else 0)


@given(arguments(), st.booleans())
def test_every_process_has_a_sentence_in_every_batch(arguments, shuffle):
    batches = ranks(arguments, shuffle=shuffle)
    assert len({len(own) for own in batches}) == 1
    for parts in zip(*batches, strict=True):
        sizes = [len(part) for part in parts]
        assert min(sizes) >= 1
        assert max(sizes) - min(sizes) <= 1
        assert sum(sizes) <= arguments["batch_size"] + (0 if shuffle else arguments["n_processes"] - 1)


@given(arguments(), st.integers(0, 3))
def test_processes_share_the_batches_that_one_process_would_have(arguments, epoch):
    shared = ranks(arguments, shuffle=True, epoch=epoch)
    (alone,) = ranks({**arguments, "n_processes": 1}, shuffle=True, epoch=epoch)
    together = [set().union(*parts) for parts in zip(*shared, strict=True)]
    if len(together) == len(alone):  # nothing was too small to share
        assert together == [set(batch) for batch in alone]
    else:
        assert {frozenset(batch) for batch in together} < {frozenset(batch) for batch in alone}


@given(arguments(), st.integers(0, 3))
def test_an_epoch_can_be_repeated(arguments, epoch):
    assert ranks(arguments, shuffle=True, epoch=epoch) == ranks(arguments, shuffle=True, epoch=epoch)


def test_epochs_and_seeds_differ_in_what_stands_together_and_in_order():
    lengths = (np.arange(200) % 7 + 1,)
    orders = []
    for seed, epoch in ((0, 0), (0, 1), (1, 0)):
        (batches,) = ranks(
            {"lengths": lengths, "batch_size": 8, "seed": seed, "n_processes": 1}, shuffle=True, epoch=epoch
        )
        orders.append((batches, {frozenset(batch) for batch in batches}))
    for one in range(3):
        for other in range(one):
            assert orders[one][0] != orders[other][0]
            assert len(orders[one][1] & orders[other][1]) < 3


def test_batches_do_not_come_in_order_of_length():
    lengths = np.arange(240) % 40 + 1
    sampler = BucketSampler((lengths,), batch_size=8, seed=0, shuffle=True)
    means = [lengths[key.indices].mean() for key in sampler]
    assert abs(np.corrcoef(means, range(len(means)))[0, 1]) < 0.5


def test_the_random_choices_of_every_batch_have_a_seed_of_their_own():
    lengths = (np.arange(100) + 1,)
    seeds = []
    for epoch in range(3):
        for rank in range(2):
            sampler = BucketSampler(lengths, batch_size=10, seed=3, shuffle=True, rank=rank, n_processes=2)
            sampler.set_epoch(epoch)
            seeds += [key.seed for key in sampler]
    # Both processes draw for the whole batch from the same seed, and take their part.
    assert len(set(seeds)) == len(seeds) / 2 == 30


def test_validation_has_the_same_seeds_in_every_epoch():
    sampler = BucketSampler((np.arange(100) + 1,), batch_size=10, seed=3, shuffle=False)
    seeds = []
    for epoch in range(2):
        sampler.set_epoch(epoch)
        seeds.append([key.seed for key in sampler])
    assert seeds[0] == seeds[1]


@pytest.mark.parametrize("shuffle", [True, False])
def test_bucketing_saves_padding(monkeypatch, shuffle):
    monkeypatch.setattr(bucket, "_POOL_BATCHES", 50)
    lengths = np.random.default_rng(0).integers(1, 50, 5000)

    def padding(bucketed):
        sampler = BucketSampler((lengths,), batch_size=32, seed=0, shuffle=shuffle, bucketed=bucketed)
        batches = [lengths[key.indices] for key in sampler]
        return sum(len(batch) * batch.max() - batch.sum() for batch in batches) / lengths.sum()

    assert padding(bucketed=False) > 0.5
    assert padding(bucketed=True) < 0.05


def test_the_second_length_orders_sentences_of_the_same_first_length():
    lengths = (np.repeat([5, 3], 50), np.tile(np.arange(50), 2))
    sampler = BucketSampler(lengths, batch_size=10, seed=0, shuffle=False)
    ordered = [tuple(length[index] for length in lengths) for key in sampler for index in key.indices]
    assert ordered == sorted(ordered)


def test_a_batch_too_small_to_share_is_refused():
    with pytest.raises(ConfigError, match=r"trainer\.batch_size=2"):
        BucketSampler((np.ones(10, dtype=int),), batch_size=2, seed=0, shuffle=True, n_processes=3)


def test_fewer_sentences_than_processes_are_refused():
    with pytest.raises(DataError, match="2 sentences are too few for 3 processes"):
        BucketSampler((np.ones(2, dtype=int),), batch_size=6, seed=0, shuffle=False, n_processes=3)
