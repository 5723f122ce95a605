"""Whatever is wrong with the input: one line that names the place and a way out, exit code 2, nothing half-written."""

from __future__ import annotations

import gzip
import json
import re
import shutil
import subprocess
import sys

import pyarrow
import pyarrow.parquet
import pytest

TRAIN, POEMS, REVIEWS = "train/dialogues_train.txt", "全唐诗/poet.tang.0.json", "reviews.jsonl"


@pytest.fixture
def corpus(corpora, tmp_path):
    """A copy of a task's small corpus that a test may spoil."""

    def copy(task):
        folder = tmp_path / task
        shutil.copytree(corpora / task, folder)
        return folder

    return copy


@pytest.fixture
def refusal(tigs, tmp_path):
    """The one line that `tigs data` answers with, after what must hold for every refusal."""

    def run(*words):
        ran = tigs("data", f"data.cache_dir={tmp_path / 'cache'}", *words)
        assert_refused(ran.code, ran.out, ran.err, tmp_path / "cache")
        return ran.err

    return run


def assert_refused(code, out, err, cache):
    assert (code, out) == (2, ""), err
    assert err.startswith("tigs data: ")
    assert err.count("\n") == 1
    assert re.search(r"[^.]\. [A-Z].+\n$", err), "no remedy"
    # Neither data that a later run would take for whole, nor a rest of it.
    left = [path for path in cache.rglob("*") if path.name != ".lock"]
    assert not [path for path in left if path.is_file() or path.parent.parent == cache]


# The folder


@pytest.mark.parametrize("task", ["dialog", "poetry", "aprc"])
def test_a_missing_folder(refusal, tmp_path, task):
    message = refusal(f"task={task}", f"data.dir={tmp_path / 'nowhere'}")
    assert f"{tmp_path / 'nowhere'}: there is no such folder" in message
    assert "DATA_DIR" in message


def test_a_file_instead_of_a_folder(refusal, corpus):
    path = corpus("aprc") / REVIEWS
    assert f"{path}: there is no such folder" in refusal("task=aprc", f"data.dir={path}")


@pytest.mark.parametrize(
    ("task", "content", "expected"),
    [
        ("dialog", "poetry", "dialogues_train.txt"),
        ("poetry", "dialog", "poet.tang.*.json"),
        ("aprc", "dialog", "*.jsonl"),
    ],
)
def test_the_wrong_layout_says_what_is_expected(refusal, corpus, task, content, expected):
    folder = corpus(content)
    message = refusal(f"task={task}", f"data.dir={folder}")
    assert f"{folder}: no corpus files found" in message
    assert expected in message


@pytest.mark.parametrize("split", ["train", "validation", "test"])
def test_a_missing_split(refusal, corpus, split):
    folder = corpus("dialog")
    shutil.rmtree(folder / split)
    assert f"no files of the {split} split" in refusal("task=dialog", f"data.dir={folder}")


# A file

FILES = [("dialog", TRAIN), ("poetry", POEMS), ("aprc", REVIEWS)]


@pytest.mark.parametrize(("task", "name"), FILES)
def test_an_empty_file(refusal, corpus, task, name):
    path = corpus(task) / name
    path.write_bytes(b"")
    message = refusal(f"task={task}", f"data.dir={path.parents[name.count('/')]}")
    assert f"{path}: the file is empty. Fetch the file again" in message


@pytest.mark.parametrize(("task", "name"), FILES)
def test_a_file_that_is_not_utf_8(refusal, corpus, task, name):
    path = corpus(task) / name
    whole = path.read_bytes()
    path.write_bytes(whole[:-5] + b"\xff" + whole[-5:])
    message = refusal(f"task={task}", f"data.dir={path.parents[name.count('/')]}")
    assert f"{path} line {len(whole.splitlines())}: not valid UTF-8" in message
    assert "Fetch the file again" in message


@pytest.mark.parametrize(("task", "name"), FILES)
def test_a_folder_in_the_place_of_a_file(refusal, corpus, task, name):
    path = corpus(task) / name
    folder = path.parents[name.count("/")]
    path.unlink()
    path.mkdir()
    assert (str(path) if task != "aprc" else f"{folder}: no corpus files found") in refusal(
        f"task={task}", f"data.dir={folder}"
    )


