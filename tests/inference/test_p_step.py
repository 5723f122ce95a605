from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import pad as pad_columns

from tigs.data.batch import pad
from tigs.data.special import END_ID, SPECIAL_TOKENS, START_ID
from tigs.inference.budget import TokenBudget
from tigs.inference.p_step import Suffix, limits_within, of_rows, score_candidates

from .markov import WORDS, Markov, random_markov, table_of

INFINITE = float("inf")
SENTENCES = st.lists(st.lists(st.sampled_from(WORDS), min_size=1, max_size=7), min_size=1, max_size=5)


@given(SENTENCES, st.data())
def test_a_suffix_is_what_follows_and_the_end(sentences, data):
    position = data.draw(st.integers(0, max(map(len, sentences)) - 1))
    sentences = [sentence for sentence in sentences if len(sentence) > position]
    suffix = Suffix.after(pad(sentences), torch.full((len(sentences),), position))
    for row, sentence in enumerate(sentences):
        behind = sentence[position + 1 :]
        assert suffix.words[row, : len(behind)].tolist() == behind
        assert suffix.targets[row, : len(behind) + 1].tolist() == [*behind, END_ID]
        assert suffix.lengths[row] == len(behind) + 1
        assert suffix.mask[row].tolist() == [column <= len(behind) for column in range(suffix.targets.shape[1])]


def test_limits_by_plain_arithmetic():
    incumbent = torch.tensor([[1.0, 2.0, 0.5], [0.1, 0.1, 0.0]])
    bound = torch.tensor([4.5, 10.0])
    expected = torch.tensor([[3.0, 4.5, 4.5], [2.1, 2.2, 2.2]])
    torch.testing.assert_close(limits_within(incumbent, bound, 2.0), expected)
    assert limits_within(incumbent, bound, INFINITE).tolist() == [[4.5] * 3, [10.0] * 3]
    # So far away that nothing is left of the decay.
    assert limits_within(torch.ones(2, 400), bound, INFINITE, 0.1).tolist() == [[4.5] * 400, [10.0] * 400]
    fading = torch.tensor([[3.0, 4.0, 4.0], [2.1, 1.2, 0.7]])
    torch.testing.assert_close(limits_within(incumbent, bound, 2.0, 0.5), fading)


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


def exact_parts(model, position, context, sentence, words):
    """(words, targets + 1) NLL of each word at the position and of all that follows, from the table."""
    tried = [[*sentence[:position], word, *sentence[position + 1 :]] for word in words]
    return torch.stack([model.exact_nlls(context, one)[position:] for one in tried])


@given(
    seed=st.integers(0, 10**6),
    visit=visits(),
    slack=st.floats(-4, 4),
    margin=st.sampled_from([INFINITE, 3.0, 0.5]),
    decay=st.sampled_from([1.0, 0.7]),
    tokens=st.sampled_from([1, 12, 50, 10**6]),
    only_best=st.booleans(),
    tight=st.booleans(),
)
def test_dropping_candidates_changes_no_answer(seed, visit, slack, margin, decay, tokens, only_best, tight):
    """Against every candidate over the whole sentence: the bound near the best total and far from it, one at a time or all."""
    position, contexts, sentences, candidates = visit
    model = random_markov(seed)
    every = [exact_parts(model, position, *row) for row in zip(contexts, sentences, candidates, strict=True)]
    totals = torch.stack([parts.sum(dim=1) for parts in every])  # (rows, candidates)
    bound = totals.min(dim=1).values + slack
    longest = max(parts.shape[1] for parts in every)
    current = [
        exact_parts(model, position, context, sentence, sentence[position : position + 1])[0]
        for context, sentence in zip(contexts, sentences, strict=True)
    ]
    incumbent = torch.stack([pad_columns(parts, (0, longest - len(parts))) for parts in current])
    limits = limits_within(incumbent, bound, margin, decay)
    scored = scored_on(
        model,
        contexts,
        sentences,
        torch.tensor(candidates),
        position,
        limits=limits,
        tokens=tokens,
        only_best=only_best,
        tight=tight,
    )
    for row, parts in enumerate(every):
        # By plain sums: who stays within the margin of the current word at every place, and below the bound.
        margins = torch.tensor([margin * decay**distance for distance in range(len(current[row]))], dtype=torch.double)
        allowed = (current[row].cumsum(0) + margins).clamp(max=bound[row])  # (targets + 1)
        within = (parts.cumsum(dim=1) < allowed - 1e-9).all(dim=1)  # (candidates)
        found = scored.totals[row]
        if not only_best:
            torch.testing.assert_close(found[within], totals[row, within])
        elif within.any():
            assert found.min().item() == pytest.approx(totals[row, within].min().item())
        # Others may be dropped, but never look better than they are.
        kept = found.isfinite()
        torch.testing.assert_close(found[kept], totals[row, kept])
        if kept.any():
            behind = parts[found.argmin(), 1:]
            expected = pad_columns(behind, (0, longest - 1 - len(behind)))
            torch.testing.assert_close(scored.suffix_nll[row], expected)


