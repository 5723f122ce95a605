"""What TIGS does beyond the paper: other proposals, blanks that need no second visit, a margin, refills."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tigs.config import PROPOSALS
from tigs.data.special import BLANK_ID, START_ID
from tigs.inference.coordinate import at_coordinate_optimum
from tigs.inference.tigs import TOLERANCE
from tigs.inference.words import forbidden_words

from .markov import WORDS, Markov, random_markov, slopes, table_of
from .worlds import Case, by_nll, markov_world, small_cases, some_fills, tigs_from, together

SEEDS = st.integers(0, 10**6)


@given(
    seed=SEEDS,
    cases=small_cases(most_blanks=5),
    proposal=st.sampled_from(PROPOSALS),
    n_candidates=st.integers(1, 6),
    margin=st.sampled_from([math.inf, 3.0, 0.5]),
    margin_decay=st.sampled_from([1.0, 0.5]),
    refill_margin_decay=st.sampled_from([1.0, 0.5]),
    reach=st.sampled_from([math.inf, 2.0, 0.0]),
    refills=st.integers(0, 3),
    refill_width=st.integers(1, 10),
    refill_least=st.sampled_from([1, 4]),
    pair_width=st.sampled_from([0, 1, 4]),
    gradient=st.sampled_from(["word", "mean"]),
    patience=st.integers(1, 2),
    n_best=st.integers(1, 5),
)
def test_every_step_pays_and_every_answer_is_what_it_says(seed, cases, n_best, **options):
    model, starts = random_markov(seed), some_fills(cases, seed)
    results = tigs_from(model, cases, starts, n_best=n_best, **options)
    for case, start, result in zip(cases, starts, results, strict=True):
        exact = model.exact_nll
        assert result.trace[0] == pytest.approx(exact(case.context, case.filled(start)).item())
        assert all(after <= before + 1e-9 for before, after in itertools.pairwise(result.trace))
        assert result.nll == pytest.approx(result.trace[-1], abs=TOLERANCE)
        assert len(result.trace) == result.rounds + 1
        fills, nlls = zip(*((other.fill, other.nll) for other in result.alternatives), strict=True)
        assert (result.fill, result.nll) == (fills[0], nlls[0])
        assert len(set(fills)) == len(fills) <= n_best
        assert list(nlls) == sorted(nlls)
        assert nlls == pytest.approx([exact(case.context, case.filled(fill)).item() for fill in fills])
        assert {word for fill in fills for word in fill} <= set(WORDS)


# One-word moves


def coordinate_descent(model, case, fill, *, n_candidates):
    """Blanks from left to right, each of the likeliest words in the whole sentence, until a round changes nothing."""
    fill, trace = list(fill), []

    def nll(number, word):
        return model.exact_nll(case.context, case.filled([*fill[:number], word, *fill[number + 1 :]])).item()

    def likeliest(place):
        prefix = case.filled(fill)[:place]
        own = {word: model.exact_nlls(case.context, [*prefix, word])[place].item() for word in WORDS}
        return sorted(WORDS, key=own.__getitem__)[:n_candidates]

    blanks = [place for place, token in enumerate(case.template) if token == BLANK_ID]
    before = None
    while fill != before:
        trace.append(model.exact_nll(case.context, case.filled(fill)).item())
        before = list(fill)
        for number, place in enumerate(blanks):
            best = min(likeliest(place), key=lambda word: nll(number, word))
            if nll(number, best) < nll(number, fill[number]) - TOLERANCE:
                fill[number] = best
    return tuple(fill), [*trace, trace[-1]] if blanks else trace


@given(SEEDS, small_cases(most_blanks=6), st.integers(1, 6), st.sampled_from([1, 4]))
# Where a word that changes in the second round sends the search to blanks behind it that had been settled in the first.
@example(359, [Case("", [WORDS[2]], [BLANK_ID] * 3)], 6, 1)
@settings(max_examples=30)
def test_words_after_the_prefix_are_a_plain_coordinate_descent(seed, cases, n_candidates, n_best):
    """Blanks that need no second visit are left out without changing anything."""
    model, starts = random_markov(seed), some_fills(cases, seed)
    for proposal, number in (("prefix", n_candidates), ("all", len(WORDS))):
        results = tigs_from(model, cases, starts, proposal=proposal, n_candidates=n_candidates, n_best=n_best)
        for case, start, result in zip(cases, starts, results, strict=True):
            fill, trace = coordinate_descent(model, case, start, n_candidates=number)
            assert result.fill == fill
            assert result.trace == pytest.approx(trace)


@pytest.mark.parametrize("task", ["poetry", "aprc", "markov"])
def test_all_words_end_at_the_coordinate_optimum(worlds, task):
    world = worlds(task)
    cases = world.cases(10, longest=14, most_blanks=4)
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    for proposal in ("all", "nearest"):
        results = world.fill("tigs", cases, start="random", proposal=proposal, margin=math.inf)
        fills = [result.fill for result in results]
        found = at_coordinate_optimum(world.networks["forward"], together(cases), fills, forbidden=forbidden)
        assert all(found) == (proposal == "all")


@pytest.mark.parametrize("proposal", ["first-order", "first-order-prefix"])
def test_the_gradient_is_that_at_the_current_words(proposal):
    """With one blank and one candidate a round either takes the word of the lowest slope or leaves the old one."""
    n_changed = 0
    for seed in range(12):
        world = markov_world(seed)
        model, cases = world.networks["forward"], world.cases(6, seed=seed, most_blanks=1)
        starts = some_fills(cases, seed)
        results = tigs_from(model, cases, starts, proposal=proposal, n_candidates=1, max_rounds=1)
        for case, start, result in zip(cases, starts, results, strict=True):
            sentence, place = case.filled(start), case.template.index(BLANK_ID)
            cost = slopes(model, case.context, sentence, place)
            if proposal == "first-order-prefix":
                for word in WORDS:
                    cost[word] += model.exact_nlls(case.context, [*sentence[:place], word])[place].item()
            word = min(cost, key=cost.__getitem__)
            moved = model.exact_nll(case.context, case.filled((word,))).item()
            better = moved < model.exact_nll(case.context, sentence).item() - TOLERANCE
            assert result.fill == ((word,) if better else start)
            n_changed += better
    assert 12 < n_changed < 60


@pytest.mark.parametrize("proposal", [proposal for proposal in PROPOSALS if proposal != "nearest"])
def test_what_has_not_changed_is_not_visited_again(proposal):
    """So that more patience costs nothing."""
    world = markov_world(3)
    cases = world.cases(20, seed=3)
    once, thrice = (
        tigs_from(random_markov(3), cases, some_fills(cases, 0), proposal=proposal, patience=patience)
        for patience in (1, 3)
    )
    for own, other in zip(once, thrice, strict=True):
        assert (own.fill, own.model_steps) == (other.fill, other.model_steps)
        assert other.rounds == own.rounds + 2


# The margin: the current word is likely by itself, the other one makes all that follows likelier
CURRENT, OTHER, KNOWN = WORDS[:3]


def late_winner():
    table = {START_ID: {CURRENT: 0.8, OTHER: 0.1}, CURRENT: {KNOWN: 0.01}, OTHER: {KNOWN: 0.9}}
    return Markov(table_of(table)), Case("", [], [BLANK_ID, KNOWN])


@pytest.mark.parametrize(("beyond", "word"), [(0.01, OTHER), (-0.01, CURRENT), (math.inf, OTHER)])
def test_a_margin_drops_who_falls_behind_though_it_would_have_won(beyond, word):
    model, case = late_winner()
    (result,) = tigs_from(model, [case], [(CURRENT,)], proposal="all", margin=math.log(0.8 / 0.1) + beyond)
    assert result.fill == (word,)


MOVES = {"proposal": "all"}
REFILL = {"refills": 1, "refill_width": 4, "max_rounds": 0}


@pytest.mark.parametrize(
    ("setting", "options", "saves"),
    [
        ("margin_decay", MOVES, True),
        ("margin_decay", REFILL, False),
        ("refill_margin_decay", MOVES, False),
        ("refill_margin_decay", REFILL, True),
    ],
)
def test_a_margin_that_shrinks_saves_its_own_steps_unless_several_fills_are_asked_for(setting, options, saves):
    model, case = random_markov(4), Case("", [], [BLANK_ID, *WORDS[:3]])
    steps = {}
    for n_best, decay in itertools.product((1, 2), (1.0, 0.1)):
        settings = {**options, "margin": 2.0, setting: decay, "n_best": n_best}
        (result,) = tigs_from(model, [case], [WORDS[:1]], **settings)
        steps[n_best, decay] = result.model_steps
    assert steps[1, 0.1] < steps[1, 1.0] if saves else steps[1, 0.1] == steps[1, 1.0]
    assert steps[2, 0.1] == steps[2, 1.0]


def stepping_stone():
    """Each of three words is a little less likely by itself than the one before, and makes what follows much likelier."""
    first, second, third = WORDS[:3]
    table = {
        START_ID: {first: 0.5, second: 0.1, third: 0.02},
        first: {WORDS[3]: 0.001},
        second: {WORDS[3]: 0.05},
        third: {WORDS[3]: 0.9},
    }
    return Markov(table_of(table)), Case("", [], [BLANK_ID, WORDS[3]])


def test_what_a_margin_dropped_is_tried_again_beside_another_word():
    model, case = stepping_stone()
    (result,) = tigs_from(model, [case], [WORDS[:1]], proposal="all", margin=2.0)
    assert result.fill == WORDS[2:3]
    assert result.rounds == 3
    (result,) = tigs_from(model, [case], [WORDS[:1]], proposal="all", margin=2.0, max_rounds=1)
    assert result.fill == WORDS[1:2]


def test_without_a_margin_the_other_candidates_of_a_changed_blank_are_known_to_be_worse():
    model, case = stepping_stone()
    one_round, two_rounds = (
        tigs_from(model, [case], [WORDS[:1]], proposal="all", max_rounds=rounds)[0] for rounds in (1, 2)
    )
    assert one_round.fill == two_rounds.fill == WORDS[2:3]
    prefix = 1
    assert two_rounds.model_steps == one_round.model_steps + prefix


# The reach


def within_reach(model, case, fill, reach):
    """(blank, word) that the estimate at the sentence as it is, by finite differences, does not rule out."""
    sentence = case.filled(fill)
    for place, token in enumerate(case.template):
        if token == BLANK_ID:
            cost = slopes(model, case.context, sentence, place)
            for word in WORDS:
                cost[word] += model.exact_nlls(case.context, [*sentence[:place], word])[place].item()
            yield from ((place, word) for word in WORDS if cost[word] < cost[sentence[place]] + reach - 1e-6)


@given(SEEDS, small_cases(most_blanks=5), st.sampled_from([0.0, 0.5, 2.0]))
@settings(max_examples=40)
def test_at_the_end_no_word_within_reach_is_better(seed, cases, reach):
    """Whatever an earlier gradient said of it."""
    model, starts = random_markov(seed), some_fills(cases, seed)
    options = {"proposal": "first-order-prefix", "n_candidates": len(WORDS), "reach": reach}
    for case, result in zip(cases, tigs_from(model, cases, starts, **options), strict=True):
        sentence = case.filled(result.fill)
        for place, word in within_reach(model, case, result.fill, reach):
            moved = [*sentence[:place], word, *sentence[place + 1 :]]
            assert model.exact_nll(case.context, moved).item() > result.nll - 2 * TOLERANCE


def test_words_out_of_reach_are_not_read(worlds):
    world = worlds("aprc")
    cases = world.cases(12)
    options = {"proposal": "first-order-prefix", "n_candidates": 12, "start": "greedy", "max_rounds": 1}
    everything, few = (
        sum(result.model_steps for result in world.fill("tigs", cases, reach=reach, **options))
        for reach in (math.inf, 0.0)
    )
    assert few < everything / 2


# Refills


@given(SEEDS, small_cases(most_blanks=4), st.integers(1, 3), st.integers(1, 5))
@settings(max_examples=20)
def test_a_wide_refill_finds_the_best_and_the_next_finds_nothing(seed, cases, refills, n_best):
    model, starts = random_markov(seed), some_fills(cases, seed)
    options = {"refills": refills, "refill_width": len(WORDS), "max_rounds": 0, "n_best": n_best}
    results = tigs_from(model, cases, starts, **options)
    for case, result in zip(cases, results, strict=True):
        assert result.nll == pytest.approx(by_nll(model, case)[0][0], abs=TOLERANCE)
        improved = int(result.nll < result.trace[0] - TOLERANCE)
        assert result.rounds == (min(refills, 1 + improved) if case.n_blanks else 0)


def test_a_refill_moves_two_words_that_must_move_together():
    """Each of two pairs holds together; only the second goes with the known word."""
    first, second, known = WORDS[:2], WORDS[2:4], WORDS[4]
    table = {
        START_ID: {first[0]: 0.5, second[0]: 0.4},
        first[0]: {first[1]: 0.9},
        second[0]: {second[1]: 0.9},
        first[1]: {known: 0.05},
        second[1]: {known: 0.9},
    }
    model, case = Markov(table_of(table)), Case("", [], [BLANK_ID, BLANK_ID, known])
    for options, fill in (({}, first), ({"refills": 1, "refill_width": 1}, second)):
        (result,) = tigs_from(model, [case], [first], proposal="all", **options)
        assert result.fill == fill


def test_a_refill_has_its_least_width_where_blanks_stand_apart():
    model, case = random_markov(0), Case("", [], [BLANK_ID, WORDS[0], BLANK_ID, WORDS[1], BLANK_ID])

    def refilled(**widths):
        (result,) = tigs_from(model, [case], [WORDS[:1] * 3], refills=1, max_rounds=0, **widths)
        return result

    narrow, wide, least = (
        refilled(refill_width=width, refill_least=least) for width, least in ((1, 1), (3, 1), (1, 3))
    )
    assert least == wide
    assert least.model_steps > narrow.model_steps


@given(
    SEEDS,
    small_cases(most_blanks=4),
    st.integers(1, 6),
    st.sampled_from(["first-order-prefix", "prefix"]),
    st.sampled_from(["word", "mean"]),
    st.integers(1, 3),
)
@settings(max_examples=30)
def test_a_refill_of_pairs_is_one_of_sentences_with_two_blanks_and_of_no_others(
    seed, cases, width, proposal, gradient, n_best
):
    model, starts = random_markov(seed), some_fills(cases, seed)
    options = {"proposal": proposal, "gradient": gradient, "n_best": n_best, "n_candidates": 2, "margin": 4.0}

    def fill(**refills):
        return tigs_from(model, cases, starts, refill_width=1, **options, **refills)

    for case, pairs, all_, none in zip(
        cases, fill(pair_width=width), fill(refills=1, refill_least=width), fill(), strict=True
    ):
        expected = all_ if case.n_blanks == 2 else none
        assert (pairs.fill, pairs.rounds, pairs.model_steps) == (expected.fill, expected.rounds, expected.model_steps)
        assert pairs.trace == pytest.approx(expected.trace)
        assert [one.fill for one in pairs.alternatives] == [one.fill for one in expected.alternatives]


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_rounds_go_on_from_a_refill_as_from_any_other_start(worlds, proposal):
    world = worlds("aprc")
    cases = world.cases(12, longest=10)
    options = {"proposal": proposal, "n_candidates": 40, "margin": 3.0, "max_rounds": 3, "patience": 1}
    options |= {"margin_decay": 0.9, "refill_margin_decay": 0.8}
    refill = {"start": "random", "refills": 1, "refill_width": 1}
    refilled = world.fill("tigs", cases, **{**options, **refill, "max_rounds": 0})
    starts = [result.fill for result in refilled]
    expected = tigs_from(world.networks["forward"], cases, starts, n_tokens=world.n_tokens, **options)
    found = world.fill("tigs", cases, **options, **refill)
    n_improved = [sum(one.nll < one.trace[0] for one in results) for results in (refilled, expected)]
    assert min(n_improved) > 2
    for first, then, both in zip(refilled, expected, found, strict=True):
        assert both.fill == then.fill
        assert both.trace == pytest.approx([*first.trace, *then.trace[1:]], abs=1e-3)


@pytest.mark.parametrize(("gradient", "readings"), [("word", 1), ("mean", 2)])
def test_model_steps_of_a_refill(gradient, readings):
    """One blank in the middle of five words; where all is equally likely, nothing is found."""
    case = Case("", [], [WORDS[0], WORDS[1], BLANK_ID, WORDS[2], WORDS[3]])
    model = Markov(table_of({}))
    (result,) = tigs_from(model, [case], [(WORDS[0],)], refills=3, refill_width=2, max_rounds=0, gradient=gradient)
    to_score_the_start, to_the_blank, with_gradient, prefix, two_hypotheses = 6, 2, 3 * 4, 3, 2 * 3
    assert result.model_steps == to_score_the_start + to_the_blank + readings * with_gradient + prefix + two_hypotheses
    assert result.rounds == 1
