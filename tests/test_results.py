"""The figures that come with the project: whole, honest about what made them, and without a word of the corpora."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tigs.commands.table import FORMATS
from tigs.config import METHODS, TASKS
from tigs.evaluation.metrics import load_all
from tigs.report.claims import make_claims
from tigs.report.experiment import load_experiments
from tigs.report.paper import paper_sets
from tigs.report.tables import make_table

RESULTS = Path(__file__).parents[1] / "results"
CPU = RESULTS / "cpu"
CORPORA = ("DailyDialog", "chinese-poetry", "Amazon reviews (stand-in for APRC)")
AT_LEAST = 500
AT_LEAST_BARE = 1000


@pytest.fixture(scope="module")
def experiments():
    return {experiment.task: experiment for experiment in load_experiments(CPU)}


@pytest.mark.parametrize("task", TASKS)
def test_no_cell_is_empty_and_the_table_is_that_of_the_figures(experiments, task):
    experiment = experiments[task]
    assert experiment.metrics.keys() == {(method, name) for method in METHODS for name in paper_sets()}
    table = make_table(experiment)
    assert not table.missing
    assert all(cell.ours is not None for block in table.blocks for cells in block.rows.values() for cell in cells)
    for suffix, render in FORMATS.items():
        assert (CPU / task / "cpu" / f"table.{suffix}").read_text(encoding="utf-8") == render(table)


@pytest.mark.parametrize("task", TASKS)
def test_enough_sentences_and_an_evaluator_that_no_method_has_searched(experiments, task):
    for metrics in experiments[task].metrics.values():
        assert metrics.n >= AT_LEAST
        assert re.fullmatch("[0-9a-f]{40}", metrics.git_revision or ""), "made with code that can be looked at"
        assert (metrics.evaluator is None) == (metrics.method == "template")
        if metrics.evaluator is not None:
            searched = {about["hash"] for about in metrics.checkpoints.values()}
            assert searched
            assert metrics.evaluator["hash"] not in searched
            assert {"nll", "forward_nll"} <= metrics.figures.keys()


def test_every_claim_can_be_answered(experiments):
    """The one about <unk> has a folder of its own."""
    with_unk = load_experiments(CPU / "with-unk")
    assert [experiment.task for experiment in with_unk] == list(TASKS)
    claims = make_claims(list(experiments.values()), with_unk)
    assert all(claim.holds is not None for claim in claims), [claim.summary for claim in claims]


def test_the_bare_template_was_measured_on_more_sentences_too():
    """It needs no model; both figures are estimates of the same."""
    bare = {(one.task, one.set_name): one for one in load_all(CPU / "template-1000")}
    assert bare.keys() == {(task, name) for task in TASKS for name in paper_sets()}
    for (task, name), own in bare.items():
        assert own.n >= AT_LEAST_BARE
        few = load_all(CPU, task=task)
        (other,) = (one for one in few if (one.method, one.set_name) == ("template", name))
        assert own.test_set_hash == other.test_set_hash
        assert other.figures["bleu_xy"].low < own.figures["bleu_xy"].value < other.figures["bleu_xy"].high


def strings(value):
    """All that stand in a document, keys too."""
    if isinstance(value, dict):
        return [*value, *(text for part in value.values() for text in strings(part))]
    if isinstance(value, list):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def test_no_sentence_of_a_corpus_is_among_them():
    """Nothing that holds sentences; in what is there no characters of a poem, and among figures no two words together."""
    files = [path for path in RESULTS.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".md", ".png", ".csv", ".tex"}
    assert not [path for path in files if "predictions" in path.parts or path.name.endswith(".sentences.json")]
    for path in files:
        if path.suffix == ".png":
            continue
        text = path.read_text(encoding="utf-8")
        assert not re.search("[\u4e00-\u9fff]", text), path
        if path.suffix == ".json":
            document = json.loads(text)
            others = [string for string in strings(document) if string != document["corpus"]]
            assert document["corpus"] in CORPORA, path
            assert not [string for string in others if len(string.split()) > 1 or len(string) > 100], path
