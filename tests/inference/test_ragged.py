"""Sentences that end, or wait, at different places, against each read by itself."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.config import ModelConfig
from tigs.data.batch import pad
from tigs.inference.front import Front
from tigs.inference.ragged import read_ragged
from tigs.models.build import build_model

N_TOKENS = 15


def network(name="forward"):
    torch.manual_seed(0)
    sizes = ModelConfig(name=name, hidden=6, layers=2, heads=2, dropout=0.0)
    return build_model(sizes, n_tokens=N_TOKENS, has_context=True).eval()


def sentences(lengths, seed):
    generator = torch.Generator().manual_seed(seed)
    words = [torch.randint(5, N_TOKENS, (length,), generator=generator).tolist() for length in lengths]
    contexts = [torch.randint(5, N_TOKENS, (1 + length % 4,), generator=generator).tolist() for length in lengths]
    return words, contexts


@given(st.lists(st.integers(1, 9), min_size=1, max_size=9), st.integers(0, 3), st.integers(0, 10**6))
@settings(max_examples=40)
def test_every_sentence_is_read_as_if_alone(lengths, padding, seed):
    model = network()
    words, contexts = sentences(lengths, seed)
    inputs = torch.nn.functional.pad(pad(words).ids, (0, padding))
    with torch.no_grad():
        found = read_ragged(model, model.start(pad(contexts)), inputs, torch.tensor(lengths))
        assert found.shape[:2] == inputs.shape
        for row, length in enumerate(lengths):
            alone, _ = model.run(model.start(pad([contexts[row]])), torch.tensor([words[row]]))
            torch.testing.assert_close(found[row, :length], alone[0])


def test_no_sentences_at_all():
    model = network()
    start = model.start(pad([[7]])).select(torch.tensor([], dtype=torch.long))
    empty = torch.zeros(0, 3, dtype=torch.long)
    assert read_ragged(model, start, empty, torch.zeros(0, dtype=torch.long)).shape == (0, 3, 6)


def test_what_has_ended_is_not_read_on():
    model, read = network(), []
    words, contexts = sentences([2, 2, 2, 12], 0)
    run = model.run
    model.run = lambda state, tokens: read.append(tokens.numel()) or run(state, tokens)
    read_ragged(model, model.start(pad(contexts)), pad(words).ids, torch.tensor([2, 2, 2, 12]))
    assert sum(read) == 4 * 2 + 10


def test_gradients_reach_every_sentence():
    model = network().requires_grad_(False)
    words, contexts = sentences([3, 7, 1, 5], 0)
    lengths = torch.tensor([3, 7, 1, 5])
    vectors = model.word_vectors[pad(words).ids].clone().requires_grad_()
    outputs = read_ragged(model, model.start(pad(contexts)), vectors, lengths)
    mask = torch.arange(7) < lengths[:, None]
    (found,) = torch.autograd.grad(outputs[mask].sum(), vectors)
    whole, _ = model.run(model.start(pad(contexts)), vectors)
    (expected,) = torch.autograd.grad(whole[mask].sum(), vectors)
    torch.testing.assert_close(found, expected)


@given(st.lists(st.lists(st.integers(0, 6), min_size=1, max_size=3), min_size=1, max_size=6), st.integers(0, 10**6))
@settings(max_examples=40)
def test_a_front_stands_where_each_sentence_was_read_to(stops, seed):
    """Up to three stops for each sentence; one that has no further stop is left behind."""
    model = network()
    words, contexts = sentences([7] * len(stops), seed)
    ids = torch.tensor(words)
    routes = [sorted(set(places)) for places in stops]
    with torch.no_grad():
        front = Front(model, model.start(pad(contexts)), torch.full((len(stops),), model.first_token), 0)
        going = list(range(len(stops)))
        for number in range(3):
            still = [place for place, row in enumerate(going) if number < len(routes[row])]
            going = [going[place] for place in still]
            if not going:
                break
            front.keep(torch.tensor(still))
            front.read_on(ids[going], torch.tensor([routes[row][number] for row in going]))
            further, _ = model.step(front.state, ids[going, 0])
            for place, row in enumerate(going):
                read = [model.first_token, *words[row][: routes[row][number]], words[row][0]]
                alone, _ = model.run(model.start(pad([contexts[row]])), torch.tensor([read]))
                torch.testing.assert_close(front.outputs[place], alone[0, -2])
                torch.testing.assert_close(further[place], alone[0, -1])


@pytest.mark.parametrize(("name", "may_part"), [("forward", True), ("mask-selfattn", False)])
def test_only_states_that_can_be_joined_part(name, may_part):
    model = network(name)
    front = Front(model, model.start(pad([[7, 8]])), torch.tensor([model.first_token]), 0)
    assert front.may_part is may_part
