"""From a model's name and sizes to the network. The one place that knows which class stands behind which name."""

from __future__ import annotations

from torch import nn

from tigs.config import ModelConfig
from tigs.models.birnn import BiRNN
from tigs.models.seq2seq import Seq2Seq
from tigs.models.transformer import Transformer

MASKED_MODELS = ("mask-seq2seq", "mask-selfattn")
"""Their context is `x </s> template`, so they always have one."""


def build_model(settings: ModelConfig, *, n_tokens: int, has_context: bool) -> nn.Module:
    """A freshly initialised network."""
    sizes = {
        "n_tokens": n_tokens,
        "hidden": settings.hidden,
        "layers": settings.layers,
    }
    if settings.name == "birnn":
        return BiRNN(**sizes, dropout=settings.dropout, has_context=has_context)
    if settings.name == "mask-selfattn":
        return Transformer(**sizes, heads=settings.heads, dropout=settings.dropout)
    return Seq2Seq(
        **sizes,
        dropout=settings.dropout,
        has_context=has_context or settings.name in MASKED_MODELS,
        backward=settings.name == "backward",
    )


def count_parameters(model: nn.Module) -> int:
    """Trainable numbers."""
    return sum(parameter.numel() for parameter in model.parameters())
