"""chinese-poetry: quatrains of five or seven characters a line; two lines are the context of the other two.

Poems are kept only when they are clean: four lines of equal length (or eight, which make two quatrains), nothing but Chinese
characters between the punctuation. A repeated quatrain is dropped before splitting, and the split is decided by a hash of the
whole poem, so both halves of an eight-line poem fall together and no file order matters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tigs.config import DataConfig
from tigs.data.corpora.files import FETCH_AGAIN, read_json, require_files
from tigs.data.corpora.pairs import Corpus, Pair, PairCollector, split_by_hash
from tigs.errors import DataError
from tigs.progress import track

LAYOUT = "全唐诗/poet.tang.*.json or poet.song.*.json, as in the chinese-poetry repository"
NOT_FOUR_LINES = "poem not of four (or eight) lines"
UNEVEN_LINES = "poem whose lines are not all of 5 or all of 7 characters"
UNCLEAN_TEXT = "poem with brackets, gaps or foreign signs"
DUPLICATE_QUATRAIN = "duplicate: quatrain that stands in another poem"

# A line of verse and the mark that ends it. Characters beyond the basic plane are Chinese characters too.
_LINE = re.compile(r"([^，。！？；]+)([，。！？；]|$)")
_CLEAN_LINE = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U000323af]+")

# Not `poet.song.0.simplified.json`, a copy in other characters that some revisions have.
_FILE_NAME = re.compile(r"poet\.(?:tang|song)\.\d+\.json")

Line = tuple[str, str]  # characters, mark


def find_files(folder: Path) -> list[Path]:
    """The corpus files below a folder; `error/` holds rejected versions under the same names and is never read."""
    files = sorted(
        path
        for path in folder.rglob("poet.*.json")
        if _FILE_NAME.fullmatch(path.name) and "error" not in path.relative_to(folder).parts
    )
    return require_files(files, folder, LAYOUT)


def read(files: list[Path], settings: DataConfig) -> Corpus:
    """Pairs of couplets."""
    collector = PairCollector(settings)
    # Characters of a quatrain -> its poem and pair. Which poem keeps a shared quatrain decides its split, so that must
    # not depend on the order of files either: it is the poem that sorts first.
    kept: dict[str, tuple[str, Pair]] = {}
    for path in track(files, "Reading the corpus"):
        for text in _poems(path):
            lines = _LINE.findall(text)
            reason = _reason_to_drop(lines, settings)
            if reason:
                collector.drop(reason)
                continue
            for first in range(0, len(lines), 4):
                quatrain = lines[first : first + 4]
                characters = "".join(line for line, _ in quatrain)
                candidate = (text, Pair(_couplet(quatrain[:2]), _couplet(quatrain[2:])))
                if characters in kept:
                    collector.drop(DUPLICATE_QUATRAIN)
                kept[characters] = min(candidate, kept.get(characters, candidate))
    for text, pair in kept.values():
        collector.add(split_by_hash(text, settings), pair)
    return collector.finish()


def _poems(path: Path) -> Iterator[str]:
    document = read_json(path)
    if not isinstance(document, list):
        raise DataError(f"{path}: not a list of poems", remedy=f"Expected {LAYOUT}")
    for number, poem in enumerate(document, start=1):
        paragraphs = poem.get("paragraphs") if isinstance(poem, dict) else None
        if not isinstance(paragraphs, list) or not all(isinstance(part, str) for part in paragraphs):
            raise DataError(f"{path} poem {number}: no list of 'paragraphs'", remedy=FETCH_AGAIN)
        yield "".join("".join(paragraphs).split())


def _reason_to_drop(lines: list[Line], settings: DataConfig) -> str | None:
    if not (len(lines) == 4 or (len(lines) == 8 and settings.split_eight_lines)):
        return NOT_FOUR_LINES
    if not all(_CLEAN_LINE.fullmatch(line) for line, _ in lines):
        return UNCLEAN_TEXT
    if {len(line) for line, _ in lines} not in ({5}, {7}):
        return UNEVEN_LINES
    return None


def _couplet(lines: list[Line]) -> tuple[str, ...]:
    # A last line without its mark gets the full stop that its editor forgot.
    return tuple("".join(characters + (mark or "。") for characters, mark in lines))
