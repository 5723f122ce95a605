"""Files of figures: what they hold, reading, writing, and collecting them from one or several machines. Needs no torch.

runs/<task>/<profile>/metrics/<method>/<set>.json             the figures of one method on one test set
runs/<task>/<profile>/metrics/<method>/<set>.sentences.json   what they were summed from, sentence by sentence
runs/<task>/<profile>/metrics/comparison.json                 every method against TIGS
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tigs.errors import EvaluationError
from tigs.whole_file import write_text

FORMAT_VERSION = 1
_SENTENCES = ".sentences.json"
# Further digits would depend on the order in which a machine adds up.
_DIGITS = 9


@dataclass(frozen=True)
class Figure:
    """A figure and its 95 % interval (bootstrap over sentences)."""

    value: float
    low: float
    high: float

    @classmethod
    def rounded(cls, value: float, low: float, high: float) -> Figure:
        """With as many digits as are the same on every machine."""
        return cls(*(round(float(number), _DIGITS) for number in (value, low, high)))


@dataclass(frozen=True)
class Metrics:
    """All figures of one method on one test set, with everything that decides them."""

    format_version: int
    task: str
    profile: str
    corpus: str
    method: str
    set_name: str
    """For example `random-25`."""
    strategy: str
    ratio: float
    n: int
    """Number of sentences."""
    test_set_hash: str
    figures: dict[str, Figure]
    """Those that the method has: `nll`, `nll_sentence`, `perplexity` (evaluator), `own_nll`, `forward_nll`, `bleu_xy`, `bleu_y`,
    `bleu_xy_sentence`, `bleu_y_sentence`, `bleu_references`, `unk_share`, `exact_match`, `distinct_1`, `distinct_2`,
    `template_failure`, `model_steps`, `rounds`, `seconds`. NLL is per token with `</s>` unless its name says `sentence`; BLEU and
    shares are between 0 and 1; costs are means per sentence. `own_nll` is the method's own objective per token, comparable within
    a method only: GSN's sum has no term for `</s>`, and BiBS adds up two directions."""
    n_references: int | None
    """Of `bleu_references`."""
    bleu_signature: str
    """sacrebleu's own, of the corpus figures with one reference a sentence; `signature` is that of any figure."""
    trace: tuple[float, ...]
    """The method's own NLL per token at the start and after each round; a sentence that stopped keeps its last value."""
    evaluator: dict[str, Any] | None
    """`path`, `hash`, `validation_nll` of the model behind `nll`; None for a method without sentences to score."""
    checkpoints: dict[str, dict[str, Any]]
    """The same of the models that the method searched."""
    config: dict[str, Any]
    """The resolved configuration of the search."""
    search_seconds: float
    """Wall-clock time of the whole search, all processes together."""
    devices: int
    git_revision: str | None
    sentences_hash: str
    """Of the file with the sentences, so that the two cannot be mixed up."""

    @property
    def allows_unk(self) -> bool:
        """Whether `<unk>` might be filled in."""
        allowed: bool = self.config["method"]["allow_unk"]
        return allowed

    @property
    def cell(self) -> tuple[str, str, str]:
        """Task, profile and test set: what is compared stands in the same cell."""
        return self.task, self.profile, self.set_name

    def references_of(self, figure: str) -> int:
        """References a sentence of a BLEU figure."""
        return self.n_references or 1 if figure == "bleu_references" else 1

    def signature(self, figure: str) -> str:
        """sacrebleu's own of a BLEU figure, with its true number of references."""
        return self.bleu_signature.replace("nrefs:1|", f"nrefs:{self.references_of(figure)}|")

    def path(self, output_dir: Path) -> Path:
        """Where the file stands."""
        return metrics_folder(output_dir, self.task, self.profile) / self.method / f"{self.set_name}.json"


