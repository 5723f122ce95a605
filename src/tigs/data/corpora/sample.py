"""The built-in sample: sentences drawn from three small hand-written grammars, so that all runs without a download.

It exists to tell methods apart in tests and in first steps. So the grammars are full of words that depend on words to
their *right* as well as on words to their left: `neither ... nor`, `a`/`an`, couplets, the stars that end a review.

The tables of each task stand in `sample_dialog.py`, `sample_poetry.py`, `sample_aprc.py`; this module draws from them.
A template is a text with slots:

- `{colour}` draws one of `WORDS["colour"]`, and `{person.name}` a field of one row of `RECORDS["person"]`.
- What a slot has drawn stays drawn for the whole pair: the answer repeats the question, and pronouns fit their names.
- `{colour#2}` is a second draw, always another row than `{colour}`.
- What is drawn may hold slots again, and slots nest: `{food_{meal.key}}` draws from the table that the meal decides.

Rows stand in order from common to rare, and are drawn accordingly: natural text is skewed.
"""

from __future__ import annotations

import re
from random import Random
from typing import NamedTuple

from tigs.config import DataConfig
from tigs.data.corpora import sample_aprc, sample_dialog, sample_poetry
from tigs.data.corpora.pairs import Corpus, Pair, PairCollector, split_by_hash
from tigs.errors import DataError

# Far more than any use of the sample needs; bounds the time until the user hears that the grammar has no more to say.
_MAX_ATTEMPTS = 200_000

# Row by row, for tables of any length: of twenty rows the first comes four times as often as the last.
_WEIGHTS = tuple(1 / (row + 6) for row in range(100))

_SLOT = re.compile(r"\{(?P<table>\w+)(?P<number>#\d)?(?:\.(?P<field>\w+))?\}")

# The first letter decides between `a` and `an`, except before these words of the grammars.
_VOWEL_LETTER_BUT_A = ("useful", "useless")


class _Grammar(NamedTuple):
    """The tables of one task; a record table begins with the names of its fields. `scene` is where a pair starts."""

    words: dict[str, tuple[str, ...]]
    records: dict[str, tuple[tuple[str, ...], ...]]
    by_character: bool = False


_GRAMMARS = {
    "dialog": _Grammar(sample_dialog.WORDS, sample_dialog.RECORDS),
    "poetry": _Grammar(sample_poetry.WORDS, sample_poetry.RECORDS, by_character=True),
    "aprc": _Grammar(sample_aprc.WORDS, sample_aprc.RECORDS),
}


def read_sample(task: str, settings: DataConfig) -> Corpus:
    """Draw `data.sample_pairs` distinct pairs; the same ones for the same `data.sample_seed` on every machine.

    Args:
        task: `dialog`, `poetry` or `aprc`.
        settings: size, seed, shares of the splits, and lengths to keep.

    Raises:
        DataError: if the grammar cannot give that many distinct pairs.
    """
    grammar = _GRAMMARS[task]
    # A text as seed is hashed by its bytes; unlike `hash()` this does not change from one process to the next.
    random = Random(f"{task} {settings.sample_seed}")
    collector = PairCollector(settings)
    for pair in _distinct_pairs(grammar, random, n_pairs=settings.sample_pairs):
        collector.add(split_by_hash(" ".join(pair.context + pair.target), settings), pair)
    return collector.finish()


def _distinct_pairs(grammar: _Grammar, random: Random, *, n_pairs: int) -> list[Pair]:
    """As many different pairs as asked for, in the order of their drawing."""
    pairs: dict[Pair, None] = {}
    if n_pairs <= _MAX_ATTEMPTS:
        for _ in range(_MAX_ATTEMPTS):
            pairs[_Drawing(grammar, random).pair()] = None
            if len(pairs) == n_pairs:
                return list(pairs)
    raise DataError(
        f"the built-in sample cannot give data.sample_pairs={n_pairs} distinct pairs",
        remedy="Lower data.sample_pairs, or use a real corpus with data.source=download",
    )


class _Drawing:
    """One pair on its way from template to tokens; remembers which row each slot has drawn."""

    def __init__(self, grammar: _Grammar, random: Random) -> None:
        self._grammar = grammar
        self._random = random
        self._drawn: dict[str, dict[str, int]] = {}  # table -> number of the draw -> row

    def pair(self) -> Pair:
        """Context first: the target's slots then repeat what the context has drawn."""
        return Pair(context=self._tokens("{scene.context}"), target=self._tokens("{scene.target}"))

    def _tokens(self, template: str) -> tuple[str, ...]:
        text = self._fill(template)
        return tuple(text) if self._grammar.by_character else _with_articles(text.split())

    def _fill(self, text: str) -> str:
        """Replace slots, the innermost first, until none is left."""
        n_filled = 1
        while n_filled:
            text, n_filled = _SLOT.subn(self._draw, text)
        return text

    def _draw(self, slot: re.Match[str]) -> str:
        table, number, field = slot["table"], slot["number"] or "", slot["field"]
        if field is None:
            words = self._grammar.words[table]
            return words[self._row(table, number, n_rows=len(words))]
        fields, *rows = self._grammar.records[table]
        return rows[self._row(table, number, n_rows=len(rows))][fields.index(field)]

    def _row(self, table: str, number: str, *, n_rows: int) -> int:
        """The row this slot has drawn, now or before; no two numbers of one table share a row."""
        drawn = self._drawn.setdefault(table, {})
        if number not in drawn:
            weights = list(_WEIGHTS[:n_rows])
            for row in drawn.values():
                weights[row] = 0.0
            drawn[number] = self._random.choices(range(n_rows), weights)[0]
        return drawn[number]


def _with_articles(words: list[str]) -> tuple[str, ...]:
    """Templates write `a`; the word that follows, whichever was drawn, decides whether it must be `an`."""
    following = [*words, ""][1:]
    return tuple(
        "an" if word == "a" and after.startswith(tuple("aeiou")) and after not in _VOWEL_LETTER_BUT_A else word
        for word, after in zip(words, following, strict=True)
    )
