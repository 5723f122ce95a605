from __future__ import annotations

import itertools
import math
from typing import NamedTuple

import pytest
import pytorch_lightning as lightning
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from tigs.config import PROPOSALS, MethodConfig, ModelConfig
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID
from tigs.inference.interfaces import JoinableState
from tigs.inference.reference import reference_tigs, token_nll
from tigs.inference.start import make_start
from tigs.inference.tigs import TOLERANCE, Tigs
from tigs.inference.words import forbidden_words
from tigs.models.build import build_model

from .markov import N_TOKENS, WORDS, Markov, MarkovState, random_markov, table_of
from .worlds import Case, World, by_nll, markov_world, tigs_from, together

OPTIMISERS, DISTANCES = ("nesterov", "sgd", "adam"), ("euclidean", "cosine")


# What holds for any model


@given(
    seed=st.integers(0, 10**6),
    has_context=st.booleans(),
    layers=st.integers(1, 2),
    optimiser=st.sampled_from(OPTIMISERS),
    distance=st.sampled_from(DISTANCES),
    step_size=st.sampled_from([0.1, 10.0, 1000.0]),
    proposal=st.sampled_from(PROPOSALS),
    n_candidates=st.integers(1, 10),
    margin=st.sampled_from([math.inf, 3.0, 0.5]),
    margin_decay=st.sampled_from([1.0, 0.75]),
    start=st.sampled_from(["random", "refill"]),
    refills=st.integers(0, 2),
    pair_width=st.sampled_from([0, 3]),
    gradient=st.sampled_from(["word", "mean"]),
    penalty=st.sampled_from([0.0, 0.5]),
    n_best=st.integers(1, 2),
    lengths=st.lists(st.integers(1, 7), min_size=1, max_size=4),
)
@settings(max_examples=25)
def test_the_nll_never_rises(seed, has_context, layers, lengths, **options):
    torch.manual_seed(seed)
    sizes = ModelConfig(name="forward", hidden=6, layers=layers, dropout=0.0)
    network = build_model(sizes, n_tokens=15, has_context=has_context).eval()
    for parameter in network.parameters():
        parameter.data *= 4  # a fresh network hardly cares which word it reads
    words = [torch.randint(5, 15, (length,)).tolist() for length in lengths]
    world = World({"forward": network}, 15, [([7, 8] if has_context else [], sentence) for sentence in words])
    cases = world.cases(4, seed=seed)
    for case, result in zip(cases, world.fill("tigs", cases, max_rounds=4, **options), strict=True):
        assert all(after <= before + 1e-5 for before, after in itertools.pairwise(result.trace))
        assert len(result.trace) == result.rounds + 1
        assert result.trace[-1] == pytest.approx(result.nll, abs=TOLERANCE)
        assert result.nll == pytest.approx(*world.rescore("tigs", case, result.fill), abs=1e-4)


@given(
    seed=st.integers(0, 10**6),
    place=st.integers(0, 4),
    optimiser=st.sampled_from(OPTIMISERS),
    proposal=st.sampled_from(PROPOSALS),
)
@settings(max_examples=25)
def test_one_blank_and_all_words_as_candidates_is_exhaustive_search(seed, place, **options):
    world = markov_world(seed)
    template = [WORDS[seed % 6], WORDS[1], WORDS[seed % 5], WORDS[2], WORDS[seed % 4]]
    template[place] = BLANK_ID
    cases = [Case(str(number), [word], template[: place + 1 + number % 3]) for number, word in enumerate(WORDS)]
    options = {"n_candidates": len(WORDS), "margin": math.inf, "max_rounds": 1, **options}
    results = world.fill("tigs", cases, start="random", **options)
    model = world.networks["forward"]
    for case, result in zip(cases, results, strict=True):
        best, _ = by_nll(model, case)[0]
        assert model.exact_nll(case.context, case.filled(result.fill)).item() == pytest.approx(best, abs=TOLERANCE)
        assert result.nll == pytest.approx(best, abs=TOLERANCE)


