"""Which settings a sweep tries: lists of values among the words of the command line. Needs no torch."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tigs.composition import compose
from tigs.config import Config
from tigs.errors import ConfigError

MAX_SETTINGS = 200
METHOD = "method"
_PREFIX = f"{METHOD}."

Lists = Mapping[str, Sequence[str]]


@dataclass(frozen=True)
class Setting:
    """One row of a sweep."""

    varied: dict[str, str]
    """The values of the keys that differ between rows; of a base, what it has for them by itself."""
    config: Config
    fixed: tuple[str, ...] = ()
    """Words about the method that are the same in all rows."""
    is_base: bool = False
    """Nothing is changed in it but perhaps the method."""

    @property
    def label(self) -> str:
        """Its own values, for a table."""
        shown = self.varied or {METHOD: self.config.method.name}
        words = " ".join(f"{key.removeprefix(_PREFIX)}={value}" for key, value in shown.items())
        return f"base: {words}" if self.is_base else words

    @property
    def words(self) -> str:
        """What to write on a command line to get it."""
        varied = [f"{key}={value}" for key, value in self.varied.items() if key != METHOD]
        return " ".join([f"{METHOD}={self.config.method.name}", *self.fixed, *varied])


def sweep_settings(words: Sequence[str], *, one_at_a_time: bool) -> list[Setting]:
    """Every setting that the words ask for, each once.

    Args:
        words: `key=value`; commas in a value of `method` or of a key below it make a list. The last word about a key counts.
        one_at_a_time: instead of all combinations, what the words without lists give (the base), and each listed value
            alone on top of that. Several methods have a base each.

    Raises:
        ConfigError: for too many combinations, or whatever `compose` refuses.
    """
    values = _read(words)
    lists = {key: choices for key, choices in values.items() if len(choices) > 1}
    fixed = [f"{key}={choices[0]}" for key, choices in values.items() if len(choices) == 1]
    _require_few(lists, one_at_a_time=one_at_a_time)
    composed: list[tuple[Config, dict[str, str]]] = []
    for varied in _one_at_a_time(lists) if one_at_a_time else _grid(lists):
        config = compose([*fixed, *(f"{key}={value}" for key, value in varied.items())])
        if all(config != other for other, _ in composed):
            composed.append((config, varied))
    # Only now is every key known to exist, those of lists too, which a base does not set.
    fixed_method = tuple(word for word in fixed if word.startswith(_PREFIX))
    return [_name(config, varied, lists, fixed_method) for config, varied in composed]


def _read(words: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The values of each key; most have one."""
    values: dict[str, tuple[str, ...]] = {}
    for word in words:
        key, _, text = word.partition("=")
        # Elsewhere a comma is a part of the value: of a path, or of a list that is one value.
        can_vary = key == METHOD or key.startswith(_PREFIX)
        values[key] = tuple(part.strip() for part in text.split(",")) if can_vary else (text,)
        if len(values[key]) > 1 and not all(values[key]):
            raise ConfigError(f"'{word}': a value is missing beside a comma", remedy="Write values as 3,10,30")
    return values


def _require_few(lists: Lists, *, one_at_a_time: bool) -> None:
    numbers = {key: len(choices) for key, choices in lists.items()}
    n_methods = numbers.pop(METHOD, 1)
    number = n_methods * (1 + sum(numbers.values()) if one_at_a_time else math.prod(numbers.values()))
    if number > MAX_SETTINGS:
        raise ConfigError(
            f"the lists make {number:,} settings, a sweep has at most {MAX_SETTINGS}",
            remedy="List fewer values, or try the keys --one-at-a-time",
        )


def _grid(lists: Lists) -> list[dict[str, str]]:
    return [dict(zip(lists, chosen, strict=True)) for chosen in itertools.product(*lists.values())]


def _one_at_a_time(lists: Lists) -> list[dict[str, str]]:
    """For each method nothing, and then each value alone."""
    methods = [{METHOD: name} for name in lists.get(METHOD, ())] or [{}]
    changes = [{key: value} for key, choices in lists.items() if key != METHOD for value in choices]
    return [method | change for method in methods for change in ({}, *changes)]


def _name(config: Config, varied: dict[str, str], lists: Lists, fixed: tuple[str, ...]) -> Setting:
    if varied.keys() - {METHOD} or not lists.keys() - {METHOD}:
        return Setting(varied, config, fixed)
    own = {key: _text(getattr(config.method, key.removeprefix(_PREFIX))) for key in lists if key != METHOD}
    return Setting(varied | own, config, fixed, is_base=True)


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value)
