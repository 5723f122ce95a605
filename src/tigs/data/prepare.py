"""From source files to data that loads in seconds: clean pairs, vocabulary, ids and test sets, cached as Arrow.

The cache is keyed by the source files' content, every setting that decides the result, and the code that reads them. It is
written under another name and renamed when complete, so a half-written cache is never used.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any

import datasets

from tigs.composition import save
from tigs.config import Config
from tigs.data.corpora.pairs import SPLITS, Corpus, Pair
from tigs.data.lock import one_at_a_time
from tigs.data.source import corpus_name, find_source_files, read_corpus
from tigs.data.special import SPECIAL_TOKENS, UNK_ID
from tigs.data.test_sets import TestSet, load_test_set, make_test_sets, save_test_set
from tigs.data.vocabulary import Vocabulary
from tigs.errors import DataError, disk_errors
from tigs.progress import working

# What a result does not depend on.
_NOT_IN_KEY = ("cache_dir", "dir", "source")


@dataclass(frozen=True)
class PreparedData:
    """Prepared data of one task, read from its cache folder as it is asked for."""

    folder: Path

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `data.json` holds: counts kept and dropped, sizes, the fingerprint."""
        summary: dict[str, Any] = json.loads((self.folder / "data.json").read_text(encoding="utf-8"))
        return summary

    @cached_property
    def vocabulary(self) -> Vocabulary:
        """Built from the training split."""
        return Vocabulary.load(self.folder / "vocabulary.txt")

    def split(self, name: str) -> datasets.Dataset:
        """Columns `context`, `target` (space-joined tokens), `context_ids`, `target_ids`."""
        return datasets.load_from_disk(str(self.folder / name))

    def test_sets(self) -> list[TestSet]:
        """All stored test sets, in the order of the configuration."""
        return [load_test_set(self.folder / "test_sets" / f"{name}.jsonl") for name in self.summary["test_sets"]]


def prepare(config: Config) -> PreparedData:
    """The prepared data, from the cache or made now."""
    files = find_source_files(config)
    folder = Path(config.data.cache_dir) / config.task.name / _cache_key(config, files)
    if folder.is_dir():
        return PreparedData(folder)
    with ExitStack() as stack:
        with _write_errors(folder):
            stack.enter_context(one_at_a_time(folder.parent))
        if not folder.is_dir():
            corpus = read_corpus(config, files)
            _require_pairs(corpus, config)
            with _write_errors(folder), working("Writing the prepared data"):
                _make(config, corpus, folder)
    return PreparedData(folder)


