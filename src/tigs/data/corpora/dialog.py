"""DailyDialog (Li et al. 2017): each turn is the context of the next.

Two layouts are read: the official one (`train/dialogues_train.txt` and so on, a dialogue a line, turns ended by `__eou__`) and
the hub's parquet form (a column `dialog`, a list of turns). The publisher's splits are kept, but they overlap: a training
dialogue that also stands in test or validation is removed, compared on letters and digits alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tigs.config import DataConfig
from tigs.data.corpora.files import read_lines, read_parquet, require_files
from tigs.data.corpora.pairs import SPLITS, Corpus, Pair, PairCollector
from tigs.data.english import tokenize
from tigs.errors import DataError
from tigs.progress import track

LAYOUT = "train/dialogues_train.txt, validation/... and test/..., or parquet files named by split"
REPEATED_DIALOGUE = "duplicate: pair of a dialogue that stands in a later split or earlier in this one"
EMPTY_TURN = "empty turn"

Dialogue = list[str]


def find_files(folder: Path) -> list[Path]:
    """The corpus files below a folder, in a fixed order."""
    text = [path for split in SPLITS for path in sorted(folder.glob(f"{split}/dialogues_*.txt"))]
    # The official archive has labels of acts and emotions beside the text.
    text = [path for path in text if not path.name.startswith(("dialogues_act_", "dialogues_emotion_"))]
    files = text or [path for split in SPLITS for path in sorted(folder.rglob(f"{split}*.parquet"))]
    require_files(files, folder, LAYOUT)
    for split in SPLITS:
        if not any(_split_of(path) == split for path in files):
            raise DataError(f"{folder}: no files of the {split} split", remedy=f"Expected {LAYOUT}")
    return files


def read(files: list[Path], settings: DataConfig) -> Corpus:
    """Pairs of adjacent turns."""
    collector = PairCollector(settings)
    seen: set[str] = set()
    # Test first: what stands in test must go from validation and train, never the other way round.
    for split in reversed(SPLITS):
        for path in [path for path in files if _split_of(path) == split]:
            for dialogue in track(_dialogues(path), f"Reading {path.name}"):
                key = re.sub(r"[\W_]+", "", "".join(dialogue).lower())
                if key in seen:
                    collector.drop(REPEATED_DIALOGUE, max(0, len(dialogue) - 1))
                    continue
                seen.add(key)
                _add_pairs(collector, split, dialogue)
    return collector.finish()


def _add_pairs(collector: PairCollector, split: str, dialogue: Dialogue) -> None:
    turns = [tokenize(turn) for turn in dialogue]
    for context, target in pairwise(turns):
        if context and target:
            collector.add(split, Pair(context, target))
        else:
            collector.drop(EMPTY_TURN)


def _split_of(path: Path) -> str:
    return path.parent.name if path.suffix == ".txt" else path.name.split("-")[0].split(".")[0]


def _dialogues(path: Path) -> Iterator[Dialogue]:
    if path.suffix == ".parquet":
        for number, turns in enumerate(read_parquet(path, "dialog"), start=1):
            if not isinstance(turns, list) or not all(isinstance(turn, str) for turn in turns):
                raise DataError(f"{path} row {number}: 'dialog' is not a list of turns", remedy=f"Expected {LAYOUT}")
            yield [turn.strip() for turn in turns]
        return
    for number, line in read_lines(path):
        if not line.strip():
            continue
        if "__eou__" not in line:
            raise DataError(f"{path} line {number}: no __eou__", remedy=f"Not DailyDialog's layout; expected {LAYOUT}")
        yield [turn.strip() for turn in line.strip().removesuffix("__eou__").split("__eou__")]
