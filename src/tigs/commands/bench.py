"""`tigs bench train` and `tigs bench search`: how fast it is, as ratios measured side by side."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from tigs.commands.bench_search import run_search, write_document
from tigs.config import Config
from tigs.console import print_json, print_table, say
from tigs.data.source import corpus_name
from tigs.training.benchmark import benchmark_training


def run(config: Config, options: argparse.Namespace) -> None:
    """Measure and print."""
    if options.what == "search":
        run_search(config, options)
    else:
        _run_training(config, options)


def _run_training(config: Config, options: argparse.Namespace) -> None:
    say("Measuring for a minute or two; another heavy process would falsify the ratios")
    result = benchmark_training(config)
    about = f"{config.task.name} {config.model.name}, profile {config.profile}, {corpus_name(config)}"
    document = {"about": about, **asdict(result)}
    if options.json is True:
        print_json(document)
        return
    if options.json:
        write_document(document, Path(options.json))
    print_table(
        f"training: {about}",
        ("ratio", "measured", "wanted"),
        [
            ("step under Lightning / step in a bare loop", f"{result.lightning_over_bare:.3f}", "at most 1.05"),
            ("making a batch / training step", f"{result.loading_share:.2%}", "at most 2 %"),
            ("padded positions with bucketing", f"{result.padding_bucketed:.1%}", ""),
            ("padded positions without", f"{result.padding_unbucketed:.1%}", ""),
            (
                "two DDP processes / one, a thread and a batch each",
                f"{result.two_processes_over_one:.2f}",
                "at least 1.6",
            ),
            ("peak memory of a step / one batch of logits", f"{result.peak_memory_in_logits:.2f}", "at most 3"),
            ("sentences a second", f"{result.sentences_per_second:.0f}", ""),
        ],
    )
