"""`tigs data`: prepare a task's corpus and print what was kept, what was dropped and why."""

from __future__ import annotations

import argparse
from typing import Any

from tigs.config import Config
from tigs.console import print_json, print_table, print_text
from tigs.data.prepare import PreparedData, prepare
from tigs.evaluation.bleu import corpus_bleu

N_EXAMPLES = 3


def run(config: Config, options: argparse.Namespace) -> None:
    """Prepare the data and print its figures."""
    prepared = prepare(config)
    document = {**prepared.summary, "folder": str(prepared.folder), "examples": _examples(prepared)}
    if options.template_bleu:
        document |= _template_bleu(prepared)
    if options.json:
        print_json(document)
    else:
        _print(document)


def _examples(prepared: PreparedData) -> list[dict[str, str]]:
    """One template each of the first test sets."""
    examples = []
    for number, test_set in enumerate(prepared.test_sets()[:N_EXAMPLES]):
        item = test_set.items[number % len(test_set.items)]
        examples.append(
            {
                "set": test_set.name,
                "context": " ".join(item.template.context),
                "template": " ".join(item.template.tokens),
                "reference": " ".join(item.reference),
            }
        )
    return examples


def _template_bleu(prepared: PreparedData) -> dict[str, Any]:
    """BLEU over `x ⊕ y` of sentences whose blanks are left blank: the paper's Template row."""
    scores: dict[str, float] = {}
    signature = ""
    for test_set in prepared.test_sets():
        templates = [item.template.context + item.template.tokens for item in test_set.items]
        references = [item.template.context + item.reference for item in test_set.items]
        scores[test_set.name], signature = corpus_bleu(templates, references)
    return {"template_bleu": scores, "bleu_signature": signature}


def _print(document: dict[str, Any]) -> None:
    title = f"{document['task']}: {document['corpus']}"
    pairs, unk = document["pairs"], document["unk_rate"]
    print_table(
        title, ("split", "pairs", "<unk> rate"), [(name, f"{pairs[name]:,}", f"{unk[name]:.2%}") for name in pairs]
    )
    dropped = [(reason, f"{count:,}") for reason, count in document["dropped"].items()]
    print_table("dropped", ("reason", "number"), dropped or [("nothing", "0")])
    print_text(f"vocabulary: {document['vocabulary_size']:,} tokens, special tokens included")
    sizes = ", ".join(f"{name} ({test_set['n']:,})" for name, test_set in document["test_sets"].items())
    print_text(f"test sets: {sizes}")
    print_text(f"folder: {document['folder']}\n")
    for example in document["examples"]:
        print_text(f"{example['set']}")
        if example["context"]:
            print_text(f"  context    {example['context']}")
        print_text(f"  template   {example['template']}")
        print_text(f"  reference  {example['reference']}")
    if "template_bleu" in document:
        scores = document["template_bleu"]
        print_table(
            "BLEU of the bare template over x ⊕ y", list(scores), [[f"{score:.3f}" for score in scores.values()]]
        )
        print_text(f"sacrebleu {document['bleu_signature']}")
