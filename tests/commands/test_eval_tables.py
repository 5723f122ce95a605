"""What `tigs eval` prints: no BLEU without its number of references and sacrebleu's signature."""

from __future__ import annotations

import pytest

from tigs.commands.eval_tables import Evaluated, print_comparison, print_method
from tigs.evaluation.metrics import FORMAT_VERSION, Figure, Metrics

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:none|smooth:exp|version:2.5.1"


def metrics(method, bleu, n_references):
    names = ("nll", "forward_nll", *bleu, "seconds")
    return Metrics(
        format_version=FORMAT_VERSION,
        task="aprc",
        profile="small",
        corpus="c",
        method=method,
        set_name="random-50",
        strategy="random",
        ratio=0.5,
        n=30,
        test_set_hash="t",
        figures={name: Figure(0.5, 0.4, 0.6) for name in names},
        n_references=n_references,
        bleu_signature=SIGNATURE,
        trace=(),
        evaluator=None,
        checkpoints={},
        config={},
        search_seconds=1.0,
        devices=1,
        git_revision=None,
        sentences_hash="s",
    )


@pytest.mark.parametrize(
    ("bleu", "n_references", "title", "signatures"),
    [
        (("bleu_xy", "bleu_y"), None, "BLEU x ⊕ y", SIGNATURE),
        (("bleu_references",), 1193, "BLEU, 1,193 references", SIGNATURE.replace("nrefs:1", "nrefs:1193")),
        (
            ("bleu_y", "bleu_references"),
            1193,
            "BLEU, 1,193 references",
            f"{SIGNATURE} and {SIGNATURE.replace('nrefs:1', 'nrefs:1193')}",
        ),
    ],
)
def test_the_table_of_a_method_is_followed_by_the_signature(capfd, bleu, n_references, title, signatures):
    print_method(Evaluated("seq2seq-f", (), (metrics("seq2seq-f", bleu, n_references),)), "about")
    out = capfd.readouterr().out
    assert title in out
    assert out.splitlines()[-1] == f"sacrebleu {signatures}"


def test_without_bleu_there_is_no_signature(capfd):
    print_method(Evaluated("seq2seq-f", (), (metrics("seq2seq-f", (), None),)), "about")
    assert "sacrebleu" not in capfd.readouterr().out


def test_methods_side_by_side_have_it_too(capfd):
    methods = [
        Evaluated(name, (), (metrics(name, ("bleu_y", "bleu_references"), 1193),))
        for name in ("seq2seq-f", "seq2seq-b")
    ]
    print_comparison(methods, "about")
    out = capfd.readouterr().out
    assert "BLEU-4, 1,193 references: about" in out
    assert out.count("sacrebleu nrefs:1193|") == out.count("sacrebleu") == 1
