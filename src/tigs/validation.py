"""Checks for the configuration: unknown keys with the nearest valid one, wrong types, values out of range.

OmegaConf merges and converts; this module makes its refusals readable and adds the ranges that types cannot express.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterable, Sequence
from typing import Any, NewType, cast, get_type_hints

import yaml
from omegaconf import MISSING, DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tigs.errors import ConfigError

Origin = NewType("Origin", str)
"""Where a value was written: a file, or a word of the command line."""

_TYPE_NAMES = {
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    str: "text",
    int | None: "a whole number or null",
    str | None: "text or null",
    list[str]: "a list of words, as [a,b]",
    list[float]: "a list of numbers, as [0.25,0.5]",
}


def allowed(
    default: Any,
    *,
    choices: Sequence[str] = (),
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
) -> Any:
    """A dataclass field with the values it may take; for a list, the values of its items."""
    limits = {
        "choices": tuple(choices),
        "at least": minimum,
        "at most": maximum,
        "above": above,
        "below": below,
    }
    if isinstance(default, tuple):
        return dataclasses.field(default_factory=lambda: list(default), metadata=limits)
    return dataclasses.field(default=default, metadata=limits)


def parse_yaml(text: str, origin: Origin) -> dict[str, Any]:
    """Read YAML, or say on which line it is broken."""
    try:
        parsed = OmegaConf.to_container(OmegaConf.create(text), resolve=True)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or str(error)
        raise ConfigError(f"{origin}{line}: not YAML ({problem})", remedy="Mend that line") from error
    except OmegaConfBaseException as error:
        raise ConfigError(f"{origin}: {_first_line(error)}", remedy="Mend that value") from error
    if not isinstance(parsed, dict):
        raise ConfigError(f"{origin}: holds no settings", remedy="Write them as 'key: value'")
    return cast(dict[str, Any], parsed)


def dotted_fields(schema: type, prefix: str = "") -> dict[str, Any]:
    """Every key that may be set, `model` as well as `model.hidden`, with its type."""
    fields: dict[str, Any] = {}
    for name, kind in get_type_hints(schema).items():
        fields[prefix + name] = kind
        if dataclasses.is_dataclass(kind):
            fields |= dotted_fields(cast(type, kind), f"{prefix}{name}.")
    return fields


def flatten(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """`{"model": {"hidden": 512}}` as `{"model.hidden": 512}`."""
    flat: dict[str, Any] = {}
    for name, value in values.items():
        flat |= flatten(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def is_text(kind: Any) -> bool:
    """Whether a field holds text."""
    return kind in (str, str | None)


def check_keys(values: dict[str, Any], fields: dict[str, Any], origin: Origin, prefix: str = "") -> None:
    """Refuse the first key that is not among the fields, naming the nearest, and a plain value for a group of keys."""
    for name, value in values.items():
        key = f"{prefix}{name}"
        if key not in fields:
            nearest = _nearest(key, fields)
            hint = f"Did you mean '{nearest}'?" if nearest else f"Valid keys are: {', '.join(_siblings(key, fields))}"
            raise ConfigError(f"{origin}: unknown key '{key}'", remedy=hint)
        if value == MISSING:
            raise ConfigError(f"{origin}: {key} has no value", remedy="Give it one, or leave it out")
        if isinstance(value, dict):
            check_keys(value, fields, origin, f"{key}.")
        elif dataclasses.is_dataclass(fields[key]) and value is not None:
            raise ConfigError(f"{origin}: {key}={value} is not allowed", remedy=f"It must be {_type_name(fields[key])}")


def merge_values(base: DictConfig, values: dict[str, Any], origin: Origin) -> DictConfig:
    """Merge values onto a structured config; a value of the wrong type says which field and what it must be."""
    try:
        return cast(DictConfig, OmegaConf.merge(base, values))
    except OmegaConfBaseException as error:
        # merge() names the field only relative to its node; the message's own "full_key" line is the whole path.
        lines = str(error).splitlines()
        key = next((line.split(":", 1)[1].strip() for line in lines if line.strip().startswith("full_key:")), "")
        kind = dotted_fields(cast(type, OmegaConf.get_type(base))).get(key.split("[")[0])
        must = f"It must be {_type_name(kind)}" if kind else "Correct it"
        raise ConfigError(f"{origin}: {key}: {_first_line(error)}", remedy=must) from error


def check_ranges(config: Any, prefix: str = "") -> None:
    """Refuse the first value that lies outside what its field allows."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        key = prefix + field.name
        if dataclasses.is_dataclass(value):
            check_ranges(value, key + ".")
            continue
        if value == []:
            raise ConfigError(f"{key} is empty", remedy="It needs at least one value")
        for item in value if isinstance(value, list) else [value]:
            complaint = _complaint(item, field.metadata)
            if complaint:
                raise ConfigError(f"{key}={item} is not allowed", remedy=f"It must be {complaint}")


def _complaint(value: Any, limits: Any) -> str | None:
    if value is None:
        return None
    choices = limits.get("choices")
    if choices and value not in choices:
        nearest = difflib.get_close_matches(str(value), choices, n=1)
        return f"one of: {', '.join(choices)}" + (f" (did you mean '{nearest[0]}'?)" if nearest else "")
    broken = (
        (limits.get("at least") is not None and not value >= limits["at least"])
        or (limits.get("at most") is not None and not value <= limits["at most"])
        or (limits.get("above") is not None and not value > limits["above"])
        or (limits.get("below") is not None and not value < limits["below"])
    )
    words = [f"{word} {limit:g}" for word, limit in limits.items() if word != "choices" and limit is not None]
    return " and ".join(words) if broken else None


def _nearest(key: str, valid: Iterable[str]) -> str | None:
    close = difflib.get_close_matches(key, valid, n=1, cutoff=0.6)
    if close:
        return close[0]
    # `hidden=512` without its section: find the field of that name wherever it stands.
    last = key.rsplit(".", 1)[-1]
    by_last_part = {name.rsplit(".", 1)[-1]: name for name in sorted(valid)}
    close = difflib.get_close_matches(last, by_last_part, n=1, cutoff=0.7)
    return by_last_part[close[0]] if close else None


def _siblings(key: str, valid: Iterable[str]) -> list[str]:
    parent = key.rpartition(".")[0]
    return sorted(name for name in valid if name.rpartition(".")[0] == parent)


def _type_name(kind: Any) -> str:
    if dataclasses.is_dataclass(kind):
        return "a group of settings, as key.name=value"
    return _TYPE_NAMES.get(kind, str(kind))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")
