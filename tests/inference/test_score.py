"""NLL and gradients of whole sentences against the table of a chain, plain cross-entropy and finite differences."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tigs.data.batch import Padded, pad
from tigs.data.special import END_ID, START_ID
from tigs.inference.gradient import search_mode
from tigs.inference.score import mean_gradients, sentence_nll, token_nll, word_gradients

from .markov import WORDS, random_markov
from .worlds import CONTEXTS, FORBIDDEN

SENTENCES = st.lists(
    st.tuples(CONTEXTS, st.lists(st.sampled_from(WORDS), min_size=1, max_size=6)), min_size=1, max_size=4
)


def gradients_of(model, contexts, sentences, **options):
    with search_mode():
        return word_gradients(model, model.start(pad(contexts)), pad(sentences), **options)


@given(st.integers(0, 10**6), SENTENCES)
@settings(max_examples=25)
def test_the_nll_of_each_token_is_the_tables(seed, pairs):
    model = random_markov(seed)
    contexts, sentences = zip(*pairs, strict=True)
    per_token = token_nll(model, pad(contexts), pad(sentences))
    totals = sentence_nll(model, pad(contexts), pad(sentences))
    torch.testing.assert_close(gradients_of(model, contexts, sentences)[0], per_token)
    for row, (context, sentence) in enumerate(pairs):
        n_targets = len(sentence) + 1
        torch.testing.assert_close(per_token[row, :n_targets], model.exact_nlls(context, sentence))
        assert not per_token[row, n_targets:].any()
        assert totals[row].item() == pytest.approx(model.exact_nll(context, sentence).item())


@pytest.mark.parametrize("counted", [None, [[True, False, True, True], [False, True, True, True]]])
def test_the_gradient_is_that_of_finite_differences(counted):
    """Each number of each word's vector moved a little; nothing else of the sentence moves with it."""
    model, contexts = random_markov(3), [[WORDS[0]], []]
    sentences = [[WORDS[1], WORDS[2], WORDS[1]], [WORDS[3]]]
    weights = torch.tensor(counted or [[True] * 4] * 2)  # (rows, longest + 1)
    per_token, gradient = gradients_of(model, contexts, sentences, counted=weights if counted else None)
    assert gradient.shape == (2, 3, model.word_vectors.shape[1])

    def nll(row, place, number, change):
        words = [START_ID, *sentences[row]]
        vectors = model.word_vectors[words].clone()
        vectors[1 + place, number] += change
        outputs, _ = model.run(model.start(pad([contexts[row]])), vectors[None])
        per_token = model.nll(outputs[0], torch.tensor([*words[1:], END_ID])).per_token
        return (weights[row, : len(words)] * per_token).sum().item()

    for row, sentence in enumerate(sentences):
        expected = weights[row, : len(sentence) + 1] * model.exact_nlls(contexts[row], sentence)
        torch.testing.assert_close(per_token[row, : len(sentence) + 1], expected)
        assert not gradient[row, len(sentence) :].any()
        for place in range(len(sentence)):
            slopes = [(nll(row, place, n, 1e-5) - nll(row, place, n, -1e-5)) / 2e-5 for n in range(gradient.shape[2])]
            assert gradient[row, place].tolist() == pytest.approx(slopes, abs=1e-6)


