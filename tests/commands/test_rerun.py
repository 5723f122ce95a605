"""`tigs rerun`: from a file of figures alone to the same figures, and whether they are."""

from __future__ import annotations

import json

import pytest

from tigs.composition import compose
from tigs.evaluation.metrics import read_metrics

# What differs from the profile's own must be found in the file.
SETTINGS = (
    "method=birnn-gsn",
    "method.max_rounds=2",
    "method.temperature=0.5",
    "test_sets.ratios=[0.5]",
    "eval.limit=4",
)


@pytest.fixture(autouse=True)
def _no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")


@pytest.fixture
def figures(tigs, trained_words, tmp_path):
    """A file of figures made from tiny models, and the words that only say where things are."""
    made = trained_words(models=("forward", "birnn", "evaluator"))
    ran = tigs("eval", *made, *SETTINGS)
    assert ran.code == 0, ran.err
    cache = compose(made).data.cache_dir
    places = [f"output_dir={tmp_path / 'again'}", f"data.cache_dir={cache}", "trainer.accelerator=cpu"]
    return tmp_path / "runs/poetry/small/metrics/birnn-gsn/random-50.json", places


def test_everything_is_trained_and_filled_again_from_the_file_alone(tigs, figures, tmp_path):
    path, places = figures
    ran = tigs("rerun", path, *places)
    assert ran.code == 0, ran.err
    again = tmp_path / "again/poetry/small"
    assert {folder.name for folder in (again / "models").iterdir()} == {"forward", "birnn", "evaluator"}
    assert [file.name for file in (again / "predictions/birnn-gsn").glob("*.jsonl")] == ["random-50.jsonl"]
    before, after = read_metrics(path), read_metrics(again / "metrics/birnn-gsn/random-50.json")
    # A training on one processor ends with the same weights, so that fills and figures are the same too.
    costs = ("seconds",)
    assert {name: figure for name, figure in after.figures.items() if name not in costs} == {
        name: figure for name, figure in before.figures.items() if name not in costs
    }
    assert after.config["method"] == before.config["method"]
    rows = [line.split() for line in ran.out.splitlines()[4:8]]
    assert [row[0] for row in rows] == ["nll", "forward_nll", "bleu_xy", "bleu_y"]
    assert [row[-1] for row in rows] == ["yes"] * 4
    assert rows[0][1] == rows[0][-2] == f"{before.figures['nll'].value:.4f}"
    assert "birnn-gsn on random-50 of poetry, profile small, built-in sample corpus, n = 4" in ran.out

    # The second time nothing is trained or filled; a figure that was not honest is seen.
    document = json.loads(path.read_text())
    for number in ("value", "low", "high"):
        document["figures"]["nll"][number] -= 1
    path.write_text(json.dumps(document))
    ran = tigs("rerun", path, *places, "--json")
    assert "finished before, 4 sentences" in ran.err
    compared = json.loads(ran.out)["figures"]
    assert {name: own["within"] for name, own in compared.items()} == {
        "nll": False,
        "forward_nll": True,
        "bleu_xy": True,
        "bleu_y": True,
    }
    assert compared["nll"]["again"] == pytest.approx(compared["nll"]["before"]["value"] + 1)


def test_other_sentences_are_refused_before_anything_is_trained(tigs, figures, tmp_path):
    path, places = figures
    ran = tigs("rerun", path, *places, "data.sample_seed=1")
    assert (ran.code, ran.out) == (2, "")
    assert "made of other sentences than the test set random-50" in ran.err.splitlines()[-1]
    assert not (tmp_path / "again").exists()


def test_a_file_that_holds_no_figures_is_one_line(tigs, tmp_path):
    ran = tigs("rerun", tmp_path / "nothing.json")
    assert (ran.code, ran.out) == (2, "")
    assert "nothing.json: cannot be read" in ran.err.splitlines()[-1]
