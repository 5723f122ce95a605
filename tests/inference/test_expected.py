"""What the words to expect in blanks mean for the known words, against a reading of each sentence by hand."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tigs.data.batch import pad
from tigs.data.special import BLANK_ID, END_ID, START_ID
from tigs.inference.expected import expected_gradient
from tigs.inference.gradient import search_mode
from tigs.inference.score import word_gradients

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


def test_it_is_the_gradient_of_the_known_words_where_blanks_hold_the_mean_of_what_is_expected(worlds):
    world = worlds("poetry")
    network = world.networks["forward"].requires_grad_(False)
    cases = world.cases(10)
    forbidden = torch.arange(world.n_tokens) < 5
    templates = together(cases)
    with search_mode():
        state = network.start(templates.context)
        gradient = expected_gradient(network, state, templates, forbidden=forbidden)
    assert gradient.shape == (*templates.target.ids.shape, network.word_vectors.shape[1])
    for own, case in zip(gradient, cases, strict=True):
        n_words = len(case.template)
        torch.testing.assert_close(own[:n_words], by_hand(network, case, forbidden), rtol=1e-4, atol=1e-5)
        assert not own[n_words:].any()


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


def test_where_nothing_is_blank_it_is_the_gradient_at_the_words():
    model, cases = random_markov(3), [Case("a", [], [6, 7, 5]), Case("b", [], [8])]
    templates = together(cases)
    with search_mode():
        state = model.start(templates.context)
        gradient = expected_gradient(model, state, templates, forbidden=FORBIDDEN)
        torch.testing.assert_close(gradient, word_gradients(model, state, templates.target)[1])
