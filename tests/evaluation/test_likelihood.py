"""The evaluator's scores against plain cross entropy."""

from __future__ import annotations

import hashlib
import math

import pytest
import torch
from torch.nn import functional

from tigs.data.batch import Padded
from tigs.data.prepare import prepare
from tigs.data.special import END_ID, START_ID
from tigs.errors import CheckpointError, EvaluationError
from tigs.evaluation.likelihood import Evaluator
from tigs.inference.required import checkpoint_path
from tigs.training.checkpoint import load_model, read_description


@pytest.fixture(params=["dialog", "aprc"])
def config(experiment, request):
    return experiment(request.param)


@pytest.fixture
def evaluator(config):
    return Evaluator.load(checkpoint_path(config, "evaluator"))


@pytest.fixture
def pairs(config):
    split = prepare(config).split("test")
    texts = zip(split["context"][:20], split["target"][:20], strict=True)
    # The last word of one stands in no vocabulary.
    found = [tuple(tuple(text.split()) for text in pair) for pair in texts]
    return [*found, (found[0][0], (*found[0][1], "nowhere-to-be-found"))]


def by_cross_entropy(path, context, sentence):
    """One sentence at a time, the whole softmax at once, no batch and no padding."""
    model = load_model(path)
    network = model.network.double()
    words = torch.tensor([model.vocabulary.encode(sentence)])
    sources = torch.tensor([model.vocabulary.encode(context)], dtype=torch.long)
    with torch.no_grad():
        state = network.start(Padded(sources, torch.tensor([len(context)])))
        inputs = torch.cat([torch.tensor([[START_ID]]), words], dim=1)
        outputs, _ = network.run(state, inputs)
        targets = torch.cat([words, torch.tensor([[END_ID]])], dim=1)
        logits = outputs[0] @ network.projection.weight.t() + network.projection.bias
        return functional.cross_entropy(logits, targets[0], reduction="none").tolist()


def test_scores_are_plain_cross_entropy(config, evaluator, pairs):
    contexts, sentences = zip(*pairs, strict=True)
    assert len({len(sentence) for sentence in sentences}) > 3
    path = checkpoint_path(config, "evaluator")
    scores = evaluator.score(contexts, sentences)
    for score, context, sentence in zip(scores, contexts, sentences, strict=True):
        assert len(score) == len(sentence) + 1
        assert score == pytest.approx(by_cross_entropy(path, context, sentence), abs=1e-6)


def test_a_score_does_not_depend_on_the_company_to_the_last_digit(evaluator, pairs):
    contexts, sentences = zip(*pairs, strict=True)
    together = evaluator.score(contexts, sentences)
    assert [evaluator.score([context], [sentence])[0] for context, sentence in pairs] == together
    assert evaluator.score(contexts[::-1], sentences[::-1]) == together[::-1]


def test_many_batches_are_put_back_in_order(evaluator, pairs):
    contexts, sentences = (list(column) * 30 for column in zip(*pairs, strict=True))
    assert evaluator.score(contexts, sentences) == evaluator.score(*map(list, zip(*pairs, strict=True))) * 30


def test_it_says_what_it_is(config, evaluator):
    path = checkpoint_path(config, "evaluator")
    assert evaluator.about == {
        "path": str(path),
        "hash": hashlib.sha256(path.read_bytes()).hexdigest(),
        "validation_nll": read_description(path).validation_nll,
    }
    assert (evaluator.task, evaluator.corpus) == (config.task.name, prepare(config).summary["corpus"])


def test_an_evaluator_that_answers_no_number_is_refused(evaluator, pairs):
    with torch.no_grad():
        evaluator.network.projection.bias[7] = math.nan
    with pytest.raises(EvaluationError, match="no number"):
        evaluator.score(*map(list, zip(*pairs, strict=True)))


def test_a_missing_evaluator_is_named(tmp_path):
    with pytest.raises(CheckpointError, match="no such checkpoint"):
        Evaluator.load(tmp_path / "best.ckpt")
