"""Padded tensors, each checked against plain lists."""

from __future__ import annotations

from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tigs.data.batch import Batch, blank_out, concatenate, pad
from tigs.data.special import BLANK_ID, END_ID, PAD_ID, START_ID

SEQUENCES = st.lists(st.lists(st.integers(5, 30), max_size=8), min_size=1, max_size=6)


def rows(padded):
    """The sequences without their padding."""
    return [ids[:length].tolist() for ids, length in zip(padded.ids, padded.lengths, strict=True)]


def padded_lists(sequences):
    longest = max(map(len, sequences))
    return [sequence + [PAD_ID] * (longest - len(sequence)) for sequence in sequences]


@given(SEQUENCES)
def test_padding_stands_on_the_right_and_nowhere_else(sequences):
    padded = pad(sequences)
    assert padded.ids.tolist() == padded_lists(sequences)
    assert padded.lengths.tolist() == list(map(len, sequences))
    assert padded.mask.tolist() == [[token != PAD_ID for token in row] for row in padded_lists(sequences)]
    assert padded.ids.dtype == padded.lengths.dtype == torch.long


@given(SEQUENCES)
def test_reversing_turns_each_sequence_and_twice_is_nothing(sequences):
    padded = pad(sequences)
    assert padded.reversed.ids.tolist() == padded_lists([sequence[::-1] for sequence in sequences])
    assert torch.equal(padded.reversed.lengths, padded.lengths)
    assert torch.equal(padded.reversed.reversed.ids, padded.ids)


@given(SEQUENCES)
def test_a_decoder_reads_from_the_start_and_says_up_to_the_end(sequences):
    inputs, targets, mask = pad(sequences).bracketed()
    assert [row[keep].tolist() for row, keep in zip(inputs, mask, strict=True)] == [
        [START_ID, *one] for one in sequences
    ]
    assert targets.tolist() == padded_lists([[*one, END_ID] for one in sequences])
    assert mask.tolist() == [[token != PAD_ID for token in row] for row in targets.tolist()]
    assert inputs.shape == targets.shape == mask.shape


@given(SEQUENCES, st.data())
def test_concatenating_puts_an_end_between(first, data):
    second = [data.draw(st.lists(st.integers(5, 30), max_size=5)) for _ in first]
    joined = concatenate(pad(first), pad(second))
    expected = [[*one, END_ID, *other] for one, other in zip(first, second, strict=True)]
    assert joined.ids.tolist() == padded_lists(expected)
    assert joined.lengths.tolist() == list(map(len, expected))


@given(SEQUENCES)
def test_the_number_of_predicted_tokens_counts_every_end(sequences):
    batch = Batch(pad([[]] * len(sequences)), pad(sequences))
    assert batch.n_tokens == sum(len(sequence) + 1 for sequence in sequences)


def blanked(sequences, seed):
    return blank_out(pad(sequences), generator=torch.Generator().manual_seed(seed))


@given(SEQUENCES, st.integers(0, 1000))
def test_only_tokens_are_blanked_and_at_least_one_of_each_sentence(sequences, seed):
    template = blanked(sequences, seed)
    assert template.lengths.tolist() == list(map(len, sequences))
    assert not (template.ids[~template.mask] != PAD_ID).any()
    for made, sequence in zip(rows(template), sequences, strict=True):
        assert all(token in (BLANK_ID, original) for token, original in zip(made, sequence, strict=True))
        assert BLANK_ID in made or not sequence


@given(SEQUENCES)
def test_the_generator_alone_decides(sequences):
    before = torch.get_rng_state()
    assert torch.equal(blanked(sequences, 3).ids, blanked(sequences, 3).ids)
    assert torch.equal(torch.get_rng_state(), before)


def test_blanks_differ_between_generators_and_between_rows():
    sentences = [[7] * 20] * 50
    assert not torch.equal(blanked(sentences, 0).ids, blanked(sentences, 1).ids)
    assert len({tuple(row) for row in rows(blanked(sentences, 0))}) > 30  # half of them are one of 20 in the middle


def test_both_strategies_and_all_numbers_of_blanks_are_drawn():
    n_rows, length = 4000, 20
    n_centred, n_blanks = 0, Counter()
    for row in rows(blanked([[7] * length] * n_rows, 0)):
        places = [place for place, token in enumerate(row) if token == BLANK_ID]
        n_blanks[len(places)] += 1
        # A run that could be centred by chance says nothing, so only middling numbers of blanks count.
        if 5 <= len(places) <= 15:
            left = (length - len(places)) // 2
            n_centred += places == list(range(left, left + len(places)))
    counted = sum(n_blanks[number] for number in range(5, 16))
    assert n_centred / counted == pytest.approx(0.5, abs=0.05)
    # From one blank to all of them, each number as often as any other.
    assert all(n_blanks[number] == pytest.approx(n_rows / length, rel=0.35) for number in range(1, length + 1))


def test_random_blanks_are_spread_evenly_over_sentences_of_every_length():
    lengths = (4, 9)
    counts = {length: Counter() for length in lengths}
    for row in rows(blanked([[7] * lengths[number % 2] for number in range(6000)], 0)):
        places = [place for place, token in enumerate(row) if token == BLANK_ID]
        if places[-1] - places[0] >= len(places):  # not one run, so surely random
            counts[len(row)].update(places)
    for length in lengths:
        for place in range(length // 2):
            mirror = counts[length][length - 1 - place]
            assert counts[length][place] == pytest.approx(mirror, rel=0.15)
