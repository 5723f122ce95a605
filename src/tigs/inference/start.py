"""What methods that go round start from. The paper's are given the same start (section 5.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from tigs.config import MethodConfig
from tigs.inference.beam import beam_search
from tigs.inference.beams import Beams
from tigs.inference.budget import TokenBudget
from tigs.inference.expected import expected_gradient
from tigs.inference.gradient import GRADIENT_STEPS
from tigs.inference.interfaces import SequenceModel, Templates
from tigs.inference.randomness import generators
from tigs.inference.refill import refill


class Started(NamedTuple):
    """Whole sentences to improve on."""

    words: Tensor
    """(batch, longest)"""
    steps: Tensor
    """(batch) tokens read to find them"""
    state: Any = None
    """before `<s>`, one row per template, of the model given to `make_start`, where it was needed; TIGS, which searches that
    model, goes on with it"""
    beams: Beams | None = None
    """All that a refill has found, best first."""


Start = Callable[[Templates], Started]


def make_start(settings: MethodConfig, model: SequenceModel, *, forbidden: Tensor, seed: int) -> Start:
    """The start that the settings ask for; it is to be called in `search_mode()`."""
    budget = TokenBudget()

    def beam(templates: Templates) -> Started:
        width = 1 if settings.start == "greedy" else settings.beam_width
        state = model.start(templates.context)
        beams = beam_search(
            model,
            state,
            templates,
            width=width,
            forbidden=forbidden,
            score_known=settings.score_known,
        )
        return Started(beams.words[:, 0], beams.steps, state=state)

    def refilled(templates: Templates) -> Started:
        state = model.start(templates.context)
        beams = refill(
            model,
            state,
            templates,
            expected_gradient(model, state, templates, forbidden=forbidden),
            per_blank=settings.refill_width,
            at_least=settings.refill_least,
            margin=settings.margin,
            margin_decay=settings.effective_refill_margin_decay,
            forbidden=forbidden,
            budget=budget,
            only_best=settings.n_best == 1,
        )
        before = templates.blanks.int().argmax(dim=1)  # (batch) words that no gradient is taken of
        steps = beams.steps + before + GRADIENT_STEPS * (templates.target.lengths + 1 - before)  # (batch)
        return Started(beams.words[:, 0], steps, state=state, beams=beams)

    def random(templates: Templates) -> Started:
        allowed = (~forbidden).nonzero().squeeze(1)  # (words)
        sentences = templates.target.ids.clone()
        for row, generator in enumerate(generators(seed, templates.ids)):
            blanks = templates.blanks[row]
            drawn = torch.randint(len(allowed), (int(blanks.sum()),), generator=generator)  # (blanks)
            sentences[row, blanks] = allowed[drawn.to(allowed.device)]
        return Started(sentences, torch.zeros_like(templates.target.lengths))

    return {"beam": beam, "greedy": beam, "refill": refilled, "random": random}[settings.start]
