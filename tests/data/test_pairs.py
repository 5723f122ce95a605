from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.config import DataConfig
from tigs.data.corpora import pairs as reasons
from tigs.data.corpora.pairs import SPLITS, Pair, PairCollector, hash_share, split_by_hash

TOKENS = st.lists(st.sampled_from("abc"), max_size=4).map(tuple)
ARRIVALS = st.lists(st.tuples(st.sampled_from(SPLITS), st.builds(Pair, TOKENS, TOKENS)), max_size=60)
LIMITS = DataConfig(min_target_length=1, max_target_length=3, max_context_length=2)


def collect(arrivals, settings=LIMITS):
    collector = PairCollector(settings)
    for split, pair in arrivals:
        collector.add(split, pair)
    return collector.finish()


def pair(target, context=""):
    return Pair(tuple(context.split()), tuple(target.split()))


@given(ARRIVALS)
def test_every_pair_is_kept_or_counted_once(arrivals):
    corpus = collect(arrivals)
    assert sum(map(len, corpus.splits.values())) + sum(corpus.dropped.values()) == len(arrivals)
    for split, kept in corpus.splits.items():
        assert len(set(kept)) == len(kept)
        assert set(kept) <= {pair for name, pair in arrivals if name == split}


@given(ARRIVALS)
def test_no_target_stands_in_two_splits_and_no_pair_is_outside_the_limits(arrivals):
    corpus = collect(arrivals)
    targets = [{kept.target for kept in corpus.splits[split]} for split in SPLITS]
    assert sum(map(len, targets)) == len(set.union(*targets))
    assert all(1 <= len(kept.target) <= 3 for split in SPLITS for kept in corpus.splits[split])
    assert all(len(kept.context) <= 2 for split in SPLITS for kept in corpus.splits[split])


@given(ARRIVALS, st.randoms(), st.none() | st.integers(1, 5))
def test_the_order_of_arrival_changes_nothing(as_sets, arrivals, generator, limit):
    settings = DataConfig(max_train_pairs=limit)
    shuffled = list(arrivals)
    generator.shuffle(shuffled)
    one, other = collect(arrivals, settings), collect(shuffled, settings)
    assert as_sets(one) == as_sets(other)
    assert one.dropped == other.dropped


@pytest.mark.parametrize(
    ("arrivals", "dropped"),
    [
        ([("train", pair(""))], {reasons.TARGET_TOO_SHORT: 1}),
        ([("train", pair("a a a a"))], {reasons.TARGET_TOO_LONG: 1}),
        ([("train", pair("a", "a a a"))], {reasons.CONTEXT_TOO_LONG: 1}),
        ([("train", pair("a")), ("train", pair("a")), ("train", pair("a"))], {reasons.DUPLICATE: 2}),
        ([("train", pair("a", "b")), ("test", pair("a", "c"))], {reasons.TARGET_IN_TRAIN: 1}),
        ([("train", pair("a", "b")), ("validation", pair("a", "c"))], {reasons.TARGET_IN_TRAIN: 1}),
        ([("validation", pair("a", "b")), ("test", pair("a", "c"))], {reasons.TARGET_IN_TEST: 1}),
        # The same answer to two questions is two pairs.
        ([("train", pair("a", "b")), ("train", pair("a", "c"))], {}),
    ],
)
def test_each_reason_is_counted_under_its_name(arrivals, dropped):
    assert collect(arrivals).dropped == Counter(dropped)


def test_a_limited_training_split_is_a_part_of_the_whole_and_says_so():
    arrivals = [("train", pair(f"{number} a")) for number in range(100)]
    whole, part = collect(arrivals), collect(arrivals, DataConfig(max_train_pairs=30))
    assert len(part.splits["train"]) == 30
    assert set(part.splits["train"]) < set(whole.splits["train"])
    assert part.splits["train"] != whole.splits["train"][:30]
    assert part.dropped == {reasons.BEYOND_LIMIT: 70}


def test_a_pair_that_only_the_limit_keeps_out_of_train_is_not_brought_back_into_test():
    arrivals = [("train", pair(f"{number} a")) for number in range(20)] + [
        ("test", pair(f"{n} a", "x")) for n in range(20)
    ]
    assert collect(arrivals, DataConfig(max_train_pairs=1)).splits["test"] == []


def test_shares_are_spread_evenly_over_the_unit_interval():
    shares = [hash_share(f"text {number}") for number in range(10_000)]
    assert all(0 <= share < 1 for share in shares)
    tenths = Counter(int(share * 10) for share in shares)
    assert sum((tenths[tenth] - 1000) ** 2 / 1000 for tenth in range(10)) < 27.9  # 0.1 % of even spreads lie above


def test_splits_have_the_configured_sizes():
    settings = DataConfig(test_share=0.2, validation_share=0.1)
    counts = Counter(split_by_hash(f"text {number}", settings) for number in range(10_000))
    assert counts["test"] == pytest.approx(2000, abs=150)
    assert counts["validation"] == pytest.approx(1000, abs=120)
    assert counts["train"] == 10_000 - counts["test"] - counts["validation"]


def test_a_larger_validation_split_takes_nothing_from_test():
    texts = [f"text {number}" for number in range(1000)]
    small, large = (DataConfig(test_share=0.2, validation_share=share) for share in (0.1, 0.3))
    assert [split_by_hash(text, small) == "test" for text in texts] == [
        split_by_hash(text, large) == "test" for text in texts
    ]
