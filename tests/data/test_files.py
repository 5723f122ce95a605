from __future__ import annotations

import gzip

import pyarrow
import pyarrow.parquet
import pytest

from tigs.data.corpora.files import read_json, read_json_lines, read_lines, read_parquet
from tigs.errors import DataError

LINES = ["first", "", "詩 \u2028 still the third", "x\x85y\x0bz", "last"]


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
@pytest.mark.parametrize("final_newline", [True, False])
def test_lines_are_numbered_and_end_at_line_feeds_alone(tmp_path, ending, bom, final_newline):
    data = (bom + ending.join(LINES) + (ending if final_newline else "")).encode()
    (tmp_path / "plain.txt").write_bytes(data)
    (tmp_path / "packed.txt.gz").write_bytes(gzip.compress(data))
    expected = list(enumerate(LINES, start=1))
    assert list(read_lines(tmp_path / "plain.txt")) == expected
    assert list(read_lines(tmp_path / "packed.txt.gz")) == expected


def test_a_line_that_is_not_utf_8_is_named(tmp_path):
    path = tmp_path / "bad.txt"
    path.write_bytes(b"good\nbad \xff\nnever read\n")
    with pytest.raises(DataError, match=r"bad\.txt line 2: not valid UTF-8"):
        list(read_lines(path))


@pytest.mark.parametrize("kept", [0.3, 0.9, 0.999])
def test_a_gzip_file_cut_short_says_after_which_line(tmp_path, kept):
    packed = gzip.compress("".join(f"line {number} {number**5}\n" for number in range(5000)).encode())
    path = tmp_path / "cut.gz"
    path.write_bytes(packed[: int(len(packed) * kept)])
    numbers = []
    with pytest.raises(DataError, match="damaged or cut short") as caught:
        numbers.extend(number for number, _ in read_lines(path))
    assert f"after line {len(numbers)}:" in str(caught.value)
    assert numbers


def test_a_file_that_is_no_gzip_file_is_refused(tmp_path):
    path = tmp_path / "plain.gz"
    path.write_bytes(b"just text\n")
    with pytest.raises(DataError, match="after line 0: the gzip file is damaged"):
        list(read_lines(path))


@pytest.mark.parametrize("name", ["empty.txt", "empty.gz"])
def test_an_empty_file_is_refused(tmp_path, name):
    (tmp_path / name).touch()
    with pytest.raises(DataError, match=f"{name}: the file is empty"):
        list(read_lines(tmp_path / name))


def test_json_lines_pass_over_empty_lines_but_count_them(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n  \n{"a": "詩"}\n', encoding="utf-8")
    assert list(read_json_lines(path)) == [(1, {"a": 1}), (4, {"a": "詩"})]


@pytest.mark.parametrize(
    ("line", "problem"), [('{"a": ', "broken JSON"), ("[1]", "not a JSON object"), ("no", "broken JSON")]
)
def test_a_broken_json_line_is_named(tmp_path, line, problem):
    path = tmp_path / "a.jsonl"
    path.write_text('{"a": 1}\n\n' + line + "\n", encoding="utf-8")
    with pytest.raises(DataError, match=rf"a\.jsonl line 3: {problem}"):
        list(read_json_lines(path))


def test_a_broken_json_document_is_named_with_its_line(tmp_path):
    path = tmp_path / "a.json"
    path.write_text('[\n  {"a": 1},\n  {"a" 2}\n]', encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.json line 3: broken JSON"):
        read_json(path)


def test_a_parquet_column_is_read_in_order_and_whole(tmp_path):
    turns = [[f"turn {number}", "詩"] for number in range(2500)]
    # A path is no pattern, whatever it looks like.
    path = tmp_path / "odd [1] name*?.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"dialog": turns, "act": [0] * 2500}), path, row_group_size=1000)
    assert list(read_parquet(path, "dialog")) == turns


def test_a_missing_parquet_column_is_named_and_so_are_those_there_are(tmp_path):
    path = tmp_path / "a.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"text": ["a"], "label": [1]}), path)
    with pytest.raises(DataError, match=r"a\.parquet: no column 'content' \(columns: text, label\)"):
        list(read_parquet(path, "content"))


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: b"just text",
        lambda data: data[: len(data) // 2],
        lambda data: data[:200] + bytes(200) + data[400:],  # inside a page
        lambda data: data[:-300] + bytes(200) + data[-100:],  # inside the footer
    ],
)
def test_a_damaged_parquet_file_is_refused(tmp_path, damage):
    path = tmp_path / "a.parquet"
    words = [[f"word {number * 7919 % 1000}"] for number in range(1000)]
    pyarrow.parquet.write_table(pyarrow.table({"dialog": words}), path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match=r"a\.parquet: not a readable parquet file"):
        list(read_parquet(path, "dialog"))
