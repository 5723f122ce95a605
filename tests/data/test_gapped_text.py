"""Text with gaps: what is a token, what is a gap, and every sentence that the gaps allow."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.data.gapped_text import Gap, expand, parse, tokenize
from tigs.data.special import BLANK
from tigs.errors import InferenceError


def test_words_and_gaps_of_an_english_text():
    assert parse("I'd ____ to____{1,3}.", "dialog") == ("i'd", Gap(1, 1), "to", Gap(1, 3), ".")


def test_characters_and_gaps_of_a_poem():
    assert parse("春____ 江__{2}。", "poetry") == ("春", Gap(1, 1), "江", Gap(2, 2), "。")


def test_a_text_without_gaps_is_its_tokens():
    text = "don't you think so ?"
    assert parse(text, "aprc") == tokenize(text, "aprc")


@pytest.mark.parametrize("text", ["a ____{3,1} b", "____{0}", "____{0,0} b"])
def test_a_gap_without_a_length_is_refused(text):
    with pytest.raises(InferenceError, match="no length"):
        parse(text, "aprc")


lengths = st.tuples(st.integers(0, 3), st.integers(0, 2)).map(lambda pair: Gap(pair[0], pair[0] + pair[1]))


@given(st.lists(st.one_of(st.sampled_from("abc"), lengths), max_size=6))
def test_every_combination_stands_once_and_keeps_the_tokens(pieces):
    sentences = expand(pieces, max_combinations=3**6)
    n_combinations = 1
    for piece in pieces:
        n_combinations *= piece.longest - piece.shortest + 1 if isinstance(piece, Gap) else 1
    assert len(sentences) == n_combinations
    for sentence in sentences:
        assert [token for token in sentence if token != BLANK] == [piece for piece in pieces if isinstance(piece, str)]
    shortest = sum(piece.shortest if isinstance(piece, Gap) else 1 for piece in pieces)
    longest = sum(piece.longest if isinstance(piece, Gap) else 1 for piece in pieces)
    assert (min(map(len, sentences)), max(map(len, sentences))) == (shortest, longest)


def test_gaps_of_different_lengths_give_different_sentences():
    assert expand(("a", Gap(0, 2), "b"), max_combinations=3) == [
        ("a", "b"),
        ("a", BLANK, "b"),
        ("a", BLANK, BLANK, "b"),
    ]


def test_too_many_combinations_are_refused_and_the_option_is_named():
    with pytest.raises(InferenceError, match=r"9 combinations.*more than 8.*method\.max_combinations"):
        expand((Gap(1, 3), "a", Gap(1, 3)), max_combinations=8)
