"""What people and programs see: figures go to standard output as a table or as JSON, messages to standard error."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

# A pipe has no width of its own; wide enough that no cell is cut or wrapped there.
_PIPE_WIDTH = 200


def say(message: str) -> None:
    """A message for a person, on standard error."""
    sys.stderr.write(message + "\n")


def print_json(document: dict[str, Any]) -> None:
    """The one JSON document of a command, on standard output."""
    sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def print_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """A table on standard output: the first column is text, the others are figures."""
    console = _console()
    # Not as the table's own title, which would be wrapped to the width of the table.
    console.print(title, style="bold", markup=False, highlight=False, emoji=False, soft_wrap=True)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(header):
        table.add_column(name, justify="left" if number == 0 else "right", overflow="fold")
    for row in rows:
        # As Text, because rich would take "[x]" in a plain string for markup and leave it out.
        table.add_row(*(cell if isinstance(cell, Text) else Text(str(cell)) for cell in row))
    console.print(table)


def print_text(text: str = "") -> None:
    """Text on standard output, as it is."""
    _console().print(text, markup=False, highlight=False, emoji=False, soft_wrap=True)


def _console() -> Console:
    console = Console()
    return console if console.is_terminal else Console(width=_PIPE_WIDTH)
