from __future__ import annotations

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tigs.evaluation.bleu import corpus_bleu

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "don't", ".", "..."]), min_size=1, max_size=12)


def test_it_is_the_figure_that_one_gets_on_paper():
    # Precisions 5/6, 3/5, 2/4 and 1/3, no brevity penalty.
    score = corpus_bleu([list("abcdxf")], [list("abcdef")])
    assert score.value == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)


@given(st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=5))
def test_it_is_sacrebleus_on_the_joined_tokens(pairs):
    hypotheses, references = zip(*pairs, strict=True)
    expected = sacrebleu.corpus_bleu(
        [" ".join(tokens) for tokens in hypotheses],
        [[" ".join(tokens) for tokens in references]],
        tokenize="none",
        force=True,
    )
    assert corpus_bleu(hypotheses, references).value == pytest.approx(expected.score / 100)


def test_identical_sentences_score_one():
    sentences = [["i", "don't", "know", "."], list("春江花月夜。")]
    assert corpus_bleu(sentences, sentences).value == pytest.approx(1.0)


def test_tokens_are_not_split_again():
    # sacrebleu's own tokeniser would cut "p.m." and find matching dots.
    hypothesis, reference = (
        ["at", time, half, "we", "left", "."] for time, half in (("2:30", "p.m."), ("2:31", "a.m."))
    )
    joined = [" ".join(hypothesis)], [[" ".join(reference)]]
    assert corpus_bleu([hypothesis], [reference]).value != pytest.approx(sacrebleu.corpus_bleu(*joined).score / 100)


def test_the_signature_says_how_it_was_computed():
    signature = corpus_bleu([["a"]], [["a"]]).signature
    assert {"nrefs:1", "case:mixed", "tok:none", f"version:{sacrebleu.__version__}"} <= set(signature.split("|"))


def test_no_warning_is_given_about_tokenised_text(caplog):
    sentences = [f"word{number} and more words .".split() for number in range(150)]
    corpus_bleu(sentences, sentences)
    assert not caplog.records
