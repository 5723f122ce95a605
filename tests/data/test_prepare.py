from __future__ import annotations

import ast
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
import yaml

from tigs.composition import compose, from_plain
from tigs.config import TASKS
from tigs.data import prepare as prepare_module
from tigs.data.corpora.pairs import SPLITS
from tigs.data.prepare import prepare
from tigs.data.special import SPECIAL_TOKENS, UNK_ID

# Prepare as another process would, after Python code has been put between.
PROCESS = """
import os, sys, time
from pathlib import Path
from tigs.composition import compose
from tigs.data import prepare as module
{patch}
print(module.prepare(compose(sys.argv[1:])).folder)
"""

STOP_WITHOUT_CLEANING_UP = "module.save_test_set = lambda *arguments: os._exit(9)"

# Both processes find no cache, and neither writes before both have read the corpus.
# Both have found no cache before either starts to read.
WAIT_FOR_THE_OTHER = """
here = Path(compose(sys.argv[1:]).data.cache_dir)
here.mkdir(exist_ok=True)
find_source_files, read_corpus = module.find_source_files, module.read_corpus
def find_and_wait(config):
    files = find_source_files(config)
    (here / f"arrived-{os.getpid()}").touch()
    while len(list(here.glob("arrived-*"))) < 2:
        time.sleep(0.01)
    return files
def read_and_tell(config, files):
    (here / f"read-{os.getpid()}").touch()
    time.sleep(0.5)
    return read_corpus(config, files)
module.find_source_files, module.read_corpus = find_and_wait, read_and_tell
"""


@pytest.fixture
def words(small_words, corpora, tmp_path):
    """Settings for a copy of the small reviews and a cache that are this test's own."""
    shutil.copytree(corpora / "aprc", tmp_path / "aprc")
    return [*small_words("aprc"), f"data.dir={tmp_path / 'aprc'}", f"data.cache_dir={tmp_path / 'cache'}"]


@pytest.fixture
def no_reading(monkeypatch):
    """Call it to forbid reading the corpus from then on."""

    def refuse(config, files):
        raise AssertionError("the corpus was read again")

    return lambda: monkeypatch.setattr(prepare_module, "read_corpus", refuse)


def folder_of(*words):
    return prepare(compose(words)).folder


