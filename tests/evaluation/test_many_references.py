"""Merged counts give the numbers that sacrebleu finds when it is handed every reference for every hypothesis."""

from __future__ import annotations

import random

import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tigs.evaluation.bleu import bleu_of_sums, sentence_bleu
from tigs.evaluation.many_references import ManyReferences

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "."]), min_size=1, max_size=12)
MANY = st.lists(SENTENCES, min_size=1, max_size=8)


def joined(sentences):
    return [" ".join(tokens) for tokens in sentences]


@given(MANY, MANY)
def test_it_is_sacrebleus_own(hypotheses, references):
    for_each = [[text] * len(hypotheses) for text in joined(references)]
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    expected = metric.corpus_score(joined(hypotheses), for_each)
    sums = ManyReferences(references).statistics(hypotheses).sum(axis=0)
    assert sums.tolist() == [expected.sys_len, expected.ref_len, *expected.counts, *expected.totals]
    assert bleu_of_sums(sums) * 100 == pytest.approx(expected.score)


def test_it_is_sacrebleus_own_with_a_thousand_references_of_natural_lengths():
    draw = random.Random(0)
    words = [f"w{int(draw.paretovariate(0.5)) % 500}" for _ in range(5000)]
    sentences = [draw.sample(words, draw.randint(1, 30)) for _ in range(1020)]
    references, hypotheses = sentences[:1000], sentences[1000:]
    metric = sacrebleu.BLEU(tokenize="none", force=True, effective_order=True)
    expected = [metric.sentence_score(text, joined(references)).score for text in joined(hypotheses)]
    assert len(set(expected)) > 10
    assert sentence_bleu(ManyReferences(references).statistics(hypotheses)) * 100 == pytest.approx(expected)


def test_of_two_lengths_equally_close_the_shorter_counts():
    references = ManyReferences([["a"] * 4, ["a"] * 6, ["a"] * 9])
    lengths = [references.statistics([["a"] * length])[0, 1] for length in (1, 4, 5, 6, 7, 8, 20)]
    assert lengths == [4, 4, 4, 6, 6, 9, 9]


def test_the_number_of_references_is_known():
    assert ManyReferences([["a"], ["a"], ["b"]]).n_references == 3
