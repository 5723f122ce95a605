"""`tigs sweep`: what it prints and keeps, and that whatever is wrong is one line and exit code 2."""

from __future__ import annotations

import json
import shutil

import pytest
import torch

from tigs.composition import compose
from tigs.data.special import UNK_ID
from tigs.inference.required import checkpoint_path
from tigs.inference.sweep_results import read_results

QUICK = ["method.max_rounds=1", "method.beam_width=1", "--templates", "3", "--cells", "random-50,middle-25"]


def stored(tmp_path, name):
    return read_results(tmp_path / f"runs/poetry/small/sweeps/{name}.json")


def test_a_sweep_from_end_to_end(tigs, trained_words, tmp_path):
    made = [*trained_words(), *QUICK, "method=tigs", "method.step_size=3,100", "method.n_candidates=1,5"]
    ran = tigs("sweep", *made)
    assert ran.code == 0, ran.err
    title, _, header, _, *lines = ran.out.splitlines()
    assert "tigs, NLL per token by the evaluator: poetry, profile small, built-in sample corpus" in title
    assert "validation templates (no test sentence), 3 in each cell, seed 2019" in title
    assert header.split() == ["setting", "middle-25", "random-50", "mean", "forward", "model", "steps", "seconds"]
    results = stored(tmp_path, "tigs")
    rows = [line.strip().removeprefix("*").split() for line in lines[:4]]
    assert [row[:2] for row in rows] == [
        [f"step_size={step}", f"n_candidates={number}"] for step in (3, 100) for number in (1, 5)
    ]
    means = []
    for row, (middle, random) in zip(rows, zip(results[::2], results[1::2], strict=True), strict=True):
        cells = [middle.figures, random.figures]
        means.append(sum(one.evaluator_nll for one in cells) / 2)
        assert row[2:] == [
            *(f"{one.evaluator_nll:.4f}" for one in cells),
            f"{means[-1]:.4f}",
            f"{sum(one.forward_nll for one in cells) / 2:.4f}",
            f"{sum(one.model_steps for one in cells) / 2:,.0f}",
            f"{sum(one.seconds for one in cells) / 2:.4f}",
        ]
    (best,) = [number for number, line in enumerate(lines[:4]) if line.strip().startswith("*")]
    assert means[best] == min(means)
    fixed = "method.max_rounds=1 method.beam_width=1"
    step_size = rows[best][0].split("=")[1]
    assert f"by the evaluator: method=tigs {fixed} method.step_size={step_size} method.n_candid" in ran.out
    assert f"results: {tmp_path / 'runs/poetry/small/sweeps/tigs.json'}" in ran.out
    table = tmp_path / "runs/poetry/small/sweeps/tigs.md"
    assert f"table: {table}" in ran.out
    cells = [[cell.strip() for cell in line.strip("| ").split("|")] for line in table.read_text().splitlines()]
    texts = [" ".join(line).replace("\\", "") for line in cells]
    assert [text.removeprefix("* ").split() for text in texts[4:8]] == rows
    assert [number for number, text in enumerate(texts[4:8]) if text.startswith("* ")] == [best]
    assert f"* lowest mean of the cells, NLL per token by the evaluator: method=tigs {fixed}" in texts[9]
    assert cells[3] == [":--", *["--:"] * (len(cells[2]) - 1)]

    again = tigs("sweep", *made)
    assert again.out == ran.out
    assert again.err.count("(2 of 2 cells from before)") == 4
    document = json.loads(tigs("sweep", *made, "--json").out)
    assert (document["split"], document["criterion"]) == ("validation", "evaluator_nll")
    assert (document["n"], document["template_seed"]) == (3, 2019)
    assert [one["mean"]["evaluator_nll"] for one in document["settings"]] == pytest.approx(means)
    assert [document["settings"][best]["words"]] == document["best"]


def test_methods_side_by_side_one_at_a_time_under_a_name_without_an_evaluator(tigs, trained_words, tmp_path):
    made = trained_words("method=seq2seq-f,seq2seq-b", models=["forward", "backward"])
    ran = tigs("sweep", *made, *QUICK, "method.beam_width=2,3", "--one-at-a-time", "--name", "both")
    assert ran.code == 0, ran.err
    title, _, header, _, *lines = ran.out.splitlines()
    assert "NLL per token under the forward model" in title
    assert header.split() == ["setting", "middle-25", "random-50", "mean", "own", "objective", "steps", "seconds"]
    width = {name: compose([f"method={name}"]).method.beam_width for name in ("seq2seq-f", "seq2seq-b")}
    labels = [line.strip().removeprefix("* ").split("  ")[0] for line in lines[:6]]
    assert labels == [
        label
        for method in width
        for label in (
            f"base: method={method} beam_width={width[method]}",
            f"method={method} beam_width=2",
            f"method={method} beam_width=3",
        )
    ]
    stars = [number for number, line in enumerate(lines[:6]) if line.strip().startswith("*")]
    assert len(stars) == 2
    assert stars[0] < 3 <= stars[1], "one for each method"
    assert {result.figures.evaluator_nll for result in stored(tmp_path, "both")} == {None}
    document = json.loads(tigs("sweep", *made, *QUICK, "method.beam_width=2", "--json").out)
    assert document["criterion"] == "forward_nll"
    assert document["file"].endswith("sweeps/seq2seq-f+seq2seq-b.json")


