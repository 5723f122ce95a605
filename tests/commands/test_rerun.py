"""`tigs rerun`: from a file of figures alone to the same figures, and whether they are."""

from __future__ import annotations

import json

import pytest

from tigs.composition import compose
from tigs.evaluation.metrics import read_metrics

# What differs from the profile's own must be found in the file.
SETTINGS = ("method.max_rounds=2", "method.temperature=0.5", "test_sets.ratios=[0.5]", "eval.limit=4")


@pytest.fixture(autouse=True)
def _no_wandb(monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "disabled")


@pytest.fixture
def make_figures(tigs, trained_words, tmp_path):
    """A file of figures made from tiny models in one folder, and the words that rerun it in another."""

    def make(method, *models):
        made = trained_words(models=models)
        ran = tigs("eval", *made, *SETTINGS, f"method={method}")
        assert ran.code == 0, ran.err
        places = [f"output_dir={tmp_path / 'new'}", f"data.cache_dir={compose(made).data.cache_dir}"]
        return tmp_path / f"runs/poetry/small/metrics/{method}/random-50.json", [*places, "trainer.accelerator=cpu"]

    return make


@pytest.fixture
def figures(make_figures):
    return make_figures("birnn-gsn", "forward", "birnn", "evaluator")


def rewrite(path, change):
    document = json.loads(path.read_text())
    change(document)
    path.write_text(json.dumps(document))


def refused(ran):
    assert (ran.code, ran.out) == (2, ""), ran.err
    assert "Traceback" not in ran.err
    return ran.err.splitlines()[-1]


def test_everything_is_trained_and_filled_again_from_the_file_alone(tigs, figures, tmp_path):
    path, places = figures
    content = path.read_text()
    # Where it was made, which is of no use here.
    rewrite(path, lambda document: document["config"].update(output_dir="elsewhere"))
    rewrite(path, lambda document: document["config"]["trainer"].update(devices=64, accelerator="gpu", strategy="ddp"))
    ran = tigs("rerun", path, *places)
    assert ran.code == 0, ran.err
    again = tmp_path / "new/rerun/poetry/small"
    assert {folder.name for folder in (again / "models").iterdir()} == {"forward", "birnn", "evaluator"}
    assert [file.name for file in (again / "predictions/birnn-gsn").glob("*.jsonl")] == ["random-50.jsonl"]
    before, after = read_metrics(path), read_metrics(again / "metrics/birnn-gsn/random-50.json")
    # A training on one processor ends with the same weights, so that fills and figures are the same too.
    assert {name: figure for name, figure in after.figures.items() if name != "seconds"} == {
        name: figure for name, figure in before.figures.items() if name != "seconds"
    }
    assert after.config["method"] == before.config["method"]
    lines = [line.split() for line in ran.out.splitlines()]
    models = [line for line in lines if line and line[0] in ("forward", "birnn", "evaluator")]
    assert [(line[0], line[1] == line[2]) for line in models] == [
        ("forward", True),
        ("birnn", True),
        ("evaluator", True),
    ]
    compared = [line for line in lines if line and line[0] in ("nll", "forward_nll", "bleu_xy", "bleu_y")]
    assert [(line[0], line[-1]) for line in compared] == [
        (name, "yes") for name in ("nll", "forward_nll", "bleu_xy", "bleu_y")
    ]
    assert compared[0][1] == compared[0][-2] == f"{before.figures['nll'].value:.4f}"
    assert "birnn-gsn on random-50, poetry, profile small, built-in sample corpus, n = 4" in ran.out
    path.write_text(content)

    # The second time nothing is trained or filled; a figure that was not honest is seen, and the file is left alone.
    rewrite(path, lambda document: document["figures"]["nll"].update(value=1.5, low=1.25, high=1.75))
    content = path.read_text()
    ran = tigs("rerun", path, *places, "--json")
    assert "finished before, 4 sentences" in ran.err
    document = json.loads(ran.out)
    assert {name: own["within"] for name, own in document["figures"].items()} == {
        "nll": False,
        "forward_nll": True,
        "bleu_xy": True,
        "bleu_y": True,
    }
    assert document["figures"]["nll"]["again"]["value"] == before.figures["nll"].value
    assert document["validation_nll"]["birnn"]["again"] == before.checkpoints["birnn"]["validation_nll"]
    assert path.read_text() == content


def test_the_bare_template_needs_no_model_and_as_many_sentences_as_were_counted_are_counted(
    tigs, make_figures, tmp_path
):
    path, places = make_figures("template", "evaluator")
    # As a file of predictions says that was made before fewer of its sentences were counted.
    rewrite(path, lambda document: document["config"]["eval"].update(limit=None))
    ran = tigs("rerun", path, *places)
    assert ran.code == 0, ran.err
    assert "template on random-50, poetry, profile small, built-in sample corpus, n = 4" in ran.out
    assert "validation NLL of the models" not in ran.out
    assert not (tmp_path / "new/rerun/poetry/small/models").exists()
    written = tmp_path / "new/rerun/poetry/small/metrics/template/random-50.json"
    assert read_metrics(written).n == 4
    assert "would be written over by what it is compared with" in refused(tigs("rerun", written, *places))


def test_other_sentences_are_refused_before_anything_is_trained(tigs, figures, corpora, tmp_path):
    path, places = figures
    line = refused(tigs("rerun", path, *places, f"data.dir={corpora / 'poetry'}"))
    assert "made of other sentences than the test set random-50" in line
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("word", ["method=tigs", "profile=cpu", "eval.limit=2", "method.max_rounds=0", "seed=1"])
def test_what_decides_the_figures_cannot_be_set(tigs, figures, word):
    path, places = figures
    line = refused(tigs("rerun", path, *places, word))
    assert f"'{word}': figures are made again with their own settings" in line


def test_what_is_no_file_of_figures_is_one_line(tigs, figures, tmp_path, monkeypatch):
    path, places = figures
    folder = path.parent
    for name in ("nothing.json", ".", "random-50.sentences.json", "../comparison.json"):
        line = refused(tigs("rerun", folder / name, *places))
        assert f"{folder / name}: no file of figures" in line
        assert "Name one as results/cpu/" in line
    rewrite(path, lambda document: document.update(config=None))
    monkeypatch.chdir(folder)
    assert "random-50.json: no file of figures" in refused(tigs("rerun", "random-50.json", *places))
