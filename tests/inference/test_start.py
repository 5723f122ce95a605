from __future__ import annotations

from collections import Counter

import pytest
import torch

from tigs.config import MethodConfig
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS
from tigs.inference.budget import TokenBudget
from tigs.inference.expected import expected_gradient
from tigs.inference.gradient import search_mode
from tigs.inference.randomness import generators
from tigs.inference.refill import refill
from tigs.inference.start import make_start
from tigs.inference.words import forbidden_words
from tigs.models.greedy import fill_left_to_right

from .worlds import Case, together


def started(world, templates, *, seed=0, allow_unk=False, **options):
    settings = MethodConfig(allow_unk=allow_unk, **options)
    forbidden = forbidden_words(world.n_tokens, allow_unk=allow_unk)
    with search_mode():
        return make_start(settings, world.networks["forward"], forbidden=forbidden, seed=seed)(templates)


@pytest.mark.parametrize("options", [{"beam_width": 1}, {"beam_width": 4}, {"beam_width": 4, "score_known": False}])
def test_the_beam_is_the_answer_of_the_baseline(world, options):
    cases = world.cases(12)
    found = started(world, together(cases), start="beam", **options)
    baseline = world.fill("seq2seq-f", cases, **options)
    assert together(cases).fills(found.words) == [result.fill for result in baseline]
    assert found.steps.tolist() == [result.model_steps for result in baseline]


@torch.no_grad()
def test_greedy_takes_the_likeliest_word_at_each_blank(worlds):
    world = worlds("poetry")
    templates = together(world.cases(12))
    found = started(world, templates, start="greedy", beam_width=4)
    expected = fill_left_to_right(world.networks["forward"], templates.context, templates.target)
    mask = templates.target.mask
    assert torch.equal(found.words[mask], expected.ids[mask])


@pytest.mark.parametrize(("n_best", "decay"), [(1, 0.5), (2, 1.0)])
def test_a_refill_follows_the_gradient_at_the_words_to_expect(world, n_best, decay):
    cases = world.cases(12)
    templates, network = together(cases), world.networks["forward"]
    options = {"margin": 2.0, "margin_decay": 0.9, "refill_margin_decay": 0.5, "n_best": n_best}
    found = started(world, templates, start="refill", refill_width=2, refill_least=3, **options)
    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    with search_mode():
        state = network.start(templates.context)
        gradient = expected_gradient(network, state, templates, forbidden=forbidden)
        by_decay = {
            each: refill(
                network,
                state,
                templates,
                gradient,
                per_blank=2,
                at_least=3,
                margin=2.0,
                margin_decay=each,
                forbidden=forbidden,
                budget=TokenBudget(),
                only_best=n_best == 1,
            )
            for each in (0.5, 1.0)
        }
    beams = by_decay[decay]
    assert by_decay[0.5].steps.sum() < by_decay[1.0].steps.sum()
    assert torch.equal(found.words, beams.words[:, 0])
    assert found.beams is not None
    assert torch.equal(found.beams.nll, beams.nll)
    # Every token and `</s>` once, from the first blank on with gradients.
    first_blanks = torch.tensor([case.template.index(BLANK_ID) for case in cases])
    assert torch.equal(found.steps - beams.steps, 3 * (templates.target.lengths + 1) - 2 * first_blanks)


def test_what_a_refill_has_found_may_be_among_the_n_best(world):
    cases = world.cases(8)
    options = {"start": "refill", "refill_width": 2, "refill_least": 1, "margin": 5.0, "n_best": 3}
    beams = started(world, together(cases), **options).beams
    for row, result in enumerate(world.fill("tigs-plus", cases, max_rounds=0, **options)):
        found = [nll for nll in beams.nll[row].tolist() if nll < float("inf")]
        assert [other.nll for other in result.alternatives] == pytest.approx(sorted(found)[:3], abs=1e-4)
        assert together(cases).fills(beams.words[:, 0])[row] == result.fill


@pytest.mark.parametrize("start", ["beam", "greedy", "refill", "random"])
@pytest.mark.parametrize("options", [{}, {"proposal": "nearest"}, {"refills": 1}, {"max_rounds": 0}])
def test_a_search_reads_the_context_once(world, monkeypatch, start, options):
    network, contexts = world.networks["forward"], []
    begin = network.start
    monkeypatch.setattr(network, "start", lambda context: contexts.append(context) or begin(context))
    world.fill("tigs-plus", world.cases(4), start=start, **options)
    assert len(contexts) == 1


def test_random_words_depend_on_seed_and_id_alone(world):
    cases = world.cases(10, ratios=(0.75,))
    fills = together(cases).fills(started(world, together(cases), start="random").words)
    turned = together(cases[::-1]).fills(started(world, together(cases[::-1]), start="random").words)
    assert fills == turned[::-1]
    alone = together(cases[3:4])
    assert alone.fills(started(world, alone, start="random").words) == fills[3:4]
    assert fills != together(cases).fills(started(world, together(cases), start="random", seed=1).words)
    renamed = [case._replace(id=f"other {case.id}") for case in cases]
    assert fills != together(renamed).fills(started(world, together(renamed), start="random").words)


@pytest.mark.parametrize("allow_unk", [False, True])
def test_random_words_are_all_allowed_ones_equally_often(worlds, allow_unk):
    world = worlds("markov")
    templates = together([Case(str(number), [], [BLANK_ID] * 100) for number in range(70)])
    found = started(world, templates, start="random", allow_unk=allow_unk)
    counts = Counter(found.words.flatten().tolist())
    allowed = (~forbidden_words(world.n_tokens, allow_unk=allow_unk)).nonzero().flatten().tolist()
    assert sorted(counts) == allowed
    # Five standard deviations.
    expected = 7000 / len(allowed)
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counts.values())
    assert found.steps.tolist() == [0] * 70


def test_known_words_stay(world):
    templates = together(world.cases(8))
    for start in ("beam", "greedy", "refill", "random"):
        words = started(world, templates, start=start).words
        known = ~templates.blanks & templates.target.mask
        assert torch.equal(words[known], templates.target.ids[known])
        assert (words[templates.blanks] >= len(SPECIAL_TOKENS)).all()


def test_a_generator_is_the_same_for_the_same_seed_and_name_only():
    def numbers(seed, name):
        (generator,) = generators(seed, [name])
        return torch.rand(4, generator=generator).tolist()

    assert numbers(0, "a") == numbers(0, "a")
    assert len({tuple(numbers(seed, name)) for seed in (0, 1, 11) for name in ("a", "b", "1/a")}) == 9
