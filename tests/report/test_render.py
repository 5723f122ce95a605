"""Every file format holds the same table, and text stays text in each."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace

import pytest

from tigs.report.methods import label, set_label
from tigs.report.render import number, to_csv, to_latex, to_markdown
from tigs.report.tables import make_table
from tigs.report.terminal import print_comparison

NASTY = r"50% of <b> R&D_|x|*y* #1 ~ ^ \end{table*} {$"


@pytest.fixture(params=["poetry", "aprc"])
def table(request, experiments):
    return make_table(experiments[request.param])


def split_cell(text, bold):
    """`**3.412**≈ (**3.143**)` as (ours, best, mark, paper, paper best)."""
    opening, closing = bold
    pattern = rf"(?:({opening})?(\d\.\d+)(?:{closing})?(\S*))? ?(?:\(({opening})?(\d\.\d+)(?:{closing})?\))?"
    best, ours, mark, paper_best, paper = re.fullmatch(pattern, text).groups()
    return ours or "", bool(best), bool(mark), paper or "", bool(paper_best)


def expected(cell):
    return number(cell.ours), cell.best, cell.like_tigs, number(cell.paper), cell.paper_best


def test_markdown_holds_every_cell(table):
    text = to_markdown(table)
    rows = [
        [part.strip() for part in line.strip("| ").split(" | ")] for line in text.splitlines() if line.startswith("| ")
    ]
    start = 0
    for block in table.blocks:
        header, body = rows[start], rows[start + 2 : start + 2 + len(block.rows)]
        assert header[-len(table.sets) :] == [set_label(name) for name in table.sets]
        for row, (method, cells) in zip(body, block.rows.items(), strict=True):
            shown = row[1:] + [""] * (len(cells) + 1 - len(row))
            assert row[0] == label(method)
            assert [split_cell(cell, (r"\*\*", r"\*\*")) for cell in shown] == list(map(expected, cells))
        start += 2 + len(block.rows)
    assert table.caption in text
    assert all(f"`{one.command}`" in text for one in table.missing)


def test_csv_holds_every_cell_with_all_digits(table):
    rows = list(csv.DictReader(io.StringIO(to_csv(table))))
    assert len(rows) == sum(len(block.rows) for block in table.blocks)
    rows = iter(rows)
    for block in table.blocks:
        for method, cells in block.rows.items():
            row = next(rows)
            assert (row["task"], row["profile"], row["about"]) == (table.task, table.profile, table.caption)
            assert (row["figure"], row["method"]) == (block.figure, method)
            n_references = "" if block.figure == "nll" else {"poetry": "1", "aprc": "24"}[table.task]
            assert row["n_references"] == n_references
            assert row["signature"].startswith(f"nrefs:{n_references}|" if n_references else "")
            assert ("tok:none" in row["signature"]) == (block.figure == "bleu")
            for name, cell in zip(table.sets, cells, strict=True):
                assert row[name] == ("" if cell.ours is None else repr(cell.ours))
                assert row[f"{name} paper"] == ("" if cell.paper is None else repr(cell.paper))
                assert row[f"{name} like tigs"] == ("" if cell.ours is None else str(cell.like_tigs).lower())


def test_latex_holds_every_cell(table):
    body = to_latex(table).split(r"\midrule", 1)[1].split(r"\bottomrule")[0]
    rows = iter([line.removesuffix(r" \\").split(" & ") for line in body.splitlines() if line.endswith(r"\\")])
    for block in table.blocks:
        for method, cells in block.rows.items():
            row = next(rows)
            assert row[1] == label(method)
            shown = [cell.replace(r"$^{\approx}$", "≈") for cell in row[2:]]
            assert [split_cell(cell, (r"\\textbf\{", r"\}")) for cell in shown] == list(map(expected, cells))
    assert next(rows, None) is None


def test_latex_has_every_brace_closed_and_only_known_commands(table):
    text = to_latex(replace(table, caption=NASTY))
    assert table.missing == [] or "% " in text
    code = re.sub(r"(?m)(?<!\\)%.*$", "", text)
    bare = re.sub(r"\\[\\{}%&$#_]", "", code)
    assert bare.count("{") == bare.count("}")
    assert bare.count("$") % 2 == 0
    known = (
        "begin end centering scriptsize toprule midrule bottomrule textbf caption label approx geq oplus textbackslash "
    )
    known += "textasciitilde textasciicircum textless textgreater"
    assert set(re.findall(r"\\([a-zA-Z]+)", code.replace("\\\\", ""))) <= set(known.split())
    assert not re.search(r"[_#&%<>]", next(line for line in bare.splitlines() if "caption" in line))
    assert bare.count(r"\begin") == bare.count(r"\end") == 2
    assert text.isascii()


def test_markdown_text_is_no_markup(table):
    title = to_markdown(replace(table, caption=NASTY)).splitlines()[0]
    assert re.sub(r"\\([\\`*_\[\]<>|])", r"\1", title) == f"## {NASTY}"
    assert not re.search(r"(?<!\\)[*_|<>`]", title)


def test_the_terminal_shows_the_same_figures_caption_and_commands(table, capfd):
    print_comparison(table)
    out = capfd.readouterr().out
    lines = [line.split() for line in out.splitlines()]
    for block in table.blocks:
        for method, cells in block.rows.items():
            shown = [label(method)]
            for cell in cells:
                ours, paper = number(cell.ours) + "≈" * cell.like_tigs, number(cell.paper)
                shown += [part for part in (ours, f"({paper})" if paper else "") if part]
            assert shown in lines
        assert block.title in out
    assert out.count(table.caption) == len(table.blocks)
    assert all(note in out for note in table.notes)
    assert all(one.command in out for one in table.missing)