def scored_on(model, contexts, sentences, candidates, position, *, limits, tokens=10**6, only_best=True, tight=False):
    padded = pad(sentences)
    outputs, state = model.step(model.start(pad(contexts)), torch.full((len(sentences),), START_ID))
    for place in range(position):
        outputs, state = model.step(state, padded.ids[:, place])
    own_nll = -model.log_probabilities(outputs).gather(1, candidates)
    suffix, budget = Suffix.after(padded, torch.full_like(padded.lengths, position)), TokenBudget(tokens)
    return score_candidates(
        model,
        of_rows(state, candidates.shape[1]),
        candidates,
        own_nll,
        suffix,
        limits=limits,
        budget=budget,
        only_best=only_best,
        limits_are_tight=tight,
    )


def everywhere(bound, n_places):
    """Limits that are the same at every place."""
    return torch.tensor(bound, dtype=torch.double)[:, None].expand(-1, n_places)


def test_whoever_stays_just_below_the_bound_is_read_to_the_end():
    """After the blank hardly anything is paid for, so all sums are near their totals from the first word on."""
    model = Markov(table_of({word: {WORDS[0]: 0.49, END_ID: 0.49} for word in WORDS}))
    for length in (1, 2, 4):
        sentences, candidates = [[WORDS[0]] * length, [WORDS[0]] * 6], torch.tensor([WORDS, WORDS])
        total = model.exact_nll([], sentences[0]).item()
        for above, kept in ((1e-6, True), (-1e-6, False)):
            limits = everywhere([total + above, -INFINITE], 7)
            totals = scored_on(model, [[], []], sentences, candidates, 0, limits=limits).totals
            assert (totals[0] < total + above).tolist() == [kept] * 6
            assert totals[1].isinf().all()


def test_a_margin_drops_who_falls_behind_though_it_would_have_won():
    """The other word is unlikely by itself, and all that follows it is likelier."""
    current, other, known = WORDS[:3]
    model = Markov(table_of({START_ID: {current: 0.8, other: 0.1}, current: {known: 0.01}, other: {known: 0.9}}))
    sentence = [current, known]
    incumbent = model.exact_nlls([], sentence)[None]
    assert model.exact_nll([], [other, known]) < incumbent.sum()
    behind = math.log(0.8 / 0.1)
    for margin, kept in ((behind + 0.01, True), (behind - 0.01, False)):
        limits = limits_within(incumbent, incumbent.sum(dim=1), margin)
        scored = scored_on(model, [[]], [sentence], torch.tensor([[other]]), 0, limits=limits)
        assert scored.totals.isfinite().item() == kept
        assert scored.steps.item() == 2 * kept


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
    limits = torch.full((len(pairs), 11), INFINITE)
    scored = scored_on(network, contexts, sentences, candidates, position, limits=limits)
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
    for bound in (INFINITE, 12.0, 3.0, 0.0):
        scored = scored_on(model, [[], []], sentences, candidates, 0, limits=everywhere([bound] * 2, 10))
        steps.append(scored.steps)
    assert steps[0].tolist() == [6 * 9, 6 * 4]
    assert steps[-1].tolist() == [0, 0]
    assert all((fewer <= more).all() for more, fewer in itertools.pairwise(steps))


@given(st.permutations(WORDS))
@settings(max_examples=10)
def test_the_likeliest_is_read_first_and_the_hopeless_are_not_read_after_it(words):
    """One word is so likely that its whole sentence costs less than any other word alone."""
    best, known = WORDS[2], WORDS[0]
    model = Markov(table_of({START_ID: {best: 0.9}, best: {known: 0.9}, known: {known: 0.5, END_ID: 0.4}}))
    sentences, candidates = [[known] * 3, [known] * 2], torch.tensor([words, words])
    for only_best, n_read in ((True, 1), (False, 6)):
        limits = torch.full((2, 4), INFINITE, dtype=torch.double)
        # Two candidates side by side: the likeliest of each sentence.
        scored = scored_on(model, [[], []], sentences, candidates, 0, limits=limits, tokens=2 * 3, only_best=only_best)
        assert scored.steps.tolist() == [3 * n_read, 2 * n_read]
        assert [words[place] for place in scored.totals.argmin(dim=1)] == [best, best]


def test_a_candidate_that_is_excluded_is_not_read():
    model = random_markov(4)
    suffix = Suffix.after(pad([[WORDS[0], WORDS[1]]]), torch.tensor([0]))
    _, state = model.step(model.start(pad([[]])), torch.tensor([START_ID]))
    own_nll = torch.full((1, 3), INFINITE, dtype=torch.double)
    limits = torch.full((1, 3), INFINITE, dtype=torch.double)
    scored = score_candidates(
        model, of_rows(state, 3), torch.tensor([WORDS[:3]]), own_nll, suffix, limits=limits, budget=TokenBudget()
    )
    assert scored.totals.isinf().all()
    assert scored.steps.tolist() == [0]
