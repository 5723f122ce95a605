from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.data.batch import pad
from tigs.data.special import END_ID, SPECIAL_TOKENS, START_ID
from tigs.inference.p_step import Suffix, nearest, score_candidates
from tigs.inference.words import forbidden_words

from .markov import WORDS, Markov, random_markov, table_of

SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=1, max_size=5)


@given(SENTENCES, st.data())
def test_a_suffix_is_what_follows_and_the_end(sentences, data):
    position = data.draw(st.integers(0, max(map(len, sentences)) - 1))
    sentences = [sentence for sentence in sentences if len(sentence) > position]
    suffix = Suffix.after(pad(sentences), position)
    for row, sentence in enumerate(sentences):
        behind = sentence[position + 1 :]
        assert suffix.words[row, : len(behind)].tolist() == behind
        assert suffix.targets[row, : len(behind) + 1].tolist() == [*behind, END_ID]
        assert suffix.lengths[row] == len(behind) + 1
        assert suffix.mask[row].tolist() == [column <= len(behind) for column in range(suffix.targets.shape[1])]


@pytest.mark.parametrize("distance", ["euclidean", "cosine"])
@pytest.mark.parametrize("allow_unk", [True, False])
def test_the_nearest_words_by_plain_arithmetic(distance, allow_unk):
    generator = torch.Generator().manual_seed(0)
    vectors, table = torch.randn(9, 4, generator=generator), torch.randn(30, 4, generator=generator)
    forbidden = forbidden_words(30, allow_unk=allow_unk)
    found = nearest(vectors, table, 6, distance=distance, forbidden=forbidden)
    for vector, words in zip(vectors, found.tolist(), strict=True):
        if distance == "euclidean":
            farness = [sum((a - b) ** 2 for a, b in zip(vector, row, strict=True)).item() for row in table]
        else:
            farness = [-(vector @ row / (vector @ vector).sqrt() / (row @ row).sqrt()).item() for row in table]
        allowed = [word for word in range(30) if not forbidden[word]]
        assert words == sorted(allowed, key=lambda word: farness[word])[:6]


def test_a_word_is_nearest_to_itself_whatever_the_others_lengths():
    table = torch.randn(40, 8, generator=torch.Generator().manual_seed(1)) * torch.linspace(0.1, 30, 40)[:, None]
    forbidden = forbidden_words(40, allow_unk=False)
    for distance in ("euclidean", "cosine"):
        found = nearest(table[5:], table, 1, distance=distance, forbidden=forbidden)
        assert found.squeeze(1).tolist() == list(range(5, 40))


@st.composite
def visits(draw):
    """Sentences with a blank at the same place, and candidates for it."""
    position = draw(st.integers(0, 3))
    lengths = draw(st.lists(st.integers(position + 1, position + 8), min_size=1, max_size=6))
    word = st.sampled_from(WORDS)
    sentences = [draw(st.lists(word, min_size=n, max_size=n)) for n in lengths]
    n_candidates = draw(st.integers(1, len(WORDS)))
    candidates = [draw(st.permutations(WORDS))[:n_candidates] for _ in sentences]
    contexts = [draw(st.lists(word, max_size=1)) for _ in sentences]
    return position, contexts, sentences, candidates


@given(st.integers(0, 10**6), visits(), st.floats(-4, 4))
@settings(max_examples=40)
def test_dropping_candidates_changes_no_answer(seed, visit, slack):
    """Against every candidate over the whole sentence, with the bound near the best total and far from it."""
    position, contexts, sentences, candidates = visit
    model = random_markov(seed)
    totals = torch.tensor(
        [
            [model.exact_nll(context, [*sentence[:position], word, *sentence[position + 1 :]]).item() for word in words]
            for context, sentence, words in zip(contexts, sentences, candidates, strict=True)
        ],
        dtype=torch.double,
    )
    prefix = torch.tensor(
        [model.exact_nll(c, s[:position], end=False).item() for c, s in zip(contexts, sentences, strict=True)],
        dtype=torch.double,
    )
    expected = totals - prefix[:, None]  # (rows, candidates)
    bound = expected.min(dim=1).values + slack
    scored = scored_on(model, contexts, sentences, torch.tensor(candidates), position, bound)
    below = expected < bound[:, None] - 1e-9
    torch.testing.assert_close(scored.totals[below], expected[below])
    # What is not below the bound may be dropped, but never looks better than it is.
    kept = scored.totals.isfinite()
    torch.testing.assert_close(scored.totals[kept], expected[kept])
    # The suffix, word by word, with nothing behind its end.
    for row, column in kept.nonzero().tolist():
        words = [*sentences[row][:position], candidates[row][column]]
        own_nll = model.exact_nll(contexts[row], words, end=False) - prefix[row]
        assert scored.suffix_nll[row, column].sum().item() == pytest.approx((expected[row, column] - own_nll).item())


