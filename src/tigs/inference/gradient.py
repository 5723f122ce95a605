"""The one place that deals with torch's gradient modes.

Lightning runs predict under `torch.inference_mode`, whose tensors can never take part in a gradient; and cuDNN refuses the
backward pass of a recurrent network in eval mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.inference.interfaces import Templates

# Reading a token with gradients costs its forward step and about two more on the way back.
GRADIENT_STEPS = 3


@contextmanager
def search_mode() -> Iterator[None]:
    """No gradients, but tensors made here may enter `gradients()` later, whatever mode the caller is in."""
    with torch.inference_mode(False), torch.no_grad():
        yield


@contextmanager
def gradients() -> Iterator[None]:
    """Gradients with respect to inputs, inside `search_mode()`."""
    with torch.enable_grad(), torch.backends.cudnn.flags(enabled=False):
        yield


def own_copy(templates: Templates) -> Templates:
    """Ids that belong to `search_mode()`; those of a batch may be inference tensors."""

    def clone(padded: Padded) -> Padded:
        return Padded(padded.ids.clone(), padded.lengths.clone())

    return Templates(templates.ids, clone(templates.context), clone(templates.target))


def input_gradient(loss: Tensor, inputs: Tensor) -> Tensor:
    """d loss / d inputs, leaving no gradient behind in the model."""
    (gradient,) = torch.autograd.grad(loss, inputs)
    return gradient
