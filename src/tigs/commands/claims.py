"""`tigs claims`: each statement of the paper about its results, held against our figures."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_text
from tigs.errors import EvaluationError
from tigs.report.claims import make_claims
from tigs.report.experiment import Experiment, load_experiments
from tigs.report.tables import eval_command

_VERDICTS = {True: "holds", False: "does not hold", None: "cannot be said"}


def run(config: Config, options: argparse.Namespace) -> None:
    """All tasks of one profile."""
    experiments = _load(Path(config.output_dir), config)
    with_unk = _load(Path(options.with_unk), config) if options.with_unk else []
    claims = make_claims(experiments, with_unk)
    if options.json:
        about = [experiment.about for experiment in experiments]
        print_json({"about": about, "claims": [asdict(claim) for claim in claims]})
        return
    for experiment in experiments:
        print_text(experiment.about)
    for claim in claims:
        print_text()
        print_text(f"{_VERDICTS[claim.holds]}: {claim.statement} ({claim.summary})")
        for cell in claim.against:
            print_text(f"  not {cell}")


def _load(folder: Path, config: Config) -> list[Experiment]:
    experiments = load_experiments(folder, profile=config.profile)
    if not experiments:
        command = eval_command(config.task.name, config.profile, "all", output_dir=str(folder))
        raise EvaluationError(
            f"{folder}: there are no figures for profile={config.profile}", remedy=f"Make them with `{command}`"
        )
    return experiments