@pytest.mark.parametrize(
    ("task", "name", "number", "text", "problem"),
    [
        ("dialog", TRAIN, 7, "no end of a turn", " line 7: no __eou__"),
        ("aprc", REVIEWS, 7, '{"reviewText": "cut', " line 7: broken JSON"),
        ("aprc", REVIEWS, 7, '["reviewText"]', " line 7: not a JSON object"),
        ("aprc", REVIEWS, 7, '{"stars": 5}', " line 7: no review text"),
        ("poetry", POEMS, 1, '[\n{"paragraphs": ["春"]}\n{}]', " line 3: broken JSON"),
        ("poetry", POEMS, 1, '{"paragraphs": ["春"]}', ": not a list of poems"),
        ("poetry", POEMS, 1, '[{"paragraphs": []}, {"title": "春"}]', " poem 2: no list of 'paragraphs'"),
        ("poetry", POEMS, 1, '[{"paragraphs": [1]}]', " poem 1: no list of 'paragraphs'"),
        ("poetry", POEMS, 1, '["春"]', " poem 1: no list of 'paragraphs'"),
    ],
)
def test_a_broken_line_is_named(refusal, corpus, task, name, number, text, problem):
    path = corpus(task) / name
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[number - 1] = text
    path.write_text("\n".join(lines), encoding="utf-8")
    assert f"{path}{problem}" in refusal(f"task={task}", f"data.dir={path.parents[name.count('/')]}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("stars,text\n5,fine\n4\n", "line 3: 1 fields, not 2"),
        ("stars,words\n5,fine\n", "line 1: no column with review texts"),
        ('stars,text\n5,"never ends\n4,fine\n', "line 3: broken CSV"),
        ('stars,text\n5,"' + "very " * 30_000 + '"\n', "line 2: broken CSV"),
        ("\n", "line 1: no column with review texts"),
    ],
)
def test_a_broken_csv_line_is_named(refusal, tmp_path, text, problem):
    path = tmp_path / "csv" / "reviews.csv"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    assert f"{path} {problem}" in refusal("task=aprc", f"data.dir={path.parent}")


@pytest.mark.parametrize("damage", [lambda data: data[:-20], lambda data: data[:-8], lambda data: data[5:]])
def test_a_gzip_file_cut_short(refusal, corpus, damage):
    path = corpus("aprc") / REVIEWS
    packed = path.with_suffix(".jsonl.gz")
    packed.write_bytes(damage(gzip.compress(path.read_bytes())))
    path.unlink()
    message = refusal("task=aprc", f"data.dir={path.parent}")
    assert f"{packed} after line " in message
    assert "damaged or cut short. Fetch the file again" in message


@pytest.fixture
def dialog_parquet(tmp_path):
    """A folder with the three splits as parquet, in which the column of the training split is as given."""

    def write(**columns):
        folder = tmp_path / "parquet"
        folder.mkdir()
        for split in ("train", "validation", "test"):
            content = columns if split == "train" else {"dialog": [[f"a {split} .", "b ."]]}
            pyarrow.parquet.write_table(pyarrow.table(content), folder / f"{split}.parquet")
        return folder

    return write


@pytest.mark.parametrize(
    "damage", [lambda data: data[: len(data) // 2], lambda data: data[:100] + bytes(100) + data[200:], lambda data: b""]
)
def test_a_damaged_parquet_file(refusal, dialog_parquet, damage):
    folder = dialog_parquet(dialog=[[f"turn {number} .", f"answer {number} ."] for number in range(500)])
    path = folder / "train.parquet"
    path.write_bytes(damage(path.read_bytes()))
    message = refusal("task=dialog", f"data.dir={folder}")
    assert f"{path}: not a readable parquet file. Fetch the file again" in message


def test_a_damaged_parquet_file_is_reported_in_our_words_alone(dialog_parquet, tmp_path):
    folder = dialog_parquet(dialog=[["a .", "b ."]])
    (folder / "train.parquet").write_bytes(b"PAR1 and nothing else")
    # In a process of its own: the library's log goes to the standard error that it found when it was imported.
    words = ["task=dialog", f"data.dir={folder}", f"data.cache_dir={tmp_path / 'cache'}"]
    ran = subprocess.run([sys.executable, "-m", "tigs", "data", *words], capture_output=True, text=True, check=False)
    assert_refused(ran.returncode, ran.stdout, ran.stderr, tmp_path / "cache")


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"utterances": [["a .", "b ."]]}, ": no column 'dialog' (columns: utterances)"),
        ({"dialog": ["one text", "another"]}, " row 1: 'dialog' is not a list of turns"),
        ({"dialog": [["a .", "b ."], None]}, " row 2: 'dialog' is not a list of turns"),
        ({"dialog": [[1, 2]]}, " row 1: 'dialog' is not a list of turns"),
    ],
)
def test_a_parquet_file_of_another_layout(refusal, dialog_parquet, columns, problem):
    folder = dialog_parquet(**columns)
    assert f"{folder / 'train.parquet'}{problem}" in refusal("task=dialog", f"data.dir={folder}")