def _make(config: Config, corpus: Corpus, folder: Path) -> None:
    unfinished = Path(tempfile.mkdtemp(prefix=f"{folder.name}.unfinished-", dir=folder.parent))
    try:
        _write(config, corpus, unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _write(config: Config, corpus: Corpus, folder: Path) -> None:
    vocabulary = Vocabulary.build(
        (part for pair in corpus.splits["train"] for part in pair),
        size=config.vocabulary.size,
        min_count=config.vocabulary.min_count,
    )
    if len(vocabulary) == len(SPECIAL_TOKENS):
        raise DataError(
            f"vocabulary.min_count={config.vocabulary.min_count} leaves no word of the corpus",
            remedy="Lower it, or give more data",
        )
    vocabulary.save(folder / "vocabulary.txt")
    datasets.disable_progress_bars()
    for name, pairs in corpus.splits.items():
        datasets.Dataset.from_dict(_columns(pairs, vocabulary)).save_to_disk(str(folder / name))
    test_sets = make_test_sets(corpus.splits["test"], config.test_sets)
    (folder / "test_sets").mkdir()
    for test_set in test_sets:
        save_test_set(test_set, folder / "test_sets")
    summary = {
        "task": config.task.name,
        "corpus": corpus_name(config),
        "pairs": {name: len(pairs) for name, pairs in corpus.splits.items()},
        "dropped": dict(corpus.dropped.most_common()),
        "vocabulary_size": len(vocabulary),
        "vocabulary_hash": vocabulary.hash,
        "unk_rate": {name: _unk_rate(pairs, vocabulary) for name, pairs in corpus.splits.items()},
        "test_sets": {test_set.name: {"n": len(test_set.items), "hash": test_set.hash} for test_set in test_sets},
        "fingerprint": _fingerprint(corpus, vocabulary),
    }
    save(config, folder / "config.yaml")
    (folder / "data.json").write_text(json.dumps(summary, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def _columns(pairs: list[Pair], vocabulary: Vocabulary) -> dict[str, list[Any]]:
    return {
        "context": [" ".join(pair.context) for pair in pairs],
        "target": [" ".join(pair.target) for pair in pairs],
        "context_ids": [vocabulary.encode(pair.context) for pair in pairs],
        "target_ids": [vocabulary.encode(pair.target) for pair in pairs],
    }


def _require_pairs(corpus: Corpus, config: Config) -> None:
    for name in SPLITS:
        if not corpus.splits[name]:
            reasons = (
                "; ".join(f"{count} {reason}" for reason, count in corpus.dropped.most_common(3)) or "no pairs at all"
            )
            where = config.data.dir or corpus_name(config)
            raise DataError(
                f"{where}: nothing is left of the {name} split after cleaning ({reasons})",
                remedy="Relax the data.* limits, or give more data",
            )


def _unk_rate(pairs: list[Pair], vocabulary: Vocabulary) -> float:
    ids = [index for pair in pairs for index in vocabulary.encode(pair.target)]
    return ids.count(UNK_ID) / len(ids)


def _fingerprint(corpus: Corpus, vocabulary: Vocabulary) -> str:
    """Of the prepared data itself, so that a change of code that changes no pair keeps checkpoints valid."""
    digest = hashlib.blake2b(vocabulary.hash.encode(), digest_size=16)
    for name in SPLITS:
        for context, target in corpus.splits[name]:
            digest.update(f"{name}\t{' '.join(context)}\t{' '.join(target)}\n".encode())
    return digest.hexdigest()


def _cache_key(config: Config, files: list[Path]) -> str:
    settings = {
        "task": config.task.name,
        "corpus": corpus_name(config),
        "data": {key: value for key, value in asdict(config.data).items() if key not in _NOT_IN_KEY},
        "vocabulary": asdict(config.vocabulary),
        "test_sets": asdict(config.test_sets),
    }
    digest = hashlib.blake2b(json.dumps(settings, sort_keys=True).encode(), digest_size=10)
    for paths in (files, _code_files()):
        # Where a file stands among the others counts, because that can decide its split; where all stand does not.
        root = os.path.commonpath(paths) if paths else ""
        for path in paths:
            digest.update(os.path.relpath(path, root).encode())
            digest.update(_file_hash(path))
    return digest.hexdigest()


def _file_hash(path: Path) -> bytes:
    try:
        found = path.stat()
        return _content_hash(path, found.st_size, found.st_mtime_ns)
    except OSError as error:
        problem = f"{path}: cannot be read ({error.strerror})"
        raise DataError(problem, remedy="Make it a readable file, or remove it") from error


@cache
def _content_hash(path: Path, size: int, modified: int) -> bytes:
    """A command that trains many models asks for the same files again and again; size and time tell when one was changed."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _code_files() -> list[Path]:
    """Everything that decides what is in the cache."""
    here = Path(__file__).parent
    single = ("english", "prepare", "source", "special", "template", "test_sets", "vocabulary")
    return [*(here / f"{name}.py" for name in single), *sorted((here / "corpora").glob("*.py"))]


def _write_errors(folder: Path) -> AbstractContextManager[None]:
    return disk_errors(
        DataError,
        f"{folder.parent}: cannot write the prepared data",
        remedy="Make room there, or set data.cache_dir to another folder",
    )
