"""Files that are whole or not there: figures, tables, pages and pictures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tigs.errors import EvaluationError, disk_errors


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Gives another name to write to; what was written gets its own name when all of it is there.

    Raises:
        EvaluationError: if the disk is full or the folder forbidden; what stood there before is kept.
    """
    unfinished = path.with_name(f"{path.name}.unfinished")
    remedy = "Make room there, make it writable, or name another folder"
    with disk_errors(EvaluationError, f"{path}: cannot be written", remedy=remedy):
        path.parent.mkdir(parents=True, exist_ok=True)
        yield unfinished
        unfinished.replace(path)


def write_text(path: Path, text: str) -> None:
    """A whole file of text."""
    with whole_file(path) as unfinished:
        unfinished.write_text(text, encoding="utf-8")
