"""`tigs dashboard`: a W&B workspace that compares the methods, or how to get one."""

from __future__ import annotations

import argparse
from pathlib import Path

from tigs import tracking
from tigs.config import Config
from tigs.console import print_json, print_text
from tigs.report.dashboard import comparison_workspace


def run(config: Config, options: argparse.Namespace) -> None:
    """Make the workspace when the user is logged in; else say what to do and what will appear."""
    group, project = f"{config.task.name}/{config.profile}", tracking.project()
    runs = sorted(str(path) for path in (Path(config.output_dir) / "wandb").glob("offline-run-*"))
    if tracking.mode() == "online":
        url = tracking.save_workspace(comparison_workspace(config, entity=tracking.entity(), project=project))
        print_json({"url": url}) if options.json else print_text(url)
        return
    if options.json:
        print_json({"url": None, "offline_runs": runs})
        return
    print_text(f"Not logged in to W&B; {len(runs)} runs are kept in {config.output_dir}/wandb.")
    print_text("To send them and make the workspace:")
    print_text("  wandb login")
    print_text(f"  wandb sync --project {project} {config.output_dir}/wandb/offline-run-*")
    print_text(f"  tigs dashboard task={config.task.name} profile={config.profile}")
    print_text(
        f"Then the project {project} has one run per method (group {group}, job type eval) with its settings, checkpoint\n"
        "hashes, every figure of every test set and 200 fills, and a workspace with bars of NLL and BLEU by test set,\n"
        "NLL against seconds and model steps, and parallel coordinates of settings and NLL."
    )
