"""Faster arithmetic: what it may change, and what it may not."""

from __future__ import annotations

import copy
import itertools
import math

import pytest
import torch

from tigs.inference.precision import reading_in
from tigs.models.decoder import compile_steps

from .worlds import World, together

METHODS = ("tigs", "tigs-plus")
CPU = torch.device("cpu")


@pytest.fixture(params=["poetry", "aprc"])
def world(request, worlds):
    return worlds(request.param)


def answers(results):
    return [(result.fill, pytest.approx(result.nll, abs=1e-4)) for result in results]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("precision", ["tf32", "bfloat16"])
@pytest.mark.parametrize("margin", [6.0, math.inf])
def test_candidates_read_in_less_than_float32_first_give_the_same_fills(method, precision, margin, world):
    cases = world.cases(12)
    expected = world.fill(method, cases, margin=margin)
    found = world.fill(method, cases, margin=margin, precision=precision)
    assert answers(found) == answers(expected)
    for case, result in zip(cases, found, strict=True):
        assert result.nll == pytest.approx(*world.rescore(method, case, result.fill), abs=1e-4)
        assert all(after <= before + 1e-5 for before, after in itertools.pairwise(result.trace))


@pytest.mark.parametrize("n_best", [1, 3])
def test_only_candidates_are_read_in_half_precision_and_what_is_kept_is_read_again(worlds, n_best):
    world = worlds("aprc")
    network, calls = world.networks["forward"], []

    class Spy:
        """The network, which tells what it computes in."""

        def __getattr__(self, name):
            return getattr(network, name)

        def nll(self, outputs, targets):
            calls.append((torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()))
            return network.nll(outputs, targets)

    infiller = world.infiller("tigs", precision="bfloat16", margin=math.inf, n_best=n_best)
    infiller.model = Spy()
    infiller.fill(together(world.cases(4)))
    assert (True, False) in calls, "no candidate in half precision"
    assert (True, True) not in calls, "a gradient in half precision"
    # One reading scores the start, the others what is kept.
    assert calls.count((False, False)) > 1


def test_the_precision_of_products_is_as_before_afterwards():
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    with reading_in("tf32", CPU):
        assert products.fp32_precision == "tf32"
    assert products.fp32_precision == before
    with reading_in("float32", CPU):
        assert not torch.is_autocast_enabled("cpu")


@pytest.mark.slow
@pytest.mark.parametrize("method", [*METHODS, "birnn-gsn"])
def test_compiled_steps_give_the_same_fills(method, worlds):
    world = worlds("poetry")
    cases = world.cases(6)
    # Networks of their own: what is compiled stays so.
    compiled = World(copy.deepcopy(world.networks), world.n_tokens, world.pairs)
    for network in compiled.networks.values():
        compile_steps(network)
    assert answers(compiled.fill(method, cases)) == answers(world.fill(method, cases))
    before, after = (one.networks["forward"].state_dict() for one in (world, compiled))
    assert before.keys() == after.keys()
