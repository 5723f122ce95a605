"""Run one method over all test sets of a task, from whatever state its folder is in: nothing, interrupted, or finished."""

from __future__ import annotations

import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytorch_lightning as lightning
import torch
from pytorch_lightning.callbacks import Callback, RichProgressBar

from tigs.composition import to_plain
from tigs.config import Config
from tigs.console import say
from tigs.data.datamodule import PredictDataModule
from tigs.data.prepare import PreparedData, prepare
from tigs.data.test_sets import TestItem, TestSet
from tigs.errors import PredictionError, TigsError
from tigs.inference.module import InferenceModule
from tigs.inference.predictions import (
    FORMAT_VERSION,
    Header,
    Prediction,
    predictions_folder,
    read_predictions,
    write_predictions,
)
from tigs.inference.required import checkpoint_path, load_models
from tigs.inference.writer import PartWriter, read_parts, write_errors
from tigs.tracking import is_first_process
from tigs.training.checkpoint import LoadedModel, identify
from tigs.training.fit import device_errors, quiet_lightning
from tigs.training.resumable import plugins


def predict(config: Config, *, cell: str | None = None) -> list[Path]:
    """Fill the templates of every test set that are not filled yet.

    Args:
        config: everything that decides a fill.
        cell: the name of the one test set to fill; None means all.

    Returns:
        One file per test set, in the order of the test sets. A file may hold more templates than `eval.limit`, if an earlier
        command had filled them.

    Raises:
        TigsError: if a model is missing or does not fit, if it answers with something that is no number, or if the machine
            lacks what the settings ask for. What was filled before stays, and the same command goes on from there.
    """
    prepared = prepare(config)
    test_sets = [test_set for test_set in prepared.test_sets() if cell in (None, test_set.name)]
    wanted = [item for test_set in test_sets for item in test_set.items[: config.eval.limit]]
    models = load_models(config, prepared, wanted)
    networks = {name: model.network for name, model in models.items()}
    module = InferenceModule(config.method, networks, prepared.vocabulary, seed=config.seed)
    header = _header(config, prepared, models)
    return [_fill(config, module, test_set, header) for test_set in test_sets]


def _fill(config: Config, module: InferenceModule, test_set: TestSet, header: Header) -> Path:
    """One test set: what is missing is searched, then all of it is written in the order of the templates."""
    header = replace(header, strategy=test_set.strategy, ratio=test_set.ratio, test_set_hash=test_set.hash)
    path = predictions_folder(config) / f"{test_set.name}.jsonl"
    parts = path.parent / "parts" / test_set.name / header.identity
    kept = _read_kept(path, header.identity)
    items = [item for item in test_set.items[: config.eval.limit] if item.template.id not in kept]
    if not items:
        _say(f"  {test_set.name}: finished before, {len(kept)} sentences")
        return path
    n_before = len(kept) + len(read_parts(parts).keys() & {item.template.id for item in items})
    before = f", {n_before} of them were filled before" if n_before else ""
    _say(f"  {test_set.name}: {len(kept) + len(items)} sentences{before}")
    devices = _search(config, module, items, parts)
    if is_first_process():
        with write_errors(path.parent):
            _put_aside(path, header.identity)
            _merge(path, replace(header, devices=devices), test_set, items, parts)
    return path


def _search(config: Config, module: InferenceModule, items: Sequence[TestItem], parts: Path) -> int:
    """Fill templates into the parts, leaving out those that are there; returns the number of processes.

    All processes leave together, and if one of them met an error, then with that.
    """
    data = PredictDataModule(config, items, done=lambda: read_parts(parts))
    problem: _Problem | None = None
    try:
        with quiet_lightning(), device_errors():
            # The writer needs no indices, and a process may have nothing to do.
            warnings.filterwarnings("ignore", message=".*infer the batch indices.*")
            warnings.filterwarnings("ignore", message=".*across ranks is zero.*")
            trainer = _make_trainer(config, PartWriter(parts))
            try:
                trainer.predict(module, datamodule=data, return_predictions=False)
            except TigsError as error:
                problem = _Problem(type(error), error.problem, error.remedy)
            problem = _first_of_all(problem)
    except (SystemExit, KeyboardInterrupt) as stop:  # the former is how Lightning ends after Ctrl-C
        _say("The same command goes on from the last finished batch")
        raise KeyboardInterrupt from stop
    if problem is not None:
        if not is_first_process():
            raise SystemExit(0)  # the first process says it for all
        raise problem.kind(problem.text, remedy=problem.remedy)
    return trainer.world_size


