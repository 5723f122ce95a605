"""What the words to expect in blanks mean for the known words, against a reading of each sentence by hand."""

from __future__ import annotations

import copy

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tigs.data.batch import pad
from tigs.data.special import BLANK_ID, END_ID, START_ID
from tigs.inference.expected import expected_gradient
from tigs.inference.gradient import search_mode

from .markov import random_markov
from .worlds import FORBIDDEN, Case, small_cases, together


def by_hand(network, case, forbidden):
    """(words, size), with one leaf for each vector that is read."""
    state, outputs, read, losses = network.start(pad([case.context])), None, [], []
    for token in [START_ID, *case.template]:
        vector = network.word_vectors[token].clone()
        if token == BLANK_ID:
            shares = torch.softmax(network.projection(outputs[0]).masked_fill(forbidden, float("-inf")), dim=0)
            vector = sum(share * own for share, own in zip(shares.detach(), network.word_vectors, strict=True))
        elif outputs is not None:
            losses.append(cross_entropy(network.projection(outputs), torch.tensor([token])))
        read.append(vector.clone().requires_grad_())
        outputs, state = network.step(state, read[-1][None])
    losses.append(cross_entropy(network.projection(outputs), torch.tensor([END_ID])))
    return torch.stack(torch.autograd.grad(sum(losses), read)[1:])


@pytest.mark.parametrize("name", ["poetry", "aprc"])
def test_it_is_the_gradient_of_the_known_words_where_blanks_hold_the_mean_of_what_is_expected(worlds, name):
    world = worlds(name)
    # In double precision: two ways to the same sum.
    network = copy.deepcopy(world.networks["forward"]).double().requires_grad_(False)
    cases = world.cases(10)
    forbidden = torch.arange(world.n_tokens) < 5
    templates = together(cases)
    with search_mode():
        gradient = expected_gradient(network, network.start(templates.context), templates, forbidden=forbidden)
    assert gradient.shape == (*templates.target.ids.shape, network.word_vectors.shape[1])
    for own, blanks, case in zip(gradient, templates.blanks, cases, strict=True):
        expected = by_hand(network, case, forbidden)[blanks[: len(case.template)]]  # (blanks, size)
        assert expected.any()
        torch.testing.assert_close(own[blanks], expected)
        assert not own[~blanks].any()


@given(st.integers(0, 10**6), small_cases(most_blanks=4))
@settings(max_examples=20)
def test_neighbours_change_nothing(seed, cases):
    model = random_markov(seed)

    def read(some):
        templates = together(some)
        with search_mode():
            return expected_gradient(model, model.start(templates.context), templates, forbidden=FORBIDDEN)

    for own, case in zip(read(cases), cases, strict=True):
        torch.testing.assert_close(own[: len(case.template)], read([case])[0])


def test_where_nothing_is_blank_nothing_is_expected():
    model = random_markov(3)
    for blanks in ([], [BLANK_ID]):
        templates = together([Case("a", [], [6, 7, 5]), Case("b", [], [8, *blanks])])
        with search_mode():
            gradient = expected_gradient(model, model.start(templates.context), templates, forbidden=FORBIDDEN)
        assert gradient.shape[:2] == (2, 3)
        assert not gradient[0].any()
        assert gradient[1].any() == bool(blanks)
