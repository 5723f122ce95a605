"""What a sweep has found: one result per setting and cell, in a file that grows with each, so that nothing is searched twice."""

from __future__ import annotations

import json
import statistics
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

from tigs.config import Config
from tigs.data.lock import one_at_a_time
from tigs.errors import EvaluationError, disk_errors
from tigs.inference.sweep_settings import Setting
from tigs.whole_file import write_text

FORMAT_VERSION = 1


@dataclass(frozen=True)
class Subject:
    """All that decides a result, but for the code: equal subjects are not searched again."""

    method: dict[str, Any]
    """Every option of the method."""
    seed: int
    checkpoints: dict[str, str]
    """Per model, the evaluator among them if there is one, the hash of its file."""
    cell: str
    """Strategy and ratio, for example `random-25`."""
    templates: str
    """The hash of the validation templates."""


@dataclass(frozen=True)
class Figures:
    """Over all templates of a cell. NLLs are in nats per token, `</s>` included; costs are per sentence."""

    forward_nll: float
    """Under the forward model, whatever model was searched."""
    evaluator_nll: float | None
    """None as long as the evaluator is not trained."""
    own_nll: float
    """What the method minimised, under its own model."""
    unk_share: float
    """Of the words in blanks."""
    model_steps: float
    seconds: float


@dataclass(frozen=True)
class Result:
    """A setting on a cell."""

    subject: Subject
    n: int
    """Templates."""
    template_seed: int
    figures: Figures


class Row(NamedTuple):
    """A setting on all cells of a sweep."""

    setting: Setting
    results: tuple[Result, ...]

    def values(self, figure: str) -> list[float]:
        """Of each cell."""
        return [getattr(result.figures, figure) for result in self.results]

    def mean(self, figure: str) -> float:
        """Every cell counts the same."""
        return statistics.fmean(self.values(figure))


def criterion(rows: Sequence[Row]) -> str:
    """By which figure rows are compared: the NLL by the evaluator, which no method searches, if there is one."""
    has_evaluator = all(value is not None for row in rows for value in row.values("evaluator_nll"))
    return "evaluator_nll" if has_evaluator else "forward_nll"


def best_rows(rows: Sequence[Row]) -> list[Row]:
    """For each method the row with the lowest mean; of equal ones that with fewer model steps."""
    figure = criterion(rows)
    by_method: dict[str, list[Row]] = {}
    for row in rows:
        by_method.setdefault(row.setting.config.method.name, []).append(row)
    return [
        min(own, key=lambda row: (round(row.mean(figure), 6), row.mean("model_steps"))) for own in by_method.values()
    ]


def results_path(config: Config, name: str) -> Path:
    """Where the results of sweeps with a name stand."""
    return Path(config.output_dir) / config.task.name / config.profile / "sweeps" / f"{name}.json"


def read_results(path: Path) -> list[Result]:
    """What earlier commands have found.

    Raises:
        EvaluationError: if the file is damaged.
    """
    if not path.is_file():
        return []
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format_version"] != FORMAT_VERSION:
            raise ValueError("another format")
        return [_from_plain(**plain) for plain in document["results"]]
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise EvaluationError(
            f"{path}: not a file of sweep results, or damaged", remedy="Delete it; the sweep is run again"
        ) from error


def add_result(path: Path, result: Result) -> None:
    """The file is always whole; two sweeps may add to it at once."""
    with _write_errors(path), one_at_a_time(path.parent):
        document = {
            "format_version": FORMAT_VERSION,
            "split": "validation",
            "results": [asdict(one) for one in (*read_results(path), result)],
        }
        write_text(path, json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def _from_plain(subject: dict[str, Any], n: int, template_seed: int, figures: dict[str, Any]) -> Result:
    return Result(Subject(**subject), n, template_seed, Figures(**figures))


def _write_errors(path: Path) -> AbstractContextManager[None]:
    return disk_errors(
        EvaluationError,
        f"{path}: cannot write the results of the sweep",
        remedy="Make room or make it writable, or set output_dir to another folder; the same command goes on",
    )
