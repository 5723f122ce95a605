"""`tigs show`: what a checkpoint is."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tigs.config import Config
from tigs.console import print_json, print_table
from tigs.training.checkpoint import read_description


def run(config: Config, options: argparse.Namespace) -> None:
    """Read the checkpoint's description and print it; the settings of the command line play no part."""
    description = read_description(Path(options.checkpoint))
    if options.json:
        print_json(asdict(description))
        return
    sizes = description.config["model"]
    print_table(
        options.checkpoint,
        ("", ""),
        [
            ("task", description.task),
            ("model", f"{description.model} (hidden {sizes['hidden']}, layers {sizes['layers']})"),
            ("parameters", f"{description.n_parameters:,}"),
            ("validation NLL", f"{description.validation_nll:.4f} per token"),
            ("epoch", description.epochs),
            ("data", f"{description.corpus}, fingerprint {description.fingerprint[:12]}"),
            ("vocabulary", f"{len(description.vocabulary):,} tokens"),
            ("profile, seed", f"{description.config['profile']}, {description.config['seed']}"),
            ("date", description.date),
            ("format", description.format_version),
        ],
    )
