"""Attention of many hypotheses to the contexts they share, against each with a copy of its own."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.models.attention import Memory, attend, join

N_CONTEXTS, TIME, SIZE = 4, 5, 6
# Two ways to the same sum: in float32 a gradient that nearly vanishes may differ by more than any fixed tolerance.
PRECISE = torch.float64


def random_queries(n, seed):
    return torch.randn(n, SIZE, generator=torch.Generator().manual_seed(seed), dtype=PRECISE)


def random_memory(seed):
    generator = torch.Generator().manual_seed(seed)
    values, keys = torch.randn(2, N_CONTEXTS, TIME, SIZE, generator=generator, dtype=PRECISE)
    bias = torch.zeros(N_CONTEXTS, TIME, dtype=PRECISE)
    bias[0, 3:] = bias[2, 1:] = float("-inf")
    return Memory(values, keys, bias)


@st.composite
def selections(draw):
    """Rows of rows: a search goes on with some of what it has, some of it many times."""
    chosen, n_rows = [], N_CONTEXTS
    for _ in range(draw(st.integers(1, 3))):
        chosen.append(draw(st.lists(st.integers(0, n_rows - 1), min_size=1, max_size=9)))
        n_rows = len(chosen[-1])
    return chosen


@given(st.integers(0, 10**6), selections())
@settings(max_examples=60)
def test_rows_that_share_a_context_see_what_each_would_see_alone(seed, chosen):
    memory = random_memory(seed)
    shared, own = memory, list(range(N_CONTEXTS))
    for rows in chosen:
        shared, own = shared.select(torch.tensor(rows)), [own[row] for row in rows]
    queries = random_queries(len(own), seed + 1).requires_grad_()
    found = attend(queries, shared)
    weights = [
        torch.softmax(memory.keys[row] @ query + memory.bias[row], dim=0)
        for query, row in zip(queries, own, strict=True)
    ]
    expected = torch.stack([weight @ memory.values[row] for weight, row in zip(weights, own, strict=True)])
    torch.testing.assert_close(found, expected)
    by_hand, gradient = (torch.autograd.grad(vectors.square().sum(), queries)[0] for vectors in (expected, found))
    torch.testing.assert_close(gradient, by_hand)


def test_a_context_is_held_once_for_all_that_read_it():
    memory = random_memory(0).select(torch.tensor([1, 3, 1, 1, 3]))
    assert len(memory.values) == len(memory.keys) == len(memory.bias) == 2
    assert len(memory.select(torch.tensor([0, 2, 3])).values) == 1
    assert memory.select(torch.tensor([4])).readers is None


@given(st.integers(0, 10**6), st.lists(selections(), min_size=1, max_size=3))
@settings(max_examples=40)
def test_joined_rows_see_what_they_saw_before(seed, parts):
    memory = random_memory(seed)
    memories = []
    for chosen in parts:
        own = memory
        for rows in chosen:
            own = own.select(torch.tensor(rows))
        memories.append(own)
    counts = [len(chosen[-1]) for chosen in parts]
    queries = random_queries(sum(counts), seed + 1)
    expected = [attend(own, part) for own, part in zip(queries.split(counts), memories, strict=True)]
    torch.testing.assert_close(attend(queries, join(memories)), torch.cat(expected))


def test_contexts_are_no_longer_padded_than_they_need():
    memory = random_memory(0)  # of 3, 5, 1 and 5 tokens
    assert memory.select(torch.tensor([2])).values.shape[1] == 1
    assert memory.select(torch.tensor([0, 2, 0])).keys.shape[1] == 3
    assert memory.select(torch.tensor([1, 2])).bias.shape[1] == 5
