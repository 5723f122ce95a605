"""The test sets of a task: the same sentences under every mask strategy and ratio, made once and stored.

Everything is decided by hashes of the sentences and the configured seed, so a set is identical on every machine; its own hash
travels with every prediction and figure.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from tigs.config import TestSetConfig
from tigs.data.corpora.pairs import Pair, hash_share
from tigs.data.template import Template, apply_fill, make_template, reference_fill
from tigs.errors import DataError


@dataclass(frozen=True)
class TestItem:
    """A template and the tokens that stood in its blanks."""

    template: Template
    reference_fill: tuple[str, ...]

    @property
    def reference(self) -> tuple[str, ...]:
        """The original sentence."""
        return apply_fill(self.template, self.reference_fill)


@dataclass(frozen=True)
class TestSet:
    """All templates of one strategy and ratio."""

    strategy: str
    ratio: float
    items: tuple[TestItem, ...]

    @property
    def name(self) -> str:
        """For example `random-25`."""
        return set_name(self.strategy, self.ratio)

    @property
    def hash(self) -> str:
        """Equal hashes mean equal templates and references."""
        return hashlib.blake2b("".join(map(_to_line, self.items)).encode(), digest_size=16).hexdigest()


def set_name(strategy: str, ratio: float) -> str:
    """The name of a test set in files, tables and W&B."""
    return f"{strategy}-{ratio * 100:g}"


def make_test_sets(pairs: Iterable[Pair], settings: TestSetConfig) -> list[TestSet]:
    """Every strategy with every ratio over the same sentences of the test split."""
    named = {_identifier(pair): pair for pair in pairs}
    # The order of hashes picks a fair part of the split, whatever the order of its files.
    chosen = sorted(named, key=hash_share)[: settings.size]
    return [
        TestSet(
            strategy, ratio, tuple(_make_item(name, named[name], strategy, ratio, settings.seed) for name in chosen)
        )
        for ratio in settings.ratios
        for strategy in settings.strategies
    ]


def save_test_set(test_set: TestSet, folder: Path) -> None:
    """One JSON line a template, below a line that names the set and its hash."""
    header = {"strategy": test_set.strategy, "ratio": test_set.ratio, "hash": test_set.hash, "n": len(test_set.items)}
    lines = [json.dumps(header) + "\n", *map(_to_line, test_set.items)]
    (folder / f"{test_set.name}.jsonl").write_text("".join(lines), encoding="utf-8")


def load_test_set(path: Path) -> TestSet:
    """Read a stored test set.

    Raises:
        DataError: if the file was cut short or changed.
    """
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        header = json.loads(lines[0])
        items = tuple(_from_line(line) for line in lines[1:] if line)
        test_set = TestSet(header["strategy"], header["ratio"], items)
        intact = (test_set.hash, test_set.name) == (header["hash"], path.stem)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path}: not a test set", remedy="Delete its folder; it is made again from the corpus"
        ) from error
    if not intact:
        raise DataError(
            f"{path}: does not match its hash, the file was changed",
            remedy="Delete its folder; it is made again from the corpus",
        )
    return test_set


def _identifier(pair: Pair) -> str:
    text = " ".join(pair.context) + "\t" + " ".join(pair.target)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _make_item(identifier: str, pair: Pair, strategy: str, ratio: float, seed: int) -> TestItem:
    template = make_template(identifier, pair.context, pair.target, strategy=strategy, ratio=ratio, seed=seed)
    return TestItem(template, reference_fill(template, pair.target))


def _to_line(item: TestItem) -> str:
    template = item.template
    record = {
        "id": template.id,
        "context": " ".join(template.context),
        "template": " ".join(template.tokens),
        "blanks": template.blank_positions,
        "fill": " ".join(item.reference_fill),
    }
    return json.dumps(record, ensure_ascii=False) + "\n"


def _from_line(line: str) -> TestItem:
    record = json.loads(line)
    template = Template(record["id"], _words(record["context"]), _words(record["template"]), tuple(record["blanks"]))
    return TestItem(template, _words(record["fill"]))


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(" ")) if text else ()
