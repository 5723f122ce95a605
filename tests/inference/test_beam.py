from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn.functional import pad as pad_columns

from tigs.data.batch import concatenate
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID
from tigs.inference import beams as beams_module
from tigs.inference.beam import BeamSearch, beam_search
from tigs.inference.words import forbidden_words
from tigs.models import nll as nll_module
from tigs.models.greedy import fill_left_to_right

from .markov import N_TOKENS, WORDS, Markov, random_markov, table_of
from .worlds import FORBIDDEN, Case, by_nll, markov_world, small_cases, together


def search(model, templates, *, width, **options):
    """From the beginning; chains forbid what they always forbid."""
    widths = torch.as_tensor(width).expand_as(templates.target.lengths)
    options = {"forbidden": FORBIDDEN, **options}
    return BeamSearch(model, model.start(templates.context), templates, widths=widths, **options).run()


def some_guide(seed, n_rows, longest=6, n_tokens=N_TOKENS):
    """(rows, longest, vocabulary) about as much as words differ in their NLL."""
    return 2 * torch.randn(n_rows, longest, n_tokens, generator=torch.Generator().manual_seed(seed))


@given(st.integers(0, 10**6), small_cases())
@settings(max_examples=25)
def test_a_beam_as_wide_as_there_are_fills_ranks_all_of_them(seed, cases):
    model = random_markov(seed)
    beams = search(model, together(cases), width=len(WORDS) ** 3)
    for row, case in enumerate(cases):
        expected = by_nll(model, case)
        live = beams.scores[row] != float("-inf")
        assert int(live.sum()) == len(expected)
        assert beams.nll[row, live].tolist() == pytest.approx([nll for nll, _ in expected])
        assert (-beams.scores[row, live]).tolist() == pytest.approx([nll for nll, _ in expected])
        words = beams.words[row, : len(expected), : len(case.template)]
        assert [words_of.tolist() for words_of in words] == [case.filled(fill) for _, fill in expected]


@pytest.mark.parametrize("guided", [True, False])
@pytest.mark.parametrize("score_known", [True, False])
@given(st.integers(0, 10**6), small_cases())
@settings(max_examples=15)
def test_a_narrow_beam_keeps_what_a_plain_one_keeps(guided, score_known, seed, cases):
    """Hypotheses in a list, scores read from the table; a guide helps to choose and is no part of a score."""
    model, width = random_markov(seed), 3
    guide = some_guide(seed, len(cases)).double() * guided
    beams = search(
        model,
        together(cases),
        width=width,
        score_known=score_known,
        guide=(lambda rows, place: guide[rows, place]) if guided else None,
    )
    for row, case in enumerate(cases):
        first, tables = model.first_table(case.context), model.transitions.log()
        hypotheses = [([START_ID], 0.0)]
        for place, token in enumerate([*case.template, END_ID]):
            table = tables[(first + place) % len(tables)]
            allowed, factor = (WORDS, 1) if token == BLANK_ID else ([token], score_known)
            hypotheses = [
                ([*words, word], score + factor * table[words[-1], word].item())
                for words, score in hypotheses
                for word in allowed
            ]
            if token == BLANK_ID:
                hypotheses.sort(key=lambda own: -(own[1] + guide[row, place, own[0][-1]].item()))
            hypotheses = hypotheses[:width]
        best = sorted(hypotheses, key=lambda own: -own[1])
        found = beams.scores[row] != float("-inf")
        assert beams.scores[row, found].tolist() == pytest.approx([score for _, score in best])
        assert beams.words[row, found, : len(case.template)].tolist() == [words[1:-1] for words, _ in best]
        exact = [model.exact_nll(case.context, words[1:-1]).item() for words, _ in best]
        assert beams.nll[row, found].tolist() == pytest.approx(exact)


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
    beams = search(luring(), templates, width=4, score_known=score_known)
    assert beams.words[0, 0].tolist() == [word, KNOWN]
    exact = {WISE: 0.3 * 0.9 * 0.5, LURE: 0.6 * 0.1 * 0.5}[word]
    assert beams.nll[0, 0].exp().item() == pytest.approx(1 / exact)
    chosen_by = exact if score_known else 0.6
    assert beams.scores[0, 0].exp().item() == pytest.approx(chosen_by)


