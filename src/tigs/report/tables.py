"""The paper's Table 1 with our figures beside the paper's: what stands in each cell. How it looks is in `render.py`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from tigs.composition import available, compose
from tigs.evaluation.bootstrap import MIN_SENTENCES
from tigs.evaluation.metrics import Metrics
from tigs.report.experiment import Experiment
from tigs.report.methods import label, set_label
from tigs.report.paper import paper_figures

DIGITS = 3
NOT_SIGNIFICANT = "≈"
LEGEND = (
    "Bold: the best of a column, ours and the paper's apart. "
    f"{NOT_SIGNIFICANT}: no significant difference from TIGS (paired bootstrap over sentences, p ≥ 0.05 or "
    f"fewer than {MIN_SENTENCES} sentences)."
)


@dataclass(frozen=True)
class Cell:
    """One method on one test set."""

    ours: float | None
    low: float | None
    high: float | None
    """95 % interval."""
    paper: float | None
    best: bool
    """Whether ours is the best of our column."""
    paper_best: bool
    like_tigs: bool
    """Whether the difference from TIGS is not significant."""


@dataclass(frozen=True)
class Block:
    """One figure of all methods."""

    figure: str
    """`nll` or `bleu`."""
    title: str
    rows: dict[str, list[Cell]]
    """Method -> one cell per test set."""
    n_references: list[int] = field(default_factory=list)
    """References a sentence, of BLEU; one number unless the test sets differ."""
    signatures: list[str] = field(default_factory=list)
    """sacrebleu's own, of BLEU."""


@dataclass(frozen=True)
class Missing:
    """A method without figures for some test sets, and the command that makes them."""

    method: str
    sets: list[str]
    command: str


@dataclass(frozen=True)
class Table:
    """Everything that is printed for one task and profile."""

    task: str
    profile: str
    caption: str
    notes: list[str]
    sets: list[str]
    blocks: list[Block]
    missing: list[Missing]


def make_table(experiment: Experiment) -> Table:
    """Table 1 for one task and profile."""
    blocks = [
        Block("nll", "NLL per token by the evaluator, lower is better", _rows(experiment, "nll", "nll")),
        Block(
            "bleu",
            "BLEU-4, higher is better",
            _rows(experiment, "bleu", experiment.bleu),
            n_references=experiment.n_references,
            signatures=experiment.signatures(experiment.bleu),
        ),
    ]
    return Table(
        experiment.task,
        experiment.profile,
        caption=experiment.about,
        notes=[f"{experiment.about_bleu}.", f"{experiment.about_paper}.", LEGEND],
        sets=experiment.sets,
        blocks=blocks,
        missing=_missing(experiment),
    )


def best_value(values: list[float | None], *, lower: bool) -> float | None:
    """The best as printed, so that figures which look alike are best together; None if there is nothing to choose from."""
    printed = [round(value, DIGITS) for value in values if value is not None]
    if len(printed) < 2:
        return None
    return min(printed) if lower else max(printed)


def missing_sentence(missing: Missing, sets: list[str]) -> str:
    """Which figures a command would make."""
    what = "" if missing.sets == sets else f" ({', '.join(map(set_label, missing.sets))})"
    return f"{label(missing.method)}{what}"


def eval_command(task: str, profile: str, method: str, like: Metrics | None = None, *, output_dir: str = "runs") -> str:
    """The command that makes a method's figures.

    Args:
        task: one of the three.
        profile: of the models.
        method: its id, or `all`.
        like: figures beside which they are to stand, so of the same sentences and in the same folder.
        output_dir: where they are to stand if there are none yet.
    """
    words = ["make", "eval", f"TASK={task}", f"PROFILE={profile}", f"METHOD={method}"]
    if like is not None:
        data = like.config["data"]
        if data["source"] == "folder":
            words.append(f"DATA_DIR={shlex.quote(data['dir'])}")
        elif data["source"] != _own_source(task, profile):
            words.append(f"DATA={data['source']}")
        if like.n < like.config["test_sets"]["size"]:
            words.append(f"LIMIT={like.n}")
        output_dir = like.config["output_dir"]
    if output_dir != "runs":
        # Quoted twice: once for the shell that calls make, once for the one that make calls.
        words.append(f'ARGS="{shlex.quote(f"output_dir={output_dir}")}"')
    return " ".join(words)


def _own_source(task: str, profile: str) -> str | None:
    """Where a profile takes its corpus from; None if the figures came from a machine with profiles of its own."""
    known = profile in available("profile")
    return compose([f"task={task}", f"profile={profile}"]).data.source if known else None


def _rows(experiment: Experiment, figure: str, name: str) -> dict[str, list[Cell]]:
    paper = paper_figures(experiment.task, figure)
    # The bare template has no NLL, in the paper neither.
    methods = [method for method in experiment.methods if not (figure == "nll" and method == "template")]
    columns = [_column(experiment, methods, set_name, name, paper) for set_name in experiment.sets]
    return {method: [column[number] for column in columns] for number, method in enumerate(methods)}


def _column(
    experiment: Experiment, methods: list[str], set_name: str, name: str, paper: Mapping[str, Mapping[str, float]]
) -> list[Cell]:
    lower = name == "nll"
    ours = [experiment.figure(method, set_name, name) for method in methods]
    theirs = [paper.get(method, {}).get(set_name) for method in methods]
    best = best_value([figure.value if figure else None for figure in ours], lower=lower)
    paper_best = best_value(theirs, lower=lower)
    cells = []
    for method, figure, paper_value in zip(methods, ours, theirs, strict=True):
        difference = experiment.difference(method, set_name, name)
        cells.append(
            Cell(
                ours=figure.value if figure else None,
                low=figure.low if figure else None,
                high=figure.high if figure else None,
                paper=paper_value,
                best=figure is not None and round(figure.value, DIGITS) == best,
                paper_best=paper_value is not None and paper_value == paper_best,
                like_tigs=figure is not None and difference is not None and not difference.is_significant,
            )
        )
    return cells


def _missing(experiment: Experiment) -> list[Missing]:
    like = next(iter(experiment.metrics.values()))
    missing = []
    for method in experiment.methods:
        sets = [name for name in experiment.sets if (method, name) not in experiment.metrics]
        if sets:
            command = eval_command(experiment.task, experiment.profile, method, like)
            missing.append(Missing(method, sets, command))
    return missing
