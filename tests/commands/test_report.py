"""`tigs report`: writes the page and says where."""

from __future__ import annotations

import json
from pathlib import Path


def test_the_page_is_written_and_its_path_printed(tigs, tmp_path):
    ran = tigs("report", f"output_dir={tmp_path / 'runs'}")
    path = tmp_path / "runs" / "report.html"
    assert (ran.code, ran.out) == (0, f"{path}\n")
    assert path.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_json_names_the_page_its_size_and_the_pictures(tigs, tmp_path):
    ran = tigs("report", f"output_dir={tmp_path}", "--json", "--png", tmp_path / "pictures")
    document = json.loads(ran.out)
    assert document["bytes"] == Path(document["page"]).stat().st_size
    assert document["png"] == []  # there are no figures to draw
    assert ran.err == ""


def test_a_damaged_file_of_figures_is_named(tigs, tmp_path):
    path = tmp_path / "poetry" / "small" / "metrics" / "tigs" / "random-25.json"
    path.parent.mkdir(parents=True)
    path.write_text("{", encoding="utf-8")
    ran = tigs("report", f"output_dir={tmp_path}")
    page = tmp_path / "report.html"
    assert (ran.code, ran.out) == (0, f"{page}\n")
    assert str(path) in ran.err
    assert str(path) in page.read_text(encoding="utf-8")


def test_a_folder_that_cannot_be_written_to_is_one_line(tigs, tmp_path):
    (tmp_path / "runs").write_text("")
    ran = tigs("report", f"output_dir={tmp_path / 'runs'}")
    assert (ran.code, ran.out) == (2, "")
    assert "cannot be written" in ran.err
    assert ran.err.count("\n") == 1