# Nothing left


@pytest.mark.parametrize(
    ("task", "words", "reason"),
    [
        ("dialog", ["data.min_target_length=48"], "shorter than data.min_target_length"),
        ("poetry", ["data.max_context_length=3"], "longer than data.max_context_length"),
        ("aprc", ["data.max_target_length=3", "data.min_target_length=1"], "longer than data.max_target_length"),
    ],
)
def test_a_corpus_of_which_nothing_is_left_says_why(refusal, corpus, task, words, reason):
    folder = corpus(task)
    message = refusal(f"task={task}", f"data.dir={folder}", *words)
    assert f"{folder}: nothing is left of the train split" in message
    assert reason in message
    assert "Relax the data.* limits" in message


def test_a_corpus_too_small_for_three_splits(refusal, tmp_path):
    (tmp_path / "aprc").mkdir()
    (tmp_path / "aprc" / REVIEWS).write_text(json.dumps({"text": "one fine review here"}), encoding="utf-8")
    assert "nothing is left of the" in refusal("task=aprc", f"data.dir={tmp_path / 'aprc'}")


@pytest.mark.parametrize(
    "word", ["test_sets.ratios=[0]", "test_sets.ratios=[1.1]", "data.max_target_length=0", "data.min_target_length=0"]
)
def test_impossible_limits(refusal, corpus, word):
    message = refusal("task=aprc", f"data.dir={corpus('aprc')}", word)
    assert message.startswith(f"tigs data: {word.partition('=')[0]}=")
    assert "is not allowed. It must be " in message


# Writing


@pytest.mark.parametrize("below", ["", "deeper/down"])
def test_a_cache_folder_that_is_a_file(tigs, corpus, tmp_path, below):
    (tmp_path / "file").write_text("in the way", encoding="utf-8")
    ran = tigs("data", "task=aprc", f"data.dir={corpus('aprc')}", f"data.cache_dir={tmp_path / 'file' / below}")
    assert_refused(*ran, tmp_path / "cache")
    assert f"{tmp_path / 'file' / below / 'aprc'}: cannot write the prepared data" in ran.err
    assert "data.cache_dir" in ran.err


# As on a disk with little room: no file can grow beyond so many bytes.
FULL_DISK = """
import resource, sys
from tigs.__main__ import main
import tigs.commands.data
limit = int(sys.argv.pop(1))
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
raise SystemExit(main())
"""


@pytest.mark.parametrize("stage", ["vocabulary.txt", "train"])
def test_a_disk_that_runs_full(tigs, corpus, tmp_path, stage):
    words = ["task=poetry", f"data.dir={corpus('poetry')}"]
    tigs("data", *words, f"data.cache_dir={tmp_path / 'roomy'}")
    # One byte less than the stage writes; all that comes before is smaller.
    (stored,) = (tmp_path / "roomy" / "poetry").glob(f"*/{stage}")
    limit = max(path.stat().st_size for path in [stored, *stored.rglob("*")] if path.is_file()) - 1
    command = [sys.executable, "-c", FULL_DISK, str(limit), "data", *words, f"data.cache_dir={tmp_path / 'cache'}"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert_refused(ran.returncode, ran.stdout, ran.stderr, tmp_path / "cache")
    assert f"{tmp_path / 'cache' / 'poetry'}: cannot write the prepared data (" in ran.stderr
    assert "File too large" in ran.stderr
    assert "Make room there" in ran.stderr


def test_a_disk_that_runs_full_can_be_tried_again(tigs, corpus, tmp_path):
    words = ["task=poetry", f"data.dir={corpus('poetry')}", f"data.cache_dir={tmp_path / 'cache'}"]
    subprocess.run([sys.executable, "-c", FULL_DISK, "5000", "data", *words], capture_output=True, check=False)
    assert tigs("data", *words).code == 0


def test_a_count_that_no_word_reaches(refusal):
    assert "vocabulary.min_count=100000" in refusal("task=aprc", "data.sample_pairs=500", "vocabulary.min_count=100000")
