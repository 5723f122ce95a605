from __future__ import annotations

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tigs.config import PROPOSALS
from tigs.data.special import BLANK_ID
from tigs.inference.budget import TokenBudget

from .markov import WORDS, Markov, random_markov
from .worlds import Case, tigs_from


def no_gpu_memory():
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB.")


def no_cpu_memory():
    """What the CPU's allocator really says; no machine has so much."""
    torch.empty(2**60, dtype=torch.uint8)


out_of_memory = pytest.mark.parametrize("run_out", [no_gpu_memory, no_cpu_memory])


@out_of_memory
@given(tokens=st.integers(1, 5000), tokens_per_row=st.integers(1, 60), fitting=st.integers(1, 100))
def test_half_as_much_until_it_fits_and_never_again_more(run_out, tokens, tokens_per_row, fitting):
    budget, tried = TokenBudget(tokens), []

    def work(rows):
        tried.append(rows)
        if rows > fitting:
            run_out()
        return rows

    given_rows = budget.spend(work, tokens_per_row=tokens_per_row)
    expected = [max(1, tokens // tokens_per_row)]
    while expected[-1] > fitting:
        expected.append(expected[-1] // 2)
    assert tried == expected
    assert given_rows == expected[-1]
    # The next time it begins where it fitted, however long the rows are.
    assert budget.spend(work, tokens_per_row=tokens_per_row) == expected[-1]
    assert len(tried) == len(expected) + 1
    assert budget.spend(lambda rows: rows, tokens_per_row=2 * tokens_per_row) <= expected[-1]


@out_of_memory
def test_a_single_row_that_does_not_fit_is_an_error(run_out):
    tried = []

    def work(rows):
        tried.append(rows)
        run_out()

    with pytest.raises(RuntimeError, match="memory"):
        TokenBudget(9).spend(work, tokens_per_row=2)
    assert tried == [4, 2, 1]


@pytest.mark.parametrize("error", [RuntimeError("shapes do not match"), ValueError("can't allocate memory")])
def test_another_error_is_not_tried_again(error):
    tried = []

    def work(rows):
        tried.append(rows)
        raise error

    budget = TokenBudget(100)
    with pytest.raises(type(error), match=str(error)):
        budget.spend(work, tokens_per_row=1)
    assert tried == [100]
    assert budget.tokens == 100


@out_of_memory
@pytest.mark.parametrize("proposal", PROPOSALS)
def test_fills_are_the_same_when_the_first_readings_run_out_of_memory(run_out, proposal):
    class Small(Markov):
        n_failures = 0

        def run(self, state, tokens):
            if len(tokens) > len(cases):
                self.n_failures += 1
                run_out()
            return super().run(state, tokens)

    cases = [Case(str(word), [word], [BLANK_ID] * 5) for word in WORDS[:4]]
    starts = [(WORDS[0],) * 5] * 4
    roomy = random_markov(2)
    small = Small(roomy.transitions)
    for n_best in (1, 40):
        options = {"proposal": proposal, "n_candidates": 6, "n_best": n_best}
        expected, found = (tigs_from(model, cases, starts, **options) for model in (roomy, small))
        # How far a sentence was read depends on who was read beside it.
        for own, other in zip(found, expected, strict=True):
            assert (own.fill, own.rounds) == (other.fill, other.rounds)
            assert own.trace == pytest.approx(other.trace)
            assert [one.fill for one in own.alternatives] == [one.fill for one in other.alternatives]
    assert small.n_failures > 0
