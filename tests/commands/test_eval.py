"""`tigs eval`: the figures are those of the files, and whatever is wrong is one line and exit code 2."""

from __future__ import annotations

import json
import shlex
import shutil

import pytest
import torch

from tigs.composition import compose
from tigs.config import METHODS, MODELS
from tigs.inference.predictions import predictions_folder, read_predictions
from tigs.inference.required import checkpoint_path

QUICK = ["test_sets.ratios=[0.5]", "method.max_rounds=1"]


@pytest.fixture(autouse=True)
def _no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")


def plain_figures(path):
    """Written out again, from the file alone."""
    lines = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    n_tokens = sum(len(line["template"].split()) + 1 for line in lines)
    means = {name: sum(line[name] for line in lines) / len(lines) for name in ("seconds", "model_steps")}
    if lines[0]["forward_nll"] is not None:
        means["forward_nll"] = sum(line["forward_nll"] for line in lines) / n_tokens
    return len(lines), means


def test_all_methods_are_run_with_their_own_settings_and_finished_ones_are_left_alone(tigs, trained_words):
    made = [*trained_words(models=MODELS), *QUICK, "eval.limit=3"]
    # The last word about the method counts.
    ran = tigs("eval", *made, "method=tigs", "method=all", "--json")
    assert ran.code == 0, ran.err
    document = json.loads(ran.out)
    assert (document["task"], document["profile"]) == ("poetry", "small")
    folder = predictions_folder(compose(made)).parent
    assert [(own["method"], own["set_name"]) for own in document["metrics"]] == [
        (method, name) for method in METHODS for name in ("random-50", "middle-50")
    ]
    for own in document["metrics"]:
        n_sentences, figures = plain_figures(folder / own["method"] / f"{own['set_name']}.jsonl")
        assert own["n"] == n_sentences == 3
        if own["method"] == "template":
            assert not figures.keys() & own["figures"].keys(), "no model, nothing to count"
            continue
        for name in ("forward_nll", "seconds", "model_steps"):
            assert own["figures"][name]["value"] == pytest.approx(figures[name])
    patience = {
        method: read_predictions(folder / method / "random-50.jsonl").header.config["method"]["patience"]
        for method in ("tigs", "seq2seq-f")
    }
    assert patience == {"tigs": 2, "seq2seq-f": 1}, "each has its own file of settings"

    before = {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    ran = tigs("eval", *made, "method=all")
    assert ran.err.count("finished before, 3 sentences") == 2 * len(METHODS)
    assert before == {path: path.read_bytes() for path in folder.rglob("*.jsonl")}
    assert "poetry, profile small, built-in sample corpus" in ran.out
    assert f"predictions: {folder}\n" in ran.out


def test_six_sets_of_a_method_without_a_model(tigs, trained_words):
    made = trained_words("method=template", models=())
    document = json.loads(tigs("eval", *made, "--json").out)
    names = ["random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75"]
    assert [own["set_name"] for own in document["metrics"]] == names
    assert {own["n"] for own in document["metrics"]} == {10}
    out = tigs("eval", *made).out
    assert all(name in out for name in names)


# What can be wrong


def refused(ran):
    """The one line that says so."""
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert "Traceback" not in ran.err
    *_, last = ran.err.splitlines()
    assert last.startswith("tigs eval: ")
    assert ran.err.count("tigs eval: ") == 1
    return last


def test_all_missing_models_are_named_with_the_commands_that_make_them(tigs, trained_words, tmp_path):
    made = trained_words(
        "method=all", "vocabulary.size=300", f"data.cache_dir={tmp_path / 'my cache'}", models=["backward"]
    )
    line = refused(tigs("eval", *made))
    missing = ["forward", "birnn", "mask-seq2seq", "mask-selfattn", "evaluator"]
    assert f"not trained yet: {', '.join(missing)} (in {tmp_path / 'runs/poetry/small/models'})" in line
    commands = line.split("`")[1::2]
    assert len(commands) == 5
    config = compose([word for word in made if word != "method=all"])
    for command, model in zip(commands, missing, strict=True):
        *start, arguments = shlex.split(command)
        assert start == ["make", "train", "TASK=poetry", "PROFILE=small", f"MODEL={model}"]
        # What the Makefile makes of it is the configuration that was asked for.
        own = compose(["task=poetry", "profile=small", *shlex.split(arguments.removeprefix("ARGS="))])
        assert own == config
    assert not (tmp_path / "runs/poetry/small/predictions").exists()


def test_a_profile_without_changes_needs_no_arguments(tigs, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = refused(tigs("eval", "task=dialog", "method=seq2seq-b"))
    assert "Run `make train TASK=dialog PROFILE=small MODEL=forward` and `make train" in line
    assert line.endswith("MODEL=backward` and `make train TASK=dialog PROFILE=small MODEL=evaluator`")


def change_description(path, change):
    checkpoint = torch.load(path, weights_only=True)
    change(checkpoint["tigs"])
    torch.save(checkpoint, path)


def test_a_checkpoint_of_another_task_is_refused(tigs, trained_words, trained):
    made = trained_words("method=tigs")
    foreign = checkpoint_path(compose(trained("aprc", "forward")), "forward")
    shutil.copy(foreign, checkpoint_path(compose(made), "forward"))
    assert "the model forward of the task aprc, not forward of poetry" in refused(tigs("eval", *made))


def test_a_checkpoint_of_other_data_is_refused(tigs, trained_words):
    assert "its vocabulary of" in refused(tigs("eval", *trained_words("data.sample_seed=5")))


@pytest.mark.parametrize("kind", ["target", "context"])
def test_a_template_longer_than_the_model_was_trained_for_is_refused(tigs, trained_words, kind):
    made = trained_words("method=tigs")
    path = checkpoint_path(compose(made), "forward")
    change_description(path, lambda description: description["config"]["data"].update({f"max_{kind}_length": 5}))
    line = refused(tigs("eval", *made))
    assert f"tokens, {path} was trained on at most 5" in line
    assert f"data.max_{kind}_length=5" in line


def test_more_candidates_than_words_are_refused(tigs, trained_words):
    line = refused(tigs("eval", *trained_words("method=tigs", "method.n_candidates=5000")))
    assert "method.n_candidates=5000 is more than the" in line


def test_a_damaged_checkpoint_is_refused(tigs, trained_words):
    made = trained_words("method=tigs")
    path = checkpoint_path(compose(made), "forward")
    path.write_bytes(path.read_bytes()[:3000])
    assert f"{path}: not a TIGS checkpoint, or damaged" in refused(tigs("eval", *made))


def test_no_number_is_refused_and_what_was_done_before_is_kept(tigs, trained_words):
    made = [*trained_words("method=seq2seq-f", "eval.limit=2"), *QUICK]
    assert tigs("eval", *made).code == 0
    path = checkpoint_path(compose(made), "forward")
    whole = path.read_bytes()
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"]["model.projection.bias"][:] = float("nan")
    torch.save(checkpoint, path)
    assert "the model forward gives it an NLL of nan. Train forward again" in refused(tigs("eval", *made))
    path.write_bytes(whole)
    assert "finished before" in tigs("eval", *made).err


def test_a_damaged_file_of_predictions_is_named(tigs, trained_words):
    made = [*trained_words("method=seq2seq-f", "eval.limit=2"), *QUICK]
    assert tigs("eval", *made).code == 0
    path = predictions_folder(compose(made)) / "middle-50.jsonl"
    path.write_bytes(path.read_bytes()[:-30])
    assert f"{path} line 3: the line is cut off" in refused(tigs("eval", *made))
    path.unlink()  # as the message says
    assert tigs("eval", *made).code == 0


def test_what_the_machine_or_the_disk_lacks_is_said_in_one_line(tigs, trained_words, tmp_path):
    made = [*trained_words("method=seq2seq-f"), *QUICK]
    assert "do not fit this machine" in refused(tigs("eval", *made, "trainer.accelerator=gpu"))
    (tmp_path / "runs/poetry/small/predictions").write_text("in the way")
    assert "cannot write the predictions" in refused(tigs("eval", *made))


def test_an_unknown_method_is_named(tigs):
    assert "there is no method 'tiggs'" in refused(tigs("eval", "method=tiggs"))
