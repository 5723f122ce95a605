"""The page: complete, well formed, self-contained, and text from a corpus never becomes markup."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser

import pytest

from tigs.data.corpora.pairs import Pair
from tigs.errors import EvaluationError
from tigs.report.fragments import KINDS
from tigs.report.page import make_page, write_page, write_pngs
from tigs.report.paper import paper_sets
from tigs.report.render import number
from tigs.report.tables import make_table

VOID = {"meta", "link", "input", "br"}


class Reader(HTMLParser):
    """Checks that elements nest, and collects tables, links and text."""

    def __init__(self, page):
        super().__init__()
        self.open, self.tables, self.addresses, self.ids, self.words, self.scripts = [], [], [], [], [], []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.addresses += [values[name] for name in ("href", "src", "xlink:href", "action") if name in values]
        self.ids += [values["id"]] if "id" in values else []
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data
        else:
            self.words.append(data)

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def page(page_path):
    return page_path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def reader(page):
    return Reader(page)


def test_it_holds_both_tables_of_every_experiment(reader, experiments):
    shown = [[cell.strip() for cell in row] for table in reader.tables for row in table]
    for experiment in experiments.values():
        for block in make_table(experiment).blocks:
            for cells in block.rows.values():
                figures = []
                for cell in cells:
                    figures += [number(cell.ours) + "≈" * cell.like_tigs, number(cell.paper)]
                assert figures in [row[1:] for row in shown]


def test_the_best_are_bold(page, experiments):
    for experiment in experiments.values():
        for block in make_table(experiment).blocks:
            for cell in (cell for row in block.rows.values() for cell in row if cell.best):
                assert f"<b>{number(cell.ours)}</b>" in page
    bold = sum(
        cell.best + cell.paper_best
        for e in experiments.values()
        for b in make_table(e).blocks
        for r in b.rows.values()
        for cell in r
    )
    main_tables = [
        part for part in re.findall(r"<table>.*?</table>", page) if "95 % interval" in part and "[" not in part
    ]
    assert sum(part.count("<b>") for part in main_tables) == bold


def test_captions_commands_and_sections_are_there(reader, experiments):
    for experiment in experiments.values():
        # Both tables, every chart, both tables of ranks.
        assert reader.text.count(experiment.about) >= 8
        assert all(note in reader.text for note in make_table(experiment).notes)
        assert all(one.command in reader.text for one in make_table(experiment).missing)
        assert f"{experiment.task}-{experiment.profile}" in reader.ids
    for title in ("NLL by mask ratio", "NLL against time", "NLL by round of TIGS", "Ranks by BLEU", "Examples"):
        assert title in reader.text
    assert "Up to 200 templates of each test set" in reader.text


def test_links_lead_to_places_on_the_page_and_nothing_is_loaded(page, reader):
    inside = [address[1:] for address in reader.addresses if address.startswith("#")]
    assert set(inside) <= set(reader.ids)
    assert {"poetry-small", "aprc-small", "examples"} <= set(inside)
    assert {address for address in reader.addresses if not address.startswith("#")} == {"data:,"}
    assert "default-src 'none'" in page
    assert not re.search(r"@import|url\((?!#)", page)
    names = {"http://www.w3.org/1999/xlink", "http://www.w3.org/2000/svg"}
    assert set(re.findall(r"https?://[^\"' ]+", page)) <= names


def test_text_of_a_corpus_stays_text(write_experiment, load, tmp_path):
    words = ("<script>window.hurt=1</script>", "</script><b>", "&amp;", "'\"", "<!--", "</td>")
    pairs = [Pair((*words, str(n)), (*words, *words, str(n))) for n in range(3)]
    write_experiment(tmp_path, "dialog", methods=("template", "seq2seq-f", "tigs"), pairs=pairs, n=3)
    for path in (tmp_path / "dialog" / "small" / "metrics").glob("*/*-??.json"):
        values = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps(values | {"corpus": "<i>odd</i> & co"}), encoding="utf-8")
    load(tmp_path)
    page = make_page(tmp_path)
    reader = Reader(page)
    assert "<i>" not in page
    assert "<i>odd</i> & co" in reader.text
    data = json.loads(reader.scripts[0])
    assert len(reader.scripts) == 2
    context, reference = next(iter(data[0]["sentences"].values()))
    assert context.split(" ")[:6] == list(words)
    assert reference.split(" ")[:6] == list(words)


def test_what_is_wrong_with_one_experiment_is_said_and_the_others_are_shown(runs, tmp_path, capfd):
    root = tmp_path / "runs"
    shutil.copytree(runs, root)
    damaged = root / "poetry" / "small" / "metrics" / "tigs" / "random-25.json"
    damaged.write_text("{", encoding="utf-8")
    predictions = root / "aprc" / "small" / "predictions" / "tigs" / "random-25.jsonl"
    predictions.write_text("{", encoding="utf-8")
    reader = Reader(make_page(root))
    err = capfd.readouterr().err
    for name, path in (("Poetry, profile small", damaged), ("APRC, profile small, examples", predictions)):
        assert f"{name}: not shown" in reader.text
        assert str(path) in reader.text
        assert f"{name}: {path}" in err
    assert "aprc-small" in reader.ids
    assert "poetry-small" not in reader.ids
    assert reader.tables


def test_bleu_against_many_references_has_their_number(reader, page):
    assert "sacrebleu nrefs:24|" in reader.text
    assert "BLEU-4, 24 references" in page


def test_the_methods_own_objective_is_no_nll_to_compare():
    assert "comparable within a method only" in KINDS["own_nll"].title
    assert "NLL" not in KINDS["own_nll"].title


def test_without_figures_it_says_which_command_makes_them(tmp_path):
    path = write_page(tmp_path / "new")
    assert path == tmp_path / "new" / "report.html"
    reader = Reader(path.read_text(encoding="utf-8"))
    assert "make eval TASK=poetry PROFILE=small METHOD=all" in reader.text
    assert reader.tables == []


@pytest.fixture(scope="module")
def figures_alone(tmp_path_factory, write_experiment):
    """One method on one test set, and no predictions."""
    root = tmp_path_factory.mktemp("figures")
    others = {("tigs", name) for name in paper_sets() if name != "middle-50"}
    write_experiment(root, "dialog", methods=("tigs",), skip=others, n=5)
    shutil.rmtree(root / "dialog" / "small" / "predictions")
    return root


def test_without_predictions_it_says_so_and_shows_the_rest(figures_alone):
    reader = Reader(make_page(figures_alone))
    assert "No predictions lie beside the figures" in reader.text
    assert json.loads(reader.scripts[0]) == []
    assert "TIGS (25 % random, 25 % middle, 50 % random, 75 % random, 75 % middle)" in reader.text
    assert reader.tables
    assert "NLL by round of TIGS" in reader.text


def test_charts_are_saved_as_png_one_file_each(figures_alone, tmp_path):
    paths = write_pngs(figures_alone, tmp_path / "pictures")
    assert sorted(path.name for path in (tmp_path / "pictures").iterdir()) == sorted(path.name for path in paths)
    names = ("nll", "bleu-xy", "bleu-y", "cost-seconds", "cost-model-steps", "rounds")
    assert [path.name for path in paths] == [f"dialog-small-{name}.png" for name in names]


def test_a_disk_that_cannot_be_written_to_is_named(figures_alone, tmp_path):
    taken = tmp_path / "taken"
    taken.write_text("")
    with pytest.raises(EvaluationError, match="taken"):
        write_pngs(figures_alone, taken)
    with pytest.raises(EvaluationError, match=r"report\.html: cannot be written"):
        write_page(taken)


def test_reports_load_no_torch():
    code = "import sys, tigs.commands.table, tigs.commands.report; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
