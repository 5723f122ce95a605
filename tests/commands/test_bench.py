"""`tigs bench search`: everything it promises is in its table, its file and its picture; mistakes are one line."""

from __future__ import annotations

import json

import pytest

from tigs.inference.benchmark import VARIANTS

QUICK = ("method.max_rounds=2", "method.n_candidates=8")
FEW = ("--templates", "4", "--templates-slow", "2", "--coordinate-templates", "3")
NAMES = [variant.name for variant in VARIANTS]


@pytest.fixture
def words(trained_words):
    """Few rounds and candidates."""

    def make(*models, profile="small"):
        return trained_words(*QUICK, models=models, profile=profile)

    return make


def refused(ran):
    """The one line that says so."""
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert "Traceback" not in ran.err
    last = ran.err.splitlines()[-1]
    assert last.startswith("tigs bench: ")
    return last


def test_two_cells_from_the_first_template_to_the_picture(tigs, words, tmp_path):
    path = tmp_path / "new/folder/out.json"
    # A setting behind an option is a setting.
    made = words("forward", "birnn")
    ran = tigs("bench", "search", *FEW, "--cells", "random-25,middle-75", *made, "--json", path)
    assert ran.code == 0, ran.err
    document = json.loads(path.read_text())
    about = document["about"]
    assert (about["task"], about["profile"], about["corpus"]) == ("poetry", "small", "built-in sample corpus")
    assert (about["templates"], about["templates_slow"], about["K"], about["T"], about["seed"]) == (4, 2, 8, 2, 0)
    assert about["torch"]
    assert about["threads"] >= 1
    assert (about["variants"]["beam-40"]["name"], about["variants"]["beam-40"]["beam_width"]) == ("seq2seq-f", 40)
    assert about["checkpoints"].keys() == {"forward", "birnn"}
    assert [cell["cell"] for cell in document["cells"]] == ["random-25", "middle-75"]
    for cell in document["cells"]:
        figures = {one["variant"]: one for one in cell["variants"]}
        assert list(figures) == NAMES
        for one in figures.values():
            assert one["n"] == (2 if one["variant"] == "beam-1000" else 4)
            assert min(one[name] for name in ("model_steps", "seconds", "steps_ratio", "seconds_ratio", "nll")) > 0
            assert 0 <= one["equal_to_reference"] <= 1
        assert figures["exact"]["equal_to_reference"] == 1
        assert figures["exact"]["nll"] == pytest.approx(figures["reference"]["nll"], abs=1e-4)
        assert {name for name, one in figures.items() if one["n_checked"]} == {
            variant.name for variant in VARIANTS if variant.is_checked
        }
        assert all(one["n_checked"] in (0, 3) for one in figures.values())
        assert figures["beam-200"]["nll_common"] <= figures["greedy"]["nll_common"]
    assert document["growth"] == []
    for name in ("random-25", "middle-75", "NLL, first 2", *NAMES):
        assert name in ran.out
    assert path.with_suffix(".png").read_bytes().startswith(b"\x89PNG")
    assert f"plot: {path.with_suffix('.png')}" in ran.out
    assert not list(path.parent.glob("*.unfinished"))


def test_json_alone_is_printed_and_the_picture_goes_where_it_is_told(tigs, words, tmp_path):
    made = words("forward")
    ran = tigs("bench", "search", "--cells", "middle-25", *FEW, "--plot", tmp_path / "front.png", "--json", *made)
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    measured = [one["variant"] for one in document["cells"][0]["variants"]]
    assert measured == [name for name in NAMES if not name.startswith("birnn")]
    assert document["about"]["left_out"] == [variant.name for variant in VARIANTS if variant.name not in measured]
    assert "birnn-gsn, birnn-bibs" in ran.err
    assert (tmp_path / "front.png").stat().st_size > 1000


def test_growth_is_measured_when_asked_for(tigs, words, tmp_path, monkeypatch):
    monkeypatch.setattr("tigs.inference.growth._REPEATS", 1)
    monkeypatch.setattr("tigs.inference.growth.N_TEMPLATES", 1)
    options = ["--cells", "random-25", "--templates", "1", "--coordinate-templates", "0", "--growth"]
    made, path = [*words("forward"), "method.max_rounds=1"], tmp_path / "out.json"
    ran = tigs("bench", "search", *made, *options, "--json", path)
    assert ran.code == 0, ran.err
    growths = json.loads(path.read_text())["growth"]
    assert {growth["along"] for growth in growths} >= {"vocabulary", "blanks", "K"}
    assert all(len(growth["sizes"]) == len(growth["seconds"]) > 1 for growth in growths)
    assert "exponent of steps" in ran.out
    assert all(f"{growth['steps_exponent']:.2f}" in ran.out for growth in growths)


