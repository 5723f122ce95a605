"""What a checkpoint says about itself, and how a model comes back from it."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tigs.composition import from_plain, to_plain
from tigs.config import Config
from tigs.data.prepare import PreparedData
from tigs.data.vocabulary import Vocabulary
from tigs.errors import CheckpointError
from tigs.models.build import build_model

NOT_OF_TRAINING = ("method", "eval")
"""Parts of a configuration that say nothing about a training."""
FORMAT_VERSION = 1
_KEY = "tigs"
_WEIGHTS_PREFIX = "model."


@dataclass(frozen=True)
class Description:
    """Everything but the weights; plain values only, so that it loads under `weights_only=True`."""

    format_version: int
    task: str
    model: str
    corpus: str
    fingerprint: str
    has_context: bool
    n_parameters: int
    epochs: int
    validation_nll: float
    date: str
    config: dict[str, Any]
    vocabulary: list[str]


@dataclass(frozen=True)
class LoadedModel:
    """A trained network in eval mode, with its vocabulary and description."""

    network: nn.Module
    vocabulary: Vocabulary
    config: Config
    description: Description


def has_context(prepared: PreparedData) -> bool:
    """Whether the task's sentences answer to something."""
    return any(len(context) > 0 for context in prepared.split("train")["context_ids"][:1])


def describe(
    config: Config, prepared: PreparedData, *, n_parameters: int, epochs: int, validation_nll: float
) -> dict[str, Any]:
    """What goes into a checkpoint beside the weights."""
    description = Description(
        format_version=FORMAT_VERSION,
        task=config.task.name,
        model=config.model.name,
        corpus=prepared.summary["corpus"],
        fingerprint=prepared.summary["fingerprint"],
        has_context=has_context(prepared),
        n_parameters=n_parameters,
        epochs=epochs,
        validation_nll=validation_nll,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        config=to_plain(config),
        vocabulary=list(prepared.vocabulary.tokens),
    )
    return {_KEY: asdict(description)}


def read_checkpoint(path: Path) -> dict[str, Any]:
    """The raw checkpoint.

    Raises:
        CheckpointError: if it is missing, damaged, or not one of ours.
    """
    if not path.is_file():
        raise CheckpointError(
            f"{path}: there is no such checkpoint", remedy="Train it with `make train`, or correct the path"
        )
    try:
        # Mapped, not read: what a checkpoint says about itself comes without its weights, and these without Adam's memory.
        checkpoint: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True, mmap=True)
        version = checkpoint[_KEY]["format_version"]
    except (RuntimeError, EOFError, KeyError, TypeError, pickle.UnpicklingError) as error:
        raise CheckpointError(
            f"{path}: not a TIGS checkpoint, or damaged", remedy="Delete it and train the model again"
        ) from error
    if version != FORMAT_VERSION:
        raise CheckpointError(
            f"{path}: checkpoint format {version}, this version reads {FORMAT_VERSION}",
            remedy="Train the model again, or use the version of tigs that made it",
        )
    return checkpoint


def read_description(path: Path) -> Description:
    """What the checkpoint says about itself."""
    return description_in(read_checkpoint(path))


def description_in(checkpoint: dict[str, Any]) -> Description:
    """The same of one that was read before."""
    return Description(**checkpoint[_KEY])


def load_model(path: Path) -> LoadedModel:
    """The network of a checkpoint, on the CPU, in eval mode."""
    checkpoint = read_checkpoint(path)
    description = description_in(checkpoint)
    # How blanks are filled may have other options by now.
    of_training = {key: value for key, value in description.config.items() if key not in NOT_OF_TRAINING}
    config = from_plain(of_training, str(path))
    vocabulary = Vocabulary(tuple(description.vocabulary))
    network = build_model(config.model, n_tokens=len(vocabulary), has_context=description.has_context)
    weights = checkpoint["state_dict"]
    network.load_state_dict({name.removeprefix(_WEIGHTS_PREFIX): weights[name] for name in weights})
    return LoadedModel(network.eval(), vocabulary, config, description)


def identify(path: Path, description: Description) -> dict[str, Any]:
    """What an output says about a model it was made with: where it stood, its content, how good it was."""
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    return {"path": str(path), "hash": digest, "validation_nll": description.validation_nll}


def require_kind(description: Description, path: Path, *, task: str, model: str) -> None:
    """Refuse a checkpoint that was put where another belongs."""
    if (description.task, description.model) != (task, model):
        raise CheckpointError(
            f"{path}: the model {description.model} of the task {description.task}, not {model} of {task}",
            remedy=f"Put the right file there, or train it with `make train TASK={task} MODEL={model}`",
        )


def require_fit(description: Description, prepared: PreparedData, path: Path) -> None:
    """Refuse a checkpoint of another task or vocabulary, or one that was trained on other pairs."""
    summary = prepared.summary
    if description.task != summary["task"]:
        raise CheckpointError(
            f"{path}: a model for the task {description.task}, the data is for {summary['task']}",
            remedy=f"Use task={description.task}, or train a model for {summary['task']}",
        )
    if Vocabulary(tuple(description.vocabulary)).hash != summary["vocabulary_hash"]:
        raise CheckpointError(
            f"{path}: its vocabulary of {len(description.vocabulary)} tokens is not that of the data "
            f"({summary['corpus']}, {summary['vocabulary_size']} tokens)",
            remedy="Use the data.* and vocabulary.* settings it was trained with, or train it again",
        )
    if description.fingerprint != summary["fingerprint"]:
        raise CheckpointError(
            f"{path}: it was trained on other pairs of {description.corpus}",
            remedy="Use the data.* settings it was trained with, or train it again",
        )
