from __future__ import annotations

import itertools

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.data.batch import concatenate
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID
from tigs.inference import beam
from tigs.inference.beam import beam_search
from tigs.inference.words import forbidden_words
from tigs.models.greedy import fill_left_to_right

from .markov import N_TOKENS, WORDS, Markov, all_fills, random_markov, table_of
from .worlds import Case, markov_world, together

FORBIDDEN = forbidden_words(N_TOKENS, allow_unk=False)
CONTEXTS = st.lists(st.sampled_from(WORDS), max_size=2)


@st.composite
def small_templates(draw, most_blanks=3):
    """Templates with few enough fills to try them all."""
    length = draw(st.integers(1, 6))
    blanks = draw(st.sets(st.integers(0, length - 1), max_size=most_blanks))
    return [BLANK_ID if place in blanks else draw(st.sampled_from(WORDS)) for place in range(length)]


def by_nll(model, case):
    """All fills with their exact NLL, best first."""
    scored = [(model.exact_nll(case.context, words).item(), fill) for fill, words in all_fills(case.template)]
    return sorted(scored)


@given(st.integers(0, 10**6), st.lists(st.tuples(CONTEXTS, small_templates()), min_size=1, max_size=4))
@settings(max_examples=25)
def test_a_beam_as_wide_as_there_are_fills_ranks_all_of_them(seed, pairs):
    model = random_markov(seed)
    cases = [Case(str(number), *pair) for number, pair in enumerate(pairs)]
    templates = together(cases)
    beams = beam_search(model, templates, width=len(WORDS) ** 3, forbidden=FORBIDDEN)
    for row, case in enumerate(cases):
        expected = by_nll(model, case)
        live = beams.scores[row] != float("-inf")
        assert int(live.sum()) == len(expected)
        assert beams.nll[row, live].tolist() == pytest.approx([nll for nll, _ in expected])
        assert (-beams.scores[row, live]).tolist() == pytest.approx([nll for nll, _ in expected])
        words = beams.words[row, : len(expected), : len(case.template)]
        assert [words_of.tolist() for words_of in words] == [case.filled(fill) for _, fill in expected]


@pytest.mark.parametrize("score_known", [True, False])
@given(st.integers(0, 10**6), CONTEXTS, small_templates())
@settings(max_examples=15)
def test_a_narrow_beam_keeps_what_a_plain_one_keeps(score_known, seed, context, template):
    """Hypotheses in a list, scores read from the table."""
    model, width = random_markov(seed), 3
    case = Case("", context, template)
    first, tables = model.first_table(context), model.transitions.log()
    hypotheses = [([START_ID], 0.0)]
    for place, token in enumerate([*template, END_ID]):
        table = tables[(first + place) % len(tables)]
        if token == BLANK_ID:
            hypotheses = [
                ([*words, word], score + table[words[-1], word].item()) for words, score in hypotheses for word in WORDS
            ]
            hypotheses = sorted(hypotheses, key=lambda own: -own[1])[:width]
        else:
            hypotheses = [
                ([*words, token], score + table[words[-1], token].item() * score_known) for words, score in hypotheses
            ]
    best = sorted(hypotheses, key=lambda own: -own[1])
    beams = beam_search(model, together([case]), width=width, forbidden=FORBIDDEN, score_known=score_known)
    found = beams.scores[0] != float("-inf")
    assert beams.scores[0, found].tolist() == pytest.approx([score for _, score in best])
    assert beams.words[0, found].tolist() == [words[1:-1] for words, _ in best]
    exact = [model.exact_nll(context, words[1:-1]).item() for words, _ in best]
    assert beams.nll[0, found].tolist() == pytest.approx(exact)


# Two words for a blank: the first is likelier by itself, after the second the known word is likelier.
LURE, WISE, KNOWN = WORDS[:3]


def luring():
    return Markov(
        table_of(
            {START_ID: {LURE: 0.6, WISE: 0.3}, LURE: {KNOWN: 0.1}, WISE: {KNOWN: 0.9}, KNOWN: {END_ID: 0.5}},
        )
    )


@pytest.mark.parametrize(("score_known", "word"), [(True, WISE), (False, LURE)])
def test_known_words_choose_only_if_they_are_scored(score_known, word):
    templates = together([Case("", [], [BLANK_ID, KNOWN])])
    beams = beam_search(luring(), templates, width=4, forbidden=FORBIDDEN, score_known=score_known)
    assert beams.words[0, 0].tolist() == [word, KNOWN]
    exact = {WISE: 0.3 * 0.9 * 0.5, LURE: 0.6 * 0.1 * 0.5}[word]
    assert beams.nll[0, 0].exp().item() == pytest.approx(1 / exact)
    chosen_by = exact if score_known else 0.6
    assert beams.scores[0, 0].exp().item() == pytest.approx(chosen_by)


@pytest.mark.parametrize("end_matters", [True, False])
def test_the_end_counts_among_the_known(end_matters):
    model = Markov(table_of({START_ID: {LURE: 0.6, WISE: 0.3}, LURE: {END_ID: 0.1}, WISE: {END_ID: 0.9}}))
    templates = together([Case("", [], [BLANK_ID])])
    beams = beam_search(model, templates, width=2, forbidden=FORBIDDEN, score_known=end_matters)
    assert beams.words[0, 0].item() == (WISE if end_matters else LURE)


