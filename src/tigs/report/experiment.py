"""All figures of one task and profile, and the words that must stand beside them: corpus, profile, number of sentences, `<unk>`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tigs.config import TASKS
from tigs.errors import EvaluationError, TigsError
from tigs.evaluation.compare import BASELINE, compare_all
from tigs.evaluation.metrics import (
    Comparison,
    Difference,
    Figure,
    Metrics,
    find_experiments,
    load_all,
    read_comparisons,
)
from tigs.evaluation.standing import paper_bleu
from tigs.report.methods import LABELS, TASK_LABELS, in_order, set_label, sets_in_order
from tigs.report.paper import PAPER_SENTENCES, paper_sets

# Files hold nine digits.
_SAME = 1e-8


@dataclass(frozen=True)
class Experiment:
    """What is compared with each other."""

    task: str
    profile: str
    metrics: dict[tuple[str, str], Metrics]
    """(method, test set) -> figures; never empty."""
    differences: dict[tuple[str, str, str], Difference]
    """(method, test set, figure) -> difference from TIGS."""

    @property
    def name(self) -> str:
        """For titles."""
        return _title(self.task, self.profile)

    @property
    def methods(self) -> list[str]:
        """The paper's, run or not, and whatever else was run."""
        return in_order([*LABELS, *(method for method, _ in self.metrics)])

    @property
    def sets(self) -> list[str]:
        """The paper's six, and whatever else was run."""
        return sets_in_order([*paper_sets(), *(name for _, name in self.metrics)])

    @property
    def bleu(self) -> str:
        """The figure that is the paper's BLEU: over `x ⊕ y`, or against many references where there is no `x`."""
        return paper_bleu(list(self.metrics.values()))

    def figure(self, method: str, set_name: str, name: str) -> Figure | None:
        """None if it was not computed."""
        metrics = self.metrics.get((method, set_name))
        return metrics.figures.get(name) if metrics else None

    def difference(self, method: str, set_name: str, name: str) -> Difference | None:
        """From TIGS on the same sentences; None if they were not compared."""
        return self.differences.get((method, set_name, name))

    @property
    def about(self) -> str:
        """Corpus, profile and number of sentences, and whether `<unk>` might be filled in."""
        sets_of: dict[str, list[str]] = {}  # description -> test sets
        for name in self.sets:
            of_set = [metrics for (_, other), metrics in self.metrics.items() if other == name]
            for description in sorted(set(map(_describe, of_set))):
                sets_of.setdefault(description, []).append(name)
        if len(sets_of) == 1:
            return f"{self.name}, {next(iter(sets_of))} in each test set"
        parts = [f"{description} ({', '.join(map(set_label, names))})" for description, names in sets_of.items()]
        return f"{self.name}: {'; '.join(parts)}"

    @property
    def about_bleu(self) -> str:
        """What BLEU was computed on, and sacrebleu's signature."""
        numbers = " or ".join(f"{n:,}" for n in self.n_references)
        scope = (
            "over context and sentence (x ⊕ y)"
            if self.bleu == "bleu_xy"
            else f"against {numbers} sentences of the test split as references"
        )
        return f"BLEU-4 {scope}, sacrebleu {' and '.join(self.signatures(self.bleu))}"

    @property
    def n_references(self) -> list[int]:
        """References a sentence of `bleu`; one number unless the test sets differ."""
        return sorted({metrics.references_of(self.bleu) for metrics in self.metrics.values()})

    def signatures(self, figure: str) -> list[str]:
        """sacrebleu's own of a BLEU figure; one unless the test sets differ."""
        having = [metrics for metrics in self.metrics.values() if figure in metrics.figures]
        return sorted({metrics.signature(figure) for metrics in having})

    @property
    def about_paper(self) -> str:
        """What the paper's figures are about."""
        return f"The paper's figures are those of its Table 1: its own corpus and models, {PAPER_SENTENCES:,} sentences"


class Problem(NamedTuple):
    """A task and profile whose files cannot be read or must not be compared."""

    name: str
    error: TigsError


def load_experiments(output_dir: Path, *, task: str | None = None, profile: str | None = None) -> list[Experiment]:
    """Whatever figures lie below a folder, in the order of the tasks; compared with TIGS anew if they have changed since.

    Raises:
        EvaluationError: if a file is damaged, or figures that cannot be compared stand in one cell.
    """
    experiments, problems = load_readable(output_dir, task=task, profile=profile)
    if problems:
        raise problems[0].error
    return experiments


def load_readable(
    output_dir: Path, *, task: str | None = None, profile: str | None = None
) -> tuple[list[Experiment], list[Problem]]:
    """The same, but what is wrong with one experiment leaves the others as they are.

    Args:
        output_dir: where the figures lie.
        task: only this one's; None means every task's.
        profile: the same of the profile.
    """
    names = find_experiments(output_dir, task=task, profile=profile)
    experiments: list[Experiment] = []
    problems: list[Problem] = []
    for name in sorted(names, key=lambda name: (TASKS.index(name[0]) if name[0] in TASKS else len(TASKS), name)):
        try:
            experiments.append(_load(output_dir, *name))
        except EvaluationError as error:
            problems.append(Problem(_title(*name), error))
    return experiments, problems


def _load(output_dir: Path, task: str, profile: str) -> Experiment:
    if task not in TASKS:
        raise EvaluationError(f"{output_dir / task}: there is no task {task}", remedy="Move the folder elsewhere")
    loaded = load_all(output_dir, task=task, profile=profile)
    experiment = _experiment(task, profile, loaded, read_comparisons(output_dir, task=task, profile=profile))
    if not _is_compared(experiment):
        experiment = _experiment(task, profile, loaded, compare_all(output_dir, task=task, profile=profile))
    return experiment


def _experiment(task: str, profile: str, loaded: list[Metrics], comparisons: list[Comparison]) -> Experiment:
    differences = [one for comparison in comparisons for one in comparison.differences]
    return Experiment(
        task=task,
        profile=profile,
        metrics={(one.method, one.set_name): one for one in loaded},
        differences={(one.method, one.set_name, one.figure): one for one in differences},
    )


def _describe(metrics: Metrics) -> str:
    allowed = "with <unk> allowed, " if metrics.allows_unk else ""
    return f"{metrics.corpus}, {allowed}{metrics.n:,} sentences"


def _title(task: str, profile: str) -> str:
    return f"{TASK_LABELS.get(task, task)}, profile {profile}"


def _is_compared(experiment: Experiment) -> bool:
    """Whether every method was compared with TIGS as it is now."""
    for method, name in experiment.metrics:
        for figure in ("nll", experiment.bleu):
            ours, base = experiment.figure(method, name, figure), experiment.figure(BASELINE, name, figure)
            if method == BASELINE or ours is None or base is None:
                continue
            difference = experiment.difference(method, name, figure)
            if difference is None or abs(difference.value - (ours.value - base.value)) > _SAME:
                return False
    return True
