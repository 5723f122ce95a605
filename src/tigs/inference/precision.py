"""Candidates may be read in less than float32, where a GPU is faster in it. The word that is kept is read again in float32."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

FULL = "float32"


@contextmanager
def reading_in(precision: str, device: torch.device) -> Iterator[None]:
    """Models compute in `float32`, `tf32` (which only a GPU has) or `bfloat16`."""
    if precision == "bfloat16":
        with torch.autocast(device.type, dtype=torch.bfloat16):
            yield
    elif precision == "tf32":
        products = torch.backends.cuda.matmul
        before, products.fp32_precision = products.fp32_precision, "tf32"
        try:
            yield
        finally:
            products.fp32_precision = before
    else:
        yield
