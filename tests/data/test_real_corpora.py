"""The published corpora themselves, below the folder in TIGS_DATA_DIR: `dialog`, `poetry` and `aprc`."""

from __future__ import annotations

import fcntl
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import datasets
import pytest

from tigs.data.corpora.pairs import SPLITS

ROOT = os.environ.get("TIGS_DATA_DIR")
pytestmark = pytest.mark.skipif(not ROOT, reason="TIGS_DATA_DIR is not set: no published corpora to read")

# Paper, Table 1: BLEU of the bare template, in percent of blanks.
PAPER_TEMPLATE_BLEU = {
    "random-25": 0.727,
    "middle-25": 0.815,
    "random-50": 0.581,
    "middle-50": 0.687,
    "random-75": 0.508,
    "middle-75": 0.559,
}


@pytest.fixture(scope="session")
def summary(tmp_path_factory):
    """What `tigs data --json` says about a task; each corpus is prepared once, for all test processes together."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent

    def run(task):
        said = folder / f"{task}.json"
        with said.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not said.exists():
                words = [f"task={task}", f"data.dir={Path(ROOT) / task}", f"data.cache_dir={folder / 'real'}"]
                words.append("test_sets.size=5000")
                options = ["--json", *(["--template-bleu"] if task == "poetry" else [])]
                command = [sys.executable, "-m", "tigs", "data", *words, *options]
                said.write_bytes(subprocess.run(command, capture_output=True, check=True).stdout)
        return json.loads(said.read_text(encoding="utf-8"))

    return run


all_tasks = pytest.mark.parametrize("task", ["dialog", "poetry", "aprc"])


@all_tasks
def test_no_sentence_stands_in_two_splits(summary, task):
    folder = Path(summary(task)["folder"])
    targets = {split: set(datasets.load_from_disk(str(folder / split))["target"]) for split in SPLITS}
    assert all(targets.values())
    assert not targets["test"] & targets["train"]
    assert not targets["validation"] & targets["train"]
    assert not targets["validation"] & targets["test"]


@all_tasks
def test_the_test_sets_have_the_size_of_the_papers(summary, task):
    assert [test_set["n"] for test_set in summary(task)["test_sets"].values()] == [5000] * 6


@all_tasks
def test_hardly_a_word_of_the_test_split_is_unknown(summary, task):
    assert summary(task)["unk_rate"]["test"] < 0.03


def test_every_pair_of_adjacent_turns_is_kept_or_counted(summary):
    files = [Path(ROOT) / "dialog" / split / f"dialogues_{split}.txt" for split in SPLITS]
    lines = [line for path in files for line in path.read_text(encoding="utf-8").split("\n") if line]
    n_adjacent = sum(line.count("__eou__") - 1 for line in lines)
    document = summary("dialog")
    assert sum(document["pairs"].values()) + sum(document["dropped"].values()) == n_adjacent


def test_dialogues_lose_hardly_a_pair_to_anything_but_length_and_duplicates(summary):
    document = summary("dialog")
    n_pairs = sum(document["pairs"].values()) + sum(document["dropped"].values())
    meant = ("duplicate:", "target longer", "context longer")
    lost = sum(count for reason, count in document["dropped"].items() if not reason.startswith(meant))
    assert lost / n_pairs <= 0.005
    assert sum(document["pairs"].values()) / n_pairs > 0.75


def test_every_review_is_kept_or_counted(summary):
    with gzip.open(Path(ROOT) / "aprc" / "reviews.jsonl.gz", "rt", encoding="utf-8") as stream:
        n_reviews = sum(1 for _ in stream)
    document = summary("aprc")
    assert sum(document["pairs"].values()) + sum(document["dropped"].values()) == n_reviews


def test_bare_templates_of_poems_score_as_in_the_paper(summary):
    assert summary("poetry")["template_bleu"] == pytest.approx(PAPER_TEMPLATE_BLEU, abs=0.02)