@pytest.mark.parametrize(("task", "proposal"), [("poetry", "nearest"), ("aprc", "nearest"), ("poetry", "all")])
@torch.no_grad()
def test_the_same_on_trained_models(worlds, task, proposal):
    world = worlds(task)
    n_words = world.n_tokens - len(SPECIAL_TOKENS)
    cases = world.cases(4, ratios=(0.01,))
    options = {"proposal": proposal, "n_candidates": n_words, "margin": math.inf, "max_rounds": 1}
    for case, result in zip(cases, world.fill("tigs", cases, start="random", **options), strict=True):
        words = torch.tensor(case.template).repeat(n_words, 1)  # (words, length)
        words[words == BLANK_ID] = torch.arange(len(SPECIAL_TOKENS), world.n_tokens)
        network = world.networks["forward"]
        nlls = token_nll(network, case.context, network.embedding(words), words).sum(dim=1)
        assert result.nll == pytest.approx(nlls.min().item(), abs=1e-4)
        assert nlls[result.fill[0] - len(SPECIAL_TOKENS)].item() == pytest.approx(result.nll, abs=1e-4)


def test_a_small_gain_counts_too():
    """One word is better than another by half a nat, and all that follows is almost certain."""
    worse, better, known = WORDS[:3]
    model = Markov(
        table_of({START_ID: {worse: 0.3, better: 0.5}, worse: {known: 0.9}, better: {known: 0.9}, known: {END_ID: 0.9}})
    )
    (result,) = tigs_from(model, [Case("", [], [BLANK_ID, known])], [(worse,)], n_candidates=6)
    assert result.fill == (better,)


@pytest.mark.parametrize("method", ["tigs", "tigs-plus"])
def test_it_is_never_worse_than_the_beam_it_starts_from(world, method):
    cases = world.cases(6)
    for width in (1, 4):
        beams = world.fill("seq2seq-f", cases, beam_width=width)
        found = world.fill(method, cases, start="beam", beam_width=width, max_rounds=2)
        for own, beam in zip(found, beams, strict=True):
            assert own.nll <= beam.nll + 1e-4
            assert own.trace[0] == pytest.approx(beam.nll, abs=1e-4)


# Against the straightforward one


def compare(world, cases, *, start, **options):
    """Fill for fill; returns how many fills differ from their start."""
    own = MethodConfig(**{"max_rounds": 6, "patience": 2, **options})
    starts = [result.fill for result in world.fill("tigs", cases, start=start, max_rounds=0)]
    results = tigs_from(world.networks["forward"], cases, starts, n_tokens=world.n_tokens, **vars(own))
    for case, fill, result in zip(cases, starts, results, strict=True):
        expected = reference_tigs(world.networks["forward"], case.context, case.template, fill, own)
        assert result.fill == expected.fill, case
        assert result.nll == pytest.approx(expected.nll, abs=1e-4)
        assert result.rounds == expected.n_rounds
        assert result.model_steps < expected.n_model_steps
    return sum(fill != result.fill for fill, result in zip(starts, results, strict=True))


@pytest.mark.parametrize("task", ["poetry", "aprc"])
@pytest.mark.parametrize(
    ("n_cases", "start", "n_candidates"), [(40, "random", 3), (35, "greedy", 0.1), (25, "random", 40)]
)
def test_200_templates_are_filled_as_the_reference_does(worlds, task, n_cases, start, n_candidates):
    world = worlds(task)
    cases = world.cases(n_cases, longest=10, most_blanks=2, seed=int(100 * n_candidates))
    assert compare(world, cases, start=start, n_candidates=n_candidates) > n_cases / 10


