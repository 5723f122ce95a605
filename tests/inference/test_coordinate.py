"""The coordinate optimum against trying every word by plain means."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID, UNK_ID
from tigs.inference.coordinate import at_coordinate_optimum, whole_sentences
from tigs.inference.tigs import TOLERANCE
from tigs.inference.words import forbidden_words

from .markov import N_TOKENS, WORDS, apply, random_markov
from .worlds import Case, markov_world, together


def neighbours(fill, words):
    """Every fill that differs in one word."""
    return [(*fill[:n], word, *fill[n + 1 :]) for n in range(len(fill)) for word in words if word != fill[n]]


def best_neighbour(model, case, fill, words):
    """The lowest NLL of any of them."""
    fills = neighbours(fill, words)
    return min((model.exact_nll(case.context, case.filled(other)).item() for other in fills), default=float("inf"))


def descend(model, case, fill):
    """One word after the other until none helps."""
    own = model.exact_nll(case.context, case.filled(fill)).item()
    for other in neighbours(fill, WORDS):
        if model.exact_nll(case.context, case.filled(other)).item() < own - TOLERANCE:
            return descend(model, case, other)
    return fill


@given(seed=st.integers(0, 10**6), allow_unk=st.booleans())
def test_as_brute_force_on_chains(seed, allow_unk):
    model, generator = random_markov(seed), random.Random(seed)
    cases = markov_world(seed).cases(8, most_blanks=4, seed=seed)
    random_fills = [tuple(generator.choices(WORDS, k=case.n_blanks)) for case in cases]
    fills = [descend(model, case, fill) for case, fill in zip(cases[:4], random_fills[:4], strict=True)]
    fills += random_fills[4:]
    words = [*WORDS, UNK_ID] if allow_unk else WORDS
    expected = []
    for case, fill in zip(cases, fills, strict=True):
        own = model.exact_nll(case.context, case.filled(fill)).item()
        expected.append(best_neighbour(model, case, fill, words) >= own - TOLERANCE)
    forbidden = forbidden_words(N_TOKENS, allow_unk=allow_unk)
    assert at_coordinate_optimum(model, together(cases), fills, forbidden=forbidden) == expected
    # With a margin a better word may be missed, but none is invented.
    wide = at_coordinate_optimum(model, together(cases), fills, forbidden=forbidden, margin=2.0)
    assert all(found or not optimal for optimal, found in zip(expected, wide, strict=True))
    assert allow_unk or all(expected[:4])


def test_both_answers_are_common():
    """So that the test above is about something."""
    found = []
    for seed in range(5):
        cases = markov_world(seed).cases(20, seed=seed)
        fills = [(WORDS[0],) * case.n_blanks for case in cases]
        forbidden = forbidden_words(N_TOKENS, allow_unk=False)
        found += at_coordinate_optimum(random_markov(seed), together(cases), fills, forbidden=forbidden)
    assert 0 < sum(found) < len(found) / 2


@pytest.mark.parametrize("task", ["poetry", "aprc"])
@torch.no_grad()
def test_as_brute_force_on_trained_models(worlds, task):
    world = worlds(task)
    cases = world.cases(10, most_blanks=3)
    fills = [result.fill for result in world.fill("tigs", cases, n_candidates=world.n_tokens - len(SPECIAL_TOKENS))]
    fills[:3] = [(len(SPECIAL_TOKENS),) * case.n_blanks for case in cases[:3]]
    network = world.networks["forward"]

    def nlls(case, sentences):
        context = together([Case("", case.context, [BLANK_ID])] * len(sentences)).context
        outputs, _ = network.run(network.start(context), torch.tensor([[START_ID, *words] for words in sentences]))
        targets = torch.tensor([[*words, END_ID] for words in sentences])
        return cross_entropy(network.projection(outputs).transpose(1, 2), targets, reduction="none").sum(dim=1)

    expected = []
    for case, fill in zip(cases, fills, strict=True):
        others = neighbours(fill, range(len(SPECIAL_TOKENS), world.n_tokens))
        own, *rest = nlls(case, [apply(case.template, one) for one in [fill, *others]]).tolist()
        expected.append(min(rest) >= own - TOLERANCE)
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    assert at_coordinate_optimum(network, together(cases), fills, forbidden=forbidden) == expected
    assert any(expected)
    assert not all(expected)


def test_without_blanks_nothing_can_be_improved():
    cases = [Case("none", [], [WORDS[0], WORDS[1]]), Case("one", [], [BLANK_ID])]
    best = descend(random_markov(3), cases[1], (WORDS[0],))
    forbidden = forbidden_words(N_TOKENS, allow_unk=False)
    assert at_coordinate_optimum(random_markov(3), together(cases), [(), best], forbidden=forbidden) == [True, True]


def test_whole_sentences_leave_the_templates_alone():
    templates = together([Case("a", [], [BLANK_ID, 7, BLANK_ID]), Case("b", [], [BLANK_ID])])
    assert whole_sentences(templates, [(5, 6), (8,)]).ids.tolist() == [[5, 7, 6], [8, 0, 0]]
    assert int(templates.blanks.sum()) == 3
