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
from tigs.inference.beam import beam_search
from tigs.inference.gradient import search_mode
from tigs.inference.refill import longest_runs, refill
from tigs.inference.score import word_gradients

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


def refilled(model, cases, fills, *, per_blank, at_least=1, margin=float("inf")):
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
            margin_decay=1.0,
            forbidden=FORBIDDEN,
        )


def longest_run(template):
    return max((len(list(run)) for token, run in itertools.groupby(template) if token == BLANK_ID), default=0)


def beam(model, cases, *, per_blank, at_least=1, **options):
    """As many hypotheses as a refill has."""
    templates = together(cases)
    widths = torch.tensor([max(at_least, per_blank * longest_run(case.template)) for case in cases])
    state = model.start(templates.context)
    return beam_search(model, state, templates, width=widths, forbidden=FORBIDDEN, recombine=True, **options)


def with_blanks(most_blanks):
    """Sentences without any may stand beside others."""
    return small_cases(most_blanks).filter(lambda cases: any(case.n_blanks for case in cases))


@given(SEEDS, with_blanks(4), st.sampled_from([0.0, 1.0, 100.0]))
@settings(max_examples=20)
def test_as_wide_as_there_are_words_it_finds_the_best_fill_of_a_chain_whatever_the_gradient_says(seed, cases, scale):
    """What follows depends on nothing but the last word there, so one hypothesis for each of them is enough."""
    model = Misleading(seed, scale=scale)
    beams = refilled(model, cases, some_fills(cases, seed), per_blank=len(WORDS))
    nll, best = beams.nll.min(dim=1)
    for row, case in enumerate(cases):
        expected, fill = by_nll(model, case)[0]
        assert nll[row].item() == pytest.approx(expected)
        assert beams.words[row, best[row], : len(case.template)].tolist() == case.filled(fill)


@given(SEEDS, with_blanks(5), st.integers(1, 4), st.integers(1, 6), st.sampled_from([0.0, math.nan]))
@settings(max_examples=20)
def test_without_a_gradient_or_with_one_that_is_no_number_it_is_the_plain_beam(seed, cases, per_blank, at_least, scale):
    model, widths = Misleading(seed, scale=scale), {"per_blank": per_blank, "at_least": at_least}
    found = refilled(model, cases, some_fills(cases, seed), **widths)
    assert all(torch.equal(*pair) for pair in zip(found, beam(model, cases, **widths), strict=True))


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
    assert torch.equal(found.words, guided.words)
    torch.testing.assert_close(found.nll, guided.nll)


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