OPTIONS = [
    *({"optimiser": optimiser, "distance": distance} for optimiser in OPTIMISERS for distance in DISTANCES),
    {"penalty": 0.1},
    {"nearest_penalty": 0.1},
    {"penalty": 0.02, "nearest_penalty": 0.05, "optimiser": "sgd"},
    {"momentum": 0.0001, "step_size": 100.0},
    {"allow_unk": True},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_every_option_as_in_the_reference(worlds, options):
    world = worlds("poetry")
    if options.get("optimiser") == "adam":
        options = {**options, "step_size": 0.5}
    cases = world.cases(4, longest=9, most_blanks=2, seed=11)
    assert compare(world, cases, start="random", n_candidates=8, **options) > 0


# When it stops, and what it costs


def uniform():
    return Markov(torch.full((1, N_TOKENS, N_TOKENS), 1 / N_TOKENS))


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("patience", [1, 3])
def test_what_is_no_better_replaces_nothing_and_ends_after_the_patience(patience, proposal):
    start = (WORDS[3], WORDS[1])
    case = Case("", [], [BLANK_ID, WORDS[0], BLANK_ID])
    (result,) = tigs_from(uniform(), [case], [start], n_candidates=6, patience=patience, proposal=proposal)
    assert result.fill == start
    assert result.rounds == patience


class Together(NamedTuple):
    """The state of a model whose sentences must all have been read up to the same place."""

    own: MarkovState

    def select(self, rows):
        return Together(self.own.select(rows))


class Counted(Markov):
    """How often words are asked for after prefixes: once at every visit."""

    n_visits = 0

    def log_probabilities(self, outputs):
        self.n_visits += 1
        return super().log_probabilities(outputs)

    def nll(self, outputs, targets):
        before = self.n_visits
        nll = super().nll(outputs, targets)
        self.n_visits = before
        return nll


class InStep(Counted):
    def start(self, context):
        return Together(super().start(context))

    def run(self, state, tokens):
        outputs, own = super().run(state.own, tokens)
        return outputs, Together(own)


@pytest.mark.parametrize("proposal", PROPOSALS)
@pytest.mark.parametrize("margin", [math.inf, 1.0])
def test_sentences_that_cannot_part_are_filled_the_same(proposal, margin):
    cases = markov_world(2).cases(20)
    starts = [(WORDS[0],) * case.n_blanks for case in cases]
    options = {"proposal": proposal, "margin": margin, "n_candidates": 2, "step_size": 1.0}
    transitions = random_markov(2).transitions
    models = Counted(transitions), InStep(transitions)
    parting, in_step = (tigs_from(model, cases, starts, **options) for model in models)
    assert not isinstance(models[1].start(together(cases).context), JoinableState)
    assert in_step == parting
    assert models[0].n_visits < models[1].n_visits


def test_sentences_that_cannot_part_start_from_the_same_refill():
    cases, transitions = markov_world(2).cases(20), random_markov(2).transitions
    forbidden = forbidden_words(N_TOKENS, allow_unk=False)
    method = MethodConfig(start="refill", proposal="first-order-prefix", n_candidates=3)

    def fill(model):
        start = make_start(method, model, forbidden=forbidden, seed=0)
        return Tigs(model, start, method, forbidden=forbidden).fill(together(cases))

    assert fill(InStep(transitions)) == fill(Counted(transitions))


@pytest.mark.parametrize("n_best", [1, 3])
def test_an_impossible_sentence_is_left_behind(n_best):
    model = Markov(table_of({WORDS[0]: {WORDS[2]: 0.0}}))
    case = Case("0", [], [BLANK_ID, WORDS[2]])
    (result,) = tigs_from(model, [case], [(WORDS[0],)], proposal="prefix", n_candidates=6, n_best=n_best)
    assert result.trace[0] == math.inf
    assert math.isfinite(result.nll)


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_sentences_that_have_converged_leave_the_batch(proposal):
    """Gradients are taken for each blank, or once in a round, or not at all."""

    class Counting(Markov):
        n_rows = 0

        def nll(self, outputs, targets):
            self.n_rows += int((targets == END_ID).sum()) if torch.is_grad_enabled() else 0
            return super().nll(outputs, targets)

    world = markov_world(1)
    model = Counting(random_markov(1).transitions)
    cases = world.cases(30)
    starts = [(WORDS[0],) * case.n_blanks for case in cases]
    results = tigs_from(model, cases, starts, n_candidates=2, patience=1, step_size=1.0, proposal=proposal)
    assert len({result.rounds for result in results}) > 1
    expected = 0
    for case, result in zip(cases, results, strict=True):
        in_a_round = {"nearest": case.n_blanks, "first-order": 1, "first-order-prefix": 1}.get(proposal, 0)
        expected += result.rounds * in_a_round
    assert model.n_rows == expected


def test_no_word_is_read_twice_in_the_same_sentence():
    """All six words are candidates of every visit; in the second and third round only gradients and the prefix are read."""
    case = Case("", [], [WORDS[0], WORDS[1], BLANK_ID, WORDS[2], WORDS[3]])
    steps = []
    for patience in (1, 2, 3):
        (result,) = tigs_from(uniform(), [case], [(WORDS[0],)], n_candidates=6, patience=patience, n_best=50)
        assert result.rounds == patience
        steps.append(result.model_steps)
    prefix, gradient = 3, 3 * 3
    assert steps[0] == 6 + prefix + gradient + 5 * 3
    # The words before the first blank never change; the one in front of it is read again.
    assert [after - before for before, after in itertools.pairwise(steps)] == [1 + gradient] * 2


@pytest.mark.parametrize(
    ("proposal", "where", "gradient"),
    [
        ("nearest", "word", 3 * 3),
        ("first-order", "word", 3 * 4),
        ("first-order-prefix", "mean", 2 * 3 * 4),
        ("prefix", "word", 0),
    ],
)
def test_model_steps_of_one_visit(proposal, where, gradient):
    """One blank in the middle of five words, five candidates besides the current one, none of which can be dropped."""
    case = Case("", [], [WORDS[0], WORDS[1], BLANK_ID, WORDS[2], WORDS[3]])
    options = {"proposal": proposal, "gradient": where, "n_candidates": 6, "n_best": 50}
    (result,) = tigs_from(uniform(), [case], [(WORDS[0],)], max_rounds=1, **options)
    # A gradient of the whole sentence comes with its NLL.
    to_score_the_start, prefix = 0 if proposal.startswith("first-order") else 6, 3
    assert result.model_steps == to_score_the_start + prefix + gradient + 5 * 3
    assert len(result.alternatives) == 6
    # Without a round no gradient is taken.
    (started,) = tigs_from(uniform(), [case], [(WORDS[0],)], max_rounds=0, **options)
    assert started.model_steps == 6 + case.template.index(BLANK_ID)


@pytest.mark.parametrize("step_size", [1e20, 1e38, 1e300])
def test_no_step_is_so_large_that_a_special_token_comes_in(worlds, step_size):
    world = worlds("poetry")
    results = world.fill("tigs", world.cases(8), start="random", step_size=step_size, n_candidates=30, max_rounds=3)
    assert all(word >= len(SPECIAL_TOKENS) for result in results for word in result.fill)


# Inside Lightning


class Foreign(lightning.LightningModule):
    """Somebody else's module around our method."""

    def __init__(self, infiller, network):
        super().__init__()
        self.infiller, self.network = infiller, network
        self.modes = []

    def predict_step(self, batch, batch_idx):
        self.modes.append(torch.is_inference_mode_enabled())
        return [(result.fill, result.nll, result.trace) for result in self.infiller.fill(batch)]


def test_it_works_in_a_trainer_as_lightning_makes_it(worlds, tmp_path, capfd):
    world = worlds("poetry")
    batches = [world.cases(3, seed=seed) for seed in (1, 2)]
    options = {"start": "random", "max_rounds": 3}
    expected = [
        [(result.fill, result.nll, result.trace) for result in world.fill("tigs", batch, **options)]
        for batch in batches
    ]
    module = Foreign(world.infiller("tigs", **options), world.networks["forward"])
    loader = DataLoader([together(batch) for batch in batches], batch_size=None)
    found = lightning.Trainer(default_root_dir=tmp_path, logger=False).predict(module, loader)
    assert found == expected
    assert module.modes == [True, True], "Lightning no longer predicts in inference mode, so nothing was tested"
    assert all(trace[-1] < trace[0] for batch in found for _, _, trace in batch)
