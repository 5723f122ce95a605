from __future__ import annotations

import itertools
import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.data.batch import pad
from tigs.data.special import BLANK_ID, START_ID
from tigs.inference import beams as beams_module
from tigs.inference.beam import BeamSearch
from tigs.inference.budget import TokenBudget
from tigs.inference.expected import expected_gradient
from tigs.inference.gradient import search_mode
from tigs.inference.refill import longest_runs, refill
from tigs.inference.score import word_gradients
from tigs.inference.words import forbidden_words

from .markov import WORDS, Markov, random_markov, slopes, table_of
from .worlds import FORBIDDEN, Case, by_nll, small_cases, some_fills, together

SEEDS = st.integers(0, 10**6)


class Misleading(Markov):
    """Who comes with vectors instead of words is told something else, so that gradients say nothing of this chain."""

    def __init__(self, seed, *, scale):
        super().__init__(random_markov(seed).transitions)
        self.other, self.scale = random_markov(seed + 1), scale

    def run(self, state, tokens):
        if not tokens.is_floating_point():
            return super().run(state, tokens)
        outputs, after = self.other.run(state, tokens)
        return self.scale * outputs, after


def refilled(model, cases, fills, *, per_blank, at_least=1, margin=math.inf, decay=1.0, only_best=False, tokens=10**6):
    templates = together(cases)
    state = model.start(templates.context)
    sentences = pad([case.filled(fill) for case, fill in zip(cases, fills, strict=True)])
    known = F.pad(~templates.blanks, (0, 1), value=True)
    with search_mode():
        _, gradient = word_gradients(model, state, sentences, counted=known)
        return refill(
            model,
            state,
            templates,
            gradient,
            per_blank=per_blank,
            at_least=at_least,
            margin=margin,
            margin_decay=decay,
            forbidden=FORBIDDEN,
            budget=TokenBudget(tokens),
            only_best=only_best,
        )


def longest_run(template):
    return max((len(list(run)) for token, run in itertools.groupby(template) if token == BLANK_ID), default=0)


def beam(model, cases, *, per_blank, at_least=1, **options):
    """As many hypotheses as a refill has."""
    templates = together(cases)
    widths = torch.tensor([max(at_least, per_blank * longest_run(case.template)) for case in cases])
    state = model.start(templates.context)
    return BeamSearch(model, state, templates, widths=widths, forbidden=FORBIDDEN, recombine=True, **options).run()


def found_in(beams):
    """NLL of the whole sentences of each row. Their order is left out: in a chain some cost the same but for rounding."""
    rows = zip(beams.words.tolist(), beams.nll.tolist(), strict=True)
    return [{tuple(words): nll for words, nll in zip(*row, strict=True) if nll < math.inf} for row in rows]


def with_blanks(most_blanks):
    """Sentences without any may stand beside others."""
    return small_cases(most_blanks).filter(lambda cases: any(case.n_blanks for case in cases))


@given(SEEDS, with_blanks(4), st.sampled_from([0.0, 1.0, 100.0]), st.booleans(), st.sampled_from([1, 30, 10**6]))
@settings(max_examples=40)
def test_as_wide_as_there_are_words_it_finds_the_best_fill_of_a_chain_whatever_the_gradient_says(
    seed, cases, scale, only_best, tokens
):
    """What follows depends on nothing but the last word there, so one hypothesis for each of them is enough."""
    model = Misleading(seed, scale=scale)
    options = {"per_blank": len(WORDS), "only_best": only_best, "tokens": tokens}
    beams = refilled(model, cases, some_fills(cases, seed), **options)
    nll, best = beams.nll.min(dim=1)
    for row, case in enumerate(cases):
        expected, fill = by_nll(model, case)[0]
        assert nll[row].item() == pytest.approx(expected)
        assert beams.words[row, best[row], : len(case.template)].tolist() == case.filled(fill)


@given(SEEDS, with_blanks(5), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, math.nan]))
@settings(max_examples=20)
def test_without_a_gradient_or_with_one_that_is_no_number_it_is_the_plain_beam(seed, cases, per_blank, at_least, scale):
    model, widths = Misleading(seed, scale=scale), {"per_blank": per_blank, "at_least": at_least}
    found, plain = refilled(model, cases, some_fills(cases, seed), **widths), beam(model, cases, **widths)
    for own, expected in zip(found_in(found), found_in(plain), strict=True):
        assert own == pytest.approx(expected)
    torch.testing.assert_close(found.scores, plain.scores)
    assert torch.equal(found.steps, plain.steps)


