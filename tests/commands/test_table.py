"""`tigs table` and `tigs claims`: what was asked for, printed and written from the files of figures."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
from pathlib import Path

import pytest

from tigs.composition import compose
from tigs.report.experiment import load_experiments
from tigs.report.methods import label
from tigs.report.render import number, to_csv, to_latex, to_markdown
from tigs.report.tables import make_table

_SPEC = importlib.util.spec_from_file_location("synthetic", Path(__file__).parents[1] / "report" / "synthetic.py")
synthetic = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(synthetic)

FEW = ("template", "seq2seq-f", "tigs")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    with synthetic.few_resamples():
        synthetic.write_experiment(root, "poetry", methods=FEW, n=8)
        synthetic.write_experiment(root, "aprc", methods=FEW, n=8)
        synthetic.write_experiment(root, "aprc", profile="cpu", methods=FEW, n=8)
        load_experiments(root)
    return root


def captions(ran):
    return [line for line in ran.out.splitlines() if ", profile " in line][::2]


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["task=poetry", "profile=small"], ["Poetry, profile small"]),
        (["task=aprc"], ["APRC, profile cpu", "APRC, profile small"]),
        (["profile=small"], ["Poetry, profile small", "APRC, profile small"]),
        (["task=all", "profile=cpu"], ["APRC, profile cpu"]),
        (["task=poetry", "task=all"], ["Poetry, profile small", "APRC, profile cpu", "APRC, profile small"]),
        ([], ["Poetry, profile small", "APRC, profile cpu", "APRC, profile small"]),
    ],
)
def test_words_choose_among_the_tables(tigs, runs, words, shown):
    ran = tigs("table", f"output_dir={runs}", *words)
    assert ran.code == 0
    assert [caption.split(", built-in")[0] for caption in captions(ran)] == shown
    assert ran.err.count("Written: ") == len(shown)


def test_files_stand_beside_the_figures_and_hold_the_table(tigs, runs):
    table = {experiment.task: make_table(experiment) for experiment in load_experiments(runs)}["poetry"]
    folder = runs / "poetry" / "small"
    for path in folder.glob("table.*"):
        path.unlink()
    tigs("table", f"output_dir={runs}", "task=poetry", "profile=small")
    for suffix, render in (("md", to_markdown), ("csv", to_csv), ("tex", to_latex)):
        assert (folder / f"table.{suffix}").read_text(encoding="utf-8") == render(table)


def test_json_holds_the_same(tigs, runs):
    ran = tigs("table", f"output_dir={runs}", "task=poetry", "--json")
    assert ran.err == ""
    (table,) = json.loads(ran.out)["tables"]
    assert (table["task"], table["profile"]) == ("poetry", "small")
    assert "8 sentences" in table["caption"]
    tigs_row, metrics = table["blocks"][0]["rows"]["tigs"], runs / "poetry" / "small" / "metrics" / "tigs"
    figures = json.loads((metrics / "middle-75.json").read_text(encoding="utf-8"))["figures"]
    assert tigs_row[-1]["ours"] == figures["nll"]["value"]
    assert tigs_row[-1]["paper"] == 3.181
    assert [Path(path).name for path in table["files"]] == ["table.md", "table.csv", "table.tex"]
    assert {one["method"] for one in table["missing"]} == set(synthetic.METHODS) - set(FEW)


@pytest.mark.parametrize("words", [["task=dialog"], ["task=poetry", "profile=paper"]])
def test_without_figures_it_names_the_command_that_makes_them(tigs, runs, words):
    ran = tigs("table", f"output_dir={runs}", *words)
    config = compose(words)
    assert (ran.code, ran.out) == (2, "")
    assert f"make eval TASK={config.task.name} PROFILE={config.profile} METHOD=all" in ran.err
    assert ran.err.count("\n") == 1


def test_an_empty_folder_is_no_crash(tigs, tmp_path):
    ran = tigs("table", f"output_dir={tmp_path}", "task=all")
    assert ran.code == 2
    assert "make eval" in ran.err


def test_the_best_are_bold_in_a_terminal(tigs, runs, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    out = tigs("table", f"output_dir={runs}", "task=poetry").out
    rows = make_table(load_experiments(runs)[0]).blocks[0].rows
    n_best = 0
    for line in out.splitlines():
        method = next((method for method in rows if re.match(rf" {re.escape(label(method))} ", line)), None)
        if method is None:
            continue
        bold = re.findall(r"\x1b\[1m *(\d\.\d{3})", line)
        assert bold == [number(cell.ours) for cell in rows[method] if cell.best]
        n_best += len(bold)
        if method == "tigs":
            break
    assert n_best >= 6


@pytest.fixture
def damaged(runs, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    path = root / "poetry" / "small" / "metrics" / "tigs" / "random-25.json"
    path.write_text("{", encoding="utf-8")
    return root, path


def test_a_damaged_task_is_no_matter_for_another(tigs, damaged):
    root, path = damaged
    ran = tigs("table", f"output_dir={root}", "task=aprc")
    assert (ran.code, str(path) in ran.err) == (0, False)
    ran = tigs("table", f"output_dir={root}", "profile=cpu")
    assert (ran.code, str(path) in ran.err) == (0, False)


def test_among_all_tasks_the_readable_are_shown_and_the_damaged_one_named(tigs, damaged):
    root, path = damaged
    ran = tigs("table", f"output_dir={root}")
    assert ran.code == 2
    assert [caption.split(", built-in")[0] for caption in captions(ran)] == ["APRC, profile cpu", "APRC, profile small"]
    assert str(path) in ran.err.splitlines()[-1]
    ran = tigs("table", f"output_dir={root}", "task=poetry", "--json")
    assert (ran.code, ran.out) == (2, "")


def test_a_table_that_cannot_be_written_is_one_line(tigs, runs, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(runs, root, ignore=shutil.ignore_patterns("table.*"))
    (root / "poetry" / "small" / "table.md").mkdir()
    ran = tigs("table", f"output_dir={root}", "task=poetry")
    assert ran.code == 2
    assert "table.md: cannot be written" in ran.err
    assert "Traceback" not in ran.err


def test_the_command_for_the_first_figures_names_the_folder(tigs, tmp_path):
    ran = tigs("table", f"output_dir={tmp_path}", "task=dialog")
    assert f'METHOD=all ARGS="output_dir={tmp_path}"`' in ran.err


def test_claims_say_what_is_missing(tigs, runs):
    ran = tigs("claims", f"output_dir={runs}")
    assert (ran.code, ran.err) == (0, "")
    verdicts = [line for line in ran.out.splitlines() if line.startswith(("holds", "does not hold", "cannot be said"))]
    assert len(verdicts) == 7
    assert all(line.startswith("cannot be said: ") for line in verdicts)
    assert "there are no figures of" in verdicts[0]


def test_claims_about_unk_are_asked_of_their_own_folder(tigs, runs, tmp_path):
    ran = tigs("claims", f"output_dir={runs}", "--with-unk", runs)
    assert (ran.code, ran.out) == (2, "")
    assert "made without <unk>" in ran.err
    with_unk = tmp_path / "with-unk"
    with synthetic.few_resamples():
        synthetic.write_experiment(with_unk, "poetry", methods=FEW, n=8, words=["method.allow_unk=true"])
        load_experiments(with_unk)
    ran = tigs("claims", f"output_dir={with_unk}")
    assert (ran.code, ran.out) == (2, "")
    assert "made with method.allow_unk=true" in ran.err
    mixed = tmp_path / "mixed"
    shutil.copytree(runs, mixed)
    name = "poetry/small/metrics/tigs/random-25"
    for suffix in (".json", ".sentences.json"):
        shutil.copy(with_unk / (name + suffix), mixed / (name + suffix))
    ran = tigs("claims", f"output_dir={mixed}")
    assert (ran.code, ran.out) == (2, "")
    assert "tigs/random-25.json: made with method.allow_unk=true" in ran.err.replace("\n", "")
    claims, answered = (
        json.loads(tigs("claims", f"output_dir={runs}", *words, "--json").out)["claims"]
        for words in ([], ["--with-unk", with_unk])
    )
    assert [one["statement"] for one in answered] == [one["statement"] for one in claims]
    assert claims[5]["summary"] == "no figures were made for it"
    assert answered[5]["summary"].startswith("there are no figures of ")
    assert answered[:5] == claims[:5]
    beside = tmp_path / "runs"
    shutil.copytree(runs, beside)
    (beside / "with-unk").mkdir()
    assert json.loads(tigs("claims", f"output_dir={beside}", "--json").out)["claims"] == claims
    shutil.copytree(with_unk, beside / "with-unk", dirs_exist_ok=True)
    document = json.loads(tigs("claims", f"output_dir={beside}", "--json").out)
    assert document["claims"] == answered
    *usual, last = document["about"]
    assert "Poetry" in last
    assert "with <unk> allowed" in last
    assert len(usual) == len(load_experiments(runs, profile="small"))
    assert not any("<unk>" in about for about in usual)
    assert tigs("claims", f"output_dir={beside}").out.splitlines()[: len(document["about"])] == document["about"]


def test_a_table_of_figures_made_with_unk_says_so(tigs, runs, tmp_path):
    with synthetic.few_resamples():
        synthetic.write_experiment(tmp_path, "poetry", methods=FEW, n=8, words=["method.allow_unk=true"])
        said = tigs("table", f"output_dir={tmp_path}", "task=poetry").out.splitlines()[0]
    assert "with <unk> allowed, 8 sentences" in said
    assert "<unk>" not in tigs("table", f"output_dir={runs}", "task=poetry").out.splitlines()[0]


def test_claims_without_figures_name_the_command_that_makes_them(tigs, tmp_path):
    ran = tigs("claims", f"output_dir={tmp_path}", "profile=cpu")
    assert (ran.code, ran.out) == (2, "")
    assert "PROFILE=cpu METHOD=all" in ran.err
