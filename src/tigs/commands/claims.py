"""`tigs claims`: each statement of the paper about its results, held against our figures."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_text
from tigs.errors import EvaluationError
from tigs.report.claims import make_claims
from tigs.report.experiment import Experiment, load_experiments
from tigs.report.tables import eval_command

# Where figures made with `method.allow_unk=true` are looked for, below the others.
WITH_UNK = "with-unk"
_VERDICTS = {True: "holds", False: "does not hold", None: "cannot be said"}


def run(config: Config, options: argparse.Namespace) -> None:
    """All tasks of one profile."""
    output_dir = Path(config.output_dir)
    experiments = _load(output_dir, config)
    with_unk = _load_with_unk(output_dir, config, options.with_unk)
    claims = make_claims(experiments, with_unk)
    about = [experiment.about for experiment in [*experiments, *with_unk]]
    if options.json:
        print_json({"about": about, "claims": [asdict(claim) for claim in claims]})
        return
    print_text("\n".join(about))
    for claim in claims:
        print_text()
        print_text(f"{_VERDICTS[claim.holds]}: {claim.statement} ({claim.summary})")
        for cell in claim.against:
            print_text(f"  not {cell}")


def _load_with_unk(output_dir: Path, config: Config, named: str | None) -> list[Experiment]:
    """From the folder that was named, or from the usual one if there is something in it."""
    folder = Path(named) if named else output_dir / WITH_UNK
    experiments = load_experiments(folder, profile=config.profile)
    without = _made_with(experiments, folder, allow_unk=False)
    if without or (named and not experiments):
        problem = f"{without[0]}: made without <unk>" if without else f"{folder}: there are no figures"
        raise EvaluationError(
            problem,
            remedy="Make all of the folder with method.allow_unk=true; it needs the models, or a link to them, too",
        )
    return experiments


def _load(folder: Path, config: Config) -> list[Experiment]:
    """Figures of the profile, all made without `<unk>`."""
    experiments = load_experiments(folder, profile=config.profile)
    if not experiments:
        command = eval_command(config.task.name, config.profile, "all", output_dir=str(folder))
        raise EvaluationError(
            f"{folder}: there are no figures for profile={config.profile}", remedy=f"Make them with `{command}`"
        )
    with_unk = _made_with(experiments, folder, allow_unk=True)
    if with_unk:
        raise EvaluationError(
            f"{with_unk[0]}: made with method.allow_unk=true; only the claim about <unk> takes such figures",
            remedy=f"Keep them in a folder `{WITH_UNK}` below the others, and name that of the others as output_dir",
        )
    return experiments


def _made_with(experiments: Sequence[Experiment], folder: Path, *, allow_unk: bool) -> list[Path]:
    """Files whose figures were made with this `method.allow_unk`."""
    return [
        metrics.path(folder)
        for experiment in experiments
        for metrics in experiment.metrics.values()
        if metrics.allows_unk == allow_unk
    ]