@pytest.mark.parametrize("task", ["poetry", "aprc"])
def test_the_gradient_is_that_of_plain_cross_entropy(worlds, task):
    """One sentence at a time, from its vectors through the whole network."""
    world = worlds(task)
    network = world.networks["forward"].requires_grad_(False)
    contexts, sentences = zip(*world.pairs[:3], strict=True)
    sentences = [words[:length] for words, length in zip(sentences, (1, 9, 4), strict=True)]
    per_token, gradient = gradients_of(network, contexts, sentences)
    assert not per_token.requires_grad
    for row, (context, sentence) in enumerate(zip(contexts, sentences, strict=True)):
        vectors = network.embedding.weight[[START_ID, *sentence]].clone().requires_grad_()
        outputs, _ = network.run(network.start(pad([context])), vectors[None])
        losses = cross_entropy(network.projection(outputs[0]), torch.tensor([*sentence, END_ID]), reduction="none")
        losses.sum().backward()
        n_words = len(sentence)
        torch.testing.assert_close(per_token[row, : n_words + 1], losses.detach(), rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(gradient[row, :n_words], vectors.grad[1:], rtol=1e-4, atol=1e-5)
        assert not per_token[row, n_words + 1 :].any()
        assert not gradient[row, n_words:].any()
    assert all(parameter.grad is None for parameter in network.parameters())


def test_what_pads_a_sentence_plays_no_part():
    model, sentence = random_markov(5), [WORDS[1], WORDS[4]]
    alone = gradients_of(model, [[]], [sentence])
    for filler in WORDS[:2]:
        padded = Padded(torch.tensor([[*sentence, filler, filler]]), torch.tensor([2]))
        with search_mode():
            nll, gradient = word_gradients(model, model.start(pad([[]])), padded)
        torch.testing.assert_close(nll[:, :3], alone[0])
        torch.testing.assert_close(gradient[:, :2], alone[1])
        assert not gradient[:, 2:].any()


@pytest.mark.parametrize("counted", [None, [[True, False, True, True], [True, True, True, True]]])
def test_the_mean_gradient_is_half_from_the_words_and_half_from_what_is_expected(worlds, counted):
    """The second half by hand: blanks hold the vectors of all allowed words, weighted by their probabilities."""
    network = worlds("poetry").networks["forward"].requires_grad_(False)
    (context, sentence), (other_context, other) = worlds("poetry").pairs[:2]
    contexts, sentences = pad([context, other_context]), pad([sentence[:3], other[:2]])
    blanks = torch.tensor([[True, False, True], [False, True, False]])
    weights = None if counted is None else torch.tensor(counted)
    forbidden = torch.zeros(len(network.word_vectors), dtype=torch.bool)
    forbidden[:5] = True
    with search_mode():
        state = network.start(contexts)
        nll, mean = mean_gradients(network, state, sentences, blanks, forbidden=forbidden, counted=weights)
        nll_at_words, at_words = word_gradients(network, state, sentences, counted=weights)
    torch.testing.assert_close(nll, nll_at_words)
    for row, (words, own_context) in enumerate(((sentence[:3], context), (other[:2], other_context))):
        vectors = network.word_vectors[[START_ID, *words]].clone()
        outputs, _ = network.run(network.start(pad([own_context])), vectors[None])
        for place in blanks[row].nonzero().squeeze(1).tolist():
            shares = torch.softmax(network.projection(outputs[0, place])[5:], dim=0)
            vectors[1 + place] = sum(
                share * vector for share, vector in zip(shares, network.word_vectors[5:], strict=True)
            )
        vectors.requires_grad_()
        outputs, _ = network.run(network.start(pad([own_context])), vectors[None])
        losses = cross_entropy(network.projection(outputs[0]), torch.tensor([*words, END_ID]), reduction="none")
        (losses if weights is None else losses[weights[row, : len(words) + 1]]).sum().backward()
        expected = (at_words[row, : len(words)] + vectors.grad[1:]) / 2
        torch.testing.assert_close(mean[row, : len(words)], expected, rtol=1e-4, atol=1e-5)


def test_where_no_word_is_in_question_the_mean_gradient_is_the_gradient():
    model, words = random_markov(7), pad([[WORDS[1], WORDS[3]]])
    with search_mode():
        state = model.start(pad([[]]))
        found = mean_gradients(model, state, words, torch.zeros(1, 2, dtype=torch.bool), forbidden=FORBIDDEN)
        for own, expected in zip(found, word_gradients(model, state, words), strict=True):
            torch.testing.assert_close(own, expected)


@given(st.integers(0, 10**6), st.integers(0, 3), st.booleans())
@settings(max_examples=20)
def test_what_was_read_before_need_not_be_read_again(seed, begin, mean):
    model, words = (
        random_markov(seed),
        pad([[WORDS[(seed + place) % 6] for place in range(length)] for length in (4, 6)]),
    )
    blanks = torch.arange(6) >= torch.tensor([[begin], [begin + 1]])
    counted = torch.rand(2, 7, generator=torch.Generator().manual_seed(seed)) < 0.7

    def read(state, begin):
        if mean:
            return mean_gradients(model, state, words, blanks, forbidden=FORBIDDEN, begin=begin, counted=counted)
        return word_gradients(model, state, words, begin=begin, counted=counted)

    with search_mode():
        start = model.start(pad([[], []]))
        nll, gradient = read(start, 0)
        _, state = model.run(start, words.bracketed()[0][:, :begin]) if begin else (None, start)
        later_nll, later_gradient = read(state, begin)
    torch.testing.assert_close(later_nll[:, begin:], nll[:, begin:])
    torch.testing.assert_close(later_gradient[:, begin:], gradient[:, begin:])
    assert not later_nll[:, :begin].any()
    assert not later_gradient[:, :begin].any()
