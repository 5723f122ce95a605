"""The table as text for files: Markdown, CSV and LaTeX."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence

from tigs.report.methods import TASK_LABELS, label, set_label
from tigs.report.tables import DIGITS, NOT_SIGNIFICANT, Cell, Table, missing_sentence

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "⊕": r"$\oplus$",
    "≈": r"$\approx$",
    "≥": r"$\geq$",
} | {character: f"\\{character}" for character in "&%$#_{}"}


def number(value: float | None) -> str:
    """A figure as printed everywhere; empty if there is none."""
    return "" if value is None else f"{value:.{DIGITS}f}"


def to_markdown(table: Table) -> str:
    """A section with one table for each figure."""
    lines = [f"## {_markdown(table.caption)}", ""]
    for block in table.blocks:
        rows = [[_markdown(label(method)), *map(_markdown_cell, cells)] for method, cells in block.rows.items()]
        lines += [f"{block.title}; the paper's in brackets", ""]
        lines += [*_markdown_table(["", *(set_label(name) for name in table.sets)], rows), ""]
    lines += [f"- {_markdown(note)}" for note in table.notes]
    if table.missing:
        lines += ["", "Commands that fill the blank cells:", ""]
        lines += [f"- {_markdown(missing_sentence(one, table.sets))}: `{one.command}`" for one in table.missing]
    return "\n".join(lines) + "\n"


def plain_markdown(title: str, header: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str]) -> str:
    """A table of texts under its title, and lines below it."""
    table = _markdown_table([*map(_markdown, header)], [[*map(_markdown, row)] for row in rows])
    return "\n".join([_markdown(title), "", *table, "", *(f"{_markdown(note)}  " for note in notes)]) + "\n"


def to_csv(table: Table) -> str:
    """The same rows and columns for programs: all digits of ours, the paper's, and whether a difference from TIGS is chance."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    columns = [f"{name}{kind}" for name in table.sets for kind in ("", " paper", " like tigs")]
    writer.writerow(["task", "profile", "about", "figure", "n_references", "signature", "method", *columns])
    for block in table.blocks:
        about = [table.task, table.profile, table.caption, block.figure]
        about += [" or ".join(map(str, block.n_references)), " or ".join(block.signatures)]
        for method, cells in block.rows.items():
            figures = [value for cell in cells for value in (cell.ours, cell.paper, _flag(cell))]
            writer.writerow([*about, method, *figures])
    return stream.getvalue()


def to_latex(table: Table) -> str:
    """A float for a document that loads booktabs; the paper's figures stand in brackets."""
    n_columns = len(table.sets)
    task = TASK_LABELS.get(table.task, table.task)
    lines = [r"\begin{table*}[t]", r"\centering\scriptsize", rf"\begin{{tabular}}{{ll{'r' * n_columns}}}", r"\toprule"]
    lines.append(_latex_row([task, "Method", *(_latex(set_label(name)) for name in table.sets)]))
    for block in table.blocks:
        lines.append(r"\midrule")
        names = [block.figure.upper(), *[""] * (len(block.rows) - 1)]
        for name, (method, cells) in zip(names, block.rows.items(), strict=True):
            lines.append(_latex_row([name, _latex(label(method)), *map(_latex_cell, cells)]))
    caption = " ".join([f"{table.caption}; the paper's figures in brackets.", *table.notes])
    lines += [r"\bottomrule", r"\end{tabular}", rf"\caption{{{_latex(caption)}}}"]
    lines += [rf"\label{{tab:{table.task}-{table.profile}}}", r"\end{table*}"]
    lines += [f"% {missing_sentence(one, table.sets)}: {one.command}" for one in table.missing]
    return "\n".join(lines) + "\n"


def _flag(cell: Cell) -> str:
    return "" if cell.ours is None else str(cell.like_tigs).lower()


def _markdown(text: str) -> str:
    """Text that stays text: nothing in it becomes markup or another column."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)


def _markdown_table(header: list[str], rows: list[list[str]]) -> list[str]:
    """The first column is text, the others are figures."""
    return [_markdown_row(cells) for cells in (header, [":--", *["--:"] * (len(header) - 1)], *rows)]


def _markdown_row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_cell(cell: Cell) -> str:
    return _cell(cell, "**{}**", NOT_SIGNIFICANT)


def _latex(text: str) -> str:
    return "".join(_LATEX.get(character, character) for character in text)


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + r" \\"


def _latex_cell(cell: Cell) -> str:
    return _cell(cell, r"\textbf{{{}}}", r"$^{\approx}$")


def _cell(cell: Cell, bold: str, mark: str) -> str:
    """Ours, then the paper's in brackets; `bold` and `mark` are how they look in this kind of file."""
    ours, paper = number(cell.ours), number(cell.paper)
    ours = bold.format(ours) if cell.best else ours
    paper = bold.format(paper) if cell.paper_best else paper
    parts = [ours + mark if cell.like_tigs else ours, f"({paper})" if paper else ""]
    return " ".join(filter(None, parts))