@dataclass(frozen=True)
class Sentences:
    """What figures are summed from, so that a comparison needs neither evaluator nor predictions. Columns of equal length."""

    ids: tuple[str, ...]
    """Of the templates, in the order of the predictions."""
    nll: tuple[tuple[float, ...], ...] | None
    """Under the evaluator, in nats per token of the filled sentence; the last is that of `</s>`."""
    bleu: dict[str, tuple[tuple[int, ...], ...]]
    """Per scope (`bleu_xy`, `bleu_y`, `bleu_references`): the ten numbers of `tigs.evaluation.bleu` for each sentence."""

    @property
    def nll_by_id(self) -> dict[str, tuple[float, ...]]:
        """NLL per token for each template; empty where there is none."""
        return {} if self.nll is None else dict(zip(self.ids, self.nll, strict=True))


@dataclass(frozen=True)
class Difference:
    """A figure of a method less that of TIGS on the same sentences."""

    set_name: str
    method: str
    figure: str
    """A key of `Metrics.figures`."""
    value: float
    low: float
    high: float
    p_value: float
    """Two-sided, paired bootstrap; not corrected for the number of comparisons."""
    n: int

    @property
    def is_significant(self) -> bool:
        """At the 5 % level."""
        return self.p_value < 0.05


@dataclass(frozen=True)
class Comparison:
    """Every method against TIGS, for one task and profile."""

    format_version: int
    task: str
    profile: str
    corpus: str
    baseline: str
    differences: tuple[Difference, ...]

    def path(self, output_dir: Path) -> Path:
        """Where the file stands."""
        return metrics_folder(output_dir, self.task, self.profile) / "comparison.json"


def metrics_folder(output_dir: Path, task: str, profile: str) -> Path:
    """Of one task and profile."""
    return output_dir / task / profile / "metrics"


def sentences_path(path: Path) -> Path:
    """The file with the sentences that belongs to a file of metrics."""
    return path.with_name(path.stem + _SENTENCES)


def sentences_text(sentences: Sentences) -> str:
    """The content of a file with sentences."""
    values = {"format_version": FORMAT_VERSION, **vars(sentences)}
    return json.dumps(values, ensure_ascii=False, allow_nan=False, separators=(",", ":")) + "\n"