def test_unknown_words_are_counted_where_they_are_allowed(tigs, trained_words, tmp_path):
    made = [*trained_words("method=seq2seq-f", models=["forward"]), *QUICK]
    path = checkpoint_path(compose(made[: -len(QUICK)]), "forward")
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"]["model.projection.bias"][UNK_ID] += 100.0
    torch.save(checkpoint, path)
    assert "<unk>" not in tigs("sweep", *made).out
    assert "<unk>" in tigs("sweep", *made, "method.allow_unk=false,true").out
    assert [result.figures.unk_share for result in stored(tmp_path, "seq2seq-f")] == [0, 0, 1, 1]


def test_all_six_cells_and_a_hundred_templates_unless_told_otherwise(tigs, trained_words):
    made = trained_words("method=seq2seq-f", "method.beam_width=1", models=["forward"])
    document = json.loads(tigs("sweep", *made, "--json").out)
    ((cells,),) = [[one["cells"] for one in document["settings"]]]
    assert list(cells) == ["random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75"]
    assert 0 < document["n"] <= 100
    title = tigs("sweep", *made).out.splitlines()[0]
    assert f"{document['n']} in each cell" in title


# What can be wrong


def refused(ran):
    """The one line that says so."""
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert "Traceback" not in ran.err
    *_, last = ran.err.splitlines()
    assert last.startswith("tigs sweep: ")
    return last


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("seed=1,2", "seed: Value '1,2' of type 'str' could not be converted to Integer. It must be a whole number"),
        ("trainer.devices=1,2", "It must be a whole number"),
        ("task=poetry,dialog", "there is no task 'poetry,dialog'. Choose one of: "),
        ("method.step_siz=1,2", "unknown key 'method.step_siz'. Did you mean 'method.step_size'?"),
        ("method.step_size=1,a", "It must be a number"),
        ("method.step_size=1,0", "method.step_size=0.0 is not allowed. It must be above 0"),
        (
            f"method.step_size={','.join(map(str, range(1, 202)))}",
            "make 201 settings, a sweep has at most 200. List fe",
        ),
        ("--name=a/b", "--name 'a/b' is no name for a file. Give"),
    ],
)
def test_wrong_words_are_one_line(tigs, word, problem):
    ran = tigs("sweep", word)
    assert problem in refused(ran)
    assert ran.err.count("\n") == 1


def test_wrong_cells_and_numbers_of_templates_are_one_line(tigs, trained_words):
    made = trained_words(models=["forward"])
    assert "there is no cell 'random-30'. Choose from: " in refused(tigs("sweep", *made, "--cells", "random-30"))
    assert "--templates 0 leaves nothing" in refused(tigs("sweep", *made, "--templates", "0"))
    assert tigs("sweep", *made, "--templates", "few").code == 2


def test_all_missing_models_are_named_with_the_commands_that_make_them(tigs, trained_words):
    line = refused(tigs("sweep", *trained_words("method=tigs,seq2seq-b,birnn-gsn", models=["backward"]), *QUICK))
    assert "not trained yet: forward, birnn (in " in line
    assert "MODEL=forward" in line
    assert "MODEL=birnn" in line


def test_an_evaluator_of_other_data_is_refused(tigs, trained_words, trained):
    made = trained_words("method=seq2seq-f")
    foreign = checkpoint_path(compose(trained("aprc", "evaluator")), "evaluator")
    shutil.copy(foreign, checkpoint_path(compose(made), "evaluator"))
    assert "the model evaluator of the task aprc, not evaluator of poetry" in refused(tigs("sweep", *made, *QUICK))


def test_no_number_is_refused(tigs, trained_words):
    made = trained_words("method=seq2seq-f")
    path = checkpoint_path(compose(made), "evaluator")
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"]["model.projection.bias"][:] = float("nan")
    torch.save(checkpoint, path)
    assert f"{path}: the evaluator gives a sentence an NLL that is no number" in refused(tigs("sweep", *made, *QUICK))


def test_a_folder_that_cannot_be_written_is_said_in_one_line(tigs, trained_words, tmp_path):
    made = trained_words("method=seq2seq-f", models=["forward"])
    (tmp_path / "runs/poetry/small/sweeps").write_text("in the way")
    assert "cannot write the results of the sweep" in refused(tigs("sweep", *made, *QUICK))


def test_an_interruption_says_how_to_go_on(tigs, trained_words, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("tigs.inference.module.InferenceModule.predict_step", interrupt)
    ran = tigs("sweep", *trained_words("method=seq2seq-f", models=["forward"]), *QUICK)
    assert ran.code == 130
    assert ran.err.endswith("The same command goes on from the last finished cell\ntigs sweep: interrupted\n")
