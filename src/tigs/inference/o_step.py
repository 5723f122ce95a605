"""The O-step: one optimiser step on the vector of a blank (paper, section 4.2, equations 5 and 6)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from tigs.config import MethodConfig

_ADAM_DECAY = (0.9, 0.999)
_SMALL = 1e-8


@dataclass
class OptimiserState:
    """What an optimiser remembers of each blank; every tensor is (batch, longest, size)."""

    first: Tensor
    """momentum, or Adam's mean of gradients"""
    second: Tensor
    """Adam's mean of squares"""
    n_steps: Tensor
    """(batch, longest) steps taken so far"""

    @classmethod
    def fresh(cls, vectors: Tensor) -> OptimiserState:
        """For vectors (batch, longest, size) that have not moved yet."""
        n_steps = torch.zeros(vectors.shape[:2], device=vectors.device)
        return cls(torch.zeros_like(vectors), torch.zeros_like(vectors), n_steps)


def penalty_gradient(vectors: Tensor, word_vectors: Tensor, settings: MethodConfig) -> Tensor:
    """Gradient (rows, size) of lambda ||v|| and of the distance to the nearest word, at vectors (rows, size)."""
    gradient = settings.penalty * _direction(vectors)
    if settings.nearest_penalty:
        nearest = word_vectors[torch.cdist(vectors, word_vectors).argmin(dim=1)]  # (rows, size)
        gradient = gradient + settings.nearest_penalty * _direction(vectors - nearest)
    return gradient


def o_step(
    vectors: Tensor, gradient: Tensor, memory: OptimiserState, rows: Tensor, places: Tensor, settings: MethodConfig
) -> Tensor:
    """New vectors (rows, size) of one blank each; the memory of that blank is updated.

    Args:
        vectors: (rows, size).
        gradient: (rows, size) of the loss at `vectors`.
        memory: of the whole batch.
        rows: (rows) which sentences of the batch.
        places: (rows) of the blanks.
        settings: optimiser, step size, momentum.
    """
    if settings.optimiser == "sgd":
        return vectors - settings.step_size * gradient
    if settings.optimiser == "nesterov":
        velocity = settings.momentum * memory.first[rows, places] + gradient
        memory.first[rows, places] = velocity
        return vectors - settings.step_size * (gradient + settings.momentum * velocity)
    first_decay, second_decay = _ADAM_DECAY
    memory.n_steps[rows, places] += 1
    n_steps = memory.n_steps[rows, places][:, None]  # (rows, 1)
    first = first_decay * memory.first[rows, places] + (1 - first_decay) * gradient
    second = second_decay * memory.second[rows, places] + (1 - second_decay) * gradient**2
    memory.first[rows, places], memory.second[rows, places] = first, second
    # 1 - decay**n, written so that single precision does not lose most of it.
    mean = first / -torch.expm1(n_steps * math.log(first_decay))  # (rows, size)
    spread = second / -torch.expm1(n_steps * math.log(second_decay))  # (rows, size)
    return vectors - settings.step_size * mean / (spread.sqrt() + _SMALL)


def _direction(vectors: Tensor) -> Tensor:
    """Gradient of the length of each vector; 0 at 0."""
    return vectors / vectors.norm(dim=1, keepdim=True).clamp(min=_SMALL)
