"""How YAML files and `key=value` words become one configuration.

The order of merging is: defaults of `config.py`, `experiments/task/<task>.yaml`, `model/<model>.yaml`, `method/<method>.yaml`,
`profile/<profile>.yaml`, the profile's own sections for this task (`by_task`), model (`by_model`) and method (`by_method`), and
last the words of the command line.
The checks themselves are in `validation.py`. Nothing here imports torch: `tigs --help` and a mistyped key answer at once.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from tigs.config import Config
from tigs.errors import ConfigError
from tigs.validation import Origin, check_keys, check_ranges, dotted_fields, flatten, is_text, merge_values, parse_yaml

# The words `task=poetry`, `model=forward`, `profile=cpu` and `method=tigs` each choose a file of that folder.
GROUPS = ("task", "model", "profile", "method")
# A profile may have sections for one of these.
CHOOSERS = ("task", "model", "method")
_DEFAULT_CHOICE = {"task": "poetry", "model": "forward", "profile": "small", "method": "tigs"}
_FIELDS = dotted_fields(Config)


def experiments_folder() -> Path:
    """The YAML files: inside an installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "experiments"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "experiments"


def available(group: str) -> list[str]:
    """The files one can choose from in a group."""
    return sorted(path.stem for path in (experiments_folder() / group).glob("*.yaml"))


def compose(words: Sequence[str] = ()) -> Config:
    """One configuration from `key=value` words such as `task=poetry`, `profile=cpu`, `model.hidden=512`.

    Raises:
        ConfigError: for an unknown file or key, a wrong type, a value out of range, or a contradiction.
    """
    choices, overrides = _split_words(words)
    layers = [layer for group in ("task", "model", "method", "profile") for layer in _group_layers(group, choices)]
    layers += [_override_layer(word) for word in overrides]
    merged = OmegaConf.structured(Config)
    for origin, values in layers:
        merged = merge_values(merged, values, origin)
    config = cast(Config, OmegaConf.to_object(merged))
    config.profile = choices["profile"]
    if config.data.dir is not None and not any(word.startswith("data.source=") for word in overrides):
        config.data.source = "folder"
    check_ranges(config)
    _check_contradictions(config)
    return config


def own_words(config: Config) -> dict[str, str]:
    """Key -> value: what `compose` must be told to make this configuration, besides its task, model, profile and method.

    For another model of the same task it may not be enough: a value that is usual for this one may be unusual there.
    """
    names = {"task": config.task.name, "model": config.model.name, "method": config.method.name}
    chosen = [f"profile={config.profile}", *(f"{group}={name}" for group, name in names.items())]
    usual, now = (flatten(to_plain(settings)) for settings in (compose(chosen), config))
    changed = {key: value for key, value in now.items() if value != usual[key]}
    return {key: value if isinstance(value, str) else json.dumps(value) for key, value in changed.items()}


def save(config: Config, path: Path) -> None:
    """Write the resolved configuration, to stand beside an output."""
    path.write_text(OmegaConf.to_yaml(OmegaConf.structured(config)), encoding="utf-8")


def to_plain(config: Any) -> dict[str, Any]:
    """Plain dictionaries and lists, which load again under torch's `weights_only=True`."""
    return cast(dict[str, Any], _without_infinity(OmegaConf.to_container(OmegaConf.structured(config))))


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity; as a text it is read back as the number it is."""
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    return "inf" if value == float("inf") else value


def from_plain(values: dict[str, Any], origin: str) -> Config:
    """The inverse of `to_plain`; `origin` is named in errors."""
    check_keys(values, _FIELDS, Origin(origin))
    merged = merge_values(OmegaConf.structured(Config), values, Origin(origin))
    config = cast(Config, OmegaConf.to_object(merged))
    check_ranges(config)
    return config


def _split_words(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    choices, overrides = dict(_DEFAULT_CHOICE), []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"'{word}' is not a setting", remedy="Write settings as key=value, for example task=poetry"
            )
        if key in GROUPS:
            choices[key] = value
        elif key.removesuffix(".name") in GROUPS:
            group = key.removesuffix(".name")
            raise ConfigError(
                f"'{word}' would not choose the settings of that {group}", remedy=f"Write {group}={value}"
            )
        else:
            overrides.append(word)
    return choices, overrides


def _group_layers(group: str, choices: dict[str, str]) -> list[tuple[Origin, dict[str, Any]]]:
    name = choices[group]
    if name not in available(group):
        raise ConfigError(f"there is no {group} '{name}'", remedy=f"Choose one of: {', '.join(available(group))}")
    path = experiments_folder() / group / f"{name}.yaml"
    origin = Origin(f"experiments/{group}/{path.name}")
    values = parse_yaml(path.read_text(encoding="utf-8"), origin)
    check_keys(values, _fields_of(group), origin)
    parts = [(values.pop(f"by_{chooser}", None) or {}).get(choices[chooser]) for chooser in CHOOSERS]
    return [(origin, layer) for layer in (values, *parts) if layer]


def _fields_of(group: str) -> dict[str, Any]:
    """What a file of the group may set; a profile may set everything for one task, model or method alone, too."""
    fields = dict(_FIELDS)
    if group == "profile":
        for chooser in CHOOSERS:
            fields[f"by_{chooser}"] = Config
            for name in available(chooser):
                fields |= {f"by_{chooser}.{name}": Config}
                fields |= {f"by_{chooser}.{name}.{key}": kind for key, kind in _FIELDS.items()}
    return fields


def _override_layer(word: str) -> tuple[Origin, dict[str, Any]]:
    """`model.hidden=512` as `{"model": {"hidden": 512}}`."""
    origin = Origin(f"'{word}'")
    key, _, text = word.partition("=")
    value: Any = text
    # A path is taken as it stands: YAML would see a comment, a number or a list in some.
    if text and not (is_text(_FIELDS.get(key)) and text != "null" and "${" not in text):
        value = parse_yaml(f"value: {text}", origin)["value"]
    for part in reversed(key.split(".")):
        value = {part: value}
    check_keys(value, _FIELDS, origin)
    return origin, cast(dict[str, Any], value)


def _check_contradictions(config: Config) -> None:
    if config.data.source == "folder" and not config.data.dir:
        raise ConfigError("data.source=folder needs a folder", remedy="Set data.dir=PATH to the publisher's files")
    if config.data.dir and config.data.source != "folder":
        raise ConfigError(
            f"data.dir={config.data.dir} and data.source={config.data.source} contradict each other",
            remedy="Leave one of them out",
        )
    if config.data.min_target_length > config.data.max_target_length:
        raise ConfigError(
            f"data.min_target_length={config.data.min_target_length} is above "
            f"data.max_target_length={config.data.max_target_length}",
            remedy="No sentence could be kept; lower one or raise the other",
        )
    if config.trainer.devices == 0:
        raise ConfigError(
            "trainer.devices=0 leaves nobody to work", remedy="It must be at least 1, or -1 for all there are"
        )
    if config.model.hidden % 2:
        raise ConfigError(
            f"model.hidden={config.model.hidden} is odd",
            remedy="It must be even: each direction of the encoder is half of it",
        )
    if config.model.name == "mask-selfattn" and config.model.hidden % config.model.heads:
        raise ConfigError(
            f"model.heads={config.model.heads} does not divide model.hidden={config.model.hidden}",
            remedy="Choose a hidden size that is a multiple of the number of heads",
        )
