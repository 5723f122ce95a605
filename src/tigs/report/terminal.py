"""The table in the terminal; where it is narrow, the paper's figures go below ours."""

from __future__ import annotations

from rich.text import Text

from tigs.console import print_table, print_text
from tigs.report.methods import label, set_label
from tigs.report.render import number
from tigs.report.tables import NOT_SIGNIFICANT, Cell, Table, missing_sentence


def print_comparison(table: Table) -> None:
    """On standard output, with everything that belongs to it."""
    header = ["method", *map(set_label, table.sets)]
    for block in table.blocks:
        rows = [[label(method), *map(_cell, cells)] for method, cells in block.rows.items()]
        print_table(f"{table.caption}\n{block.title} (the paper's in brackets)", header, rows)
    for note in table.notes:
        print_text(note)
    for missing in table.missing:
        print_text(f"blank: {missing_sentence(missing, table.sets)}: {missing.command}")


def _cell(cell: Cell) -> Text:
    ours = Text(number(cell.ours), style="bold" if cell.best else "")
    paper = f"({number(cell.paper)})" if cell.paper is not None else ""
    # As wide with the mark as without, so that digits stand below digits.
    mark = NOT_SIGNIFICANT if cell.like_tigs else " "
    return Text.assemble(ours, f"{mark} ", (paper, "dim bold" if cell.paper_best else "dim"))
