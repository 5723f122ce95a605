"""How much memory a piece of work takes beyond what was there before it."""

from __future__ import annotations

from collections.abc import Callable

import torch


def peak_memory(work: Callable[[], object]) -> int:
    """Bytes of tensors that `work` holds at its peak, counted from torch's allocations on the CPU."""
    with torch.profiler.profile(profile_memory=True) as profiler:
        work()
    held = peak = 0
    for event in sorted(profiler.profiler.kineto_results.events(), key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            held += event.nbytes()
            peak = max(peak, held)
    return peak
