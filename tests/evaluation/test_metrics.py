"""Files of figures: what is written is read, what is damaged or must not be mixed is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from tigs.errors import EvaluationError
from tigs.evaluation.metrics import (
    FORMAT_VERSION,
    Comparison,
    Difference,
    Figure,
    Metrics,
    Sentences,
    find_experiments,
    load_all,
    read_comparisons,
    read_metrics,
    read_sentences,
    sentences_path,
    sentences_text,
    text_hash,
    write_comparison,
    write_metrics,
)

SENTENCES = Sentences(
    ids=("一", "b"), nll=((1.5, 0.25), (2.0,)), bleu={"bleu_y": ((1, 2, 3, 4, 5, 6, 7, 8, 9, 10), (0,) * 10)}
)
METRICS = Metrics(
    format_version=FORMAT_VERSION,
    task="poetry",
    profile="small",
    corpus="built-in sample",
    method="tigs",
    set_name="random-12.5",
    strategy="random",
    ratio=0.125,
    n=2,
    test_set_hash="t",
    figures={"nll": Figure(1.0, 0.5, 1.5), "bleu_y": Figure(0.1, 0.0, 0.2)},
    n_references=None,
    bleu_signature="nrefs:1",
    trace=(3.0, 2.5),
    evaluator={"path": "p", "hash": "e", "validation_nll": 2.0},
    checkpoints={"forward": {"path": "p", "hash": "f", "validation_nll": 2.0}},
    config={"seed": 0, "method": {"allow_unk": False}},
    search_seconds=3.0,
    devices=1,
    git_revision=None,
    sentences_hash=text_hash(sentences_text(SENTENCES)),
)
OTHER = replace(METRICS, method="seq2seq-f")
TEMPLATE = replace(METRICS, method="template", evaluator=None, checkpoints={})


def write(folder, *files):
    for metrics in files:
        write_metrics(folder, metrics, SENTENCES)


def test_what_is_written_is_read(tmp_path):
    path = write_metrics(tmp_path, METRICS, SENTENCES)
    assert path == tmp_path / "poetry" / "small" / "metrics" / "tigs" / "random-12.5.json"
    assert read_metrics(path) == METRICS
    assert read_sentences(tmp_path, METRICS) == SENTENCES
    assert sorted(found.name for found in path.parent.iterdir()) == ["random-12.5.json", "random-12.5.sentences.json"]


def test_sentences_without_nll_come_back_so(tmp_path):
    bare = replace(SENTENCES, nll=None)
    metrics = replace(METRICS, sentences_hash=text_hash(sentences_text(bare)))
    write_metrics(tmp_path, metrics, bare)
    assert read_sentences(tmp_path, metrics) == bare
    assert bare.nll_by_id == {}
    assert SENTENCES.nll_by_id == {"一": (1.5, 0.25), "b": (2.0,)}


def test_all_files_are_found_and_no_others(tmp_path):
    elsewhere = replace(OTHER, task="aprc", profile="cpu", n=7, test_set_hash="u")
    write(tmp_path, METRICS, TEMPLATE, OTHER, elsewhere)
    write_comparison(tmp_path, Comparison(FORMAT_VERSION, "poetry", "small", "c", "tigs", ()))
    assert {(found.task, found.method) for found in load_all(tmp_path)} == {
        ("poetry", "tigs"),
        ("poetry", "template"),
        ("poetry", "seq2seq-f"),
        ("aprc", "seq2seq-f"),
    }


def test_one_task_or_profile_is_read_without_the_others(tmp_path):
    write(tmp_path, METRICS, replace(OTHER, profile="cpu"), replace(OTHER, task="aprc"))
    METRICS.path(tmp_path).write_text("{", encoding="utf-8")
    assert [found.task for found in load_all(tmp_path, task="aprc")] == ["aprc"]
    assert [found.task for found in load_all(tmp_path, profile="cpu")] == ["poetry"]
    assert [found.profile for found in load_all(tmp_path, task="poetry", profile="cpu")] == ["cpu"]
    with pytest.raises(EvaluationError, match="cannot be read"):
        load_all(tmp_path, task="poetry")
    assert find_experiments(tmp_path) == [("aprc", "small"), ("poetry", "cpu"), ("poetry", "small")]
    assert find_experiments(tmp_path, task="poetry", profile="cpu") == [("poetry", "cpu")]


def test_the_signature_has_the_true_number_of_references():
    metrics = replace(METRICS, n_references=1193, bleu_signature="nrefs:1|case:mixed|tok:none")
    assert metrics.signature("bleu_references") == "nrefs:1193|case:mixed|tok:none"
    assert metrics.signature("bleu_y") == "nrefs:1|case:mixed|tok:none"


def test_nothing_is_found_in_an_empty_folder(tmp_path):
    assert load_all(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"test_set_hash": "u"}, "test set t and u"),
        ({"n": 3}, "number of sentences 2 and 3"),
        ({"evaluator": {"path": "p", "hash": "x", "validation_nll": 2.0}}, "evaluator e and x"),
        ({"checkpoints": {"forward": {"path": "p", "hash": "g"}}}, "model forward f and g"),
        ({"config": {"method": {"allow_unk": True}}}, "method.allow_unk False and True"),
    ],
)
def test_figures_that_must_not_be_compared_are_refused(tmp_path, change, named):
    # The changed file comes first by name; `template` has neither evaluator nor models and fits both.
    changed = replace(OTHER, **change)
    write(tmp_path, METRICS, changed, *([] if "n" in change or "test_set_hash" in change else [TEMPLATE]))
    with pytest.raises(EvaluationError) as refused:
        load_all(tmp_path)
    message = str(refused.value)
    assert str(METRICS.path(tmp_path)) in message
    assert str(changed.path(tmp_path)) in message
    first, _, second = named.rpartition(" and ")
    name, _, first = first.rpartition(" ")
    assert f"{name} {first} and {second}" in message or f"{name} {second} and {first}" in message
    assert "again" in refused.value.remedy


def test_a_different_number_of_references_is_refused(tmp_path):
    write(tmp_path, replace(METRICS, n_references=10_000), replace(OTHER, n_references=9_999))
    with pytest.raises(EvaluationError, match="number of references"):
        load_all(tmp_path)


def test_other_cells_may_differ(tmp_path):
    write(tmp_path, METRICS, replace(OTHER, set_name="middle-50", n=9, test_set_hash="u"))
    assert len(load_all(tmp_path)) == 2


def test_a_file_in_the_wrong_place_is_refused(tmp_path):
    path = write_metrics(tmp_path, METRICS, SENTENCES)
    wrong = path.parents[1] / "seq2seq-b" / path.name
    wrong.parent.mkdir()
    path.rename(wrong)
    with pytest.raises(EvaluationError, match=r"seq2seq-b.*holds the figures of .*tigs"):
        load_all(tmp_path)


def damage_by_cutting(text):
    return text[: len(text) // 2]


def damage_by_version(text):
    return json.dumps({**json.loads(text), "format_version": FORMAT_VERSION + 1})


def damage_by_field(text):
    values = json.loads(text)
    del values[max(values)]
    return json.dumps(values)


def damage_by_list(text):
    return "[]"


@pytest.mark.parametrize("damage", [damage_by_cutting, damage_by_version, damage_by_field, damage_by_list])
def test_damaged_files_are_refused_by_name(tmp_path, damage):
    path = write_metrics(tmp_path, METRICS, SENTENCES)
    comparison = write_comparison(tmp_path, Comparison(FORMAT_VERSION, "poetry", "small", "c", "tigs", ()))
    for file, read in (
        (sentences_path(path), lambda: read_sentences(tmp_path, METRICS)),
        (path, lambda: load_all(tmp_path)),
        (comparison, lambda: read_comparisons(tmp_path)),
    ):
        read()
        file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
        with pytest.raises(EvaluationError) as refused:
            read()
        assert str(file) in str(refused.value)


def test_sentences_of_other_figures_are_refused(tmp_path):
    write(tmp_path, METRICS)
    sentences_path(METRICS.path(tmp_path)).write_text(sentences_text(replace(SENTENCES, ids=("x", "y"))))
    with pytest.raises(EvaluationError, match="does not belong"):
        read_sentences(tmp_path, METRICS)


def test_missing_sentences_are_named(tmp_path):
    with pytest.raises(EvaluationError, match=r"random-12\.5\.sentences\.json"):
        read_sentences(tmp_path, METRICS)


def test_comparisons_are_read_as_written(tmp_path):
    difference = Difference("random-25", "seq2seq-f", "nll", 0.1, -0.1, 0.3, 0.2, 10)
    comparison = Comparison(FORMAT_VERSION, "poetry", "small", "c", "tigs", (difference,))
    write_comparison(tmp_path, comparison)
    assert read_comparisons(tmp_path) == [comparison]
    assert not difference.is_significant
    assert replace(difference, p_value=0.049).is_significant


def test_reading_and_comparing_need_no_torch():
    program = "import sys, tigs.evaluation.metrics, tigs.evaluation.compare; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