def text_hash(text: str) -> str:
    """Equal hashes mean equal files."""
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def write_metrics(output_dir: Path, metrics: Metrics, sentences: Sentences) -> Path:
    """Both files; each is whole or not there, and the one with the figures comes last."""
    path = metrics.path(output_dir)
    write_text(sentences_path(path), sentences_text(sentences))
    write_text(path, json.dumps(asdict(metrics), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def read_metrics(path: Path) -> Metrics:
    """One file of figures.

    Raises:
        EvaluationError: if it is damaged, of another version, or stands where figures of something else belong.
    """
    with _damage(path):
        values = _read(path)
        figures = {name: Figure(**figure) for name, figure in values.pop("figures").items()}
        further = {"figures": figures, "trace": tuple(values["trace"]), "config": dict(values["config"])}
        metrics = Metrics(**values | further)
        if not isinstance(metrics.config["method"]["allow_unk"], bool):
            raise ValueError("method.allow_unk must be true or false")
    if metrics.path(Path()).parts != path.parts[-5:]:
        raise EvaluationError(
            f"{path}: it holds the figures of {metrics.path(Path())}", remedy="Put it where its content says"
        )
    return metrics


def read_sentences(output_dir: Path, metrics: Metrics) -> Sentences:
    """The sentences behind some figures.

    Raises:
        EvaluationError: if the file is missing or damaged, or belongs to other figures.
    """
    path = sentences_path(metrics.path(output_dir))
    with _damage(path):
        if text_hash(path.read_text(encoding="utf-8")) != metrics.sentences_hash:
            raise ValueError("it does not belong to the figures beside it")
        values = _read(path)
        nll = values["nll"]
        return Sentences(
            ids=tuple(values["ids"]),
            nll=None if nll is None else tuple(map(tuple, nll)),
            bleu={scope: tuple(map(tuple, rows)) for scope, rows in values["bleu"].items()},
        )


def load_all(output_dir: Path, *, task: str | None = None, profile: str | None = None) -> list[Metrics]:
    """Every file of figures below a folder, or those of one task or profile; several machines' may have been copied together.

    Raises:
        EvaluationError: if a file is damaged, or two must not stand in the same cell.
    """
    loaded = [read_metrics(path) for path in _metrics_paths(output_dir, task, profile)]
    refuse_conflicts(output_dir, loaded)
    return loaded


def find_experiments(output_dir: Path, *, task: str | None = None, profile: str | None = None) -> list[tuple[str, str]]:
    """Tasks and profiles that have files of figures, whether or not these can be read."""
    return sorted({(path.parts[-5], path.parts[-4]) for path in _metrics_paths(output_dir, task, profile)})


def refuse_conflicts(output_dir: Path, loaded: Iterable[Metrics]) -> None:
    """Figures of one cell must be about the same sentences, filled with the same models and words and scored by one evaluator."""
    first: dict[tuple[str, ...], Metrics] = {}
    for metrics in loaded:
        for name, value in _what_must_agree(metrics).items():
            other = first.setdefault((*metrics.cell, name), metrics)
            if _what_must_agree(other)[name] != value:
                raise EvaluationError(
                    f"{other.path(output_dir)} and {metrics.path(output_dir)} cannot be compared: "
                    f"{name} {_what_must_agree(other)[name]} and {value}",
                    remedy=_REMEDIES.get(name, "Run both methods again with the same checkpoint of that model"),
                )


def write_comparison(output_dir: Path, comparison: Comparison) -> Path:
    """One file for all test sets of a task and profile."""
    path = comparison.path(output_dir)
    write_text(path, json.dumps(asdict(comparison), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    return path


def read_comparisons(output_dir: Path, *, task: str | None = None, profile: str | None = None) -> list[Comparison]:
    """Every comparison below a folder, or those of one task or profile.

    Raises:
        EvaluationError: if a file is damaged.
    """
    comparisons = []
    for path in sorted(output_dir.glob(f"{task or '*'}/{profile or '*'}/metrics/comparison.json")):
        with _damage(path):
            values = _read(path)
            differences = tuple(Difference(**difference) for difference in values.pop("differences"))
            comparisons.append(Comparison(**values, differences=differences))
    return comparisons


_REMEDIES = {
    "test set": "Delete one of them; run its method again with the data.* and test_sets.* settings of the other",
    "number of sentences": "Run the method with fewer sentences again, with the eval.limit of the other",
    "evaluator": "Copy one evaluator's checkpoint to both machines and run `make eval` for the other again",
    "number of references": "Delete one of them; run its method again with the data.* settings of the other",
    "method.allow_unk": "Run one of them again; figures with <unk> need a folder of their own, which output_dir=... names",
}


def _what_must_agree(metrics: Metrics) -> dict[str, object]:
    """Only what a method has: the bare template has no evaluator."""
    evaluator = metrics.evaluator or {}
    values = {
        "test set": metrics.test_set_hash,
        "number of sentences": metrics.n,
        "evaluator": evaluator.get("hash"),
        "number of references": metrics.n_references,
        "method.allow_unk": metrics.allows_unk if metrics.checkpoints else None,
        **{f"model {name}": about.get("hash") for name, about in metrics.checkpoints.items()},
    }
    return {name: value for name, value in values.items() if value is not None}


def _metrics_paths(output_dir: Path, task: str | None, profile: str | None) -> list[Path]:
    paths = sorted(output_dir.glob(f"{task or '*'}/{profile or '*'}/metrics/*/*.json"))
    return [path for path in paths if not path.name.endswith(_SENTENCES)]


def _read(path: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    if values["format_version"] != FORMAT_VERSION:
        raise ValueError(f"format {values['format_version']}, this version reads {FORMAT_VERSION}")
    return values


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        problem = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise EvaluationError(
            f"{path}: cannot be read ({problem})", remedy="Delete it and run `make eval` for this method again"
        ) from error
