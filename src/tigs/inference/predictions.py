"""Files of predictions: a line that says how they were made, then one line per template. Needs no torch.

Each line holds its template and reference, so that figures can be made again from the file alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from tigs.config import Config
from tigs.data.special import BLANK
from tigs.data.test_sets import set_name
from tigs.errors import PredictionError

FORMAT_VERSION = 1
_TOKEN_FIELDS = ("context", "template", "reference", "fill", "unforced")


# Not frozen, because Lightning's predict loop copies what it returns and refuses to copy frozen ones.
@dataclass
class Prediction:
    """A template and what a method made of it."""

    id: str
    context: tuple[str, ...]
    template: tuple[str, ...]
    """`<blank>` at every blank."""
    reference: tuple[str, ...]
    """The original sentence."""
    fill: tuple[str, ...]
    """One token per blank."""
    nll: float | None
    """Under the method's own model, in nats over the whole sentence."""
    forward_nll: float | None
    """Under the forward model, which TIGS searches: the same measure for all methods."""
    trace: tuple[float, ...]
    """`nll` at the start and after each round."""
    rounds: int
    model_steps: int
    seconds: float
    unforced: tuple[str, ...] | None = None
    """What a masked model writes when it is not made to reproduce the template."""
    alternatives: tuple[tuple[str, float], ...] = ()
    """Further fills (space-joined) and their NLL, if they were asked for."""

    @property
    def sentence(self) -> tuple[str, ...]:
        """The template with its blanks filled."""
        words = iter(self.fill)
        return tuple(next(words) if token == BLANK else token for token in self.template)


@dataclass(frozen=True)
class Header:
    """How all predictions of a file were made."""

    format_version: int
    task: str
    profile: str
    corpus: str
    method: str
    strategy: str
    ratio: float
    n: int
    """Number of predictions; fewer than the test set has where a limit was set."""
    test_set_hash: str
    checkpoints: dict[str, dict[str, Any]]
    """Per model: `path`, `hash`, `validation_nll`."""
    config: dict[str, Any]
    """The resolved configuration."""
    seconds: float
    """Wall-clock time of the search, all processes together."""
    devices: int
    git_revision: str | None

    @property
    def set_name(self) -> str:
        """For example `random-25`."""
        return set_name(self.strategy, self.ratio)

    @property
    def identity(self) -> str:
        """Equal identities mean equal predictions for every template that both files hold, but for the time they took."""
        deciding = {
            "format": self.format_version,
            "method": self.config.get("method"),
            "seed": self.config.get("seed"),
            "checkpoints": {model: about.get("hash") for model, about in self.checkpoints.items()},
            "test_set": self.test_set_hash,
        }
        return hashlib.blake2b(json.dumps(deciding, sort_keys=True).encode(), digest_size=8).hexdigest()


@dataclass(frozen=True)
class PredictionFile:
    """A whole file."""

    header: Header
    predictions: tuple[Prediction, ...]


def predictions_folder(config: Config) -> Path:
    """Where the predictions of a method stand, one file per test set."""
    return Path(config.output_dir) / config.task.name / config.profile / "predictions" / config.method.name


def to_line(record: Header | Prediction) -> str:
    """One line of JSON, ended by a newline; token sequences are joined by spaces."""
    values = asdict(record)
    for name in _TOKEN_FIELDS:
        if values.get(name) is not None:
            values[name] = " ".join(values[name])
    return json.dumps(values, ensure_ascii=False) + "\n"


def prediction_from_line(line: str, where: str) -> Prediction:
    """The inverse of `to_line`.

    Raises:
        PredictionError: if the line is cut off or not a prediction; `where` is named.
    """
    values = _parse(line, where, Prediction)
    try:
        for name in _TOKEN_FIELDS:
            if values.get(name) is not None:
                values[name] = tuple(values[name].split(" ")) if values[name] else ()
        values["trace"] = tuple(values["trace"])
        values["alternatives"] = tuple((fill, nll) for fill, nll in values.get("alternatives", ()))
        prediction = Prediction(**values)
    except (TypeError, ValueError, AttributeError, KeyError) as error:
        raise _broken(where, "not a prediction") from error
    n_blanks = prediction.template.count(BLANK)
    if len(prediction.fill) != n_blanks:
        raise _broken(where, f"{len(prediction.fill)} tokens for {n_blanks} blanks")
    return prediction


