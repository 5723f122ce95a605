"""Random choices that depend on the seed and the template alone, never on batches, devices or other sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import torch


def generators(seed: int, template_ids: Iterable[str]) -> list[torch.Generator]:
    """One source of randomness per template, on the CPU, so that every device draws the same."""
    return [_generator(f"{seed}/{name}") for name in template_ids]


def _generator(text: str) -> torch.Generator:
    digest = hashlib.blake2b(text.encode(), digest_size=7).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest, "big"))