@pytest.mark.parametrize("name", ["forward", "mask-seq2seq", "mask-selfattn"])
@pytest.mark.parametrize("task", ["poetry", "aprc"])
@torch.no_grad()
def test_a_beam_of_one_is_greedy(worlds, task, name):
    world = worlds(task)
    templates = together(world.cases(20))
    if name.startswith("mask"):
        templates = templates._replace(context=concatenate(templates.context, templates.target))
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    for score_known in (True, False):
        found = beam_search(world.networks[name], templates, width=1, forbidden=forbidden, score_known=score_known)
        expected = fill_left_to_right(world.networks[name], templates.context, templates.target)
        mask = templates.target.mask
        assert torch.equal(found.words[:, 0][mask], expected.ids[mask])


@given(st.integers(0, 10**6), st.lists(st.tuples(CONTEXTS, small_templates(5)), min_size=1, max_size=4))
@settings(max_examples=20)
def test_backward_on_reversed_text_is_forward(seed, pairs):
    world = markov_world(seed)
    world.networks = {**world.networks, "backward": world.networks["forward"]}
    cases = [Case(str(number), *pair) for number, pair in enumerate(pairs)]
    turned = [case._replace(template=case.template[::-1]) for case in cases]
    forward = world.fill("seq2seq-f", cases, n_best=3)
    backward = world.fill("seq2seq-b", turned, n_best=3)
    for own, other in zip(forward, backward, strict=True):
        assert own.fill == other.fill[::-1]
        assert [a.fill for a in own.alternatives] == [a.fill[::-1] for a in other.alternatives]
        assert own.nll == pytest.approx(other.nll)
        assert own.model_steps == other.model_steps


@pytest.mark.parametrize("score_known", [True, False])
def test_both_ways_is_the_better_of_the_two(world, score_known):
    cases = world.cases(20)
    names = ("seq2seq-f", "seq2seq-b", "seq2seq-fb")
    answers = [world.fill(name, cases, score_known=score_known) for name in names]
    for forward, backward, both in zip(*answers, strict=True):
        better = min(forward, backward, key=lambda result: result.nll)
        assert (both.fill, both.nll) == (better.fill, better.nll)
        assert both.model_steps == forward.model_steps + backward.model_steps
    sides = [forward.nll < backward.nll for forward, backward, _ in zip(*answers, strict=True)]
    assert {True, False} == set(sides), "one side was always better, so nothing was tested"


def test_empty_places_of_a_beam_never_come_out():
    world = markov_world()
    one, three = [BLANK_ID, WORDS[0]], [BLANK_ID] * 3
    cases = [Case("one", [], one), Case("three", [WORDS[0]], three), Case("none", [], [WORDS[1]])]
    for method, n_none in (("seq2seq-f", 1), ("seq2seq-b", 1), ("mask-seq2seq", 1)):
        counts = []
        for result in world.fill(method, cases, beam_width=100, n_best=100):
            fills = [other.fill for other in result.alternatives]
            assert len(set(fills)) == len(fills)
            assert all(word >= len(SPECIAL_TOKENS) for fill in fills for word in fill)
            assert all(torch.isfinite(torch.tensor(other.nll)) for other in result.alternatives)
            counts.append(len(fills))
        assert counts == [6, 100, n_none]


def test_what_cannot_be_said_never_comes_out():
    """After one of the words the known one has no probability at all."""
    model = Markov(table_of({LURE: {KNOWN: 0.0}}))
    templates = together([Case("", [], [BLANK_ID, KNOWN, BLANK_ID]), Case("", [], [BLANK_ID, BLANK_ID, BLANK_ID])])
    beams = beam_search(model, templates, width=216, forbidden=FORBIDDEN)
    live = beams.scores != float("-inf")
    # 5 words come before the known one; of three words the second and third may not be these two in this order.
    assert live.sum(dim=1).tolist() == [5 * 6, 6**3 - 2 * 6]
    assert beams.nll[live].isfinite().all()
    for words in beams.words[live].tolist():
        assert (LURE, KNOWN) not in set(itertools.pairwise(words))


def test_a_batch_that_is_searched_in_parts_gives_the_same(monkeypatch, worlds):
    world = worlds("poetry")
    templates = together(world.cases(9))
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    whole = beam_search(world.networks["forward"], templates, width=4, forbidden=forbidden)
    monkeypatch.setattr(beam, "_TABLE_SIZE", 2 * 4 * world.n_tokens)
    parts = beam_search(world.networks["forward"], templates, width=4, forbidden=forbidden)
    assert torch.equal(whole.words, parts.words)
    assert torch.equal(whole.steps, parts.steps)
    torch.testing.assert_close(whole.nll, parts.nll)
    torch.testing.assert_close(whole.scores, parts.scores)


def test_steps_are_the_tokens_read_by_all_hypotheses():
    # `<s>` and the first word once, then three hypotheses: after each of the three blanks or known words one step.
    cases = [Case("", [], [WORDS[0], BLANK_ID, WORDS[1], BLANK_ID]), Case("", [], [WORDS[0]])]
    beams = beam_search(random_markov(0), together(cases), width=3, forbidden=FORBIDDEN)
    assert beams.steps.tolist() == [2 + 3 * 3, 2]
