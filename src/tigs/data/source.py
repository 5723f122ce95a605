"""Where a task's corpus comes from: built in, a folder, or its publisher. One table from task to reader."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from tigs.config import Config, DataConfig
from tigs.data.corpora import aprc, dialog, poetry
from tigs.data.corpora.files import require_folder
from tigs.data.corpora.pairs import Corpus
from tigs.data.corpora.sample import read_sample
from tigs.data.download import download
from tigs.data.publishers import PUBLISHERS

SAMPLE_NAME = "built-in sample corpus"


class Reader(NamedTuple):
    """How one corpus is found and read, and what it is called in every output."""

    find_files: Callable[[Path], list[Path]]
    read: Callable[[list[Path], DataConfig], Corpus]
    corpus_name: str


READERS = {
    "dialog": Reader(dialog.find_files, dialog.read, "DailyDialog"),
    "poetry": Reader(poetry.find_files, poetry.read, "chinese-poetry"),
    "aprc": Reader(aprc.find_files, aprc.read, "Amazon reviews (stand-in for APRC)"),
}


def corpus_name(config: Config) -> str:
    """What every output made from this data calls it."""
    return SAMPLE_NAME if config.data.source == "sample" else READERS[config.task.name].corpus_name


def find_source_files(config: Config) -> list[Path]:
    """The publisher's files, fetched first if need be; none for the built-in sample."""
    if config.data.source == "sample":
        return []
    if config.data.source == "download":
        target = Path(config.data.cache_dir) / "downloads" / config.task.name
        folder = download(PUBLISHERS[config.task.name], target)
    else:
        folder = Path(config.data.dir or "")
    require_folder(folder)
    return READERS[config.task.name].find_files(folder)


def read_corpus(config: Config, files: list[Path]) -> Corpus:
    """The clean pairs of the configured source."""
    if config.data.source == "sample":
        return read_sample(config.task.name, config.data)
    return READERS[config.task.name].read(files, config.data)
