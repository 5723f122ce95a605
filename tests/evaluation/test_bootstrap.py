from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest

from tigs.evaluation.bleu import bleu_of_sums, bleu_statistics
from tigs.evaluation.bootstrap import (
    MIN_SENTENCES,
    N_RESAMPLES,
    estimate,
    estimate_difference,
    estimate_mean,
    resamples,
)


def draws(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape)


@pytest.mark.parametrize("n", [1, 2, 7, 300])
def test_a_resample_draws_as_many_sentences_as_there_are(n):
    counts = resamples(n)
    assert counts.shape == (N_RESAMPLES, n)
    assert (counts.sum(axis=1) == n).all()
    assert (counts == counts.round()).all()
    assert (counts >= 0).all()


def test_every_sentence_is_as_likely_as_any_other():
    means = resamples(50).mean(axis=0)
    assert means == pytest.approx(np.ones(50), abs=5 / np.sqrt(N_RESAMPLES))
    # Drawn with replacement: the share never drawn is (1 - 1/n)^n.
    assert (resamples(50) == 0).mean() == pytest.approx((1 - 1 / 50) ** 50, abs=0.02)


def test_resamples_are_the_same_on_every_machine():
    assert resamples(10)[:2].tolist() == [[2, 0, 1, 0, 0, 1, 1, 1, 4, 0], [2, 0, 1, 1, 1, 3, 0, 1, 1, 0]]


def test_figures_are_those_of_resamples_drawn_one_by_one():
    table = np.abs(draws(0, 30, 2)) + 1
    by_hand = []
    for counts in resamples(30):
        drawn = table[np.repeat(np.arange(30), counts.astype(int))]
        by_hand.append(drawn[:, 0].sum() / drawn[:, 1].sum())
    figure = estimate(table)
    assert figure.value == pytest.approx(table[:, 0].sum() / table[:, 1].sum(), abs=1e-9)
    assert (figure.low, figure.high) == pytest.approx(tuple(np.percentile(by_hand, [2.5, 97.5])), abs=1e-9)


def test_the_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = draws(1, 2000) * 3 + 5
    figure = estimate_mean(values)
    error = 1.96 * values.std() / np.sqrt(len(values))
    assert figure.value == pytest.approx(values.mean(), abs=1e-9)
    assert (figure.low, figure.high) == pytest.approx((figure.value - error, figure.value + error), abs=0.1 * error)


def test_the_truth_lies_in_about_95_of_100_intervals():
    figures = [estimate_mean(draws(seed, 100) + 7) for seed in range(400)]
    assert sum(figure.low <= 7 <= figure.high for figure in figures) / 400 == pytest.approx(0.94, abs=0.03)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=20))
def test_equal_sentences_differ_by_nothing_and_that_is_no_rarity(values):
    table = [(value, 1) for value in values]
    figure, p_value = estimate_difference(table, table)
    assert (figure.value, figure.low, figure.high, p_value) == (0, 0, 0, 1)


def test_a_method_that_is_better_everywhere_is_better():
    tokens = np.full(100, 10.0)
    worse = np.stack([draws(2, 100) + 40, tokens], axis=1)
    better = worse - [1, 0]
    figure, p_value = estimate_difference(better, worse)
    # The noise is common to both, so it cancels: this is what pairing is for.
    assert (figure.value, figure.low, figure.high) == pytest.approx((-0.1, -0.1, -0.1))
    assert p_value == 1 / (N_RESAMPLES + 1)


def test_exchanging_the_methods_changes_the_sign_alone():
    tables = [np.stack([draws(seed, 60) + 0.1 * seed, np.ones(60)], axis=1) for seed in (3, 4)]
    figure, p_value = estimate_difference(*tables)
    other, other_p_value = estimate_difference(*reversed(tables))
    assert (other.value, other.low, other.high) == pytest.approx((-figure.value, -figure.high, -figure.low))
    assert other_p_value == p_value


def test_where_there_is_no_difference_one_in_twenty_seems_significant():
    p_values = []
    for seed in range(400):
        pair = draws(seed, 2, 80)
        ones = np.ones(80)
        p_values.append(estimate_difference(*(np.stack([row, ones], axis=1) for row in pair))[1])
    assert np.mean(np.array(p_values) < 0.05) == pytest.approx(0.05, abs=0.03)
    assert np.mean(p_values) == pytest.approx(0.5, abs=0.05)


@pytest.mark.parametrize("n", [1, 2, 5, 19, 20])
def test_few_sentences_show_nothing_significant(n):
    worse = np.stack([draws(2, n) + 40, np.full(n, 10.0)], axis=1)
    figure, p_value = estimate_difference(worse - [1, 0], worse)
    assert MIN_SENTENCES == 20
    assert figure.value == pytest.approx(-0.1)
    assert (p_value == 1) == (n < 20)


@pytest.mark.parametrize("share", [0.29, 0.31, 0.33])
def test_p_values_of_bleu_are_near_those_of_sacrebleus_randomisation_test(share):
    draw = np.random.default_rng(5)
    references = [draw.choice(list("abcdefgh"), size=12).tolist() for _ in range(150)]
    first, second = (
        [[word if draw.random() > damage else "x" for word in reference] for reference in references]
        for damage in (0.3, share)
    )
    test = PairedTest(
        [(name, [" ".join(tokens) for tokens in sentences]) for name, sentences in (("1", first), ("2", second))],
        {"BLEU": BLEU(tokenize="none", force=True)},
        [[" ".join(tokens) for tokens in references]],
        n_samples=3000,
    )
    # Another two-sided test of the same question: signs are exchanged at random instead of sentences drawn again.
    expected = test()[1]["BLEU"][1].p_value
    tables = [bleu_statistics(sentences, references) for sentences in (first, second)]
    assert estimate_difference(*tables, bleu_of_sums)[1] == pytest.approx(expected, abs=0.05)


def test_sentences_that_cannot_be_paired_are_refused():
    with pytest.raises(ValueError, match="3 and 2"):
        estimate_difference([(1, 1)] * 3, [(1, 1)] * 2)
