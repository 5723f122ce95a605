"""Pieces of the page, as HTML. All text passes through `escape`."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import NamedTuple

from tigs.report.charts import Chart
from tigs.report.drawing import panel_svg
from tigs.report.experiment import Experiment
from tigs.report.methods import TASK_LABELS, label, set_label
from tigs.report.paper import paper_human_scores
from tigs.report.ranks import Ranks, make_ranks
from tigs.report.render import number
from tigs.report.tables import NOT_SIGNIFICANT, Block, Cell, Table, missing_sentence


class Kind(NamedTuple):
    """A figure in words, and how it is printed."""

    title: str
    pattern: str


KINDS = {
    "nll_sentence": Kind("NLL per sentence by the evaluator", "{:.2f}"),
    "perplexity": Kind("Perplexity by the evaluator", "{:.2f}"),
    "forward_nll": Kind("NLL per token under the forward model, which TIGS searches", "{:.3f}"),
    "own_nll": Kind("The method's own objective per token (comparable within a method only)", "{:.3f}"),
    "bleu_xy": Kind("BLEU-4 over context and sentence", "{:.3f}"),
    "bleu_y": Kind("BLEU-4 of the sentence alone", "{:.3f}"),
    "bleu_xy_sentence": Kind("BLEU-4 over context and sentence, mean of sentences", "{:.3f}"),
    "bleu_y_sentence": Kind("BLEU-4 of the sentence alone, mean of sentences", "{:.3f}"),
    "bleu_references": Kind("BLEU-4 against sentences of the test split", "{:.3f}"),
    "exact_match": Kind("Share of blanks filled with the original word", "{:.1%}"),
    "unk_share": Kind("Share of blanks filled with <unk>", "{:.1%}"),
    "distinct_1": Kind("Distinct words among the words filled in", "{:.3f}"),
    "distinct_2": Kind("Distinct pairs of neighbours among the words filled in", "{:.3f}"),
    "template_failure": Kind("Share of unforced outputs that do not reproduce the template", "{:.1%}"),
    "seconds": Kind("Seconds per sentence", "{:.3g}"),
    "model_steps": Kind("Model steps per sentence", "{:,.0f}"),
    "rounds": Kind("Rounds per sentence", "{:.2f}"),
}


def comparison_html(table: Table, block: Block) -> str:
    """One figure of all methods, ours beside the paper's."""
    return _table(
        _paired_head(table.sets),
        [_row(label(method), "".join(map(_cells, cells))) for method, cells in block.rows.items()],
    )


def missing_html(table: Table) -> str:
    """The commands that fill the blank cells."""
    if not table.missing:
        return ""
    items = "".join(
        f"<li>{escape(missing_sentence(one, table.sets))}: <code>{escape(one.command)}</code></li>"
        for one in table.missing
    )
    return f'<p class="note">Commands that fill the blank cells:</p><ul class="note missing">{items}</ul>'


def ranks_html(table: Table, block: Block) -> str:
    """The order of methods, ours beside the paper's; nothing if no method has both."""
    columns = make_ranks(block)
    ranked = [method for method in block.rows if any(method in ranks.ours for ranks in columns)]
    if not ranked:
        return ""
    rows = [_row(label(method), "".join(_rank_cells(ranks, method) for ranks in columns)) for method in ranked]
    agreement = "".join(
        f'<td class="first" colspan="2">{"" if ranks.agreement is None else f"{ranks.agreement:+.2f}"}</td>'
        for ranks in columns
    )
    rows.append(_row("Spearman's correlation", agreement))
    title = (
        f"<h3>Ranks by {escape(block.figure.upper())}</h3>"
        f'<p class="note">{escape(table.caption)}. Among the methods that have a figure in both; 1 is best, and equal figures '
        "share a rank.</p>"
    )
    return title + _table(_paired_head(table.sets), rows)


def figures_html(experiment: Experiment) -> str:
    """Every other figure, folded."""
    parts = []
    for name, kind in KINDS.items():
        methods = [one for one in experiment.methods if any(experiment.figure(one, s, name) for s in experiment.sets)]
        if not methods:
            continue
        head = "".join(f'<th scope="col">{escape(set_label(one))}</th>' for one in experiment.sets)
        rows = [
            _row(label(method), "".join(_figure_cell(experiment, method, one, name) for one in experiment.sets))
            for method in methods
        ]
        table = _table(f'<tr><th class="name" scope="col">Method</th>{head}</tr>', rows)
        signatures = f"; sacrebleu {' and '.join(experiment.signatures(name))}" if name.startswith("bleu") else ""
        about = f'<p class="note">{escape(experiment.about + signatures)}; with 95 % intervals.</p>'
        parts.append(f"<details><summary>{escape(kind.title)}</summary>{about}{table}</details>")
    return "".join(parts)