def test_an_interrupted_run_leaves_the_cells_that_are_done(tigs, words, tmp_path, monkeypatch):
    from tigs.commands import bench_search

    whole = bench_search.measure

    def measure(runners, model, cell):
        if cell.name == "middle-25":
            raise KeyboardInterrupt
        return whole(runners, model, cell)

    monkeypatch.setattr(bench_search, "measure", measure)
    path = tmp_path / "out.json"
    ran = tigs("bench", "search", *words("forward"), *FEW, "--cells", "random-25,middle-25", "--json", path)
    assert ran.code == 130
    assert [cell["cell"] for cell in json.loads(path.read_text())["cells"]] == ["random-25"]


def test_optima_are_proven_for_the_numbers_of_blanks_that_were_asked_for(tigs, words, tmp_path, monkeypatch):
    from tigs.commands import bench_search

    whole, path = bench_search.measure_gaps, tmp_path / "out.json"

    def measure_gaps(*arguments, n_blanks, **further):
        if n_blanks == 2:
            raise KeyboardInterrupt  # what is known by then has been written
        return whole(*arguments, n_blanks=n_blanks, **further)

    options = ["--cells", "random-25", "--templates", "1", "--coordinate-templates", "0", "--json", path]
    options += ["--exact", "3", "--exact-steps", "20000", "--exact-blanks"]
    made = words("forward")
    ran = tigs("bench", "search", *made, *options, "1")
    assert ran.code == 0, ran.err
    gaps = json.loads(path.read_text())["gaps"]
    assert {(gap["n_blanks"], gap["n"], gap["n_proven"]) for gap in gaps} == {(1, 3, 3)}
    assert {"tigs-plus", "exact", "beam-200"} <= {gap["variant"] for gap in gaps}
    assert "optimum proven" in ran.out
    monkeypatch.setattr(bench_search, "measure_gaps", measure_gaps)
    assert tigs("bench", "search", *made, *options, "1,2").code == 130
    assert json.loads(path.read_text())["gaps"] == gaps


# Which models


def test_the_profile_of_real_data_is_taken_if_its_model_is_there_and_none_is_named(tigs, words, tmp_path):
    made = [*words("forward", profile="cpu"), "data.source=sample"]
    # What the profile would change, it was not trained with.
    made += ["vocabulary.size=10000", "trainer.batch_size=64"]
    options = ["--cells", "random-50", "--templates", "1", "--coordinate-templates", "0", "--json"]
    ran = tigs("bench", "search", *made, *options)
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["about"]["profile"] == "cpu"
    assert "poetry, profile cpu, built-in sample corpus" in ran.err
    line = refused(tigs("bench", "search", *made, "profile=small", *options))
    assert f"profile small: not trained yet: forward (in {tmp_path / 'runs/poetry/small/models'})" in line


def test_without_a_model_the_command_that_makes_it_is_named(tigs, words):
    line = refused(tigs("bench", "search", *words()))
    assert "not trained yet: forward" in line
    assert "Run `make train TASK=poetry PROFILE=small MODEL=forward" in line


# What can be wrong


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--cells", "random-26"], "there is no cell 'random-26'. Choose from: random-25, middle-25, random-50"),
        (["--cells", ""], "there is no cell ''"),
        (["--templates", "0"], "--templates 0 is not allowed. It must be at least 1"),
        (["--templates-slow", "-3"], "--templates-slow -3 is not allowed. It must be at least 1"),
        (["--coordinate-templates", "-1"], "--coordinate-templates -1 is not allowed. It must be at least 0"),
        (["--exact-blanks", "1,4"], "--exact-blanks 1,4 is not allowed. Choose from: 1, 2, 3, as --exact-blanks 1,2"),
        (["method=tigs"], "Leave method=... out"),
        (["method.n_candidates=5000"], "method.n_candidates=5000 is more than the"),
    ],
)
def test_a_mistake_is_one_line(tigs, words, options, said):
    assert said in refused(tigs("bench", "search", *words("forward"), *options))


def test_a_file_that_cannot_be_written_is_said_before_anything_is_measured(tigs, words, tmp_path):
    (tmp_path / "in the way").write_text("")
    ran = tigs("bench", "search", *words("forward"), *FEW, "--json", tmp_path / "in the way/out.json")
    assert "out.json: cannot be written" in refused(ran)


def test_there_is_nothing_else_to_measure(tigs):
    assert "invalid choice: 'sarch'" in tigs("bench", "sarch").err
