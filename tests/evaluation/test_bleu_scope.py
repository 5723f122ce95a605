"""`bleu_xy` is the paper's BLEU: over context and answer together. These tests fail if its scope is changed by accident."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tigs.composition import compose
from tigs.data.special import BLANK
from tigs.evaluation.evaluate import evaluate

ROOT = os.environ.get("TIGS_DATA_DIR")

# Bare templates of poems: the paper's Table 1, and what the published corpus gave here, over `x ⊕ y`.
TEMPLATE_BLEU = {
    "random-25": (0.727, 0.736),
    "middle-25": (0.815, 0.809),
    "random-50": (0.581, 0.589),
    "middle-50": (0.687, 0.676),
    "random-75": (0.508, 0.513),
    "middle-75": (0.559, 0.554),
}


def test_both_scopes_on_paper(experiment, predicted):
    config = experiment("poetry")
    # Eight words of context, and eight of which the last is blank.
    sentence = {
        "context": tuple("abcdefgh"),
        "reference": tuple("ijklmnop"),
        "template": (*"ijklmno", BLANK),
        "fill": (BLANK,),
    }
    figures = evaluate(config, predicted(config, "template", limit=1, change=lambda prediction: sentence)).figures
    # Every order loses the one n-gram that ends at the blank.
    assert figures["bleu_xy"].value == pytest.approx((15 / 16 * 14 / 15 * 13 / 14 * 12 / 13) ** 0.25)
    assert figures["bleu_y"].value == pytest.approx((7 / 8 * 6 / 7 * 5 / 6 * 4 / 5) ** 0.25)


@pytest.mark.skipif(not ROOT, reason="TIGS_DATA_DIR is not set: no published corpora to read")
def test_bare_templates_of_real_poems_score_as_in_the_paper(predicted, tmp_path, tmp_path_factory):
    # The same folder as in tests/data/test_real_corpora.py, so that the corpus is prepared once.
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    words = ["task=poetry", f"data.dir={Path(ROOT) / 'poetry'}", f"data.cache_dir={folder / 'real'}"]
    config = compose([*words, "test_sets.size=5000", f"output_dir={tmp_path}"])
    measured = {name: evaluate(config, predicted(config, "template", name=name)) for name in TEMPLATE_BLEU}
    assert {metrics.n for metrics in measured.values()} == {5000}
    figures = {name: metrics.figures["bleu_xy"].value for name, metrics in measured.items()}
    assert figures == pytest.approx({name: paper for name, (paper, _) in TEMPLATE_BLEU.items()}, abs=0.02)
    assert figures == pytest.approx({name: ours for name, (_, ours) in TEMPLATE_BLEU.items()}, abs=0.003)
    # The answer alone cannot reach the paper's figures.
    assert measured["random-75"].figures["bleu_y"].value < 0.1
