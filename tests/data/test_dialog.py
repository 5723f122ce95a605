from __future__ import annotations

from collections import Counter

import pyarrow
import pyarrow.parquet
import pytest

from tigs.config import DataConfig
from tigs.data.corpora import pairs
from tigs.data.corpora.dialog import EMPTY_TURN, REPEATED_DIALOGUE, find_files, read
from tigs.data.corpora.pairs import SPLITS, Pair

DIALOGUES = {
    "train": [
        ["Say , Jim , how about a beer ?", "You don ’ t say.But I'm busy !", "Come on ."],
        ["Where are you ?", "At home ."],
        # The test dialogue in other capitals, spacing, marks and apostrophes.
        ["do you like TEA", "I don't   like it !", "pity"],
        ["Where  are you ?", "AT HOME"],
        ["What time is it ?", "", "Late ."],
        ["Alone ."],
        ["Yes .", "no " * 51],
        ["no " * 51, "Yes ."],
        ["Are you there ?", "See you ."],
        ["Are you there ?", "See you .", "Good night ."],
    ],
    "validation": [["Is it far ?", "Not at all ."], ["Do you like tea ?", "I don ’ t like it .", "Pity ."]],
    "test": [["Do you like tea ?", "I don ’ t like it .", "Pity ."], ["Is anybody there ?", "See you ."]],
}
DROPPED = {
    REPEATED_DIALOGUE: 2
    + 1
    + 2,  # the test dialogue in train, a train dialogue in train, the test dialogue in validation
    EMPTY_TURN: 2,
    pairs.TARGET_TOO_LONG: 1,
    pairs.CONTEXT_TOO_LONG: 1,
    pairs.DUPLICATE: 1,  # "Are you there ?" and its answer
    pairs.TARGET_IN_TRAIN: 1,  # "See you ."
}


def pair(context, target):
    return Pair(tuple(context.split()), tuple(target.split()))


def write_text(folder):
    for split, dialogues in DIALOGUES.items():
        (folder / split).mkdir(parents=True)
        lines = ["".join(f"{turn} __eou__ " for turn in turns) for turns in dialogues]
        (folder / split / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n\n", encoding="utf-8")


def write_parquet(folder):
    (folder / "data").mkdir(parents=True)
    for split, dialogues in DIALOGUES.items():
        # As on the hub, where turns begin and end with spaces.
        table = pyarrow.table(
            {"dialog": [[f" {turn} " for turn in turns] for turns in dialogues], "act": [[0]] * len(dialogues)}
        )
        pyarrow.parquet.write_table(table, folder / "data" / f"{split}-00000-of-00001.parquet")


@pytest.fixture(params=[write_text, write_parquet])
def files(request, tmp_path):
    request.param(tmp_path / "dialog")
    return find_files(tmp_path / "dialog")


def test_adjacent_turns_are_pairs_in_one_spelling(files):
    corpus = read(files, DataConfig())
    assert set(corpus.splits["train"]) == {
        pair("say , jim , how about a beer ?", "you don't say . but i'm busy !"),
        pair("you don't say . but i'm busy !", "come on ."),
        pair("where are you ?", "at home ."),
        pair("are you there ?", "see you ."),
        pair("see you .", "good night ."),
    }
    assert corpus.splits["validation"] == [pair("is it far ?", "not at all .")]
    assert corpus.splits["test"] == [
        pair("do you like tea ?", "i don't like it ."),
        pair("i don't like it .", "pity ."),
    ]


def test_what_is_dropped_is_counted_by_reason_and_adds_up(files):
    corpus = read(files, DataConfig())
    assert corpus.dropped == Counter(DROPPED)
    adjacent = sum(len(turns) - 1 for dialogues in DIALOGUES.values() for turns in dialogues)
    assert sum(map(len, corpus.splits.values())) + sum(corpus.dropped.values()) == adjacent


def test_the_length_limits_are_the_settings(files):
    corpus = read(files, DataConfig(max_target_length=3, max_context_length=7))
    lengths = [(len(kept.context), len(kept.target)) for split in SPLITS for kept in corpus.splits[split]]
    assert max(context for context, _ in lengths) == 5
    assert max(target for _, target in lengths) == 3
    assert corpus.dropped[pairs.TARGET_TOO_LONG] > DROPPED[pairs.TARGET_TOO_LONG]
    assert corpus.dropped[pairs.CONTEXT_TOO_LONG] > DROPPED[pairs.CONTEXT_TOO_LONG]


def test_the_order_of_files_changes_nothing(files, as_sets):
    one, other = read(files, DataConfig()), read(files[::-1], DataConfig())
    assert one.dropped == other.dropped
    assert as_sets(one) == as_sets(other)


def test_text_files_are_preferred_where_both_forms_stand(tmp_path):
    write_text(tmp_path)
    write_parquet(tmp_path)
    assert [path.suffix for path in find_files(tmp_path)] == [".txt"] * 3


def test_files_of_labels_beside_the_dialogues_are_not_read(tmp_path):
    write_text(tmp_path)
    (tmp_path / "train" / "dialogues_train.zip").write_bytes(b"PK")
    for split in SPLITS:  # as in the official archive
        for label in ("act", "emotion"):
            (tmp_path / split / f"dialogues_{label}_{split}.txt").write_text("1 2 3\n", encoding="utf-8")
    assert [path.name for path in find_files(tmp_path)] == [f"dialogues_{split}.txt" for split in SPLITS]
