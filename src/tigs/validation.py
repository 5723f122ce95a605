"""Checks for the configuration: unknown keys with the nearest valid one, wrong types, values out of range.

OmegaConf merges and converts; this module makes its refusals readable and adds the ranges that types cannot express.
"""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Iterator, Sequence
from typing import Any, NewType, cast, get_type_hints

import yaml
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from tigs.errors import ConfigError

Origin = NewType("Origin", str)
"""Where a value was written: a file, or a word of the command line."""


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


def check_keys(values: dict[str, Any], schema: type, origin: Origin) -> None:
    """Refuse the first key that the schema does not have, and name the nearest that it has."""
    valid = set(_dotted_fields(schema))
    for key in _dotted_keys(values, schema):
        if key in valid:
            continue
        nearest = _nearest(key, valid)
        hint = f"Did you mean '{nearest}'?" if nearest else f"Valid keys are: {', '.join(sorted(valid))}"
        raise ConfigError(f"{origin}: unknown key '{key}'", remedy=hint)


def merge_values(base: DictConfig, values: dict[str, Any], origin: Origin) -> DictConfig:
    """Merge values onto a structured config; a value of the wrong type says which field and what it must be."""
    try:
        return cast(DictConfig, OmegaConf.merge(base, values))
    except OmegaConfBaseException as error:
        # merge() names the field only relative to its node; the message's own "full_key" line is the whole path.
        lines = str(error).splitlines()
        key = next((line.split(":", 1)[1].strip() for line in lines if line.strip().startswith("full_key:")), "")
        kind = _type_name(base, key) if key else ""
        must = f"It must be {kind}" if kind else "Correct it"
        raise ConfigError(f"{origin}: {key}: {_first_line(error)}", remedy=must) from error


def check_ranges(config: Any, prefix: str = "") -> None:
    """Refuse the first value that lies outside what its field allows."""
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        key = prefix + field.name
        if dataclasses.is_dataclass(value):
            check_ranges(value, key + ".")
            continue
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


def _dotted_fields(schema: type, prefix: str = "") -> Iterator[str]:
    hints = get_type_hints(schema)
    for field in dataclasses.fields(schema):
        key = prefix + field.name
        kind = hints[field.name]
        yield key
        if dataclasses.is_dataclass(kind):
            yield from _dotted_fields(cast(type, kind), key + ".")


def _dotted_keys(values: dict[str, Any], schema: type, prefix: str = "") -> Iterator[str]:
    for name, value in values.items():
        yield f"{prefix}{name}"
        if isinstance(value, dict):
            yield from _dotted_keys(value, schema, f"{prefix}{name}.")


def _nearest(key: str, valid: set[str]) -> str | None:
    close = difflib.get_close_matches(key, valid, n=1, cutoff=0.6)
    if close:
        return close[0]
    # `hidden=512` without its section: find the field of that name wherever it stands.
    last = key.rsplit(".", 1)[-1]
    by_last_part = {name.rsplit(".", 1)[-1]: name for name in sorted(valid)}
    close = difflib.get_close_matches(last, by_last_part, n=1, cutoff=0.7)
    return by_last_part[close[0]] if close else None


def _type_name(base: DictConfig, key: str) -> str:
    schema: Any = OmegaConf.get_type(base)
    *sections, last = key.split("[")[0].split(".")
    for section in sections:
        schema = get_type_hints(schema)[section]
    kind = get_type_hints(schema).get(last)
    names = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}
    if dataclasses.is_dataclass(kind):
        return "a group of settings, as key.name=value"
    return names.get(cast(type, kind), str(kind).replace("| None", "or null").replace("int", "a whole number"))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0].strip().rstrip(".")
