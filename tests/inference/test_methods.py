"""What holds for every method, on trained models with and without a context, and on a chain that is known on paper."""

from __future__ import annotations

import random

import pytest
import torch

from tigs.config import METHODS, PROPOSALS
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS, UNK_ID

from .worlds import Case, shipped, together

FILLERS = [name for name in METHODS if name != "template"]
ROUNDS = ["tigs", "tigs-plus", "birnn-gsn", "birnn-bibs"]
# Enough to see that they work.
FEW = {"max_rounds": 2, "beam_width": 3}
fillers = pytest.mark.parametrize("method", FILLERS)
rounds = pytest.mark.parametrize("method", ROUNDS)


def mixed_cases(world):
    """Ordinary templates and every kind of extraordinary one, side by side."""
    cases = world.cases(6, seed=1, longest=12)
    (context, sentence), (other_context, other) = world.pairs[0], world.pairs[1]
    return [
        *cases[:3],
        Case("no blanks", context, sentence),
        Case("all blanks", other_context, [BLANK_ID] * len(other)),
        Case("one token, blank", context, [BLANK_ID]),
        Case("one token, known", context, sentence[:1]),
        *world.cases(2, seed=2, ratios=(0.75,), longest=12),
        Case("first and last", context, [BLANK_ID, *sentence, BLANK_ID]),
        *cases[3:],
    ]


@fillers
def test_there_is_a_word_for_every_blank_and_none_is_special(world, method):
    cases = mixed_cases(world)
    words = {*range(len(SPECIAL_TOKENS), world.n_tokens)}
    for allowed, options in ((words, {}), (words | {UNK_ID}, {"allow_unk": True})):
        found = set()
        for case, result in zip(cases, world.fill(method, cases, n_best=3, **options, **FEW), strict=True):
            for other in result.alternatives:
                assert len(other.fill) == case.n_blanks
                found.update(other.fill)
        assert found <= allowed


@fillers
def test_unknown_words_are_filled_in_where_they_are_allowed_and_likely(worlds, method):
    world = worlds("markov")
    results = world.fill(method, mixed_cases(world), allow_unk=True, n_candidates=7)
    assert any(UNK_ID in result.fill for result in results)


@fillers
def test_the_reported_nll_is_that_of_the_sentence(world, method):
    cases = mixed_cases(world)
    for case, result in zip(cases, world.fill(method, cases, **FEW), strict=True):
        possible = world.rescore(method, case, result.fill)
        assert any(result.nll == pytest.approx(nll, abs=1e-4) for nll in possible), case
        assert result.trace[-1] == pytest.approx(result.nll, abs=1e-4)


@fillers
def test_without_blanks_the_sentence_comes_back_scored(world, method):
    context, sentence = world.pairs[0]
    case = Case("whole", context, sentence)
    for cases in ([case], [case, *world.cases(2)]):
        result = world.fill(method, cases, **FEW)[0]
        assert result.fill == ()
        assert [other.fill for other in result.alternatives] == [()]
        assert min(abs(result.nll - nll) for nll in world.rescore(method, case, ())) < 1e-4


@pytest.mark.parametrize(
    ("name", "method", "options"),
    [
        *((name, method, {}) for name in ("poetry", "markov") for method in FILLERS),
        *(("markov", "tigs", {"proposal": proposal}) for proposal in PROPOSALS[1:]),
        *((name, "tigs-plus", {"start": "greedy", "refills": 2}) for name in ("poetry", "markov")),
        ("markov", "birnn-bibs", {"beam_width": 8}),  # more than there are words: one blank leaves places empty
    ],
)
def test_neighbours_in_a_batch_change_nothing(worlds, name, method, options):
    world = worlds(name)
    mixed = mixed_cases(world)
    cases = [*mixed, *world.cases(64 - len(mixed), seed=5, longest=7, most_blanks=3)]
    infiller = world.infiller(method, **{"max_rounds": 2, "beam_width": 2, **options})
    together_answers = infiller.fill(together(cases))
    # Each by itself costs most, and a few of them show as much.
    for size, n_cases in ((1, 8), (7, 28)):
        batches = [together(cases[first : first + size]) for first in range(0, n_cases, size)]
        answers = [result for batch in batches for result in infiller.fill(batch)]
        for case, own, other in zip(cases, answers, together_answers, strict=False):
            assert own.fill == other.fill, case
            assert own.nll == pytest.approx(other.nll, abs=1e-4)
            assert own.trace == pytest.approx(other.trace, abs=1e-4)
            assert (own.rounds, own.model_steps) == (other.rounds, other.model_steps)


@fillers
def test_the_same_seed_gives_the_same_answer(world, method):
    cases = world.cases(4, seed=3, longest=12)
    options = {**FEW, "start": "random"}
    assert world.fill(method, cases, seed=1, **options) == world.fill(method, cases, seed=1, **options)


