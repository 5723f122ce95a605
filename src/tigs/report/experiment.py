"""All figures of one task and profile, and the words that must stand beside them: corpus, profile, number of sentences."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tigs.config import TASKS
from tigs.evaluation.compare import BASELINE, compare_all
from tigs.evaluation.metrics import Comparison, Difference, Figure, Metrics, load_all, read_comparisons
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
        return f"{TASK_LABELS.get(self.task, self.task)}, profile {self.profile}"

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
        many = any("bleu_references" in metrics.figures for metrics in self.metrics.values())
        return "bleu_references" if many else "bleu_xy"

    def figure(self, method: str, set_name: str, name: str) -> Figure | None:
        """None if it was not computed."""
        metrics = self.metrics.get((method, set_name))
        return metrics.figures.get(name) if metrics else None

    def difference(self, method: str, set_name: str, name: str) -> Difference | None:
        """From TIGS on the same sentences; None if they were not compared."""
        return self.differences.get((method, set_name, name))

    @property
    def about(self) -> str:
        """Corpus, profile and number of sentences."""
        sizes: dict[str, list[str]] = {}
        for name in self.sets:
            of_set = [metrics for (_, other), metrics in self.metrics.items() if other == name]
            for size in sorted({f"{metrics.corpus}, {metrics.n:,} sentences" for metrics in of_set}):
                sizes.setdefault(size, []).append(name)
        if len(sizes) == 1:
            return f"{self.name}, {next(iter(sizes))} in each test set"
        parts = [f"{size} ({', '.join(map(set_label, names))})" for size, names in sizes.items()]
        return f"{self.name}: {'; '.join(parts)}"

    @property
    def about_bleu(self) -> str:
        """What BLEU was computed on, and sacrebleu's signature."""
        several = sorted({(metrics.n_references or 1, metrics.bleu_signature) for metrics in self.metrics.values()})
        # The files hold the signature of one reference a sentence.
        signatures = " and ".join(signature.replace("nrefs:1|", f"nrefs:{n}|") for n, signature in several)
        numbers = " or ".join(f"{n:,}" for n in sorted({n for n, _ in several}))
        scope = (
            "over context and sentence (x ⊕ y)"
            if self.bleu == "bleu_xy"
            else f"against {numbers} sentences of the test split as references"
        )
        return f"BLEU-4 {scope}, sacrebleu {signatures}"

    @property
    def about_paper(self) -> str:
        """What the paper's figures are about."""
        return f"The paper's figures are those of its Table 1: its own corpus and models, {PAPER_SENTENCES:,} sentences"


def load_experiments(output_dir: Path) -> list[Experiment]:
    """Whatever figures lie below a folder, in the order of the tasks; compared with TIGS anew if they have changed since.

    Raises:
        EvaluationError: if a file is damaged, or figures that cannot be compared stand in one cell.
    """
    loaded = load_all(output_dir)
    experiments = _experiments(loaded, read_comparisons(output_dir))
    if not all(map(_is_compared, experiments)):
        experiments = _experiments(loaded, compare_all(output_dir))
    return experiments


def _experiments(loaded: list[Metrics], comparisons: list[Comparison]) -> list[Experiment]:
    def key(one: Metrics | Comparison) -> tuple[int, str]:
        return TASKS.index(one.task), one.profile

    return [
        Experiment(
            task=TASKS[task],
            profile=profile,
            metrics={(one.method, one.set_name): one for one in loaded if key(one) == (task, profile)},
            differences={
                (one.method, one.set_name, one.figure): one
                for comparison in comparisons
                if key(comparison) == (task, profile)
                for one in comparison.differences
            },
        )
        for task, profile in sorted({key(one) for one in loaded})
    ]


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