@pytest.mark.parametrize(("beyond", "word"), [(0.01, WISE), (-0.01, LURE)])
def test_a_margin_drops_hypotheses_that_fall_behind_though_one_would_have_won(beyond, word):
    templates = together([Case("", [], [BLANK_ID, KNOWN])])
    beams = search(luring(), templates, width=4, margin=math.log(0.6 / 0.3) + beyond)
    assert beams.words[0, 0].tolist() == [word, KNOWN]


@pytest.mark.parametrize(
    ("template", "decay", "words"),
    [
        ([BLANK_ID, KNOWN], 1.0, {LURE, WISE}),
        ([BLANK_ID, KNOWN], 0.8, {LURE, WISE}),
        ([BLANK_ID, KNOWN, KNOWN], 0.8, {WISE}),
        ([BLANK_ID, KNOWN], 0.5, {WISE}),
    ],
)
@pytest.mark.parametrize("neighbours", [[], [[KNOWN] * 6]])
def test_a_margin_shrinks_with_every_known_word_and_not_with_those_of_neighbours(template, decay, words, neighbours):
    """Behind the known word the first is 1.5 nats behind the second; of 2.5 nats 1.6 are left at `</s>` after one known word."""
    templates = together([Case("", [], one) for one in (template, *neighbours)])
    beams = search(luring(), templates, width=4, margin=2.5, margin_decay=decay)
    live = beams.scores[0] != float("-inf")
    assert {LURE, WISE} & set(beams.words[0, live, 0].tolist()) == words


def test_a_margin_is_whole_again_at_the_next_blank():
    """Where it is not, the wise word is dropped there."""
    rows = {START_ID: {LURE: 0.6, WISE: 0.3}, LURE: {KNOWN: 0.1}, WISE: {KNOWN: 0.9}, KNOWN: {LURE: 0.6, WISE: 0.3}}
    templates = together([Case("", [], [BLANK_ID, KNOWN, BLANK_ID, KNOWN])])
    beams = search(Markov(table_of(rows)), templates, width=4, margin=1.0, margin_decay=0.5)
    assert beams.words[0, 0].tolist() == [WISE, KNOWN, WISE, KNOWN]


@given(st.integers(0, 10**6), small_cases(most_blanks=5), st.integers(1, 8))
@settings(max_examples=15)
def test_recombined_hypotheses_are_the_best_of_those_that_end_in_the_same_word(seed, cases, width):
    model = random_markov(seed)
    beams = search(model, together(cases), width=width, recombine=True)
    for row, case in enumerate(cases):
        if case.template[-1] != BLANK_ID:
            continue
        found = beams.scores[row] != float("-inf")
        last = beams.words[row, found, len(case.template) - 1].tolist()
        assert len(set(last)) == len(last) == min(width, len(WORDS))
        exact = [
            model.exact_nll(case.context, words[: len(case.template)]) for words in beams.words[row, found].tolist()
        ]
        assert beams.nll[row, found].tolist() == pytest.approx([nll.item() for nll in exact])
        if width >= len(WORDS):
            best = {}
            for nll, fill in by_nll(model, case):
                best.setdefault(fill[-1], nll)
            assert beams.nll[row, found].tolist() == pytest.approx(sorted(best.values()))


@pytest.mark.parametrize("end_matters", [True, False])
def test_the_end_counts_among_the_known(end_matters):
    model = Markov(table_of({START_ID: {LURE: 0.6, WISE: 0.3}, LURE: {END_ID: 0.1}, WISE: {END_ID: 0.9}}))
    templates = together([Case("", [], [BLANK_ID])])
    beams = search(model, templates, width=2, score_known=end_matters)
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
        found = search(world.networks[name], templates, width=1, forbidden=forbidden, score_known=score_known)
        expected = fill_left_to_right(world.networks[name], templates.context, templates.target)
        mask = templates.target.mask
        assert torch.equal(found.words[:, 0][mask], expected.ids[mask])


