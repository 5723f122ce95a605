"""The trained models that a method needs: which they are, how to make those that are missing, and whether they fit the data."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tigs.composition import own_words
from tigs.config import MODELS, Config
from tigs.data.prepare import PreparedData
from tigs.data.test_sets import TestItem
from tigs.errors import CheckpointError, InferenceError
from tigs.inference.methods import models_of
from tigs.inference.module import FORWARD
from tigs.models.decoder import compile_steps
from tigs.training.checkpoint import NOT_OF_TRAINING, LoadedModel, load_model, require_fit, require_kind
from tigs.training.fit import BEST, model_folder


def models_for(method: str) -> tuple[str, ...]:
    """Those that the method searches, and the forward model, which scores every method's answers."""
    searched = models_of(method)
    return tuple(name for name in MODELS if name in {FORWARD, *searched}) if searched else ()


def checkpoint_path(config: Config, model: str) -> Path:
    """The best checkpoint of a model of the configured task and profile."""
    return model_folder(replace(config, model=replace(config.model, name=model))) / f"{BEST}.ckpt"


def require_models(config: Config, methods: Sequence[str], *, also: Sequence[str] = ()) -> None:
    """Refuse to begin before every model of all these methods is trained, and some further ones.

    Raises:
        CheckpointError: naming all that are missing and the commands that make them.
    """
    needed = {model for method in methods for model in models_for(method)} | set(also)
    missing = [model for model in MODELS if model in needed and not checkpoint_path(config, model).is_file()]
    if missing:
        commands = " and ".join(f"`{_train_command(config, model)}`" for model in missing)
        raise CheckpointError(
            f"{config.task.name}, profile {config.profile}: not trained yet: {', '.join(missing)} "
            f"(in {checkpoint_path(config, missing[0]).parents[1]})",
            remedy=f"Run {commands}",
        )


def load_models(config: Config, prepared: PreparedData, items: Sequence[TestItem]) -> dict[str, LoadedModel]:
    """The models of the configured method, by name, each known to fit the data and these templates."""
    require_models(config, [config.method.name])
    models = {}
    for name in models_for(config.method.name):
        path = checkpoint_path(config, name)
        models[name] = _load(config, path)
        require_kind(models[name].description, path, task=config.task.name, model=name)
        require_fit(models[name].description, prepared, path)
        _require_lengths(models[name], items, path)
    return models


def load_for_one_sentence(config: Config) -> dict[str, LoadedModel]:
    """The models of the configured method without the data they were trained on; all must have learned the same words."""
    names = models_of(config.method.name)
    require_models(config, [config.method.name])
    models = {name: _load(config, checkpoint_path(config, name)) for name in names}
    first = models[names[0]]
    for name, model in models.items():
        path = checkpoint_path(config, name)
        require_kind(model.description, path, task=config.task.name, model=name)
        if model.vocabulary.hash != first.vocabulary.hash:
            raise CheckpointError(
                f"{path}: its vocabulary is not that of {checkpoint_path(config, names[0])}",
                remedy="Train both on the same data",
            )
    return models


def _load(config: Config, path: Path) -> LoadedModel:
    model = load_model(path)
    if config.eval.compile:
        compile_steps(model.network)
    return model


def _require_lengths(model: LoadedModel, items: Sequence[TestItem], path: Path) -> None:
    limits = model.config.data
    for template in (item.template for item in items):
        for length, kind in ((len(template.tokens), "target"), (len(template.context), "context")):
            limit = getattr(limits, f"max_{kind}_length")
            if length > limit:
                raise InferenceError(
                    f"template {template.id}: its {kind} has {length} tokens, {path} was trained on at most {limit}",
                    remedy=f"Set data.max_{kind}_length={limit}, or train the model again with longer sentences",
                )


def _train_command(config: Config, model: str) -> str:
    """With every setting that is not the profile's own, so that it trains what is asked for here."""
    own = {key: value for key, value in own_words(config).items() if key.split(".")[0] not in NOT_OF_TRAINING}
    words = [shlex.quote(f"{key}={value}") for key, value in own.items()]
    arguments = f' ARGS="{" ".join(words)}"' if words else ""
    return f"make train TASK={config.task.name} PROFILE={config.profile} MODEL={model}{arguments}"