def start(words, patch=""):
    command = [sys.executable, "-c", PROCESS.format(patch=patch), *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


# The cache


def test_a_second_start_finds_the_cache_and_leaves_it_alone(words, no_reading):
    folder = folder_of(*words)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    no_reading()
    assert folder_of(*words) == folder
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


@pytest.mark.parametrize(
    "word",
    [
        "data.max_target_length=10",
        "data.min_target_length=6",
        "data.test_share=0.3",
        "data.max_train_pairs=100",
        "vocabulary.size=7",
        "vocabulary.min_count=3",
        "test_sets.size=3",
        "test_sets.seed=7",
        "test_sets.ratios=[0.5]",
        "test_sets.strategies=[middle]",
    ],
)
def test_a_setting_that_decides_the_data_has_a_cache_of_its_own(words, word):
    one, other = prepare(compose(words)), prepare(compose([*words, word]))
    assert one.folder != other.folder
    assert one.summary != other.summary


def test_a_setting_that_does_not_decide_the_data_has_not(words, no_reading):
    folder = folder_of(*words)
    no_reading()
    assert folder_of(*words, "model=birnn", "model.hidden=512", "trainer.batch_size=3", "seed=9") == folder


def test_a_changed_file_is_read_again(words, tmp_path):
    one = prepare(compose(words))
    with (tmp_path / "aprc" / "reviews.jsonl").open("a", encoding="utf-8") as stream:
        stream.write('{"reviewText": "one more fine review of this lamp"}\n')
    other = prepare(compose(words))
    assert sum(other.summary["pairs"].values()) == sum(one.summary["pairs"].values()) + 1
    assert prepare(compose(words)).folder == other.folder


def test_files_that_stay_the_same_are_hashed_once(words, monkeypatch):
    folder = folder_of(*words)

    def refuse(*_):
        raise AssertionError("a file was hashed again")

    monkeypatch.setattr(hashlib, "file_digest", refuse)
    assert folder_of(*words, "model=birnn") == folder


@pytest.mark.parametrize(
    ("change", "seconds"),
    [(lambda text: text.replace(b"lamp", b"desk"), 1), (lambda text: text + b'{"reviewText": "one more lamp"}\n', 0)],
    ids=["same size", "same time"],
)
def test_a_file_is_hashed_again_when_its_size_or_its_time_is_another(words, tmp_path, change, seconds):
    path = tmp_path / "aprc" / "reviews.jsonl"
    before, time = path.read_bytes(), path.stat().st_mtime_ns
    one = folder_of(*words)
    path.write_bytes(change(before))
    assert path.read_bytes() != before
    os.utime(path, ns=(time, time + seconds * 10**9))
    assert folder_of(*words) != one


def test_an_added_file_is_read_too(words, tmp_path):
    one = folder_of(*words)
    (tmp_path / "aprc" / "more.jsonl").write_text('{"reviewText": "one more fine review"}\n', encoding="utf-8")
    assert folder_of(*words) != one


def test_a_corpus_may_move_without_being_read_again(words, tmp_path, no_reading):
    folder = folder_of(*words)
    (tmp_path / "aprc").rename(tmp_path / "moved")
    no_reading()
    assert folder_of(*words, f"data.dir={tmp_path / 'moved'}") == folder


def test_a_file_that_moves_to_another_split_is_read_again(small_words, corpora, tmp_path):
    shutil.copytree(corpora / "dialog", tmp_path / "dialog")
    extra = "So , what now ? __eou__ No idea at all . __eou__\n"
    (tmp_path / "dialog" / "train" / "dialogues_zz.txt").write_text(extra, encoding="utf-8")
    words = [*small_words("dialog"), f"data.dir={tmp_path / 'dialog'}", f"data.cache_dir={tmp_path / 'cache'}"]
    before = prepare(compose(words)).summary["pairs"]
    (tmp_path / "dialog" / "train" / "dialogues_zz.txt").rename(tmp_path / "dialog" / "validation" / "dialogues_aa.txt")
    assert prepare(compose(words)).summary["pairs"] == {
        **before,
        "train": before["train"] - 1,
        "validation": before["validation"] + 1,
    }


def test_changed_code_does_not_use_what_the_old_code_made(words, tmp_path, monkeypatch):
    code = tmp_path / "code.py"
    code.write_text("version = 1\n", encoding="utf-8")
    monkeypatch.setattr(prepare_module, "_code_files", lambda: [code])
    one = folder_of(*words)
    code.write_text("version = 2\n", encoding="utf-8")
    assert folder_of(*words) != one


def test_every_module_that_can_change_the_data_counts_as_code():
    # Fetching is checked by checksums of the publisher, and what arrives is in the key anyhow.
    waiting, found = [Path(prepare_module.__file__)], set()
    root = waiting[0].parent
    while waiting:
        path = waiting.pop()
        if path in found or path.name in ("download.py", "publishers.py", "lock.py"):
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("tigs.data"):
                base = root.joinpath(*node.module.split(".")[2:])
                candidates = [base.with_suffix(".py"), *(base / f"{alias.name}.py" for alias in node.names)]
                waiting += [candidate for candidate in candidates if candidate.is_file()]
    assert root / "corpora" / "poetry.py" in found
    assert found <= set(prepare_module._code_files())


# Half-written data


def inside(folder):
    """What stands in a cache folder beside the file that processes lock."""
    return [path for path in folder.iterdir() if path.name != ".lock"]


def test_what_a_killed_process_left_is_not_used(words, tmp_path):
    process = start(words, STOP_WITHOUT_CLEANING_UP)
    _, errors = process.communicate()
    assert process.returncode == 9, errors
    (left,) = inside(tmp_path / "cache" / "aprc")
    assert (left / "train").is_dir()
    assert not (left / "data.json").exists()
    prepared = prepare(compose(words))
    assert prepared.folder != left
    assert prepared.summary["test_sets"].keys() == {test_set.name for test_set in prepared.test_sets()}


def test_an_error_while_writing_leaves_nothing(words, tmp_path, monkeypatch):
    def fail(*arguments):
        raise RuntimeError("on purpose")

    monkeypatch.setattr(prepare_module, "save_test_set", fail)
    with pytest.raises(RuntimeError, match="on purpose"):
        prepare(compose(words))
    assert inside(tmp_path / "cache" / "aprc") == []


def test_of_two_processes_at_once_one_prepares_and_both_succeed(words, tmp_path):
    processes = [start(words, WAIT_FOR_THE_OTHER) for _ in range(2)]
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    folder = folder_of(*words)
    assert [output.strip() for output, _ in outputs] == [str(folder)] * 2
    assert inside(tmp_path / "cache" / "aprc") == [folder]
    assert len(list((tmp_path / "cache").glob("read-*"))) == 1, (
        "the one that came second must wait and then find the cache"
    )


def test_others_may_read_the_cache(words):
    assert folder_of(*words).stat().st_mode & 0o777 == 0o755


# What is in it


@pytest.fixture(params=TASKS)
def prepared(request, small_words):
    return prepare(compose(small_words(request.param)))


def test_the_summary_is_a_recount_of_the_stored_pairs(prepared):
    summary = prepared.summary
    vocabulary = prepared.vocabulary
    assert json.loads((prepared.folder / "data.json").read_text(encoding="utf-8")) == summary
    for split in SPLITS:
        rows = prepared.split(split)
        ids = [index for row in rows for index in row["target_ids"]]
        assert summary["pairs"][split] == len(rows) > 0
        assert summary["unk_rate"][split] == pytest.approx(ids.count(UNK_ID) / len(ids))
    assert (summary["vocabulary_size"], summary["vocabulary_hash"]) == (len(vocabulary), vocabulary.hash)
    assert summary["test_sets"] == {
        test_set.name: {"n": len(test_set.items), "hash": test_set.hash} for test_set in prepared.test_sets()
    }


def test_ids_are_those_of_the_tokens(prepared):
    for split in SPLITS:
        for row in prepared.split(split):
            assert row["target_ids"] == prepared.vocabulary.encode(row["target"].split(" "))
            assert row["context_ids"] == prepared.vocabulary.encode(row["context"].split())


def test_the_vocabulary_is_that_of_the_training_split_alone(prepared):
    settings = from_plain(yaml.safe_load((prepared.folder / "config.yaml").read_text(encoding="utf-8")), "").vocabulary
    texts = [row[side] for row in prepared.split("train") for side in ("context", "target")]
    counts = Counter(token for text in texts for token in text.split())
    frequent = {token for token, count in counts.items() if count >= settings.min_count}
    assert len(frequent) < settings.size
    assert set(prepared.vocabulary.tokens) == frequent | set(SPECIAL_TOKENS)


def test_test_sets_are_made_of_the_test_split(prepared):
    rows = {(row["context"], row["target"]) for row in prepared.split("test")}
    for test_set in prepared.test_sets():
        assert len(test_set.items) == min(30, len(rows))
        assert {(" ".join(item.template.context), " ".join(item.reference)) for item in test_set.items} <= rows


def test_no_target_stands_in_two_splits(prepared):
    targets = [{row["target"] for row in prepared.split(split)} for split in SPLITS]
    assert sum(map(len, targets)) == len(set.union(*targets))


def test_the_resolved_settings_stand_beside(words):
    config = compose(words)
    saved = prepare(config).folder / "config.yaml"
    assert from_plain(yaml.safe_load(saved.read_text(encoding="utf-8")), str(saved)) == config


def test_the_fingerprint_tells_data_from_data_but_not_caches(words):
    def fingerprint(*more):
        return prepare(compose([*words, *more])).summary["fingerprint"]

    assert fingerprint() == fingerprint("test_sets.size=3")
    different = {fingerprint(), fingerprint("vocabulary.size=7"), fingerprint("data.max_train_pairs=100")}
    assert len(different) == 3


def test_only_the_sample_is_called_the_built_in_sample(words, tmp_path):
    sample = prepare(compose(["task=aprc", "data.sample_pairs=300", f"data.cache_dir={tmp_path / 'cache'}"]))
    assert sample.summary["corpus"] == "built-in sample corpus"
    assert "stand-in" in prepare(compose(words)).summary["corpus"]


def test_the_cache_says_nothing_on_either_stream(words, capfd):
    prepare(compose(words)).split("train")
    assert capfd.readouterr() == ("", "")
