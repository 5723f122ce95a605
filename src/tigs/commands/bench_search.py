"""`tigs bench search`: every search on the same templates in one run, what it finds and what it costs."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import torch
from torch import nn

from tigs.composition import compose, to_plain
from tigs.config import Config
from tigs.console import print_json, print_table, print_text, say
from tigs.data.prepare import PreparedData, prepare
from tigs.data.test_sets import TestItem, TestSet
from tigs.errors import ConfigError
from tigs.inference.benchmark import (
    BATCH_SIZE,
    CHECK_MARGIN,
    CHECK_MARGIN_DECAY,
    VARIANTS,
    Figures,
    Limits,
    Runner,
    count_words,
    make_cell,
    make_runners,
    measure,
    warm_up,
)
from tigs.inference.gaps import N_BLANKS, Gap, measure_gaps
from tigs.inference.growth import Growth, Sentence, measure_growth
from tigs.inference.interfaces import SequenceModel
from tigs.inference.methods import models_of
from tigs.inference.module import FORWARD
from tigs.inference.proposals import count_candidates
from tigs.inference.required import checkpoint_path, load_models, require_models
from tigs.report.search_front import save_search_front
from tigs.training.checkpoint import LoadedModel, identify
from tigs.whole_file import whole_file, write_text

# Tried when no profile is named: real data first.
_PREFERRED_PROFILE = "cpu"


def run_search(config: Config, options: argparse.Namespace) -> None:
    """Cell by cell; the file is whole after each of them."""
    limits, n_blanks = _limits(options), _n_blanks(options.exact_blanks)
    words = _words(config, options.settings)
    config = compose(words)
    require_models(config, [VARIANTS[0].method])  # before data is prepared, or even downloaded
    prepared = prepare(config)
    test_sets = _chosen_sets(prepared, options.cells)
    models = _load(words, prepared, [item for test_set in test_sets for item in test_set.items])
    networks = {name: model.network for name, model in models.items()}
    runners = make_runners(words, networks, seed=config.seed)
    document: dict[str, Any] = {
        "about": _about(config, prepared, models, runners, limits),
        "cells": [],
        "gaps": [],
        "growth": [],
    }
    _announce(document["about"])
    _write(document, options)
    cells = [make_cell(test_set, prepared.vocabulary, limits) for test_set in test_sets]
    warm_up(runners, cells[0].batches[0])
    for number, cell in enumerate(cells, start=1):
        say(f"[{number}/{len(cells)}] {cell.name}: {sum(len(batch.ids) for batch in cell.batches)} templates")
        figures = measure(runners, cast(SequenceModel, networks[FORWARD]), cell)
        document["cells"].append({"cell": cell.name, "variants": [asdict(one) for one in figures]})
        _write(document, options)
        if options.json is not True:
            _print_cell(cell.name, figures)
    if options.exact:
        # The same ones whatever numbers of blanks were asked for.
        sentences = [one for one in _sentences(test_sets[0], prepared) if len(one.words) >= max(N_BLANKS)]
        sentences = sentences[: options.exact]
        gaps: list[Gap] = []
        for number in n_blanks:
            gaps += measure_gaps(runners, networks[FORWARD], sentences, n_blanks=number, max_steps=options.exact_steps)
            document["gaps"] = [asdict(gap) for gap in gaps]
            _write(document, options)
        if options.json is not True:
            _print_gaps(gaps)
    if options.growth:
        growths = measure_growth(runners, networks, _sentences(test_sets[0], prepared), seed=config.seed)
        document["growth"] = [asdict(growth) for growth in growths]
        _write(document, options)
        if options.json is not True:
            _print_growth(growths)
    _finish(document, options)


def write_document(document: dict[str, Any], path: Path) -> None:
    """Figures as a file of JSON."""
    write_text(path, json.dumps(document, indent=2, ensure_ascii=False) + "\n")


def _limits(options: argparse.Namespace) -> Limits:
    for name, least in (
        ("templates", 1),
        ("templates-slow", 1),
        ("coordinate-templates", 0),
        ("exact", 0),
        ("exact-steps", 1),
    ):
        value = getattr(options, name.replace("-", "_"))
        if value < least:
            raise ConfigError(f"--{name} {value} is not allowed", remedy=f"It must be at least {least}")
    return Limits(options.templates, min(options.templates_slow, options.templates), options.coordinate_templates)


def _n_blanks(text: str) -> list[int]:
    """Numbers of blanks with which optima are to be proven."""
    known = {str(number): number for number in N_BLANKS}
    try:
        return [known[word] for word in dict.fromkeys(text.split(","))]
    except KeyError as error:
        raise ConfigError(
            f"--exact-blanks {text} is not allowed", remedy=f"Choose from: {', '.join(known)}, as --exact-blanks 1,2"
        ) from error


def _words(config: Config, settings: Sequence[str]) -> list[str]:
    """The user's settings, with the profile of real data if its model is there and no profile was named."""
    if any(word.startswith("method=") for word in settings):
        raise ConfigError("all searches are measured, not one method", remedy="Leave method=... out")
    if any(word.startswith("method.n_best=") for word in settings):
        raise ConfigError("searches are measured by their best fill", remedy="Leave method.n_best=... out")
    if not any(word.startswith("profile=") for word in settings):
        preferred = [*settings, f"profile={_PREFERRED_PROFILE}"]
        if checkpoint_path(compose(preferred), FORWARD).is_file():
            return preferred
    return [*settings, f"profile={config.profile}"]


