from __future__ import annotations

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.data.special import BLANK
from tigs.data.template import apply_fill, choose_blanks, make_template, reference_fill
from tigs.errors import ConfigError

SENTENCES = st.lists(st.sampled_from("abcde"), max_size=40).map(tuple)
RATIOS = st.floats(0, 1, exclude_min=True) | st.sampled_from([0.25, 0.5, 0.75, 1.0])
STRATEGIES = st.sampled_from(["random", "middle"])


@given(SENTENCES, STRATEGIES, RATIOS, st.integers())
def test_the_reference_fill_gives_the_sentence_back(sentence, strategy, ratio, seed):
    template = make_template("7", ("x",), sentence, strategy=strategy, ratio=ratio, seed=seed)
    assert apply_fill(template, reference_fill(template, sentence)) == sentence
    assert (template.id, template.context) == ("7", ("x",))


@given(SENTENCES, STRATEGIES, RATIOS)
def test_blanks_stand_exactly_at_the_blank_positions(sentence, strategy, ratio):
    template = make_template("7", (), sentence, strategy=strategy, ratio=ratio, seed=0)
    assert [place for place, token in enumerate(template.tokens) if token == BLANK] == list(template.blank_positions)
    known = [place for place in range(len(sentence)) if place not in template.blank_positions]
    assert all(template.tokens[place] == sentence[place] for place in known)


@given(st.integers(1, 60), STRATEGIES, RATIOS)
def test_the_number_of_blanks_is_the_share_rounded_down_but_at_least_one(length, strategy, ratio):
    places = choose_blanks(length, strategy=strategy, ratio=ratio, seed="s")
    assert len(set(places)) == len(places) == max(1, math.floor(ratio * length))
    assert list(places) == sorted(places)
    assert set(places) <= set(range(length))


@given(st.integers(1, 60), RATIOS)
def test_middle_is_one_run_in_the_centre(length, ratio):
    places = choose_blanks(length, strategy="middle", ratio=ratio, seed="any")
    left, right = places[0], length - 1 - places[-1]
    assert places == tuple(range(places[0], places[-1] + 1))
    assert abs(left - right) <= 1


def test_random_places_depend_on_the_seed_and_the_id_and_on_nothing_else():
    def places(identifier, seed):
        sentence = tuple("abcdefghijklmnopqrst")
        return make_template(identifier, (), sentence, strategy="random", ratio=0.5, seed=seed).blank_positions

    assert places("1", 0) == places("1", 0)
    assert len({places(str(identifier), 0) for identifier in range(50)}) > 45
    assert len({places("1", seed) for seed in range(50)}) > 45
    # Seed 1 of template 23 is not seed 12 of template 3.
    assert places("23", 1) != places("3", 12)


def test_random_places_are_spread_evenly():
    length, n_templates = 10, 5000
    for n_blanks in (1, 3):
        counts = Counter()
        for number in range(n_templates):
            counts.update(choose_blanks(length, strategy="random", ratio=n_blanks / length + 0.01, seed=str(number)))
        expected = n_templates * n_blanks / length
        chi_square = sum((counts[place] - expected) ** 2 / expected for place in range(length))
        assert sum(counts.values()) == n_templates * n_blanks
        assert chi_square < 27.9  # 0.1 % of even spreads lie above, with 9 degrees of freedom


def test_no_place_is_favoured_by_its_neighbour():
    # Two blanks among four tokens: each of the six pairs as often as any other.
    counts = Counter(choose_blanks(4, strategy="random", ratio=0.5, seed=str(number)) for number in range(6000))
    assert len(counts) == 6
    assert sum((count - 1000) ** 2 / 1000 for count in counts.values()) < 20.5  # 5 degrees of freedom


@pytest.mark.parametrize("ratio", [0, -0.5, 1.0001, float("nan")])
@pytest.mark.parametrize("strategy", ["random", "middle"])
def test_a_ratio_outside_its_range_is_refused(ratio, strategy):
    with pytest.raises(ConfigError, match="above 0 and at most 1"):
        choose_blanks(4, strategy=strategy, ratio=ratio, seed="s")


def test_an_unknown_strategy_is_refused():
    with pytest.raises(ConfigError, match="random, middle"):
        choose_blanks(4, strategy="left", ratio=0.5, seed="s")


@pytest.mark.parametrize("fill", [(), ("a",), ("a", "b", "c")])
def test_a_fill_of_the_wrong_length_is_refused(fill):
    template = make_template("7", (), tuple("abcd"), strategy="middle", ratio=0.5, seed=0)
    with pytest.raises(ValueError, match=f"{len(fill)} tokens for 2 blanks of template 7"):
        apply_fill(template, fill)