def test_whoever_stays_just_below_the_bound_is_read_to_the_end():
    """After the blank hardly anything is paid for, so all sums are near their totals from the first word on."""
    model = Markov(table_of({word: {WORDS[0]: 0.49, END_ID: 0.49} for word in WORDS}))
    for length in (1, 2, 4):
        sentences, candidates = [[WORDS[0]] * length, [WORDS[0]] * 6], torch.tensor([WORDS, WORDS])
        total = model.exact_nll([], sentences[0]).item()
        for above, kept in ((1e-6, True), (-1e-6, False)):
            bound = torch.tensor([total + above, float("-inf")], dtype=torch.double)
            totals = scored_on(model, [[], []], sentences, candidates, 0, bound).totals
            assert (totals[0] < bound[0]).tolist() == [kept] * 6
            assert totals[1].isinf().all()


def scored_on(model, contexts, sentences, candidates, position, bound):
    padded = pad(sentences)
    outputs, state = model.step(model.start(pad(contexts)), torch.full((len(sentences),), START_ID))
    for place in range(position):
        outputs, state = model.step(state, padded.ids[:, place])
    own_nll = -model.log_probabilities(outputs).gather(1, candidates)
    suffix = Suffix.after(padded, position)
    return score_candidates(model, state, candidates, own_nll, suffix, bound=bound)


@torch.no_grad()
def test_on_a_trained_model_every_candidate_gets_the_nll_of_its_whole_sentence(worlds):
    world = worlds("poetry")
    network, position = world.networks["forward"], 2
    pairs = [
        (context, sentence[:length]) for (context, sentence), length in zip(world.pairs, range(3, 13), strict=False)
    ]
    candidates = torch.randint(
        len(SPECIAL_TOKENS), world.n_tokens, (len(pairs), 5), generator=torch.Generator().manual_seed(0)
    )
    contexts, sentences = zip(*pairs, strict=True)
    infinite = torch.full((len(pairs),), float("inf"))
    scored = scored_on(network, contexts, sentences, candidates, position, infinite)
    assert scored.steps.tolist() == [5 * (len(sentence) - position) for sentence in sentences]
    for row, (context, sentence) in enumerate(pairs):
        before = world._nll("forward", context, sentence[:position]) - end_nll(network, context, sentence[:position])
        for place, word in enumerate(candidates[row].tolist()):
            whole = world._nll("forward", context, [*sentence[:position], word, *sentence[position + 1 :]])
            assert scored.totals[row, place].item() == pytest.approx(whole - before, abs=1e-4)


def end_nll(network, context, words):
    outputs, _ = network.run(network.start(pad([context])), torch.tensor([[START_ID, *words]]))
    return -network.log_probabilities(outputs[0, -1])[END_ID].item()


def test_the_tighter_the_bound_the_fewer_steps():
    model, word = random_markov(3), WORDS[0]
    sentences, candidates = [[word] * 9, [word] * 4], torch.tensor([WORDS, WORDS])
    steps = []
    for bound in (float("inf"), 12.0, 3.0, 0.0):
        scored = scored_on(model, [[], []], sentences, candidates, 0, torch.full((2,), bound, dtype=torch.double))
        steps.append(scored.steps)
    assert steps[0].tolist() == [6 * 9, 6 * 4]
    assert steps[-1].tolist() == [0, 0]
    assert all((fewer <= more).all() for more, fewer in itertools.pairwise(steps))


def test_a_candidate_that_is_excluded_is_not_read():
    model = random_markov(4)
    suffix = Suffix.after(pad([[WORDS[0], WORDS[1]]]), 0)
    _, state = model.step(model.start(pad([[]])), torch.tensor([START_ID]))
    own_nll = torch.full((1, 3), float("inf"), dtype=torch.double)
    bound = torch.full((1,), float("inf"), dtype=torch.double)
    scored = score_candidates(model, state, torch.tensor([WORDS[:3]]), own_nll, suffix, bound=bound)
    assert scored.totals.isinf().all()
    assert scored.steps.tolist() == [0]