def _chosen_sets(prepared: PreparedData, wanted: str | None) -> list[TestSet]:
    test_sets = {test_set.name: test_set for test_set in prepared.test_sets()}
    names = list(test_sets) if wanted is None else wanted.split(",")
    for name in names:
        if name not in test_sets:
            raise ConfigError(f"there is no cell '{name}'", remedy=f"Choose from: {', '.join(test_sets)}")
    return [test_sets[name] for name in names]


def _load(words: Sequence[str], prepared: PreparedData, items: Sequence[TestItem]) -> dict[str, LoadedModel]:
    """The forward model, which must be there, and the further ones of the methods that have theirs."""
    models: dict[str, LoadedModel] = {}
    for method in dict.fromkeys(variant.method for variant in VARIANTS):
        own = compose([*words, f"method={method}"])
        further = [name for name in models_of(method) if name != FORWARD]
        if not models or (set(further) - models.keys() and all(checkpoint_path(own, n).is_file() for n in further)):
            models |= load_models(own, prepared, items)
    return models


def _about(
    config: Config,
    prepared: PreparedData,
    models: dict[str, LoadedModel],
    runners: Sequence[Runner],
    limits: Limits,
) -> dict[str, Any]:
    tigs = runners[0].settings
    network: nn.Module = models[FORWARD].network
    checkpoints = {name: identify(checkpoint_path(config, name), model.description) for name, model in models.items()}
    return {
        "task": config.task.name,
        "profile": config.profile,
        "corpus": prepared.summary["corpus"],
        "vocabulary": len(prepared.vocabulary),
        "seed": config.seed,
        "test_set_seed": config.test_sets.seed,
        "templates": limits.templates,
        "templates_slow": limits.slow,
        "coordinate_templates": limits.checked,
        "coordinate_margin": CHECK_MARGIN,
        "coordinate_margin_decay": CHECK_MARGIN_DECAY,
        "batch_size": BATCH_SIZE,
        "K": count_candidates(tigs.n_candidates, count_words(network, tigs)),
        "T": tigs.max_rounds,
        "beam_width_of_start": tigs.beam_width,
        "variants": {runner.variant.name: to_plain(runner.settings) for runner in runners},
        "left_out": [variant.name for variant in VARIANTS if variant not in [runner.variant for runner in runners]],
        "checkpoints": checkpoints,
        "torch": torch.__version__,
        "threads": torch.get_num_threads(),
    }


def _announce(about: dict[str, Any]) -> None:
    say(
        f"{about['task']}, profile {about['profile']}, {about['corpus']}: {about['templates']} templates a cell, "
        f"K = {about['K']}, threads: {about['threads']}; another heavy process would falsify the ratios"
    )
    if about["left_out"]:
        say(f"Left out, their models are not trained: {', '.join(about['left_out'])}")


def _write(document: dict[str, Any], options: argparse.Namespace) -> None:
    if isinstance(options.json, str):
        write_document(document, Path(options.json))


def _sentences(test_set: TestSet, prepared: PreparedData) -> list[Sentence]:
    encode = prepared.vocabulary.encode
    return [Sentence(encode(item.template.context), encode(item.reference)) for item in test_set.items]


def _finish(document: dict[str, Any], options: argparse.Namespace) -> None:
    """The picture, and where everything is."""
    plot = options.plot or (str(Path(options.json).with_suffix(".png")) if isinstance(options.json, str) else None)
    if plot:
        with whole_file(Path(plot)) as unfinished:
            save_search_front(document, unfinished)
    if options.json is True:
        print_json(document)
    elif plot:
        print_text("\n".join(f"{name}: {path}" for name, path in (("figures", options.json), ("plot", plot)) if path))


def _print_cell(name: str, figures: Sequence[Figures]) -> None:
    n_common = min(one.n for one in figures)
    has_fewer = any(one.n > n_common for one in figures)
    header = ["variant", "n", "steps", "seconds", "fewer steps", "less time", "NLL", "above reference"]
    header += [f"NLL, first {n_common}"] if has_fewer else []
    rows = []
    for one in figures:
        row = [one.variant, one.n, f"{one.model_steps:,.0f}", f"{one.seconds:.4f}"]
        row += [
            f"{one.steps_ratio:.1f}x",
            f"{one.seconds_ratio:.1f}x",
            f"{one.nll:.4f}",
            f"{one.nll_above_reference:+.4f}",
        ]
        row += [f"{one.nll_common:.4f}"] if has_fewer else []
        optimum = "" if one.at_optimum is None else f"{one.at_optimum:.1%} of {one.n_checked}"
        rows.append([*row, f"{one.equal_to_reference:.1%}", optimum])
    title = f"{name}: per sentence steps and seconds, per token NLL under the forward model"
    print_table(title, [*header, "same fill", "at optimum"], rows)


def _print_gaps(gaps: Sequence[Gap]) -> None:
    rows = [
        (
            gap.n_blanks,
            gap.variant,
            f"{gap.n_proven} of {gap.n}",
            "" if gap.at_optimum is None else f"{gap.at_optimum:.1%}",
            "" if gap.nll_above is None else f"{max(0.0, gap.nll_above):.4f}",
            gap.n_beaten,
        )
        for gap in gaps
    ]
    header = ("blanks", "variant", "optimum proven", "found by it", "nats above it", "better fill known, of all")
    print_table("the global optimum: of the sentences where it is proven", header, rows)


def _print_growth(growths: Sequence[Growth]) -> None:
    rows = [
        (
            growth.along,
            growth.variant,
            growth.n,
            " ".join(f"{size:g}" for size in growth.sizes),
            f"{growth.steps_exponent:.2f}",
            f"{growth.seconds_exponent:.2f}",
        )
        for growth in growths
    ]
    header = ("along", "variant", "n", "sizes", "exponent of steps", "exponent of seconds")
    print_table("growth: cost ~ size ^ exponent", header, rows)
