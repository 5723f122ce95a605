"""Examples in the page are the predictions of the files, with the evaluator's NLL of the very words filled in."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from tigs.data.special import BLANK
from tigs.evaluation.metrics import read_metrics, read_sentences, sentences_text, text_hash, write_metrics
from tigs.inference.predictions import read_predictions
from tigs.report import examples
from tigs.report.examples import make_examples


@pytest.fixture(scope="module")
def data(runs, experiments):
    return {task: make_examples(runs, experiments[task]) for task in experiments}


@pytest.mark.parametrize("task", ["poetry", "aprc"])
def test_every_fill_is_the_one_of_the_file(runs, data, task):
    names = [method["id"] for method in data[task]["methods"]]
    assert "template" not in names
    assert names[-1] == "tigs-plus"
    n_fills = 0
    for one in data[task]["sets"]:
        set_name = f"{one['strategy']}-{one['ratio']}"
        for number, method in enumerate(names):
            folder = runs / task / "small"
            path = folder / "predictions" / method / f"{set_name}.jsonl"
            if not path.exists():
                assert all(fills[number] is None for _, _, fills in one["rows"])
                continue
            made = {prediction.id: prediction for prediction in read_predictions(path).predictions}
            stored = json.loads(
                (folder / "metrics" / method / f"{set_name}.sentences.json").read_text(encoding="utf-8")
            )
            nlls = dict(zip(stored["ids"], stored["nll"], strict=True))
            assert one["n"] == len(made)
            for key, blanks, fills in one["rows"]:
                prediction = made[key]
                assert data[task]["sentences"][key] == (" ".join(prediction.context), " ".join(prediction.reference))
                assert blanks == [at for at, token in enumerate(prediction.template) if token == BLANK]
                text, tenths, hundredths = fills[number]
                assert text.split(" ") == [prediction.sentence[at] for at in blanks]
                assert tenths == [round(nlls[key][at] * 10) for at in blanks]
                assert hundredths == pytest.approx(100 * sum(nlls[key]) / len(nlls[key]), abs=0.51)
                n_fills += 1
    assert n_fills == {"poetry": 9 * 6 * 24, "aprc": (4 * 6 - 2) * 24}[task]


def test_no_more_than_the_limit_of_each_set_and_the_same_for_all_methods(runs, experiments, monkeypatch):
    monkeypatch.setattr(examples, "PER_SET", 5)
    data = make_examples(runs, experiments["poetry"])
    for one in data["sets"]:
        assert len(one["rows"]) == 5
        assert one["n"] == 24
        assert all(len(fills) == 9 and all(fills) for _, _, fills in one["rows"])
    assert len(data["sentences"]) == 5  # the sets are about the same sentences


def test_predictions_of_another_search_than_the_figures_are_not_shown(runs, experiments, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    path = root / "poetry" / "small" / "predictions" / "tigs" / "random-25.jsonl"
    first, rest = path.read_text(encoding="utf-8").split("\n", 1)
    header = json.loads(first)
    header["config"]["seed"] += 1
    path.write_text(json.dumps(header) + "\n" + rest, encoding="utf-8")
    (root / "poetry" / "small" / "predictions" / "birnn-gsn" / "random-25.jsonl").unlink()
    data = make_examples(root, experiments["poetry"])
    names = [method["id"] for method in data["methods"]]
    absent = {names[number] for number, fill in enumerate(data["sets"][0]["rows"][0][2]) if fill is None}
    assert absent == {"tigs", "birnn-gsn"}


def test_figures_of_a_smaller_limit_show_the_examples_that_they_are_about(runs, write_experiment, load, tmp_path):
    write_experiment(tmp_path, "poetry", methods=("seq2seq-f", "tigs"), n=6)
    for path in (tmp_path / "poetry" / "small" / "metrics").glob("*/*-??.json"):
        metrics = read_metrics(path)
        sentences = read_sentences(tmp_path, metrics)
        fewer = replace(
            sentences,
            ids=sentences.ids[:2],
            nll=sentences.nll[:2],
            bleu={scope: rows[:2] for scope, rows in sentences.bleu.items()},
        )
        hashed = text_hash(sentences_text(fewer))
        write_metrics(tmp_path, replace(metrics, n=2, sentences_hash=hashed), fewer)
    (experiment,) = load(tmp_path)
    data = make_examples(tmp_path, experiment)
    assert len(data["sets"]) == 6
    for one in data["sets"]:
        assert (one["n"], len(one["rows"])) == (2, 2)
        assert all(fill is not None for _, _, fills in one["rows"] for fill in fills)


def test_without_predictions_there_are_no_examples(experiments, tmp_path):
    data = make_examples(tmp_path, experiments["poetry"])
    assert (data["sets"], data["methods"], data["sentences"]) == ([], [], {})