def human_html(tasks: Sequence[str]) -> str:
    """The paper's Table 2; there is nothing of ours to stand beside it."""
    scores = {task: paper_human_scores(task) for task in tasks}
    head = "".join(f'<th scope="col">{escape(TASK_LABELS[task])}</th>' for task in tasks)
    rows = [
        _row(label(method), "".join(f'<td class="paper">{number(scores[task][method])}</td>' for task in tasks))
        for method in scores[tasks[0]]
    ]
    return _table(f'<tr><th class="name" scope="col">Method</th>{head}</tr>', rows)


def chart_html(chart: Chart, about: str, prefix: str, keys: dict[str, str]) -> str:
    """A chart with its legend; each panel is a picture of its own, so that they fold to any width.

    Args:
        chart: what to draw.
        about: what its figures are about, as `Experiment.about` says it.
        prefix: makes the names inside its pictures different from those of other experiments.
        keys: the legend's picture of each method.
    """
    legend = "".join(
        f'<li><span class="key">{keys[method]}</span>{escape(label(method))}</li>' for method in chart.methods
    )
    panels = "".join(
        f"<figure><figcaption>{escape(panel.title)}</figcaption>"
        + panel_svg(panel, f"{prefix}-{chart.name}-{panel.title}").replace(
            "<svg", f'<svg role="img" aria-label="{escape(f"{chart.title}, {panel.title}")}"', 1
        )
        + "</figure>"
        for panel in chart.panels
    )
    return (
        f'<section class="chart"><h3>{escape(chart.title)}</h3><p class="note">{escape(about)}. {escape(chart.note)}</p>'
        f'<ul class="legend">{legend}</ul><div class="panels">{panels}</div></section>'
    )


def _paired_head(sets: Sequence[str]) -> str:
    """Two columns for each test set, ours and the paper's."""
    names = "".join(f'<th colspan="2" scope="colgroup">{escape(set_label(name))}</th>' for name in sets)
    pairs = '<th class="first" scope="col">ours</th><th class="paper" scope="col">paper</th>' * len(sets)
    return f'<tr><th class="name" rowspan="2" scope="col">Method</th>{names}</tr><tr>{pairs}</tr>'


def _table(head: str, rows: list[str]) -> str:
    return f'<div class="scroll"><table><thead>{head}</thead><tbody>{"".join(rows)}</tbody></table></div>'


def _row(name: str, cells: str) -> str:
    return f'<tr><th class="name" scope="row">{escape(name)}</th>{cells}</tr>'


def _cells(cell: Cell) -> str:
    ours, paper = number(cell.ours), number(cell.paper)
    ours = f"<b>{ours}</b>" if cell.best else ours
    paper = f"<b>{paper}</b>" if cell.paper_best else paper
    hint = f' title="95 % interval {number(cell.low)} to {number(cell.high)}"' if cell.ours is not None else ""
    mark = f'<span class="mark">{NOT_SIGNIFICANT if cell.like_tigs else ""}</span>'
    return f'<td class="first"{hint}>{ours}{mark}</td><td class="paper">{paper}</td>'


def _rank_cells(ranks: Ranks, method: str) -> str:
    ours, paper = ranks.ours.get(method), ranks.paper.get(method)
    shown = "" if ours is None else f"<b>{ours}</b>" if ours == 1 else str(ours)
    theirs = "" if paper is None else f"<b>{paper}</b>" if paper == 1 else str(paper)
    return f'<td class="first">{shown}</td><td class="paper">{theirs}</td>'


def _figure_cell(experiment: Experiment, method: str, set_name: str, name: str) -> str:
    figure = experiment.figure(method, set_name, name)
    if figure is None:
        return "<td></td>"
    value, low, high = (KINDS[name].pattern.format(one) for one in (figure.value, figure.low, figure.high))
    return f'<td>{value} <span class="paper">[{low}, {high}]</span></td>'