@given(st.integers(0, 10**6), small_cases(most_blanks=5))
@settings(max_examples=20)
def test_backward_on_reversed_text_is_forward(seed, cases):
    world = markov_world(seed)
    world.networks = {**world.networks, "backward": world.networks["forward"]}
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
    beams = search(model, templates, width=216)
    live = beams.scores != float("-inf")
    # 5 words come before the known one; of three words the second and third may not be these two in this order.
    assert live.sum(dim=1).tolist() == [5 * 6, 6**3 - 2 * 6]
    assert beams.nll[live].isfinite().all()
    for words in beams.words[live].tolist():
        assert (LURE, KNOWN) not in set(itertools.pairwise(words))


@pytest.mark.parametrize("width", [1, 3])
def test_a_sentence_that_cannot_be_said_at_all_costs_infinitely_much(width):
    """No hypothesis is left when its blank comes, and no other sentence stands beside it."""
    model = Markov(table_of({LURE: {KNOWN: 0.0}}))
    beams = search(model, together([Case("", [], [LURE, KNOWN, BLANK_ID])]), width=width)
    assert (beams.scores == float("-inf")).all()
    assert (beams.nll == float("inf")).all()


@torch.no_grad()
def test_a_batch_that_is_searched_in_parts_gives_the_same(monkeypatch, worlds):
    world = worlds("poetry")
    network, templates = world.networks["forward"], together(world.cases(9))
    options = {"width": 4, "forbidden": forbidden_words(world.n_tokens, allow_unk=False)}
    whole = search(network, templates, **options)
    monkeypatch.setattr(beams_module, "_TABLE_SIZE", 2 * 4 * world.n_tokens)
    parts = beam_search(network, network.start(templates.context), templates, **options)
    assert torch.equal(whole.words, parts.words)
    assert torch.equal(whole.steps, parts.steps)
    torch.testing.assert_close(whole.nll, parts.nll)
    torch.testing.assert_close(whole.scores, parts.scores)


@pytest.mark.parametrize("logits_at_once", [1, 4 * N_TOKENS, 2**20])
@pytest.mark.parametrize("recombine", [True, False])
@given(st.integers(0, 10**6), small_cases(), st.data())
@settings(max_examples=15)
def test_each_sentence_may_have_a_width_of_its_own_however_many_are_looked_at_together(
    logits_at_once, recombine, seed, cases, data
):
    model = random_markov(seed)
    widths = [data.draw(st.integers(1, 9)) for _ in cases]
    options = {"recombine": recombine, "margin": data.draw(st.sampled_from([0.5, 2.0, math.inf])), "margin_decay": 0.8}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(nll_module, "_CHUNK_ELEMENTS", {"cpu": logits_at_once})
        beams = search(model, together(cases), width=torch.tensor(widths), **options)
    for row, (case, width) in enumerate(zip(cases, widths, strict=True)):
        alone = search(model, together([case]), width=width, **options)
        live = alone.scores[0] != float("-inf")
        assert torch.equal(
            beams.scores[row] != float("-inf"), pad_columns(live, (0, beams.scores.shape[1] - len(live)))
        )
        n_live, length = int(live.sum()), len(case.template)
        assert torch.equal(beams.words[row, :n_live, :length], alone.words[0, :n_live])
        torch.testing.assert_close(beams.nll[row, :n_live], alone.nll[0, :n_live])
        assert beams.steps[row] == alone.steps[0]


@given(st.integers(0, 10**6), small_cases(), st.booleans())
@settings(max_examples=15)
def test_places_without_a_hypothesis_cost_more_than_any(seed, cases, one_by_one):
    """Whoever looks for the lowest NLL must not find them, whatever else is in the batch."""
    model = random_markov(seed)
    with pytest.MonkeyPatch.context() as patch:
        if one_by_one:
            patch.setattr(beams_module, "_TABLE_SIZE", 1)
        templates = together(cases)
        beams = beam_search(model, model.start(templates.context), templates, width=40, forbidden=FORBIDDEN)
    assert beams.nll[beams.scores == float("-inf")].isinf().all()


def test_steps_are_the_tokens_read_by_all_hypotheses():
    # `<s>` and the first word once, then three hypotheses: after each of the three blanks or known words one step.
    cases = [Case("", [], [WORDS[0], BLANK_ID, WORDS[1], BLANK_ID]), Case("", [], [WORDS[0]])]
    beams = search(random_markov(0), together(cases), width=3)
    assert beams.steps.tolist() == [2 + 3 * 3, 2]
