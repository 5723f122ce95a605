"""Arithmetic that a GPU does faster than float32, and how far it is off."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

FULL = "float32"
# Nats by which the NLL of a sentence may differ from that in float32. Generous: both keep about three, two decimal digits, and
# the errors of a sentence's tokens add up.
SLACK = {"tf32": 0.2, "bfloat16": 1.0}


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
