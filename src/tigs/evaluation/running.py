"""Figures that grow batch by batch, over one or several processes: thin torchmetrics classes around pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torchmetrics import Metric

from tigs.evaluation.bleu import N_STATISTICS, Tokens, bleu_of_sums, bleu_statistics


def nll_per_token(total: Tensor, n_tokens: Tensor) -> Tensor:
    """Mean NLL () from the sum over tokens () and their number ()."""
    return total / n_tokens


class RunningNLL(Metric):
    """NLL per token over everything seen, however it is spread over batches and processes."""

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    total: Tensor
    n_tokens: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        # Thousands of batches are summed: single precision would lose digits.
        self.add_state("total", torch.zeros((), dtype=torch.float64), dist_reduce_fx="sum")
        self.add_state("n_tokens", torch.zeros((), dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, per_token: Tensor) -> None:
        """Add the NLL of some tokens, of any shape; padding must have been left out."""
        self.total += per_token.double().sum()
        self.n_tokens += per_token.numel()

    def compute(self) -> Tensor:
        """()"""
        return nll_per_token(self.total, self.n_tokens)


class RunningBleu(Metric):
    """Corpus BLEU between 0 and 1, as sacrebleu computes it on all sentences of all processes at once."""

    is_differentiable = False
    higher_is_better = True
    full_state_update = False
    sums: Tensor

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.add_state("sums", torch.zeros(N_STATISTICS, dtype=torch.int64), dist_reduce_fx="sum")

    def update(self, hypotheses: Sequence[Tokens], references: Sequence[Tokens]) -> None:
        """Add sentences, one reference each."""
        statistics = torch.from_numpy(bleu_statistics(hypotheses, references))  # (sentences, N_STATISTICS)
        self.sums += statistics.sum(dim=0).to(self.sums.device)

    def compute(self) -> Tensor:
        """()"""
        return torch.tensor(float(bleu_of_sums(self.sums.cpu().numpy())), dtype=torch.float64, device=self.sums.device)