@given(SEEDS, with_blanks(5), st.integers(1, 4))
@settings(max_examples=15)
def test_it_is_the_beam_that_counts_what_each_word_would_do_to_the_known_words(seed, cases, per_blank):
    """To first order, by finite differences; what stands in other blanks does not count."""
    model, fills = random_markov(seed), some_fills(cases, seed)
    gains = torch.zeros(len(cases), max(len(case.template) for case in cases), len(FORBIDDEN), dtype=torch.double)
    for row, (case, fill) in enumerate(zip(cases, fills, strict=True)):
        known = [*(token != BLANK_ID for token in case.template), True]
        for place in range(len(case.template)):
            for word, slope in slopes(model, case.context, case.filled(fill), place, counted=known).items():
                gains[row, place, word] = -slope
    found = refilled(model, cases, fills, per_blank=per_blank)
    guided = beam(model, cases, per_blank=per_blank, guide=lambda rows, place: gains[rows, place])
    for own, expected in zip(found_in(found), found_in(guided), strict=True):
        assert own == pytest.approx(expected)


@given(SEEDS, with_blanks(5), st.integers(1, 4), st.sampled_from([0.5, 2.0, math.inf]), st.sampled_from([0.7, 1.0]))
@settings(max_examples=30)
def test_whoever_is_known_to_be_worse_may_be_dropped(seed, cases, per_blank, margin, decay):
    """The best is the same; what else is found is among what is found without, at the same price."""
    model, fills = random_markov(seed), some_fills(cases, seed)
    options = {"per_blank": per_blank, "margin": margin, "decay": decay}
    everyone, best = (refilled(model, cases, fills, only_best=only, **options) for only in (False, True))
    torch.testing.assert_close(best.nll[:, 0], everyone.nll[:, 0])
    assert (best.steps <= everyone.steps).all()
    for case, known, kept in zip(cases, found_in(everyone), found_in(best), strict=True):
        for words, nll in kept.items():
            assert nll == pytest.approx(known[words])
            assert nll == pytest.approx(model.exact_nll(case.context, words[: len(case.template)]).item())


@pytest.mark.parametrize(
    ("margin", "decay", "kept"), [(2.5, 1.0, True), (2.5, 0.8, True), (2.5, 0.7, False), (1.4, 1.0, False)]
)
def test_behind_the_last_blank_the_margin_is_that_to_the_best_estimate(margin, decay, kept):
    """Behind the known word the second is 1.5 nats behind; of 2.5 nats 1.6 or 1.2 are left at `</s>`."""
    first, second, known = WORDS[:3]
    rows = {START_ID: {first: 0.4, second: 0.4}, first: {known: 0.9}, second: {known: 0.9 * math.exp(-1.5)}}
    case = Case("", [], [BLANK_ID, known])
    beams = refilled(Markov(table_of(rows)), [case], [(first,)], per_blank=2, margin=margin, decay=decay)
    assert beams.words[0, :, 0].tolist() == [first, second]
    assert (beams.nll[0] < math.inf).tolist() == [True, kept]


def test_behind_the_last_blank_the_best_estimate_leads_and_not_who_has_paid_least():
    """The second word is 0.2 nats ahead at first and 1.3 behind in the end: too much behind the first, unless it leads itself."""
    first, second, known = WORDS[:3]
    rows = {START_ID: {first: 0.4, second: 0.5}, first: {known: 0.9}, second: {known: 0.9 * math.exp(-1.5)}}
    case = Case("", [], [BLANK_ID, known])
    beams = refilled(Markov(table_of(rows)), [case], [(first,)], per_blank=2, margin=0.9)
    found = beams.nll[0] < math.inf
    assert beams.words[0, found, 0].tolist() == [first]


def test_who_cannot_win_any_more_is_not_read_to_the_end():
    first, second, known = WORDS[:3]
    rows = {START_ID: {first: 0.5, second: 0.4}, first: {known: 0.9}, second: {known: 1e-9}, known: {known: 0.9}}
    cases = [Case("", [], [BLANK_ID, *[known] * 6])]
    steps = [
        int(refilled(Markov(table_of(rows)), cases, [(first,)], per_blank=2, only_best=only).steps[0])
        for only in (False, True)
    ]
    assert steps[1] < steps[0]


