"""The file of predictions: what goes in comes out, and whatever is missing or damaged is named."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tigs.data.special import BLANK
from tigs.errors import PredictionError
from tigs.inference.predictions import (
    FORMAT_VERSION,
    Header,
    Prediction,
    prediction_from_line,
    read_predictions,
    to_line,
    write_predictions,
)

HEADER = Header(
    format_version=FORMAT_VERSION,
    task="poetry",
    profile="small",
    corpus="built-in sample corpus",
    method="tigs",
    strategy="random",
    ratio=0.25,
    n=3,
    test_set_hash="abc",
    checkpoints={"forward": {"path": "runs/best.ckpt", "hash": "123", "validation_nll": 2.5}},
    config={"seed": 0, "method": {"name": "tigs", "beam_width": 5}, "eval": {"limit": None, "batch_size": 64}},
    seconds=1.5,
    devices=1,
    git_revision=None,
)


def prediction(identifier, **changes):
    values = {
        "id": identifier,
        "context": ("春", "眠"),
        "template": ("不", BLANK, "曉", BLANK),
        "reference": ("不", "覺", "曉", "。"),
        "fill": ("知", "，"),
        "nll": 8.25,
        "forward_nll": 8.5,
        "trace": (9.0, 8.25),
        "rounds": 1,
        "model_steps": 40,
        "seconds": 0.01,
    }
    return Prediction(**{**values, **changes})


PREDICTIONS = [prediction(identifier) for identifier in ("a", "b", "c")]

tokens = st.lists(st.text(st.characters(exclude_characters=" ", codec="utf-8"), min_size=1), max_size=5).map(tuple)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def predictions(draw):
    template = draw(st.lists(st.one_of(st.just(BLANK), st.text('ab\u2028\r\\"', min_size=1)), max_size=6))
    n_blanks = template.count(BLANK)
    return Prediction(
        id=draw(st.text(min_size=1)),
        context=draw(tokens),
        template=tuple(template),
        reference=draw(tokens),
        fill=tuple(draw(st.lists(st.text("xy\n\t", min_size=1), min_size=n_blanks, max_size=n_blanks))),
        nll=draw(st.none() | numbers),
        forward_nll=draw(st.none() | numbers),
        trace=tuple(draw(st.lists(numbers, max_size=3))),
        rounds=draw(st.integers(0, 50)),
        model_steps=draw(st.integers(0, 10**9)),
        seconds=draw(numbers),
        unforced=draw(st.none() | tokens),
        alternatives=tuple(draw(st.lists(st.tuples(st.text(), numbers), max_size=2))),
    )


@given(predictions())
def test_a_prediction_survives_its_line(record):
    line = to_line(record)
    assert line.index("\n") == len(line) - 1
    assert prediction_from_line(line, "here") == record


def test_a_file_survives_and_its_sentences_are_whole(tmp_path):
    path = tmp_path / "made" / "random-25.jsonl"
    write_predictions(path, HEADER, PREDICTIONS)
    file = read_predictions(path)
    assert (file.header, list(file.predictions)) == (HEADER, PREDICTIONS)
    assert file.predictions[0].sentence == ("不", "知", "曉", "，")
    assert file.header.set_name == "random-25"
    assert [found.name for found in path.parent.iterdir()] == ["random-25.jsonl"]


def test_a_file_cut_anywhere_is_refused(tmp_path):
    path = tmp_path / "file.jsonl"
    write_predictions(path, HEADER, PREDICTIONS)
    whole = path.read_bytes()
    for length in range(len(whole) - 1):
        path.write_bytes(whole[:length])
        with pytest.raises(PredictionError, match=str(path)):
            read_predictions(path)
    path.write_bytes(whole[:-1])  # only the newline at the end is gone
    assert len(read_predictions(path).predictions) == 3


@pytest.mark.parametrize(
    ("number", "change", "problem"),
    [
        (2, lambda line: line.replace('"a"', '"b"'), "line 3: the id b stands in line 2 too"),
        (3, lambda line: line.replace("知 ，", "知"), "line 3: 1 tokens for 2 blanks"),
        (3, lambda line: line[:-9], "line 3: the line is cut off"),
        (4, lambda line: "", "line 4: the file ends after 2 predictions, line 1 says 3"),
        (3, lambda line: '{"id": "b"}', "line 3: not a prediction"),
        (3, lambda line: line.replace('"rounds"', '"laps"'), "line 3: not a line of a prediction file"),
        (3, lambda line: "[1, 2]", "line 3: not a line of a prediction file"),
        (3, lambda line: line.replace("[9.0, 8.25]", "7"), "line 3: not a prediction"),
        (1, lambda line: line.replace('"devices": 1, ', ""), "line 1: not a line of a prediction file"),
        (1, lambda line: line.replace(f'"format_version": {FORMAT_VERSION}', '"format_version": 99'), "format 99"),
    ],
)
def test_damage_is_named_by_its_line(tmp_path, number, change, problem):
    path = tmp_path / "file.jsonl"
    write_predictions(path, HEADER, PREDICTIONS)
    lines = path.read_text().split("\n")
    changed = change(lines[number - 1])
    assert changed != lines[number - 1]
    lines[number - 1] = changed
    path.write_text("\n".join(lines).rstrip("\n") + "\n")
    with pytest.raises(PredictionError, match=problem) as error:
        read_predictions(path)
    assert str(path) in str(error.value)
    assert "make eval" in error.value.remedy


@pytest.mark.parametrize(
    ("number", "name", "values"),
    [
        (3, "id", (7, None)),
        (3, "context", (None, ["a"])),
        (3, "template", (None, 1)),
        (3, "nll", ("abc", True, [1.0])),
        (3, "forward_nll", ("abc",)),
        (3, "trace", (["a"], [None], "12", {"1": 2})),
        (3, "rounds", (None, 1.5, True)),
        (3, "model_steps", ("1",)),
        (3, "seconds", (None, "1")),
        (3, "unforced", (3,)),
        (3, "alternatives", (None, ["ab"], [["a", "b"]], [["a", 1.0, 2.0]])),
        (1, "format_version", (None,)),
        (1, "task", (None,)),
        (1, "ratio", ("x", None)),
        (1, "n", ("3", None)),
        (1, "checkpoints", (None, {"forward": None})),
        (1, "config", (None, [])),
        (1, "seconds", (None,)),
        (1, "devices", (1.5,)),
        (1, "git_revision", (5,)),
    ],
)
def test_a_wrong_type_is_named_by_its_line_and_field(tmp_path, number, name, values):
    path = tmp_path / "file.jsonl"
    write_predictions(path, HEADER, PREDICTIONS)
    lines = path.read_text().split("\n")
    for value in values:
        changed = [*lines]
        changed[number - 1] = json.dumps(json.loads(lines[number - 1]) | {name: value})
        path.write_text("\n".join(changed))
        with pytest.raises(PredictionError, match=rf"line {number}: not a \w+ \({name} has the wrong type\)"):
            read_predictions(path)


def test_what_is_no_file_of_text_cannot_be_read(tmp_path):
    (tmp_path / "binary.jsonl").write_bytes(b"\xff\xfe\x00")
    for path in (tmp_path / "binary.jsonl", tmp_path, tmp_path / "none.jsonl"):
        with pytest.raises(PredictionError, match="cannot be read"):
            read_predictions(path)


def test_a_failed_write_leaves_the_file_as_it_was(tmp_path):
    path = tmp_path / "file.jsonl"
    write_predictions(path, HEADER, PREDICTIONS)

    def broken():
        yield PREDICTIONS[0]
        raise RuntimeError("in the middle")

    with pytest.raises(RuntimeError, match="in the middle"):
        write_predictions(path, replace(HEADER, n=1), broken())
    assert read_predictions(path).header.n == 3


def changed(header, name, value):
    """The header with one value changed, `name` being dotted, after a way through a file."""
    values = json.loads(to_line(header))
    *folders, last = name.split(".")
    inner = values
    for folder in folders:
        inner = inner[folder]
    inner[last] = value
    return Header(**values)


@pytest.mark.parametrize(
    ("name", "value", "same"),
    [
        ("n", 2, True),
        ("seconds", 9.0, True),
        ("devices", 8, True),
        ("git_revision", "abc", True),
        ("config.eval.limit", 5, True),
        ("config.eval.batch_size", 1, True),
        ("checkpoints.forward.path", "elsewhere/best.ckpt", True),
        ("config.method.beam_width", 6, False),
        ("config.method.name", "seq2seq-f", False),
        ("config.seed", 1, False),
        ("test_set_hash", "abd", False),
        ("checkpoints.forward.hash", "124", False),
        ("checkpoints.backward", {"path": "b", "hash": "123", "validation_nll": 2.0}, False),
        ("format_version", FORMAT_VERSION + 1, False),
    ],
)
def test_the_identity_is_what_decides_the_predictions(name, value, same):
    assert (changed(HEADER, name, value).identity == HEADER.identity) == same
