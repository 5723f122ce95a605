"""Sentences with blanks: where the blanks fall, and how a fill makes the sentence whole again. Pure functions only."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from tigs.data.special import BLANK
from tigs.errors import ConfigError


@dataclass(frozen=True)
class Template:
    """A sentence with blanks, the context it answers to, and an id that seeds every random choice about it."""

    id: str
    context: tuple[str, ...]
    tokens: tuple[str, ...]
    """`<blank>` at every blank."""
    blank_positions: tuple[int, ...]
    """Ascending."""


def choose_blanks(length: int, *, strategy: str, ratio: float, seed: str) -> tuple[int, ...]:
    """Positions of `int(ratio * length)` blanks, at least one, in a sentence of `length` tokens (without `</s>`).

    Args:
        length: number of tokens.
        strategy: `random` places, or `middle`, one run of blanks in the centre (paper, section 5.1).
        ratio: share of the tokens in (0, 1].
        seed: decides the random places; the same on every machine.
    """
    if not 0 < ratio <= 1:
        raise ConfigError(f"a mask ratio of {ratio} is not allowed", remedy="It must be above 0 and at most 1")
    if length == 0:
        return ()
    n_blanks = max(1, int(ratio * length))
    if strategy == "middle":
        first = (length - n_blanks) // 2
        return tuple(range(first, first + n_blanks))
    if strategy == "random":
        # Rank positions by a hash instead of drawing them: no dependence on a library's random generator.
        def rank(position: int) -> bytes:
            return hashlib.blake2b(f"{seed}/{position}".encode(), digest_size=8).digest()

        return tuple(sorted(sorted(range(length), key=rank)[:n_blanks]))
    raise ConfigError(f"there is no mask strategy '{strategy}'", remedy="Choose one of: random, middle")


def make_template(
    identifier: str, context: Sequence[str], sentence: Sequence[str], *, strategy: str, ratio: float, seed: int
) -> Template:
    """Blank out part of a sentence."""
    places = choose_blanks(len(sentence), strategy=strategy, ratio=ratio, seed=f"{seed}/{identifier}")
    blanked = set(places)
    tokens = tuple(BLANK if position in blanked else token for position, token in enumerate(sentence))
    return Template(identifier, tuple(context), tokens, places)


def reference_fill(template: Template, sentence: Sequence[str]) -> tuple[str, ...]:
    """The tokens that stood where the blanks are."""
    return tuple(sentence[position] for position in template.blank_positions)


def apply_fill(template: Template, fill: Sequence[str]) -> tuple[str, ...]:
    """The whole sentence. `apply_fill(template, reference_fill(template, sentence)) == sentence`."""
    if len(fill) != len(template.blank_positions):
        raise ValueError(f"{len(fill)} tokens for {len(template.blank_positions)} blanks of template {template.id}")
    tokens = list(template.tokens)
    for position, token in zip(template.blank_positions, fill, strict=True):
        tokens[position] = token
    return tuple(tokens)
