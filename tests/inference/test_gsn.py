from __future__ import annotations

import itertools
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.config import MethodConfig
from tigs.data.batch import pad
from tigs.data.special import BLANK_ID
from tigs.inference.gsn import Gsn
from tigs.inference.start import Started
from tigs.inference.words import forbidden_words

from .markov import N_TOKENS, WORDS, TwoSidedMarkov, random_markov, random_two_sided
from .worlds import Case, markov_world, together


def gsn_from(model, cases, start_fills, n_tokens, *, seed=0, **options):
    """GSN from given words."""

    def start(templates):
        words = templates.target.ids.clone()
        words[templates.blanks] = torch.tensor([word for fill in start_fills for word in fill], dtype=torch.long)
        return Started(words, torch.zeros_like(templates.target.lengths))

    forbidden = forbidden_words(n_tokens, allow_unk=False)
    return Gsn(model, start, MethodConfig(**options), forbidden=forbidden, seed=seed).fill(together(cases))


def plain_gsn(joint, case, fill, *, max_rounds):
    """At temperature 0, one word after the other, `joint(words, place)` computed anew each time; all sentences seen."""
    words = case.filled(fill)
    blanks = [place for place, token in enumerate(case.template) if token == BLANK_ID]
    seen = [list(words)]
    for _ in range(max_rounds):
        before = list(words)
        for place in blanks:
            scores = joint(words, place)
            old = words[place]
            words[place] = 5 + int(scores[5:].argmax())
            assert scores[words[place]] >= scores[old]
        seen.append(list(words))
        if words == before:
            break
    return seen


@given(st.integers(0, 10**6), st.integers(1, 4))
@settings(max_examples=15)
def test_without_temperature_each_blank_takes_the_likeliest_word_given_the_rest(seed, max_rounds):
    world = markov_world(seed)
    model = world.networks["birnn"]
    cases = world.cases(4, seed=seed)
    starts = [(WORDS[seed % 6],) * case.n_blanks for case in cases]
    results = gsn_from(model, cases, starts, N_TOKENS, temperature=0.0, max_rounds=max_rounds)
    for case, start, result in zip(cases, starts, results, strict=True):
        seen = plain_gsn(
            lambda words, place, own=case: model.exact_joint(own.context, words, place),
            case,
            start,
            max_rounds=max_rounds,
        )
        nlls = [world._pseudo_nll(case.context, words) for words in seen]
        assert result.rounds == len(seen) - 1
        assert result.trace == pytest.approx(list(itertools.accumulate(nlls, min)))
        best = seen[nlls.index(min(nlls))]
        assert result.nll == pytest.approx(min(nlls))
        assert world._pseudo_nll(case.context, case.filled(result.fill)) == pytest.approx(min(nlls)), best


@torch.no_grad()
def test_the_same_on_a_trained_model(worlds):
    world = worlds("poetry")
    network = world.networks["birnn"]
    cases = world.cases(5, seed=3, longest=9)
    starts = [result.fill for result in world.fill("birnn-gsn", cases, max_rounds=0, start="random")]
    results = gsn_from(network, cases, starts, world.n_tokens, temperature=0.0, max_rounds=3)
    for case, start, result in zip(cases, starts, results, strict=True):

        def joint(words, place, own=case):
            states = network.head_states(pad([own.context]), pad([words]))
            return network.joint_log_probabilities(states.joint[0, place])

        seen = plain_gsn(joint, case, start, max_rounds=3)
        nlls = [world._pseudo_nll(case.context, words) for words in seen]
        assert case.filled(result.fill) == seen[nlls.index(min(nlls))]
        assert result.trace == pytest.approx(list(itertools.accumulate(nlls, min)), abs=1e-4)


class Recording(TwoSidedMarkov):
    """Remembers what the joint head was asked."""

    def __init__(self, transitions):
        super().__init__(transitions)
        self.asked = []

    def joint_log_probabilities(self, outputs):
        scores = super().joint_log_probabilities(outputs)
        self.asked.append(scores)
        return scores


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_every_blank_is_visited_once_a_round_and_converged_sentences_leave(temperature):
    model = Recording(random_markov(2).transitions[0])
    cases = markov_world(2).cases(20)
    starts = [(WORDS[0],) * case.n_blanks for case in cases]
    results = gsn_from(model, cases, starts, N_TOKENS, temperature=temperature, max_rounds=5)
    assert len({result.rounds for result in results}) > 1
    n_visits = sum(result.rounds * case.n_blanks for result, case in zip(results, cases, strict=True))
    assert sum(map(len, model.asked)) == n_visits
    for result, case in zip(results, cases, strict=True):
        assert result.model_steps == 2 * len(case.template) * (1 + result.rounds)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_words_are_drawn_as_often_as_the_joint_head_says(temperature):
    model, number = random_two_sided(1), 3000
    template = [WORDS[1], BLANK_ID, WORDS[2]]
    cases = [Case(str(name), [], template) for name in range(number)]
    # The least likely word, so that what is drawn is the best of the two sentences seen, or the only one.
    probabilities = model.exact_joint([], [WORDS[1], WORDS[0], WORDS[2]], 1)[list(WORDS)] ** (1 / temperature)
    probabilities = probabilities / probabilities.sum()
    start = WORDS[int(probabilities.argmin())]
    results = gsn_from(model, cases, [(start,)] * number, N_TOKENS, temperature=temperature, max_rounds=1, n_best=2)
    drawn = Counter()
    for result in results:
        others = [other.fill[0] for other in result.alternatives if other.fill[0] != start]
        drawn[others[0] if others else start] += 1
    expected = {word: number * share for word, share in zip(WORDS, probabilities.tolist(), strict=True)}
    assert sum(expected[word] for word in WORDS if expected[word] < 5) < number / 10
    chi_square = sum((drawn[word] - n) ** 2 / n for word, n in expected.items())
    # Five degrees of freedom: above this in one of ten thousand cases; the seed is fixed.
    assert chi_square < 25.7


def test_the_best_sentence_seen_is_kept_though_later_ones_are_worse():
    world = markov_world(3)
    cases = world.cases(10, ratios=(0.5,))
    options = {"temperature": 4.0, "max_rounds": 8}
    results = world.fill("birnn-gsn", cases, n_best=100, **options)
    for result, one in zip(results, world.fill("birnn-gsn", cases, **options), strict=True):
        assert result.nll == min(other.nll for other in result.alternatives) == one.nll
        assert result.fill == one.fill
    assert any(len(result.alternatives) > 3 for result in results)