@pytest.mark.parametrize("options", [{"start": "random", "max_rounds": 0}, {"temperature": 3.0}])
def test_another_seed_draws_other_words(world, options):
    cases = world.cases(6, ratios=(0.75,), seed=4)
    first, second = (
        [result.alternatives for result in world.fill("birnn-gsn", cases, seed=seed, n_best=4, **options)]
        for seed in (1, 2)
    )
    assert first != second


@fillers
def test_nothing_is_left_behind_in_the_models(worlds, method):
    world = worlds("poetry")
    before = {name: {k: v.clone() for k, v in network.state_dict().items()} for name, network in world.networks.items()}
    templates = together(world.cases(4, seed=6))
    contents = [tensor.clone() for padded in templates[1:] for tensor in padded]
    for options in ({}, {"start": "greedy", "refills": 2}):
        world.infiller(method, **FEW | options).fill(templates)
    assert all(torch.equal(*pair) for pair in zip(contents, (t for p in templates[1:] for t in p), strict=True))
    for name, network in world.networks.items():
        after = network.state_dict()
        assert list(after) == list(before[name])
        assert all(torch.equal(after[key], before[name][key]) for key in after)
        assert all(parameter.grad is None for parameter in network.parameters())
        assert not network.training


@fillers
def test_a_very_long_sentence(worlds, method):
    world = worlds("poetry")
    generator = random.Random(0)
    words = [word for _, sentence in world.pairs for word in sentence if word >= len(SPECIAL_TOKENS)]
    sentence = generator.choices(words, k=200)
    template = [BLANK_ID if generator.random() < 0.05 else word for word in sentence]
    cases = [Case("long", world.pairs[0][0], template), *world.cases(1)]
    result = world.fill(method, cases, max_rounds=1, beam_width=2)[0]
    assert len(result.fill) == template.count(BLANK_ID)
    assert min(abs(result.nll - nll) for nll in world.rescore(method, cases[0], result.fill)) < 1e-6 * result.nll + 1e-4


@fillers
def test_several_answers_are_distinct_and_the_best_comes_first(world, method):
    cases = mixed_cases(world)
    options = {"max_rounds": 3, "temperature": 2.0, "beam_width": 4}
    one, several = (world.fill(method, cases, n_best=n_best, **options) for n_best in (1, 4))
    assert [result.fill for result in one] == [result.fill for result in several]
    if method in ROUNDS:
        assert max(len(result.alternatives) for result in several) == 4
    for case, result in zip(cases, several, strict=True):
        fills, nlls = zip(*((other.fill, other.nll) for other in result.alternatives), strict=True)
        assert len(set(fills)) == len(fills) <= 4
        if method not in ROUNDS and case.n_blanks:
            assert len(fills) == 4
        assert (result.fill, result.nll) == (fills[0], nlls[0])
        assert list(nlls) == sorted(nlls)
        for fill, nll in zip(fills, nlls, strict=True):
            assert min(abs(nll - own) for own in world.rescore(method, case, fill)) < 1e-4


@rounds
def test_rounds_never_make_it_worse_and_are_all_in_the_trace(world, method):
    cases = world.cases(8, seed=7)
    results = world.fill(method, cases, start="random", max_rounds=4, beam_width=3)
    assert sum(result.nll < result.trace[0] for result in results) > 4
    own = shipped(method)
    n_refills = own.refills + (own.pair_width > 0)
    for result in results:
        assert len(result.trace) == result.rounds + 1 <= 5 + n_refills
        assert all(after <= before + 1e-4 for before, after in zip(result.trace, result.trace[1:], strict=False))


@rounds
def test_without_rounds_the_start_is_the_answer(world, method):
    cases = world.cases(5, seed=8)
    results = world.fill(method, cases, start="beam", max_rounds=0, refills=0, pair_width=0, beam_width=3)
    for result, started in zip(results, world.fill("seq2seq-f", cases, beam_width=3), strict=True):
        assert result.fill == started.fill
        assert (result.rounds, len(result.trace)) == (0, 1)


@pytest.mark.parametrize(("method", "options"), [*((method, {}) for method in FILLERS), ("tigs-plus", {"refills": 2})])
def test_inference_mode_around_it_does_no_harm(worlds, method, options):
    world = worlds("poetry")
    cases = world.cases(3, seed=9)
    expected = world.fill(method, cases, **FEW | options)
    with torch.inference_mode():
        templates = together(cases)
        assert templates.target.ids.is_inference()
        assert world.infiller(method, **FEW | options).fill(templates) == expected


def test_the_template_method_leaves_blanks(world):
    cases = mixed_cases(world)
    for case, result in zip(cases, world.fill("template", cases), strict=True):
        assert result.fill == (BLANK_ID,) * case.n_blanks
        assert result.nll is None
        assert result.trace == result.alternatives == ()


def test_ids_name_the_templates(worlds):
    """Two templates with the same words and other ids are drawn for apart."""
    context, sentence = worlds("aprc").pairs[0]
    templates = [Case(str(number), context, [BLANK_ID] * len(sentence)) for number in range(8)]
    results = worlds("aprc").fill("birnn-gsn", templates, temperature=3.0, max_rounds=2, start="random")
    assert len({result.fill for result in results}) == 8
