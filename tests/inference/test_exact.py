from __future__ import annotations

import math
import random

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import cross_entropy

from tigs.data.batch import pad
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID, UNK_ID
from tigs.errors import InferenceError
from tigs.inference.exact import solve
from tigs.inference.tigs import TOLERANCE
from tigs.inference.words import forbidden_words

from .markov import N_TOKENS, WORDS, Markov, all_fills, random_markov, table_of
from .worlds import CONTEXTS, FORBIDDEN, Case, by_nll, small_templates, together

ENOUGH = 10**9
SEEDS = st.integers(0, 10**6)
BLOCKS = st.sampled_from([1, 7, 512])


class Watched(Markov):
    """Remembers how many hypotheses each step was taken for."""

    def __init__(self, transitions):
        super().__init__(transitions)
        self.batches = []

    def step(self, state, tokens):
        self.batches.append(len(tokens))
        return super().step(state, tokens)


def watched(seed):
    return Watched(random_markov(seed).transitions)


def solve_one(model, case, fill, *, forbidden=FORBIDDEN, max_steps=ENOUGH, block=512):
    (optimum,) = solve(model, together([case]), [fill], forbidden=forbidden, max_steps=max_steps, block=block)
    return optimum


def some_fill(case, seed=0):
    return tuple(random.Random(seed).choices(WORDS, k=case.n_blanks))


