"""The benchmark of searches measures what it says; how fast a machine is, no test asserts."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import pytest
import torch

from tigs.composition import compose
from tigs.config import TASKS, MethodConfig
from tigs.data.prepare import prepare
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS, UNK_ID
from tigs.errors import InferenceError
from tigs.inference.benchmark import (
    CHECK_MARGIN,
    CHECK_MARGIN_DECAY,
    VARIANTS,
    Limits,
    Runner,
    Variant,
    make_cell,
    make_runners,
    measure,
)
from tigs.inference.coordinate import at_coordinate_optimum
from tigs.inference.growth import Sentence, cut_vocabulary, fit_exponent, growth_points, make_templates, measure_growth
from tigs.inference.interfaces import FillResult
from tigs.inference.methods import models_of
from tigs.inference.words import forbidden_words

WORD, OTHER = len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 1


@pytest.mark.parametrize("method", ["tigs", "tigs-plus"])
@pytest.mark.parametrize("profile", ["small", "cpu", "paper"])
@pytest.mark.parametrize("task", TASKS)
def test_the_coordinate_optimum_is_checked_within_more_than_any_search_tries(task, profile, method):
    shipped = compose([f"task={task}", f"profile={profile}", f"method={method}"]).method
    assert shipped.margin < CHECK_MARGIN
    assert shipped.margin_decay <= CHECK_MARGIN_DECAY


@dataclass
class Constant:
    """Fills in one word everywhere, another one in some templates."""

    steps: int
    others: tuple[str, ...] = ()

    def fill(self, templates):
        self.n_calls = getattr(self, "n_calls", 0) + 1
        words = [OTHER if name in self.others else WORD for name in templates.ids]
        counts = templates.blanks.sum(dim=1).tolist()
        return [FillResult((word,) * n, None, model_steps=self.steps) for word, n in zip(words, counts, strict=True)]


@pytest.fixture(scope="module")
def prepared(trained):
    return prepare(compose(trained("poetry", "forward")))


@pytest.fixture(scope="module")
def chosen_set(prepared):
    return next(one for one in prepared.test_sets() if one.name == "random-25")


def runner(name, infiller, **options):
    return Runner(Variant(name, "tigs", **options), MethodConfig(), infiller)


def test_figures_are_those_of_the_fills(worlds, prepared, chosen_set):
    world, limits = worlds("poetry"), Limits(templates=9, slow=4, checked=6)
    cell = make_cell(chosen_set, prepared.vocabulary, limits)
    order = [name for batch in cell.batches for name in batch.ids]
    few = order[:4]
    runners = [
        runner("reference", Constant(60), is_checked=True),
        runner("other", Constant(20, others=tuple(order[2:5])), is_checked=True),
        runner("slow", Constant(30, others=(order[1],)), is_slow=True),
    ]
    network = world.networks["forward"]
    reference, other, slow = measure(runners, network, cell)

    def nll(names, others):
        """Per token, by plain means."""
        total = n_tokens = 0
        for item in chosen_set.items:
            if item.template.id in names:
                word = prepared.vocabulary.tokens[OTHER if item.template.id in others else WORD]
                words = [word if token == "<blank>" else token for token in item.template.tokens]
                context, ids = map(prepared.vocabulary.encode, (item.template.context, words))
                total += world._nll("forward", context, ids)
                n_tokens += len(ids) + 1
        return total / n_tokens

    assert [one.n for one in (reference, other, slow)] == [9, 9, 4]
    assert [one.model_steps for one in (reference, other, slow)] == [60, 20, 30]
    assert [one.steps_ratio for one in (reference, other, slow)] == [1, 3, 2]
    assert reference.seconds_ratio == 1
    assert all(one.seconds > 0 and one.seconds_ratio > 0 for one in (reference, other, slow))
    assert [one.equal_to_reference for one in (reference, other, slow)] == [1, 6 / 9, 3 / 4]
    assert reference.nll == pytest.approx(nll(order, ()), abs=1e-4)
    assert other.nll == pytest.approx(nll(order, order[2:5]), abs=1e-4)
    assert other.nll_above_reference == pytest.approx(other.nll - reference.nll)
    assert slow.nll == slow.nll_common == pytest.approx(nll(few, [order[1]]), abs=1e-4)
    assert slow.nll_above_reference == pytest.approx(nll(few, [order[1]]) - nll(few, ()), abs=1e-4)
    assert other.nll_common == pytest.approx(nll(few, order[2:5]), abs=1e-4)

    forbidden = forbidden_words(world.n_tokens, allow_unk=False)
    expected = {}
    for batch in cell.batches:
        fills = [result.fill for result in runners[1].infiller.fill(batch)]
        optimal = at_coordinate_optimum(network, batch, fills, forbidden=forbidden)
        expected |= zip(batch.ids, optimal, strict=True)
    # Not the first ones in the batches, which are short.
    first = [item.template.id for item in chosen_set.items[:6]]
    assert set(first) != set(order[:6])
    assert (other.n_checked, other.at_optimum) == (6, sum(expected[name] for name in first) / 6)
    assert (slow.n_checked, slow.at_optimum) == (0, None)


def test_fills_that_variants_share_are_checked_once(worlds, prepared, chosen_set, monkeypatch):
    limits = Limits(templates=8, slow=8, checked=8)
    cell = make_cell(chosen_set, prepared.vocabulary, limits)
    first = cell.batches[0].ids
    asked = []

    def check(model, templates, fills, *, forbidden, margin, margin_decay):
        asked.extend(templates.ids)
        return [True] * len(fills)

    monkeypatch.setattr("tigs.inference.benchmark.at_coordinate_optimum", check)
    runners = [
        runner("reference", Constant(1), is_checked=True),
        runner("same", Constant(1), is_checked=True),
        runner("other", Constant(1, others=(first[3],)), is_checked=True),
    ]
    measure(runners, worlds("poetry").networks["forward"], cell)
    assert asked == [*first, first[3]]


def test_every_variant_fills_a_batch_before_any_fills_the_next(worlds, prepared, chosen_set, monkeypatch):
    monkeypatch.setattr("tigs.inference.benchmark.BATCH_SIZE", 3)
    limits, calls = Limits(templates=7, slow=4, checked=0), []

    class Noting(Constant):
        def fill(self, templates):
            calls.append((self.steps, templates.ids))
            return super().fill(templates)

    cell = make_cell(chosen_set, prepared.vocabulary, limits)
    runners = [runner("reference", Noting(1)), runner("slow", Noting(2), is_slow=True)]
    measure(runners, worlds("poetry").networks["forward"], cell)
    first, second, third = (batch.ids for batch in cell.batches)
    assert calls == [(1, first), (2, first), (1, second), (2, second), (1, third)]


def test_batches_hold_like_lengths_and_first_what_slow_variants_get(prepared, chosen_set, monkeypatch):
    monkeypatch.setattr("tigs.inference.benchmark.BATCH_SIZE", 64)
    items = [
        replace(item, template=replace(item.template, id=f"{copy}/{item.template.id}"))
        for copy in range(20)
        for item in chosen_set.items
    ]
    batches = make_cell(
        replace(chosen_set, items=tuple(items)), prepared.vocabulary, Limits(templates=190, slow=70, checked=0)
    ).batches
    assert [len(batch.ids) for batch in batches] == [35, 35, 60, 60]
    names = [item.template.id for item in items]
    assert {name for batch in batches[:2] for name in batch.ids} == set(names[:70])
    assert {name for batch in batches[2:] for name in batch.ids} == set(names[70:190])
    for block in (batches[:2], batches[2:]):
        lengths = [length for batch in block for length in batch.target.lengths.tolist()]
        assert lengths == sorted(lengths)


def test_a_model_that_is_broken_is_said(worlds, prepared, chosen_set):
    limits = Limits(templates=2, slow=2, checked=0)
    cell = make_cell(chosen_set, prepared.vocabulary, limits)
    network = cut_vocabulary(worlds("poetry").networks["forward"], worlds("poetry").n_tokens)
    network.projection.bias[:] = float("nan")
    with pytest.raises(InferenceError, match="no number"):
        measure([runner("reference", Constant(1))], network, cell)


# The variants


def test_a_variant_is_made_when_its_method_and_its_models_are_there(worlds, trained):
    networks, words = worlds("poetry").networks, trained("poetry")
    few = make_runners(words, {"forward": networks["forward"]}, seed=0)
    expected = [v for v in VARIANTS if models_of(v.method) == ("forward",)]
    assert [runner.variant for runner in few] == expected
    assert {"reference", "exact", "margin", "greedy", "beam-1000"} <= {one.name for one in expected}
    every = make_runners(words, networks, seed=0)
    assert [runner.variant for runner in every] == list(VARIANTS)


def test_settings_of_the_method_hold_unless_the_variant_has_its_own(worlds, trained):
    words = [*trained("poetry"), "method.beam_width=7", "method.n_candidates=5"]
    made = {one.variant.name: one.settings for one in make_runners(words, worlds("poetry").networks, seed=0)}
    widths = {
        name: made[name].beam_width for name in ("reference", "exact", "greedy", "beam-5", "beam-40", "birnn-gsn")
    }
    assert widths == {"reference": 7, "exact": 7, "greedy": 1, "beam-5": 5, "beam-40": 40, "birnn-gsn": 7}
    assert made["exact"].n_candidates == 5
    assert made["exact"].margin == float("inf")
    assert (made["exact"].patience, made["birnn-gsn"].max_rounds) == (2, 50)


@pytest.mark.parametrize("task", ["poetry", "aprc"])
def test_exact_finds_what_the_reference_finds_and_starts_where_it_does(worlds, trained, task):
    world = worlds(task)
    prepared = prepare(compose(trained(task)))
    words = [*trained(task), "method.n_candidates=12", "method.max_rounds=3"]
    chosen = [one for one in make_runners(words, world.networks, seed=0) if one.variant.name in ("reference", "exact")]
    limits = Limits(templates=6, slow=6, checked=0)
    for chosen_set in prepared.test_sets()[2:4]:
        cell = make_cell(chosen_set, prepared.vocabulary, limits)
        figures = measure(chosen, world.networks["forward"], cell)
        assert [one.equal_to_reference for one in figures] == [1, 1]
        assert figures[1].nll_above_reference == 0
        assert figures[1].steps_ratio > 1


# How cost grows


@pytest.mark.parametrize("exponent", [-1, 0, 0.5, 1, 2.3])
def test_a_known_exponent_is_found_again(exponent):
    sizes = [3, 6, 12, 40]
    assert fit_exponent(sizes, [7 * size**exponent for size in sizes]) == pytest.approx(exponent)


def test_noise_on_both_sides_leaves_the_exponent():
    sizes = [1, 2, 4, 8]
    noise = [1.1, 1 / 1.1, 1 / 1.1, 1.1]  # no slope of its own
    assert fit_exponent(sizes, [size**1.5 * part for size, part in zip(sizes, noise, strict=True)]) == pytest.approx(
        1.5
    )


@torch.no_grad()
def test_a_cut_network_says_what_the_whole_one_says_about_the_words_that_are_left(worlds):
    network = worlds("poetry").networks["forward"]
    before = {name: value.clone() for name, value in network.state_dict().items()}
    smaller = cut_vocabulary(network, 60)
    templates = make_templates([Sentence([7, 50, 9], [20, 59, 5, 8])], n_blanks=0)
    outputs = [one.run(one.start(templates.context), templates.target.ids)[0] for one in (network, smaller)]
    assert torch.allclose(*outputs)
    whole, cut = (one.log_probabilities(output) for one, output in zip((network, smaller), outputs, strict=True))
    assert cut.shape[-1] == len(smaller.word_vectors) == 60
    assert torch.allclose(cut, torch.log_softmax(whole[..., :60], dim=-1), atol=1e-5)
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())


def test_more_blanks_are_the_fewer_and_others():
    sentences = [Sentence([9], list(range(10, 22))), Sentence([], list(range(30, 39)))]
    blanks = {n: make_templates(sentences, n_blanks=n).blanks for n in (1, 2, 4, 8)}
    for n, own in blanks.items():
        assert own.sum(dim=1).tolist() == [n, n]
    for fewer, more in itertools.pairwise(blanks.values()):
        assert bool((more | ~fewer).all())


def test_along_each_direction_only_one_thing_grows(worlds):
    network, n_tokens = worlds("poetry").networks["forward"], worlds("poetry").n_tokens
    words = list(range(WORD, n_tokens))
    sentences = [Sentence(words[:3], words[:n]) for n in (4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 20, 30)]
    points = growth_points(network, sentences)
    n_blanks = {along: {tuple(p.templates.blanks.sum(dim=1).tolist()) for p in own} for along, own in points.items()}
    assert [point.size for point in points["blanks"]] == [1, 2, 4, 8]
    assert [point.size for point in points["K"]] == [point.n_candidates for point in points["K"]] == [10, 20, 40, 80]
    assert [point.size for point in points["length"]] == [5, 29 / 3, 53 / 3]
    assert [len(own) for own in n_blanks.values()] == [1, 1, 4, 1]
    n_words = n_tokens - len(SPECIAL_TOKENS)
    for point, share in zip(points["vocabulary"], (4, 2, 1), strict=True):
        assert point.size == len(point.network.word_vectors) == len(SPECIAL_TOKENS) + n_words // share
        assert int(point.templates.target.ids.max()) < point.size
    smallest, _, largest = (point.templates.target.ids for point in points["vocabulary"])
    assert BLANK_ID in smallest
    assert UNK_ID not in largest


def test_growth_is_measured_for_tigs_and_its_kin(worlds, trained, monkeypatch):
    monkeypatch.setattr("tigs.inference.growth._REPEATS", 1)
    world, wanted = worlds("poetry"), {"reference", "exact", "tigs-plus", "beam-5"}
    words = [*trained("poetry"), "method.max_rounds=1", "method.n_candidates=0.2"]
    runners = [one for one in make_runners(words, world.networks, seed=0) if one.variant.name in wanted]
    sentences = [Sentence(context, target) for context, target in world.pairs[:4]]
    growths = {(one.along, one.variant): one for one in measure_growth(runners, world.networks, sentences, seed=0)}
    assert growths.keys() >= set(itertools.product(("vocabulary", "blanks", "K"), ("reference", "exact")))
    assert not {("K", "tigs-plus"), ("blanks", "beam-5")} & growths.keys()
    for growth in growths.values():
        assert growth.n == 4 or growth.along == "length"
        assert growth.steps_exponent == pytest.approx(fit_exponent(growth.sizes, growth.model_steps))
        assert growth.seconds_exponent == pytest.approx(fit_exponent(growth.sizes, growth.seconds))
    # A round of the reference reads every candidate over the whole sentence at every blank.
    assert 0.8 < growths["blanks", "reference"].steps_exponent < 1
    assert 0.6 < growths["K", "reference"].steps_exponent < 1
    # K stays what it was, whatever the vocabulary.
    assert growths["vocabulary", "reference"].steps_exponent == pytest.approx(0, abs=0.01)
