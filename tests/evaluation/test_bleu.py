from __future__ import annotations

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from tigs.evaluation.bleu import N_STATISTICS, bleu_of_sums, bleu_statistics, corpus_bleu, sentence_bleu

SENTENCES = st.lists(st.sampled_from(["a", "b", "c", "d", "don't", ".", "..."]), min_size=1, max_size=12)
PAIRS = st.lists(st.tuples(SENTENCES, SENTENCES), min_size=1, max_size=5)


def sacrebleus(pairs):
    hypotheses, references = ([" ".join(tokens) for tokens in side] for side in zip(*pairs, strict=True))
    return sacrebleu.corpus_bleu(hypotheses, [references], tokenize="none", force=True).score / 100


def test_it_is_the_figure_that_one_gets_on_paper():
    # Precisions 5/6, 3/5, 2/4 and 1/3, no brevity penalty.
    score = corpus_bleu([list("abcdxf")], [list("abcdef")])
    assert score.value == pytest.approx((5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)


@given(PAIRS)
def test_it_is_sacrebleus_on_the_joined_tokens(pairs):
    assert corpus_bleu(*zip(*pairs, strict=True)).value == pytest.approx(sacrebleus(pairs))


@given(PAIRS)
def test_each_sentences_numbers_are_sacrebleus(pairs):
    statistics = bleu_statistics(*zip(*pairs, strict=True))
    for row, (hypothesis, reference) in zip(statistics.tolist(), pairs, strict=True):
        score = sacrebleu.corpus_bleu([" ".join(hypothesis)], [[" ".join(reference)]], tokenize="none", force=True)
        assert row == [score.sys_len, score.ref_len, *score.counts, *score.totals]


@given(PAIRS, st.lists(st.integers(0, 3), min_size=5, max_size=5))
def test_sums_over_a_resample_give_its_bleu(pairs, counts):
    counts = counts[: len(pairs)]
    if not any(counts):
        counts[0] = 1
    drawn = [pair for pair, count in zip(pairs, counts, strict=True) for _ in range(count)]
    sums = np.array(counts, dtype=float) @ bleu_statistics(*zip(*pairs, strict=True))
    assert bleu_of_sums(sums) == pytest.approx(sacrebleus(drawn))


def test_many_corpora_are_scored_at_once():
    sums = np.arange(2 * 3 * N_STATISTICS).reshape(2, 3, N_STATISTICS) + 1
    scores = bleu_of_sums(sums)
    assert scores.shape == (2, 3)
    assert scores[1, 2] == bleu_of_sums(sums[1, 2])


@given(PAIRS)
def test_sentences_are_scored_as_sacrebleu_advises(pairs):
    metric = sacrebleu.BLEU(tokenize="none", force=True, effective_order=True)
    expected = [
        metric.sentence_score(" ".join(hypothesis), [" ".join(reference)]).score for hypothesis, reference in pairs
    ]
    assert sentence_bleu(bleu_statistics(*zip(*pairs, strict=True))) * 100 == pytest.approx(expected)


def test_a_short_sentence_can_be_perfect():
    statistics = bleu_statistics([["ok", "."]], [["ok", "."]])
    assert sentence_bleu(statistics) == pytest.approx([1.0])
    assert bleu_of_sums(statistics[0]) == 0.0


def test_white_space_inside_a_token_separates_as_in_sacrebleu():
    pairs = [(["a\u2028b", "c", "d", "e"], ["a", "b", "c", "d", "e"])]
    assert corpus_bleu(*zip(*pairs, strict=True)).value == pytest.approx(sacrebleus(pairs)) == pytest.approx(1.0)


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


def test_the_signature_is_that_of_the_same_figure_made_by_sacrebleu():
    metric = sacrebleu.BLEU(tokenize="none", force=True)
    metric.corpus_score(["a b c d e"], [["a b c d"]])
    assert corpus_bleu([["a"]], [["a"]]).signature == str(metric.get_signature())


def test_no_warning_is_given_about_tokenised_text(caplog):
    sentences = [f"word{number} and more words .".split() for number in range(150)]
    corpus_bleu(sentences, sentences)
    assert not caplog.records
