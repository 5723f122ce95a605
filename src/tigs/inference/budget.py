"""How much is read side by side: a bound on memory that finds its own level."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import torch

T = TypeVar("T")

# Tokens of all rows together. On a CPU few enough that the likeliest candidates are known before the others are read, and many
# enough that products stay large.
DEFAULT_TOKENS = 2**15


class TokenBudget:
    """Rows times tokens that may be held at once; halved for good when memory runs out."""

    def __init__(self, tokens: int = DEFAULT_TOKENS) -> None:
        self.tokens = tokens

    def spend(self, work: Callable[[int], T], *, tokens_per_row: int) -> T:
        """`work(rows)` with as many rows as fit, tried again with fewer until memory suffices or a single row is too much."""
        while True:
            rows = max(1, self.tokens // tokens_per_row)
            try:
                return work(rows)
            except RuntimeError as error:
                if rows == 1 or not _out_of_memory(error):
                    raise
            self.tokens = rows * tokens_per_row // 2


def _out_of_memory(error: RuntimeError) -> bool:
    # The CPU's allocator has no exception type of its own.
    told = ("can't allocate memory", "not enough memory")
    return isinstance(error, torch.OutOfMemoryError) or any(text in str(error) for text in told)