@given(SEEDS, st.lists(st.tuples(CONTEXTS, small_templates()), min_size=1, max_size=4), BLOCKS)
def test_the_best_of_all_fills_from_whatever_first_fill(seed, pairs, block):
    """Sentences of different lengths in one call, with and without blanks."""
    model = random_markov(seed)
    cases = [Case(str(number), *pair) for number, pair in enumerate(pairs)]
    ranked = [by_nll(model, case) for case in cases]
    for first in (0, len(ranked[0]) // 2, -1):
        fills = [fills[min(first, len(fills) - 1)][1] for fills in ranked]
        optima = solve(model, together(cases), fills, forbidden=FORBIDDEN, max_steps=ENOUGH, block=block)
        for case, best, optimum in zip(cases, ranked, optima, strict=True):
            assert optimum.proven
            # Fills nearer to each other than rounding could tell are equally good.
            assert optimum.nll <= best[0][0] + TOLERANCE
            assert optimum.nll == pytest.approx(model.exact_nll(case.context, case.filled(optimum.fill)).item())


def test_neither_the_first_fill_nor_the_block_changes_the_optimum():
    for seed in range(10):
        model = random_markov(seed)
        case = Case("", [WORDS[seed % 6]], [BLANK_ID, WORDS[1], BLANK_ID, BLANK_ID, WORDS[2]])
        ranked = by_nll(model, case)
        for _, first in (ranked[0], ranked[len(ranked) // 2], ranked[-1]):
            for block in (1, 7, 512):
                optimum = solve_one(model, case, first, block=block)
                assert (optimum.fill, optimum.proven) == (ranked[0][1], True)


@given(SEEDS, CONTEXTS, small_templates(), BLOCKS)
def test_it_reads_what_no_proof_can_do_without_and_nothing_else(seed, context, template, block):
    """Given the best fill, these are all beginnings of sentences that are not yet as unlikely as it."""
    model, case = watched(seed), Case("", context, template)
    nll, best = by_nll(model, case)[0]
    beginnings = {tuple(words[:n]) for _, words in all_fills(template) for n in range(len(words) + 1)}
    open_ones = [words for words in beginnings if model.exact_nll(context, words, end=False).item() < nll - TOLERANCE]
    optimum = solve_one(model, case, best, block=block)
    assert optimum.fill == best
    n_rescored = len(template) + 1
    n_read = len(open_ones) if best else 0
    assert optimum.model_steps == n_rescored + n_read
    assert sum(model.batches) == n_read
    assert max(model.batches, default=0) <= block


@given(SEEDS, CONTEXTS, small_templates())
@settings(max_examples=25)
def test_one_at_a_time_it_goes_the_way_of_a_plain_recursion(seed, context, template):
    """From every twentieth fill: the bound falls on the way, and what waits is measured by it."""
    model, case = random_markov(seed), Case("", context, template)
    ranked = by_nll(model, case)[::20]
    steps = [solve_one(model, case, first, block=1).model_steps for _, first in ranked]
    expected = [len(template) + 1 + (steps_of_recursion(model, case, nll) if first else 0) for nll, first in ranked]
    assert steps == expected
    assert steps == sorted(steps)  # the better the first fill, the less is read


def steps_of_recursion(model, case, best):
    """Depth first, the likeliest word first."""
    steps = 0

    def follow(words):
        nonlocal steps, best
        if model.exact_nll(case.context, words, end=False).item() >= best - TOLERANCE:
            return
        steps += 1
        if len(words) == len(case.template):
            best = min(best, model.exact_nll(case.context, words).item())
        elif case.template[len(words)] == BLANK_ID:
            longer = [[*words, word] for word in WORDS]
            for child in sorted(longer, key=lambda own: model.exact_nll(case.context, own, end=False).item()):
                follow(child)
        else:
            follow([*words, case.template[len(words)]])

    follow([])
    return steps


@pytest.mark.parametrize(("gain", "word"), [(TOLERANCE / 2, WORDS[0]), (TOLERANCE * 2, WORDS[1])])
def test_what_rounding_could_gain_replaces_nothing(gain, word):
    model = Markov(table_of({START_ID: {WORDS[0]: 0.3, WORDS[1]: 0.3 * math.exp(gain)}}))
    assert solve_one(model, Case("", [], [BLANK_ID]), (WORDS[0],)).fill == (word,)


@given(SEEDS, CONTEXTS, small_templates(), BLOCKS, st.floats(0, 1.2))
def test_without_enough_steps_nothing_is_proven_and_nothing_lost(seed, context, template, block, share):
    model, case = watched(seed), Case("", context, template)
    first = some_fill(case, seed)
    whole = solve_one(model, case, first, block=block)
    max_steps = int(share * whole.model_steps)
    cut = solve_one(model, case, first, max_steps=max_steps, block=block)
    assert cut.model_steps <= max(max_steps, len(template) + 1)
    assert cut.proven == (max_steps >= whole.model_steps or not first)
    assert cut.nll <= model.exact_nll(context, case.filled(first)).item() + 1e-9
    assert cut.nll == pytest.approx(model.exact_nll(context, case.filled(cut.fill)).item())
    if cut.proven:
        assert cut == whole


def test_the_last_step_decides_whether_it_is_proven():
    model, case = random_markov(5), Case("", [], [BLANK_ID, WORDS[0], BLANK_ID, WORDS[3]])
    first = some_fill(case)
    whole = solve_one(model, case, first, block=7)
    assert solve_one(model, case, first, block=7, max_steps=whole.model_steps) == whole
    assert not solve_one(model, case, first, block=7, max_steps=whole.model_steps - 1).proven


@pytest.mark.parametrize("allow_unk", [True, False])
@given(SEEDS, CONTEXTS, small_templates())
@settings(max_examples=25)
def test_only_words_are_filled_in(allow_unk, seed, context, template):
    """Though in these models special tokens are as likely as words."""
    model, case = random_markov(seed), Case("", context, template)
    forbidden = forbidden_words(N_TOKENS, allow_unk=allow_unk)
    words = [UNK_ID, *WORDS] if allow_unk else WORDS
    best = min(model.exact_nll(context, sentence).item() for _, sentence in all_fills(template, words=words))
    optimum = solve_one(model, case, some_fill(case), forbidden=forbidden)
    assert set(optimum.fill) <= set(words)
    assert optimum.nll == pytest.approx(best, abs=TOLERANCE)


@pytest.mark.parametrize("fill", [(), (WORDS[0],), (WORDS[0],) * 3, (WORDS[0], END_ID)])
def test_a_first_fill_that_is_none_is_refused(fill):
    with pytest.raises(InferenceError, match="poem-7"):
        solve_one(random_markov(0), Case("poem-7", [], [BLANK_ID, WORDS[0], BLANK_ID]), fill)


@pytest.mark.parametrize("n_blanks", [1, 2, 3])
@pytest.mark.parametrize("task", ["poetry", "aprc"])
@torch.no_grad()
def test_the_best_of_all_fills_of_a_trained_model(worlds, task, n_blanks):
    """From the answer of TIGS and from a poor one; three blanks among fewer words, so that all fills can be tried."""
    world = worlds(task)
    network = world.networks["forward"]
    n_words = {1: world.n_tokens - len(SPECIAL_TOKENS), 2: 40, 3: 12}[n_blanks]
    allowed = [len(SPECIAL_TOKENS) + number for number in range(n_words)]
    forbidden = torch.ones(world.n_tokens, dtype=torch.bool)
    forbidden[allowed] = False
    cases = [
        case for case in world.cases(12, ratios=[0.75], longest=9, most_blanks=n_blanks) if case.n_blanks == n_blanks
    ]
    searched = [result.fill for result in world.fill("tigs", cases, n_candidates=3, max_rounds=2)]
    given = [tuple(word if word in allowed else allowed[0] for word in fill) for fill in searched]
    poor = [tuple(allowed[:1] * n_blanks) for _ in cases]
    optima = solve(network, together(cases), given, forbidden=forbidden, max_steps=ENOUGH)
    from_poor = solve(network, together(cases), poor, forbidden=forbidden, max_steps=ENOUGH, block=32)
    n_brute_force = 0
    for case, optimum, other, fill in zip(cases, optima, from_poor, given, strict=True):
        sentences = [words for _, words in all_fills(case.template, words=allowed)]
        n_brute_force += len(sentences) * (len(case.template) + 1)
        best = nll_of_each(network, case.context, sentences).min().item()
        assert optimum.proven
        assert other.proven
        assert optimum.nll == pytest.approx(best, abs=2 * TOLERANCE)
        assert other.nll == pytest.approx(best, abs=2 * TOLERANCE)
        assert world._nll("forward", case.context, case.filled(optimum.fill)) == pytest.approx(optimum.nll, abs=1e-4)
        assert optimum.nll <= world._nll("forward", case.context, case.filled(fill)) + 1e-4
    assert len(cases) >= 5
    assert sum(optimum.model_steps for optimum in optima) < n_brute_force
    assert sum(optimum.model_steps for optimum in from_poor) < n_brute_force


def nll_of_each(network, context, sentences):
    """(sentences) by plain cross-entropy, every sentence read from its beginning."""
    words = torch.tensor(sentences)  # (sentences, length)
    first, last = torch.full_like(words[:, :1], START_ID), torch.full_like(words[:, :1], END_ID)
    outputs, _ = network.run(network.start(pad([context] * len(words))), torch.cat([first, words], dim=1))
    targets = torch.cat([words, last], dim=1)
    return cross_entropy(network.projection(outputs).transpose(1, 2), targets, reduction="none").sum(dim=1)
