from __future__ import annotations

from itertools import pairwise

import pytest

from tigs.training.schedule import learning_rate_factor


def _factors(total, warmup=0):
    return [learning_rate_factor(step, total_steps=total, warmup_steps=warmup) for step in range(total)]


def test_constant_for_two_thirds_then_halved_four_times():
    factors = _factors(1200)
    assert set(factors[:800]) == {1.0}
    assert factors[800:900] == [0.5] * 100
    assert factors[1100:] == [0.5**4] * 100
    assert sorted(set(factors), reverse=True) == [1.0, 0.5, 0.25, 0.125, 0.0625]


def test_warm_up_rises_evenly_to_the_full_rate():
    factors = _factors(1000, warmup=100)
    assert factors[0] == pytest.approx(0.01)
    assert factors[49] == pytest.approx(0.5)
    assert factors[99] == 1.0 == factors[100]
    assert all(later >= earlier for earlier, later in pairwise(factors[:101]))


def test_never_zero_even_past_the_planned_end():
    assert learning_rate_factor(5000, total_steps=1000, warmup_steps=0) == 0.5**4
