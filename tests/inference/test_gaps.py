"""The gap to the global optimum, against trying every word."""

from __future__ import annotations

import pytest
import torch

from tigs.config import MethodConfig
from tigs.data.batch import Padded
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS
from tigs.inference.benchmark import Runner, Variant
from tigs.inference.gaps import N_BLANKS, measure_gaps
from tigs.inference.growth import Sentence, make_templates
from tigs.inference.interfaces import FillResult
from tigs.inference.score import sentence_nll


class Says:
    """Fills in the same word everywhere."""

    def __init__(self, word):
        self.word = word

    def fill(self, templates):
        return [FillResult((self.word,) * int(n), None) for n in templates.blanks.sum(dim=1)]


def runner(name, word):
    return Runner(Variant(name, "tigs"), MethodConfig(), Says(word))


def every_word(network, templates):
    """(sentences, words) NLL with each word in the one blank."""
    words = torch.arange(len(SPECIAL_TOKENS), len(network.word_vectors))
    columns = []
    for word in words:
        ids = torch.where(templates.target.ids == BLANK_ID, word, templates.target.ids)
        columns.append(sentence_nll(network, templates.context, Padded(ids, templates.target.lengths)))
    return words, torch.stack(columns, dim=1)


def test_one_blank_as_brute_force(worlds):
    world = worlds("poetry")
    network = world.networks["forward"]
    sentences = [Sentence(context, words[:6]) for context, words in world.pairs[:4]]
    words, nll = every_word(network, make_templates(sentences, n_blanks=1))
    best = nll.min(dim=1).values
    word = int(words[nll[0].argmin()])
    own = [runner("beam-5", word), runner("other", word)]
    (gap,) = measure_gaps(own, network, sentences, n_blanks=1, max_steps=10_000)
    above = nll[:, words.tolist().index(word)] - best  # (sentences)
    assert (gap.variant, gap.n_blanks, gap.n, gap.n_proven) == ("beam-5", 1, 4, 4)
    assert gap.nll_above == pytest.approx(above.mean().item(), abs=1e-4)
    assert gap.at_optimum == (above < 2e-4).float().mean().item() >= 0.25
    assert gap.n_beaten == int((above >= 2e-4).sum())


def test_what_is_not_proven_does_not_count(worlds):
    world = worlds("poetry")
    sentences = [Sentence(context, words[:6]) for context, words in world.pairs[:2]]
    own = [runner("beam-5", 9)]
    for n_blanks in N_BLANKS:
        (gap,) = measure_gaps(own, world.networks["forward"], sentences, n_blanks=n_blanks, max_steps=1)
        assert (gap.n_blanks, gap.n_proven, gap.at_optimum, gap.nll_above) == (n_blanks, 0, None, None)


def test_another_search_shows_that_a_fill_is_not_the_best_where_nothing_is_proven(worlds):
    world = worlds("poetry")
    network = world.networks["forward"]
    sentences = [Sentence(context, words[:6]) for context, words in world.pairs[:1]]
    words, nll = every_word(network, make_templates(sentences, n_blanks=1))
    runners = [runner("beam-5", int(words[nll[0].argmax()])), runner("beam-40", int(words[nll[0].argmin()]))]
    gaps = measure_gaps(runners, network, sentences, n_blanks=1, max_steps=1)
    assert [one.n_proven for one in gaps] == [0, 0]
    assert {one.variant: one.n_beaten for one in gaps} == {"beam-5": 1, "beam-40": 0}
