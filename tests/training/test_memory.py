from __future__ import annotations

import torch

from tigs.training.memory import peak_memory

KILOBYTE = 1024


def _one_after_the_other(n_blocks):
    for _ in range(n_blocks):
        torch.empty(100 * KILOBYTE, dtype=torch.uint8)


def _together(n_blocks):
    return [torch.empty(100 * KILOBYTE, dtype=torch.uint8) for _ in range(n_blocks)]


def test_the_peak_is_what_is_held_at_once_and_not_what_is_taken_in_all():
    assert peak_memory(lambda: _together(5)) == 500 * KILOBYTE
    assert peak_memory(lambda: _one_after_the_other(5)) == 100 * KILOBYTE


def test_what_was_there_before_does_not_count():
    before = _together(5)
    assert peak_memory(lambda: before[0].clone()) == 100 * KILOBYTE
    assert peak_memory(lambda: None) == 0
