from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from tigs.models import nll as nll_module
from tigs.models.nll import least_nll, projected_nll
from tigs.training.memory import peak_memory


def _problem(n_tokens, hidden, vocabulary, dtype=torch.float64):
    torch.manual_seed(n_tokens + hidden + vocabulary)
    states = torch.randn(n_tokens, hidden, dtype=dtype, requires_grad=True)
    projection = nn.Linear(hidden, vocabulary, dtype=dtype)
    return states, projection, torch.randint(0, vocabulary, (n_tokens,))


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(2, 30), st.integers(1, 200))
def test_value_and_gradients_equal_plain_cross_entropy(n_tokens, hidden, vocabulary, chunk):
    states, projection, targets = _problem(n_tokens, hidden, vocabulary)
    expected = F.cross_entropy(projection(states), targets, reduction="none")
    weight = 0.37
    wanted = torch.autograd.grad(expected.sum() * weight, [states, projection.weight, projection.bias])
    original = nll_module._CHUNK_ELEMENTS
    nll_module._CHUNK_ELEMENTS = {"cpu": chunk}  # any cutting into chunks must give the same
    try:
        result = projected_nll(states, projection, targets)
    finally:
        nll_module._CHUNK_ELEMENTS = original
    torch.testing.assert_close(result.per_token, expected.detach())
    found = torch.autograd.grad(result.total * weight, [states, projection.weight, projection.bias])
    for gradient, reference in zip(found, wanted, strict=True):
        torch.testing.assert_close(gradient, reference)


@settings(deadline=None, max_examples=30)
@given(st.integers(1, 40), st.integers(1, 9), st.integers(2, 60), st.integers(1, 200))
def test_what_nll_is_at_least_is_the_softmax_over_frequent_words_and_the_target(n_tokens, hidden, vocabulary, chunk):
    states, projection, targets = _problem(n_tokens, hidden, vocabulary)
    logits = projection(states).detach()
    among = torch.arange(vocabulary) < max(1, vocabulary // 6)
    expected = []
    for row, target in zip(logits, targets.tolist(), strict=True):
        chosen = among.clone()
        chosen[target] = True
        expected.append(row[chosen].logsumexp(0) - row[target])
    original = nll_module._CHUNK_ELEMENTS
    nll_module._CHUNK_ELEMENTS = {"cpu": chunk}
    try:
        found = least_nll(states, projection, targets)
    finally:
        nll_module._CHUNK_ELEMENTS = original
    torch.testing.assert_close(found, torch.stack(expected))
    assert not found.requires_grad
    assert (found <= projected_nll(states, projection, targets).per_token + 1e-9).all()


def test_gradient_of_the_states_equals_finite_differences():
    states, projection, targets = _problem(6, 4, 9)
    projection.requires_grad_(False)  # as in search: only the input is free
    assert torch.autograd.gradcheck(lambda free: projected_nll(free, projection, targets).total, (states,))


def test_huge_logits_neither_overflow_nor_lose_the_small_terms():
    states, projection, targets = _problem(5, 4, 7, torch.float32)
    scaled = (states * 1e4).detach()
    expected = F.cross_entropy(projection(scaled), targets, reduction="none")
    torch.testing.assert_close(projected_nll(scaled, projection, targets).per_token, expected)


def test_nothing_is_differentiable_through_the_single_tokens():
    states, projection, targets = _problem(3, 4, 5)
    result = projected_nll(states, projection, targets)
    assert result.total.requires_grad
    assert not result.per_token.requires_grad


def test_a_second_backward_adds_the_same_again():
    states, projection, targets = _problem(3, 4, 5)
    total = projected_nll(states, projection, targets).total
    (total * 2).backward(retain_graph=True)
    once = states.grad.clone()
    (total * 2).backward()
    torch.testing.assert_close(states.grad, 2 * once)


def test_autocast_stays_close_to_float32():
    states, projection, targets = _problem(64, 32, 50, torch.float32)
    exact = projected_nll(states, projection, targets)
    wanted = torch.autograd.grad(exact.total, [states, projection.weight])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rounded = projected_nll(states, projection, targets)
        found = torch.autograd.grad(rounded.total, [states, projection.weight])
    assert rounded.per_token.dtype == torch.float32
    torch.testing.assert_close(rounded.total, exact.total, rtol=2e-2, atol=0)
    for gradient, reference in zip(found, wanted, strict=True):
        assert gradient.dtype == reference.dtype
        torch.testing.assert_close(gradient, reference, rtol=0.1, atol=0.02)


@pytest.mark.parametrize("n_tokens", [512, 4096])
def test_memory_never_holds_a_batch_of_logits(n_tokens):
    """The peak of what the computation allocates stays below one batch of logits, however many tokens there are."""
    vocabulary, hidden = 20_000, 16
    states, projection, targets = _problem(n_tokens, hidden, vocabulary, torch.float32)
    peak = peak_memory(lambda: projected_nll(states, projection, targets).total.backward())
    assert 0 < peak < n_tokens * vocabulary * 4
