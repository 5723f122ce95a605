"""Every network offers to a search what `inference/interfaces.py` asks for, and means the same by it."""

from __future__ import annotations

import inspect

import pytest
import torch
import torch.nn.functional as F

from tigs.data.special import START_ID
from tigs.inference.interfaces import SequenceModel, TwoSidedModel

ONE_SIDED = ("forward", "backward", "evaluator", "mask-seq2seq", "mask-selfattn")
READERS = ("left_reader", "right_reader")
TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


@pytest.fixture(params=[*ONE_SIDED, *READERS])
def name(request):
    return request.param


@pytest.fixture(params=[True, False], ids=["context", "no-context"])
def problem(request, make_model, make_batch, name):
    """What reads one way, be it a network or a part of one, and a batch for it."""
    network = "birnn" if name in READERS else name
    model = make_model(network, has_context=request.param)
    batch = make_batch(network, has_context=request.param)
    return (getattr(model, name) if name in READERS else model), batch


def _require(model, protocol):
    """All names of a protocol, and the arguments of its methods."""
    members = {key: value for key, value in vars(protocol).items() if not key.startswith("_")}
    assert len(members) >= 5
    for key in [*members, *protocol.__annotations__]:
        assert hasattr(model, key), key
    for key, method in members.items():
        if inspect.isfunction(method):
            wanted = [argument for argument in inspect.signature(method).parameters if argument != "self"]
            assert list(inspect.signature(getattr(model, key)).parameters) == wanted, key


def test_all_that_reads_one_way_is_a_sequence_model(problem):
    model, _ = problem
    _require(model, SequenceModel)


@pytest.mark.parametrize("has_context", [True, False])
def test_the_network_with_two_readers_is_a_two_sided_model(make_model, has_context):
    _require(make_model("birnn", has_context=has_context), TwoSidedModel)


@pytest.mark.parametrize("name", ONE_SIDED)
def test_a_network_starts_at_the_beginning_even_if_that_is_the_end(make_model, name):
    assert make_model(name).first_token == START_ID


@torch.no_grad()
def test_steps_a_run_and_word_vectors_give_the_same_outputs(problem):
    model, (context, target) = problem
    start = model.start(context)
    whole, after_run = model.run(start, target.ids)
    by_vectors, _ = model.run(start, model.word_vectors[target.ids])
    torch.testing.assert_close(by_vectors, whole, **TOLERANCE)
    state = start
    for position in range(target.ids.shape[1]):
        outputs, state = model.step(state, target.ids[:, position])
        torch.testing.assert_close(outputs, whole[:, position], **TOLERANCE)
    again = torch.full_like(target.lengths, 7)
    torch.testing.assert_close(model.step(state, again)[0], model.step(after_run, again)[0], **TOLERANCE)


def test_probabilities_sum_to_one_and_nll_is_their_logarithm(problem):
    model, (context, target) = problem
    with torch.no_grad():
        outputs, _ = model.run(model.start(context), target.ids)
    outputs = outputs.flatten(0, 1).requires_grad_()  # (tokens, hidden)
    log_probabilities = model.log_probabilities(outputs)
    torch.testing.assert_close(log_probabilities.exp().sum(dim=-1), torch.ones(len(outputs)), **TOLERANCE)
    expected = F.nll_loss(log_probabilities, target.ids.flatten(), reduction="none")
    nll = model.nll(outputs, target.ids.flatten())
    torch.testing.assert_close(nll.per_token, expected.detach(), **TOLERANCE)
    (wanted,) = torch.autograd.grad(expected.sum(), outputs)
    (found,) = torch.autograd.grad(nll.total, outputs)
    torch.testing.assert_close(found, wanted, **TOLERANCE)
