"""Faster arithmetic for the P-step: what it may change, and what it may not."""

from __future__ import annotations

import copy
import itertools

import pytest
import torch

from tigs.inference.precision import reading_in

from .worlds import World, together

METHODS = ("tigs", "tigs-plus")
CPU = torch.device("cpu")


@pytest.fixture(params=["poetry", "aprc"])
def world(request, worlds):
    return worlds(request.param)


def answers(results):
    return [(result.fill, pytest.approx(result.nll, abs=1e-4)) for result in results]


@pytest.mark.parametrize("method", METHODS)
def test_tf32_changes_nothing_where_there_is_no_gpu(method, world):
    cases = world.cases(12)
    assert answers(world.fill(method, cases, precision="tf32")) == answers(world.fill(method, cases))


@pytest.mark.parametrize("method", METHODS)
def test_compiled_steps_give_the_same_fills(method, world):
    cases = world.cases(6)
    # Networks of their own: what is compiled stays so.
    compiled = World(copy.deepcopy(world.networks), world.n_tokens, world.pairs)
    assert answers(compiled.fill(method, cases, compile=True)) == answers(world.fill(method, cases))
    before, after = (one.networks["forward"].state_dict() for one in (world, compiled))
    assert before.keys() == after.keys()


@pytest.mark.parametrize("method", METHODS)
def test_half_precision_proposes_and_full_precision_decides(method, world):
    cases = world.cases(12)
    full = world.fill(method, cases)
    half = world.fill(method, cases, precision="bfloat16")
    for case, result in zip(cases, half, strict=True):
        assert result.nll == pytest.approx(*world.rescore(method, case, result.fill), abs=1e-4)
        assert all(after <= before + 1e-5 for before, after in itertools.pairwise(result.trace))
    # Words that half precision takes for equal may be confused, others not.
    assert sum(one.nll for one in half) == pytest.approx(sum(one.nll for one in full), rel=0.01)


def test_half_precision_is_where_the_candidates_are_read_and_nowhere_else(worlds):
    world = worlds("aprc")
    network, seen = world.networks["forward"], []

    class Spy:
        """The network, which tells what it computes in."""

        def __getattr__(self, name):
            return getattr(network, name)

        def nll(self, outputs, targets):
            seen.append(torch.is_autocast_enabled("cpu"))
            return network.nll(outputs, targets)

    infiller = world.infiller("tigs", precision="bfloat16", margin=float("inf"))
    infiller.model = Spy()
    infiller.fill(together(world.cases(4)))
    assert {True, False} == set(seen)
    seen.clear()
    infiller = world.infiller("tigs", precision="bfloat16", n_best=2)
    infiller.model = Spy()
    infiller.fill(together(world.cases(4)))
    assert set(seen) == {False}


def test_the_precision_of_products_is_as_before_afterwards():
    products = torch.backends.cuda.matmul
    before = products.fp32_precision
    with reading_in("tf32", CPU):
        assert products.fp32_precision == "tf32"
    assert products.fp32_precision == before
    with reading_in("float32", CPU):
        assert not torch.is_autocast_enabled("cpu")
