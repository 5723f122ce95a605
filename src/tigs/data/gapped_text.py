"""Text that a person has written with gaps in it, as tokens and gaps."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass

from tigs.data import english
from tigs.data.special import BLANK
from tigs.errors import InferenceError

# `____` is one token; `____{2}` is two, `____{1,3}` one to three.
_GAP = re.compile(r"__+(?:\{(\d+)(?:,(\d+))?\})?")


@dataclass(frozen=True)
class Gap:
    """A hole into which some number of tokens goes."""

    shortest: int
    longest: int


Piece = str | Gap


def tokenize(text: str, task: str) -> tuple[str, ...]:
    """Tokens as the task's corpus has them: characters of poems, lower-case words otherwise."""
    return (
        tuple(character for character in text if not character.isspace())
        if task == "poetry"
        else english.tokenize(text)
    )


def parse(text: str, task: str) -> tuple[Piece, ...]:
    """Tokens and gaps of a text such as `i would ____ to ____{1,3} .`.

    Raises:
        InferenceError: for a gap whose lengths are the wrong way round.
    """
    pieces: list[Piece] = []
    end = 0
    for match in _GAP.finditer(text):
        pieces += tokenize(text[end : match.start()], task)
        shortest = int(match[1]) if match[1] else 1
        longest = int(match[2]) if match[2] else shortest
        if longest < shortest or longest == 0:
            raise InferenceError(
                f"the gap {match[0]} has no length", remedy="Write the smaller number first: ____{1,3}"
            )
        pieces.append(Gap(shortest, longest))
        end = match.end()
    return (*pieces, *tokenize(text[end:], task))


def expand(pieces: Sequence[Piece], *, max_combinations: int) -> list[tuple[str, ...]]:
    """Every sentence of tokens and `<blank>` that the gaps allow.

    Raises:
        InferenceError: if there are more than `max_combinations`.
    """
    gaps = [piece for piece in pieces if isinstance(piece, Gap)]
    n_combinations = 1
    for gap in gaps:
        n_combinations *= gap.longest - gap.shortest + 1
    if n_combinations > max_combinations:
        raise InferenceError(
            f"the gaps can have {n_combinations} combinations of lengths, more than {max_combinations}",
            remedy="Narrow the ranges, or raise method.max_combinations",
        )
    sentences = []
    for lengths in itertools.product(*(range(gap.shortest, gap.longest + 1) for gap in gaps)):
        blanks = iter(lengths)
        tokens = [(BLANK,) * next(blanks) if isinstance(piece, Gap) else (piece,) for piece in pieces]
        sentences.append(tuple(itertools.chain.from_iterable(tokens)))
    return sentences
