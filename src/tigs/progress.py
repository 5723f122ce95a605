"""Progress on standard error, only where somebody watches: a file or a pipe gets nothing at all."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")


def track(items: Iterable[T], description: str, total: int | None = None) -> Iterator[T]:
    """The items unchanged, while a bar shows how many have been taken.

    Args:
        items: what to iterate over.
        description: the words beside the bar.
        total: number of items, where `len(items)` does not tell.
    """
    if not sys.stderr.isatty():
        yield from items
        return
    from rich.console import Console  # here, so that a run without a terminal does not pay for the import
    from rich.progress import track as rich_track

    yield from rich_track(items, description, total=total, console=Console(stderr=True))


@contextmanager
def bytes_progress(description: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar with amount, speed and time left; yields `advance(n_bytes)`, where a negative number goes back."""
    if not sys.stderr.isatty():
        yield lambda n_bytes: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as progress:
        task = progress.add_task(description, total=total)
        yield lambda n_bytes: progress.advance(task, n_bytes)


@contextmanager
def working(description: str) -> Iterator[None]:
    """A line that moves while something without a countable end goes on."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(description):
        yield
