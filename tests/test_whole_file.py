"""A file is whole or as it was, and a disk that cannot be written to is one line for the user."""

from __future__ import annotations

import errno

import pytest

from tigs.errors import EvaluationError
from tigs.whole_file import whole_file, write_text


def test_a_file_appears_with_its_folder_and_nothing_else(tmp_path):
    path = tmp_path / "new" / "table.md"
    write_text(path, "詩")
    write_text(path, "歌")
    assert path.read_text(encoding="utf-8") == "歌"
    assert list(path.parent.iterdir()) == [path]


def test_what_stood_there_is_kept_until_all_is_written(tmp_path):
    path = tmp_path / "report.html"
    write_text(path, "before")

    def fill_the_disk():
        with whole_file(path) as other:
            other.write_text("half")
            raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(EvaluationError, match=r"report\.html: cannot be written .No space left"):
        fill_the_disk()
    assert path.read_text() == "before"


def test_a_folder_that_cannot_be_made_is_an_error_with_a_remedy(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(EvaluationError, match="cannot be written") as refused:
        write_text(tmp_path / "file" / "table.md", "text")
    assert "another folder" in refused.value.remedy
