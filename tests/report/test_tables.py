"""What stands in the table is what stands in the files of figures; best, marks and missing cells are recomputed here."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace

import pytest

from tigs.composition import compose, to_plain
from tigs.config import METHODS
from tigs.errors import EvaluationError
from tigs.report.experiment import load_experiments, load_readable
from tigs.report.paper import paper_figures, paper_sets
from tigs.report.tables import best_value, eval_command, make_table

PAPER_BLEU = {"poetry": "bleu_xy", "aprc": "bleu_references"}


def stored(runs, task, method, set_name):
    """Straight from the file; None if it is not there."""
    path = runs / task / "small" / "metrics" / method / f"{set_name}.json"
    return json.loads(path.read_text(encoding="utf-8"))["figures"] if path.exists() else None


@pytest.fixture(params=["poetry", "aprc"])
def task(request):
    return request.param


@pytest.fixture
def table(experiments, task):
    return make_table(experiments[task])


def cells(table):
    for block in table.blocks:
        for method, row in block.rows.items():
            for set_name, cell in zip(table.sets, row, strict=True):
                yield block.figure, method, set_name, cell


def test_rows_and_columns_are_the_papers_with_tigs_last_and_ours_below(table, task):
    assert table.sets == paper_sets()
    nll, bleu = table.blocks
    paper_order = [
        "seq2seq-f",
        "seq2seq-b",
        "seq2seq-fb",
        "birnn-bibs",
        "birnn-gsn",
        "mask-seq2seq",
        "mask-selfattn",
        "tigs",
    ]
    assert list(nll.rows) == [*paper_order, "tigs-plus"]
    assert list(bleu.rows) == ["template", *paper_order, "tigs-plus"]


def test_figures_are_those_of_the_files_and_of_the_paper(table, task, runs):
    n_compared = 0
    for figure, method, set_name, cell in cells(table):
        figures = stored(runs, task, method, set_name)
        expected = figures[{"nll": "nll", "bleu": PAPER_BLEU[task]}[figure]] if figures else None
        if expected is None:
            assert (cell.ours, cell.low, cell.high, cell.best, cell.like_tigs) == (None, None, None, False, False)
        else:
            assert {"value": cell.ours, "low": cell.low, "high": cell.high} == expected
            n_compared += 1
        assert cell.paper == paper_figures(task, figure).get(method, {}).get(set_name)
    assert n_compared == {"poetry": 19 * 6, "aprc": 9 * 6 - 4}[task]


def test_the_best_of_every_column_and_no_other_is_marked(table):
    for block in table.blocks:
        choose = min if block.figure == "nll" else max
        for place in range(len(table.sets)):
            column = [row[place] for row in block.rows.values()]
            best = choose(round(cell.ours, 3) for cell in column if cell.ours is not None)
            assert [cell.best for cell in column] == [
                cell.ours is not None and round(cell.ours, 3) == best for cell in column
            ]
            best = choose(cell.paper for cell in column if cell.paper is not None)
            assert [cell.paper_best for cell in column] == [cell.paper == best for cell in column]


def test_equal_figures_are_best_together_and_a_lone_one_is_not():
    assert best_value([0.57912, 0.57921, 0.5], lower=False) == 0.579
    assert best_value([3.2, None, 3.1], lower=True) == 3.1
    assert best_value([3.2, None], lower=True) is None


def test_marked_is_what_the_comparison_does_not_find_significant(table, task, runs):
    comparison = json.loads((runs / task / "small" / "metrics" / "comparison.json").read_text(encoding="utf-8"))
    p_values = {(one["figure"], one["method"], one["set_name"]): one["p_value"] for one in comparison["differences"]}
    marks = set()
    for figure, method, set_name, cell in cells(table):
        name = PAPER_BLEU[task] if figure == "bleu" else figure
        assert cell.like_tigs == (p_values.get((name, method, set_name), 0) >= 0.05)
        marks.add(cell.like_tigs)
        assert method != "tigs" or not cell.like_tigs
    assert marks == {True, False}


def test_a_comparison_that_is_older_than_the_figures_is_made_again(runs, load, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    path = root / "poetry" / "small" / "metrics" / "comparison.json"
    right = path.read_text(encoding="utf-8")
    stale = json.loads(right)
    for difference in stale["differences"]:
        difference["p_value"], difference["value"] = 0.9, difference["value"] + 0.01
    path.write_text(json.dumps(stale), encoding="utf-8")
    load(root)
    assert path.read_text(encoding="utf-8") == right
    path.unlink()
    load(root)
    assert path.read_text(encoding="utf-8") == right


def test_no_figure_without_corpus_profile_and_number_of_sentences(table, task):
    name = {"poetry": "Poetry", "aprc": "APRC"}[task]
    assert table.caption == f"{name}, profile small, built-in sample corpus, 24 sentences in each test set"
    assert "5,000 sentences" in " ".join(table.notes)
    assert ("against 24 sentences of the test split" in table.notes[0]) == (task == "aprc")
    assert {"poetry": "nrefs:1|", "aprc": "nrefs:24|"}[task] in table.notes[0]
    assert "tok:none" in table.notes[0]


def test_different_numbers_of_sentences_are_all_named(experiments):
    poetry = experiments["poetry"]
    metrics = {
        key: replace(one, n=7, corpus="another") if one.set_name == "random-25" else one
        for key, one in poetry.metrics.items()
    }
    about = replace(poetry, metrics=metrics).about
    assert "another, 7 sentences (25 % random)" in about
    assert "built-in sample corpus, 24 sentences (25 % middle, 50 % random" in about


def test_blank_cells_have_the_command_that_fills_them(experiments):
    assert make_table(experiments["poetry"]).missing == []
    missing = {one.method: one for one in make_table(experiments["aprc"]).missing}
    assert list(missing) == ["seq2seq-b", "seq2seq-fb", "birnn-bibs", "birnn-gsn", "mask-seq2seq", "mask-selfattn"]
    assert missing["birnn-gsn"].sets == ["random-75", "middle-75"]
    assert missing["seq2seq-b"].sets == paper_sets()
    assert missing["birnn-gsn"].command == "make eval TASK=aprc PROFILE=small METHOD=birnn-gsn"


@pytest.mark.parametrize(
    ("words", "ending"),
    [
        (["profile=small", "test_sets.size=24"], ""),
        (["profile=small"], " LIMIT=24"),
        (["profile=small", "data.source=download"], " DATA=download LIMIT=24"),
        (["profile=small", "data.dir=my data"], " DATA_DIR='my data' LIMIT=24"),
        (["profile=cpu", "data.source=sample", "test_sets.size=24"], " DATA=sample"),
        (["profile=cpu", "test_sets.size=24"], ""),
        (["profile=cpu", "test_sets.size=24", "output_dir=my runs"], " ARGS=\"'output_dir=my runs'\""),
        (["profile=small", "test_sets.size=24", "output_dir=../runs"], ' ARGS="output_dir=../runs"'),
    ],
)
def test_the_command_uses_the_sentences_of_the_figures_that_are_there(experiments, words, ending):
    config = compose(["task=poetry", *words])
    like = replace(next(iter(experiments["poetry"].metrics.values())), config=to_plain(config))
    command = eval_command("poetry", config.profile, "tigs", like)
    assert command == f"make eval TASK=poetry PROFILE={config.profile} METHOD=tigs{ending}"


def test_a_profile_that_is_not_known_here_has_its_source_stated(experiments):
    like = experiments["poetry"].metrics["tigs", "random-25"]
    assert eval_command("poetry", "mine", "tigs", like).endswith("PROFILE=mine METHOD=tigs DATA=sample")


def test_other_ratios_get_columns_of_their_own(experiments):
    poetry = experiments["poetry"]
    extra = {("tigs", "random-10"): replace(poetry.metrics["tigs", "random-25"], set_name="random-10", ratio=0.1)}
    table = make_table(replace(poetry, metrics=poetry.metrics | extra))
    assert table.sets == ["random-10", *paper_sets()]
    rows = table.blocks[0].rows
    assert rows["tigs"][0].ours == poetry.metrics["tigs", "random-25"].figures["nll"].value
    assert not rows["tigs"][0].best  # there is nothing to be better than
    assert rows["seq2seq-f"][0].ours is None
    assert {one.method: one.sets for one in table.missing} == {m: ["random-10"] for m in METHODS if m != "tigs"}


def test_figures_of_different_sentences_are_refused(runs, tmp_path):
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    path = root / "poetry" / "small" / "metrics" / "tigs" / "random-25.json"
    values = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(values | {"test_set_hash": "other"}), encoding="utf-8")
    with pytest.raises(EvaluationError, match="cannot be compared"):
        load_experiments(root)
    experiments, (problem,) = load_readable(root)
    assert [experiment.task for experiment in experiments] == ["aprc"]
    assert problem.name == "Poetry, profile small"
    assert str(path) in str(problem.error)
    assert [experiment.task for experiment in load_experiments(root, task="aprc")] == ["aprc"]
