"""Which words may be filled in."""

from __future__ import annotations

import torch
from torch import Tensor

from tigs.data.special import SPECIAL_TOKENS, UNK_ID


def forbidden_words(n_tokens: int, *, allow_unk: bool, device: torch.device | None = None) -> Tensor:
    """(vocabulary) true for the special tokens; `<unk>` counts as a word only if it is allowed."""
    forbidden = torch.arange(n_tokens, device=device) < len(SPECIAL_TOKENS)
    forbidden[UNK_ID] = not allow_unk
    return forbidden
