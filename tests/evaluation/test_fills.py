from __future__ import annotations

import pytest

from tigs.data.special import SPECIAL_TOKENS
from tigs.data.vocabulary import Vocabulary
from tigs.evaluation.fills import distinct, exact_match, template_failure, unk_share
from tigs.inference.predictions import Prediction

VOCABULARY = Vocabulary((*SPECIAL_TOKENS, "a", "b", "c", "d"))


def predicted(template, fill, *, reference=None, unforced=None):
    template = tuple(template.replace("_", "<blank>").split())
    return Prediction(
        id=f"{template}/{fill}",
        context=(),
        template=template,
        reference=tuple((reference or " ".join("a" for _ in template)).split()),
        fill=tuple(fill.split()),
        nll=1.0,
        forward_nll=1.0,
        trace=(),
        rounds=0,
        model_steps=0,
        seconds=0.0,
        unforced=None if unforced is None else tuple(unforced.split()),
    )


def test_unknown_words_are_counted_over_all_blanks():
    figure = unk_share([predicted("a _ _ _", "<unk> b c"), predicted("_", "<unk>"), predicted("<unk> _", "a")])
    assert figure.value == pytest.approx(2 / 5)
    assert figure.low < 2 / 5 < figure.high


def test_matches_are_counted_where_the_blanks_are():
    # Over all blanks, not as a mean of the sentences' shares; known words do not count.
    figure = exact_match(
        [predicted("a _ c _", "b c", reference="a b c d"), predicted("_ b", "d", reference="d b"), predicted("_", "b")]
    )
    assert figure.value == pytest.approx(2 / 4)


def test_distinct_shares_on_paper():
    predictions = [predicted("_ _ c _", "a b a"), predicted("_ _", "a b"), predicted("a _ _", "b a")]
    # Words a b a, a b, b a; neighbours (a b), (a b), (b a): "b c a" is no run of blanks.
    assert distinct(predictions, 1).value == pytest.approx(2 / 7)
    assert distinct(predictions, 2).value == pytest.approx(2 / 3)


def test_without_neighbouring_blanks_there_are_no_pairs_of_words():
    assert distinct([predicted("_ b _", "a c")], 2) is None


@pytest.mark.parametrize("order", [1, 2])
def test_a_distinct_share_lies_inside_its_interval(order):
    # Every word stands once: a resample repeats some, and an interval of resamples alone would lie below the figure.
    predictions = [predicted("_ _", f"w{number} v{number % 7}") for number in range(100)]
    figure = distinct(predictions, order)
    assert 0 <= figure.low < figure.value < figure.high <= 1 or figure.value == figure.high == 1
    assert figure.high - figure.low < 0.2


def test_a_resample_without_pairs_is_left_out():
    # Only two of four sentences have a pair, so one resample in sixteen has none.
    figure = distinct([predicted("_ _", "a b"), predicted("_ _", "a b"), predicted("_", "a"), predicted("_", "b")], 2)
    assert figure.value == 0.5
    assert figure.low < 0.5 < figure.high


@pytest.mark.parametrize(
    ("unforced", "fails"),
    [
        ("a b c d", False),
        ("a d c d", False),  # the blank is free
        ("a b d d", True),  # a known word changed
        ("a b c", True),  # too short
        ("a b c d d", True),  # too long
        ("", True),
    ],
)
def test_a_template_is_reproduced_or_not(unforced, fails):
    figure = template_failure([predicted("a _ c d", "b", unforced=unforced)], VOCABULARY)
    assert figure.value == float(fails)


def test_a_word_that_the_model_cannot_know_is_reproduced_as_unknown():
    figure = template_failure([predicted("rare _ a", "b", unforced="<unk> c a")], VOCABULARY)
    assert figure.value == 0.0
    figure = template_failure([predicted("a _ a", "b", unforced="<unk> c a")], VOCABULARY)
    assert figure.value == 1.0


def test_failures_are_a_share_of_sentences():
    predictions = [predicted("a _", "b", unforced=text) for text in ("a b", "b b", "a d", "a")]
    assert template_failure(predictions, VOCABULARY).value == pytest.approx(0.5)


def test_a_method_without_unforced_output_cannot_fail():
    assert template_failure([predicted("a _", "b")], VOCABULARY) is None
