"""The one NLL: training, search and evaluation all ask `projected_nll`.

The softmax over the vocabulary is the cost of every model here, and on a CPU most of that cost is memory: a batch of logits
does not fit any cache. So logits are made a few rows at a time, and since d NLL / d logits is known as soon as they are, the
gradients are formed at once too. No batch of logits is ever held, not even one.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

_CHUNK_ELEMENTS = {"cpu": 2**20, "cuda": 2**26}
# Numbers of float32 in a cache line of a CPU.
_ALIGNED = 16
# Words have ids by their frequency: so small a part of them, the first, has most of the probability in any place.
_FREQUENT = 1 / 6


def logits_at_once(device: torch.device) -> int:
    """Rows times words that are best made together: as many as a core's cache holds, or as fill a GPU."""
    return _CHUNK_ELEMENTS.get(device.type, 2**26)


class NLL(NamedTuple):
    """Negative log-likelihood of tokens, natural logarithm."""

    total: Tensor
    """() the sum over all tokens; gradients flow through this."""
    per_token: Tensor
    """(tokens) each token's part; no gradient."""


def projected_nll(states: Tensor, projection: nn.Linear, targets: Tensor) -> NLL:
    """NLL of `targets` (tokens) under softmax(projection(states)), `states` being (tokens, hidden).

    Only rows that count should be passed in: padded positions are then never projected.
    """
    return NLL(*_ProjectedNLL.apply(states, projection.weight, projection.bias, targets))


@torch.no_grad()
def least_nll(states: Tensor, projection: nn.Linear, targets: Tensor) -> Tensor:
    """(tokens) what `projected_nll` gives at least: the softmax over the most frequent words and the target alone.

    A sum over fewer words is smaller, so it is a bound whatever words are chosen, for a fraction of the price.
    """
    dtype = _product_dtype(states)
    n_frequent = max(1, int(_FREQUENT * projection.out_features))
    weight, bias = projection.weight, projection.bias
    rows = max(1, logits_at_once(states.device) // n_frequent)
    least = torch.empty(len(states), dtype=bias.dtype, device=states.device)  # (tokens)
    with torch.autocast(states.device.type, enabled=False):
        transposed = weight[:n_frequent].to(dtype).t()
        for first in range(0, len(states), rows):
            chunk = slice(first, first + rows)
            target, own = targets[chunk], states[chunk].to(dtype)
            logits = _product(own, transposed).to(bias.dtype).add_(bias[:n_frequent])  # (rows, frequent)
            target_logits = (own * weight[target].to(dtype)).sum(dim=1).to(bias.dtype) + bias[target]  # (rows)
            behind = logits.logsumexp(dim=1) - target_logits
            # A rare target is not among the words yet.
            least[chunk] = torch.where(target < n_frequent, behind, F.softplus(behind))
    return least


def _product_dtype(states: Tensor) -> torch.dtype:
    """Under autocast products are made in its type; the softmax itself always in float32."""
    device = states.device.type
    return torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else states.dtype


def _product(states: Tensor, weight: Tensor) -> Tensor:
    """states (rows, hidden) @ weight (hidden, vocabulary); every row begins with a cache line: others take longer to write."""
    aligned = -(-weight.shape[1] // _ALIGNED) * _ALIGNED
    product = states.new_empty(len(states), aligned)[:, : weight.shape[1]]  # (rows, vocabulary)
    return torch.mm(states, weight, out=product)


class _ProjectedNLL(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
        dtype = _product_dtype(states)
        with torch.autocast(states.device.type, enabled=False):
            return _ProjectedNLL._forward(ctx, states.to(dtype), weight.to(dtype), bias, targets, states.dtype)

    @staticmethod
    def _forward(
        ctx: Any, states: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, states_dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        needs_states, needs_weight, needs_bias, _ = ctx.needs_input_grad
        per_token = torch.empty(len(states), dtype=bias.dtype, device=states.device)  # (tokens)
        grad_states = torch.empty_like(states) if needs_states else None  # (tokens, hidden)
        # In the bias's type, as a sum over many chunks would lose too much in half precision. (vocabulary, hidden)
        grad_weight = torch.zeros_like(weight, dtype=bias.dtype) if needs_weight else None
        grad_bias = torch.zeros_like(bias) if needs_bias else None  # (vocabulary)
        rows = max(1, logits_at_once(states.device) // len(weight))
        transposed = weight.t()
        for first in range(0, len(states), rows):
            chunk = slice(first, first + rows)
            logits = _product(states[chunk], transposed).to(bias.dtype).add_(bias)  # (rows, vocabulary)
            logits.sub_(logits.amax(dim=1, keepdim=True))
            target = targets[chunk, None]  # (rows, 1)
            target_logits = logits.gather(1, target)
            total = logits.exp_().sum(dim=1, keepdim=True)  # (rows, 1)
            per_token[chunk] = (total.log() - target_logits).squeeze(1)
            if not (needs_states or needs_weight or needs_bias):
                continue
            # From here on `logits` holds d NLL / d logits: the softmax, less one at the target.
            logits.div_(total).scatter_add_(1, target, torch.full_like(target_logits, -1.0))
            if grad_bias is not None:
                grad_bias += logits.sum(dim=0)
            logits = logits.to(weight.dtype)
            if grad_states is not None:
                torch.mm(logits, weight, out=grad_states[chunk])
            if grad_weight is not None and grad_weight.dtype == states.dtype:
                grad_weight.addmm_(logits.t(), states[chunk])
            elif grad_weight is not None:
                grad_weight.add_(torch.mm(logits.t(), states[chunk]))
        ctx.gradients = (
            None if grad_states is None else grad_states.to(states_dtype),
            grad_weight,
            grad_bias,
        )
        ctx.mark_non_differentiable(per_token)
        return per_token.sum(), per_token

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        return *(None if gradient is None else gradient * grad_total for gradient in ctx.gradients), None
