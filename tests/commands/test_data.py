"""`tigs data`: what it prints is what stands in the prepared folder."""

from __future__ import annotations

import json

import pytest
import sacrebleu

from tigs.composition import compose
from tigs.config import TASKS
from tigs.console import print_table, print_text
from tigs.data.prepare import prepare


@pytest.fixture(params=TASKS)
def words(request, small_words):
    return small_words(request.param)


def test_json_holds_the_summary_the_folder_and_three_examples(tigs, words):
    document = json.loads(tigs("data", *words, "--json").out)
    prepared = prepare(compose(words))
    examples = document.pop("examples")
    assert document == {**prepared.summary, "folder": str(prepared.folder)}
    assert len(examples) == 3
    sets = {test_set.name: test_set for test_set in prepared.test_sets()}
    for example in examples:
        shown = {
            (" ".join(item.template.context), " ".join(item.template.tokens), " ".join(item.reference))
            for item in sets[example["set"]].items
        }
        assert (example["context"], example["template"], example["reference"]) in shown


def test_a_person_reads_the_same_figures(tigs, words):
    document = json.loads(tigs("data", *words, "--json").out)
    ran = tigs("data", *words)
    assert (ran.code, ran.err) == (0, "")
    lines = [line.split() for line in ran.out.splitlines()]
    assert ran.out.startswith(f"{document['task']}: {document['corpus']}\n")
    for split, n_pairs in document["pairs"].items():
        assert [split, f"{n_pairs:,}", f"{document['unk_rate'][split]:.2%}"] in lines
    assert f"vocabulary: {document['vocabulary_size']:,} tokens" in ran.out
    assert f"folder: {document['folder']}\n" in ran.out
    for example in document["examples"]:
        # Never wrapped, however long: a pipe takes a line as it is.
        assert f"  template   {example['template']}\n" in ran.out
        assert f"  reference  {example['reference']}\n" in ran.out
        assert ("  context " in ran.out) == bool(example["context"])


def test_everything_dropped_is_listed_with_its_reason(tigs, small_words):
    words = small_words("dialog", "data.max_target_length=8", "data.min_target_length=5", "data.max_context_length=9")
    dropped = json.loads(tigs("data", *words, "--json").out)["dropped"]
    assert len(dropped) == 3
    out = tigs("data", *words).out
    assert all(
        [*reason.split(), f"{count:,}"] in [line.split() for line in out.splitlines()]
        for reason, count in dropped.items()
    )


def test_a_sample_says_so(tigs, tmp_path):
    ran = tigs("data", "task=poetry", "data.sample_pairs=300", f"data.cache_dir={tmp_path}")
    assert "built-in sample corpus" in ran.out.splitlines()[0]


def test_template_bleu_is_sacrebleus_over_context_and_answer(tigs, words):
    document = json.loads(tigs("data", *words, "--json", "--template-bleu").out)
    scores, signature = document["template_bleu"], document["bleu_signature"]
    assert "tok:none" in signature.split("|")
    assert list(scores) == list(document["test_sets"])
    for test_set in prepare(compose(words)).test_sets():
        context = [" ".join(item.template.context) + " " for item in test_set.items]
        templates = [x + " ".join(item.template.tokens) for x, item in zip(context, test_set.items, strict=True)]
        references = [x + " ".join(item.reference) for x, item in zip(context, test_set.items, strict=True)]
        expected = sacrebleu.corpus_bleu(templates, [references], tokenize="none", force=True).score / 100
        assert scores[test_set.name] == pytest.approx(expected)
    out = tigs("data", *words, "--template-bleu").out
    assert [f"{score:.3f}" for score in scores.values()] in [line.split() for line in out.splitlines()]
    assert signature in out


def test_template_bleu_falls_with_the_share_of_blanks(tigs, small_words):
    scores = json.loads(tigs("data", *small_words("poetry"), "--json", "--template-bleu").out)["template_bleu"]
    for strategy in ("random", "middle"):
        assert 1 > scores[f"{strategy}-25"] > scores[f"{strategy}-50"] > scores[f"{strategy}-75"] > 0


def test_text_is_printed_as_it_is(capfd):
    odd = "[red] :dog: " + "word " * 100
    print_text(odd)
    print_table(odd, ("name", "figure"), [("runs/[a]/b", ":cat:")])
    lines = [line.rstrip() for line in capfd.readouterr().out.splitlines()]
    assert lines[:2] == [odd.rstrip(), odd.rstrip()]
    assert ["runs/[a]/b", ":cat:"] in [line.split() for line in lines]