class _Problem(NamedTuple):
    """An error in a form that can be sent to another process."""

    kind: type[TigsError]
    text: str
    remedy: str


def _first_of_all(problem: _Problem | None) -> _Problem | None:
    """Wait for all processes; the first problem that any of them met."""
    if not torch.distributed.is_initialized():
        return problem
    problems: list[_Problem | None] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(problems, problem)
    return next((found for found in problems if found is not None), None)


def _make_trainer(config: Config, writer: PartWriter) -> lightning.Trainer:
    settings = config.trainer
    callbacks: list[Callback] = [writer]
    shows_progress = sys.stderr.isatty()
    if shows_progress:
        callbacks.append(RichProgressBar(console_kwargs={"stderr": True}))
    # Always in full precision, whatever a model was trained in: NLLs are compared to the fourth digit.
    return lightning.Trainer(
        accelerator=settings.accelerator,
        devices=settings.devices,
        num_nodes=settings.nodes,
        strategy=settings.strategy,
        plugins=plugins(),
        callbacks=callbacks,
        logger=False,
        enable_checkpointing=False,
        enable_model_summary=False,
        enable_progress_bar=shows_progress,
        inference_mode=False,
        use_distributed_sampler=False,
    )


def _read_kept(path: Path, identity: str) -> dict[str, Prediction]:
    """What an earlier command finished, if it was made in the same way."""
    if not path.is_file():
        return {}
    file = read_predictions(path)
    return {prediction.id: prediction for prediction in file.predictions} if file.header.identity == identity else {}


def _put_aside(path: Path, identity: str) -> None:
    """Predictions that were made in another way are kept under another name."""
    if path.is_file():
        before = read_predictions(path).header.identity
        if before != identity:
            kept = path.with_name(f"{path.stem}.{before}.jsonl")
            path.replace(kept)
            _say(f"  {path.stem}: predictions with other settings or models are kept as {kept.name}")


def _merge(path: Path, header: Header, test_set: TestSet, items: Sequence[TestItem], parts: Path) -> None:
    kept = _read_kept(path, header.identity)
    found = read_parts(parts) | kept
    wanted = kept.keys() | {item.template.id for item in items}
    missing = wanted - found.keys()
    if missing:
        raise PredictionError(
            f"{path}: {len(missing)} of {len(wanted)} templates are in none of the parts",
            remedy="Run the same command again, only one at a time; it fills what is missing",
        )
    predictions = [found[item.template.id] for item in test_set.items if item.template.id in wanted]
    seconds = sum(prediction.seconds for prediction in predictions)
    write_predictions(path, replace(header, n=len(predictions), seconds=round(seconds, 3)), predictions)
    # An interrupted command with a higher limit may have left more, for which it will come back.
    if found.keys() <= wanted:
        shutil.rmtree(parts.parent)
        if not any(parts.parents[1].iterdir()):
            parts.parents[1].rmdir()


def _header(config: Config, prepared: PreparedData, models: Mapping[str, LoadedModel]) -> Header:
    """What all files of a method share; the rest is put in as it becomes known."""
    return Header(
        format_version=FORMAT_VERSION,
        task=config.task.name,
        profile=config.profile,
        corpus=prepared.summary["corpus"],
        method=config.method.name,
        strategy="",
        ratio=0.0,
        n=0,
        test_set_hash="",
        checkpoints={
            name: identify(checkpoint_path(config, name), model.description) for name, model in models.items()
        },
        config=to_plain(config),
        seconds=0.0,
        devices=0,
        git_revision=_git_revision(),
    )


def _git_revision() -> str | None:
    """Of the checkout that this code runs from, marked if files were changed; none when it is installed elsewhere."""
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _say(message: str) -> None:
    if is_first_process():
        say(message)
