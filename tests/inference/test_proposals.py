"""Each rule against plain arithmetic."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.config import PROPOSALS, MethodConfig
from tigs.data.batch import pad
from tigs.data.special import START_ID
from tigs.errors import ConfigError
from tigs.inference.gradient import search_mode
from tigs.inference.proposals import Proposer, Visit, count_candidates
from tigs.inference.score import word_gradients
from tigs.inference.words import forbidden_words

from .markov import WORDS, random_markov, slopes
from .worlds import FORBIDDEN

N_ROWS, N_WORDS, SIZE = 9, 30, 4


def random_visit(seed, *, n_rows=N_ROWS, spread=1.0):
    """A visit of some rows, and vectors of all words."""
    generator = torch.Generator().manual_seed(seed)

    def numbers(n_rows, n_columns):
        return spread * torch.randn(n_rows, n_columns, generator=generator)

    log_probabilities = torch.log_softmax(numbers(n_rows, N_WORDS), dim=1)
    words = torch.randint(N_WORDS, (n_rows,), generator=generator)
    return Visit(log_probabilities, numbers(n_rows, SIZE), numbers(n_rows, SIZE), words), numbers(N_WORDS, SIZE)


def dot(first, second):
    return sum(a * b for a, b in zip(first, second, strict=True))


def plain_score(proposal, distance, log_probability, vector, gradient, word_vector):
    """Of one word, from plain numbers."""
    if proposal in ("prefix", "all"):
        return log_probability
    if proposal.startswith("first-order"):
        return -dot(gradient, word_vector) + (log_probability if proposal.endswith("prefix") else 0)
    if distance == "cosine":
        return dot(vector, word_vector) / math.sqrt(dot(vector, vector) * dot(word_vector, word_vector))
    return -sum((a - b) ** 2 for a, b in zip(vector, word_vector, strict=True))


@pytest.mark.parametrize("allow_unk", [True, False])
@pytest.mark.parametrize(
    ("proposal", "distance"), [*((proposal, "euclidean") for proposal in PROPOSALS), ("nearest", "cosine")]
)
def test_every_rule_by_plain_arithmetic(proposal, distance, allow_unk):
    visit, table = random_visit(0)
    forbidden = forbidden_words(N_WORDS, allow_unk=allow_unk)
    allowed = [word for word in range(N_WORDS) if not forbidden[word]]
    settings = MethodConfig(proposal=proposal, distance=distance, n_candidates=6, reach=0.1)
    found = Proposer(settings, table, forbidden=forbidden)(visit)
    n_candidates = len(allowed) if proposal == "all" else 6
    all_hopeless = []
    for words, hopeless, log_probabilities, *rest, current in zip(
        *(part.tolist() for part in (*found, *visit)), strict=True
    ):
        scores = {
            word: plain_score(proposal, distance, log_probabilities[word], *rest, table[word].tolist())
            for word in range(N_WORDS)
        }
        assert words == sorted(allowed, key=lambda word: -scores[word])[:n_candidates]
        # Other scores are no estimates of the NLL in nats.
        is_estimate = proposal == "first-order-prefix"
        assert hopeless == [is_estimate and scores[word] < scores[current] - 0.1 for word in words]
        all_hopeless += hopeless
    assert set(all_hopeless) == ({True, False} if proposal == "first-order-prefix" else {False})


@given(
    seed=st.integers(0, 10**6),
    proposal=st.sampled_from(PROPOSALS),
    distance=st.sampled_from(["euclidean", "cosine"]),
    allow_unk=st.booleans(),
    n_candidates=st.one_of(st.integers(1, 25), st.floats(0.01, 0.99)),
    spread=st.sampled_from([1e-3, 1.0, 1e3]),
)
def test_words_are_distinct_and_none_is_forbidden(seed, proposal, distance, allow_unk, n_candidates, spread):
    visit, table = random_visit(seed, n_rows=3, spread=spread)
    forbidden = forbidden_words(N_WORDS, allow_unk=allow_unk)
    settings = MethodConfig(proposal=proposal, distance=distance, n_candidates=n_candidates)
    allowed = {word for word in range(N_WORDS) if not forbidden[word]}
    for words in Proposer(settings, table, forbidden=forbidden)(visit).candidates.tolist():
        assert set(words) <= allowed
        assert len(set(words)) == len(words)
        assert len(words) == (len(allowed) if proposal == "all" else count_candidates(n_candidates, len(allowed)))


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
def test_a_word_is_nearest_to_itself_whatever_the_others_lengths(distance):
    table = torch.randn(40, 8, generator=torch.Generator().manual_seed(1)) * torch.linspace(0.1, 30, 40)[:, None]
    settings = MethodConfig(proposal="nearest", distance=distance, n_candidates=1)
    proposer = Proposer(settings, table, forbidden=forbidden_words(40, allow_unk=False))
    found = proposer(Visit(torch.zeros(35, 40), table[5:], torch.zeros(35, 8), torch.arange(5, 40)))
    assert found.candidates.squeeze(1).tolist() == list(range(5, 40))


@given(st.integers(0, 10**6), st.lists(st.sampled_from(WORDS), min_size=1, max_size=6), st.data())
@settings(max_examples=20)
def test_the_first_order_is_the_slope_towards_a_words_vector(seed, sentence, data):
    model, place = random_markov(seed), data.draw(st.integers(0, len(sentence) - 1))
    costs = {"first-order": slopes(model, [], sentence, place)}
    costs["first-order-prefix"] = {
        word: slope + model.exact_nlls([], [*sentence[:place], word])[place].item()
        for word, slope in costs["first-order"].items()
    }
    with search_mode():
        _, gradient = word_gradients(model, model.start(pad([[]])), pad([sentence]))
        outputs, _ = model.run(model.start(pad([[]])), torch.tensor([[START_ID, *sentence]]))
    current = torch.tensor([sentence[place]])
    visit = Visit(model.log_probabilities(outputs[:, place]), model.word_vectors[current], gradient[:, place], current)
    for proposal, cost_of in costs.items():
        own = MethodConfig(proposal=proposal, n_candidates=len(WORDS))
        (words,) = Proposer(own, model.word_vectors, forbidden=FORBIDDEN)(visit).candidates.tolist()
        assert [cost_of[word] for word in words] == pytest.approx(sorted(cost_of.values()), abs=1e-6)


# The number of candidates


@pytest.mark.parametrize(
    ("wanted", "number"), [(1, 1), (1.0, 1), (7, 7), (100, 100), (0.01, 1), (0.5, 50), (0.001, 1), (0.999, 100)]
)
def test_candidates_are_a_number_or_a_share_of_the_words(wanted, number):
    assert count_candidates(wanted, 100) == number


def test_half_a_word_is_an_error():
    with pytest.raises(ConfigError, match=r"n_candidates=2\.5 is no number of words"):
        count_candidates(2.5, 100)


@pytest.mark.parametrize(("allow_unk", "n_words"), [(False, 25), (True, 26)])
def test_more_candidates_than_words_is_an_error(allow_unk, n_words):
    _, table = random_visit(0)
    forbidden = forbidden_words(N_WORDS, allow_unk=allow_unk)
    Proposer(MethodConfig(n_candidates=n_words), table, forbidden=forbidden)
    with pytest.raises(ConfigError, match=rf"n_candidates={n_words + 1} is more than the {n_words} words"):
        Proposer(MethodConfig(n_candidates=n_words + 1), table, forbidden=forbidden)