@pytest.mark.parametrize("only_best", [True, False])
def test_a_leader_that_cannot_be_said_holds_nobody_back(only_best):
    """Its gradient is no number, so it leads by what it has paid."""
    first, second, known = WORDS[:3]
    rows = {START_ID: {first: 0.5, second: 0.4}, first: {known: 0.0}, second: {known: 0.1}}
    case = Case("", [], [BLANK_ID, known])
    beams = refilled(Markov(table_of(rows)), [case], [(first,)], per_blank=2, margin=0.5, only_best=only_best)
    assert beams.words[0, 0].tolist() == [second, known]
    assert beams.nll[0, 0] < math.inf


@pytest.mark.parametrize("neighbours", [[], [Case("other", [], [WORDS[0], BLANK_ID, WORDS[1]])]])
def test_what_cannot_be_said_is_infinitely_unlikely(neighbours):
    model = Markov(table_of({START_ID: {WORDS[2]: 0.0}}))
    cases = [Case("", [], [WORDS[2], BLANK_ID, WORDS[0]]), *neighbours]
    beams = refilled(model, cases, [(WORDS[0],)] * len(cases), per_blank=3, only_best=True, margin=2.0)
    assert beams.nll[0].isinf().all()
    assert (beams.nll[1:, 0] < math.inf).all()


@torch.no_grad()
def test_a_batch_that_is_refilled_in_parts_gives_the_same(monkeypatch, worlds):
    world = worlds("poetry")
    network, templates = world.networks["forward"], together(world.cases(9))
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    with search_mode():
        state = network.start(templates.context)
        gradient = expected_gradient(network, state, templates, forbidden=forbidden)

    def run():
        options = {"per_blank": 1, "at_least": 4, "margin": 5.0, "margin_decay": 0.9, "only_best": True}
        return refill(network, state, templates, gradient, forbidden=forbidden, budget=TokenBudget(), **options)

    whole = run()
    monkeypatch.setattr(beams_module, "_TABLE_SIZE", 2 * 4 * world.n_tokens)
    parts = run()
    assert torch.equal(whole.words[:, 0], parts.words[:, 0])
    assert torch.equal(whole.steps, parts.steps)
    torch.testing.assert_close(whole.nll[:, 0], parts.nll[:, 0])


@pytest.mark.parametrize(("beyond", "word"), [(0.01, WORDS[1]), (-0.01, WORDS[0])])
def test_who_has_paid_too_much_is_dropped_though_the_gradient_speaks_for_it(beyond, word):
    """The second word costs more at once and is better in the end."""
    model = Markov(
        table_of({START_ID: {WORDS[0]: 0.6, WORDS[1]: 0.3}, WORDS[0]: {WORDS[2]: 0.1}, WORDS[1]: {WORDS[2]: 0.9}})
    )
    case = Case("", [], [BLANK_ID, WORDS[2]])
    beams = refilled(model, [case], [WORDS[:1]], per_blank=4, margin=math.log(0.6 / 0.3) + beyond)
    assert beams.words[0, 0].tolist() == [word, WORDS[2]]


@pytest.mark.parametrize(
    ("pattern", "longest"), [("", 0), ("....", 0), ("_", 1), ("___", 3), (".__.___", 3), ("____.__.", 4), ("_._._", 1)]
)
def test_the_longest_run_of_blanks(pattern, longest):
    assert longest_run([BLANK_ID if sign == "_" else 9 for sign in pattern]) == longest
    padded = pattern.ljust(9, ".")
    assert longest_runs(torch.tensor([[sign == "_" for sign in padded]])).tolist() == [longest]


def test_chosen_templates_keep_their_place_and_their_words():
    templates = together([Case("a", [7, 8], [BLANK_ID, 6]), Case("b", [], [5]), Case("c", [9], [5, BLANK_ID, 7])])
    chosen = templates.select(torch.tensor([2, 0]))
    assert chosen.ids == ("c", "a")
    assert chosen.context.ids.tolist() == [[9, 0], [7, 8]]
    assert chosen.target.ids.tolist() == [[5, BLANK_ID, 7], [BLANK_ID, 6, 0]]
    assert [padded.lengths.tolist() for padded in (chosen.context, chosen.target)] == [[1, 2], [3, 2]]