def read_predictions(path: Path) -> PredictionFile:
    """A whole prediction file, checked.

    Raises:
        PredictionError: naming the line that is cut off, repeats an id or has a fill of the wrong length, or the number
            of predictions that are missing.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _broken(str(path), "cannot be read") from error
    first, *lines = text.split("\n")
    header = Header(**_parse(first, f"{path} line 1", Header))
    if header.format_version != FORMAT_VERSION:
        raise _broken(f"{path} line 1", f"format {header.format_version}, this version reads {FORMAT_VERSION}")
    seen: dict[str, int] = {}
    predictions = []
    for number, line in enumerate(lines, start=2):
        if not line and number == len(lines) + 1:
            continue
        prediction = prediction_from_line(line, f"{path} line {number}")
        if prediction.id in seen:
            raise _broken(f"{path} line {number}", f"the id {prediction.id} stands in line {seen[prediction.id]} too")
        seen[prediction.id] = number
        predictions.append(prediction)
    if len(predictions) != header.n:
        where = f"{path} line {len(predictions) + 2}"
        raise _broken(where, f"the file ends after {len(predictions)} predictions, line 1 says {header.n}")
    return PredictionFile(header, tuple(predictions))


def write_predictions(path: Path, header: Header, predictions: Iterable[Prediction]) -> None:
    """Under another name first, so that a file with this name is always whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(to_line(header) + "".join(map(to_line, predictions)), encoding="utf-8")
    unfinished.replace(path)


def _parse(line: str, where: str, kind: type[Header] | type[Prediction]) -> dict[str, Any]:
    try:
        values = json.loads(line)
    except ValueError as error:
        raise _broken(where, "the line is cut off or not JSON") from error
    names = {field.name for field in fields(kind)}
    if not isinstance(values, dict) or not set(values) <= names or ("config" in names and set(values) != names):
        raise _broken(where, f"not a line of a prediction file ({kind.__name__.lower()} expected)")
    for field in fields(kind):
        if field.name in values and not _FITS[str(field.type)](values[field.name]):
            raise _broken(where, f"not a {kind.__name__.lower()} ({field.name} has the wrong type)")
    return values


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isinstance(value, float) or _is_whole(value)


def _is_list(value: object, fits: Callable[[Any], bool]) -> bool:
    return isinstance(value, list) and all(map(fits, value))


def _is_fill_with_nll(value: object) -> bool:
    return isinstance(value, list) and len(value) == 2 and _is_text(value[0]) and _is_number(value[1])


# How a field of each type stands in a line; tokens are joined there.
_FITS: dict[str, Callable[[Any], bool]] = {
    "str": _is_text,
    "str | None": lambda value: value is None or _is_text(value),
    "int": _is_whole,
    "float": _is_number,
    "float | None": lambda value: value is None or _is_number(value),
    "tuple[str, ...]": _is_text,
    "tuple[str, ...] | None": lambda value: value is None or _is_text(value),
    "tuple[float, ...]": lambda value: _is_list(value, _is_number),
    "tuple[tuple[str, float], ...]": lambda value: _is_list(value, _is_fill_with_nll),
    "dict[str, Any]": lambda value: isinstance(value, dict),
    "dict[str, dict[str, Any]]": lambda value: (
        isinstance(value, dict) and all(isinstance(inner, dict) for inner in value.values())
    ),
}


def _broken(where: str, problem: str) -> PredictionError:
    return PredictionError(f"{where}: {problem}", remedy="Delete the file and run `make eval` for this method again")
