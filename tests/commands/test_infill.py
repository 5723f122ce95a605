"""`tigs infill`: one sentence, gaps of known and unknown lengths, and one line for whatever is wrong."""

from __future__ import annotations

import json
import shutil

import pytest

from tigs.composition import compose
from tigs.data.gapped_text import Gap, expand, parse
from tigs.data.prepare import prepare
from tigs.data.special import BLANK, SPECIAL_TOKENS
from tigs.inference.required import checkpoint_path


@pytest.fixture
def words(trained):
    return lambda *more: [*trained("aprc", "forward"), "method.max_rounds=2", "method.n_candidates=5", *more]


@pytest.fixture
def sentence(words):
    """The first words of a training sentence, which the models know."""
    config = compose(words())
    target = prepare(config).split("train")[0]["target"].split(" ")
    known = [token for token in target if token in prepare(config).vocabulary.tokens and token.isalpha()]
    assert len(known) >= 4
    return known[:4]


def answers_of(ran):
    assert ran.code == 0, ran.err
    return json.loads(ran.out)["answers"]


def test_a_gap_is_filled_and_the_rest_stays(tigs, words, sentence):
    first, _, *rest = sentence
    (answer,) = answers_of(tigs("infill", f"{first} ____ {' '.join(rest)}", *words(), "--json"))
    assert answer["tokens"] == [first, *answer["fill"], *rest]
    assert len(answer["fill"]) == 1
    assert not set(answer["fill"]) & set(SPECIAL_TOKENS)
    assert answer["nll_per_token"] == pytest.approx(answer["nll"] / (len(sentence) + 1))


def test_gaps_of_unknown_length_are_ranked_by_nll_per_token_over_all_lengths(tigs, words, sentence):
    text = f"{sentence[0]} ____{{0,2}} {sentence[1]}"
    answers = answers_of(tigs("infill", text, *words("method.n_best=12"), "--json"))
    assert [answer["nll_per_token"] for answer in answers] == sorted(answer["nll_per_token"] for answer in answers)
    assert len({tuple(answer["tokens"]) for answer in answers}) == len(answers)
    # The best of each length alone must stand there, and the best of all must come first.
    alone = {}
    for length in (1, 2):
        fixed = f"{sentence[0]} ____{{{length}}} {sentence[1]}"
        (alone[length],) = answers_of(tigs("infill", fixed, *words(), "--json"))
        of_length = [answer for answer in answers if len(answer["fill"]) == length]
        assert of_length[0]["nll"] <= alone[length]["nll"] + 1e-4
    assert answers[0]["nll_per_token"] <= min(answer["nll_per_token"] for answer in alone.values()) + 1e-4


def test_people_see_the_sentence(tigs, words, sentence):
    ran = tigs("infill", f"{sentence[0]} ____ {sentence[2]}", *words())
    assert ran.code == 0
    assert sentence[0] in ran.out
    assert "____" not in ran.out
    assert BLANK not in ran.out


@pytest.mark.parametrize(
    ("text", "more", "problem"),
    [
        ("a zyzzyva ____", (), "zyzzyva"),
        ("____ " * 60, (), "60 tokens"),
        ("____{99999999999}", (), "99999999999 tokens"),
        ("____", ("--context", "so"), "no contexts"),
        ("____", ("method.n_candidates=2.5",), "n_candidates=2.5"),
        ("____", ("method=seq2seq-f", "method.n_best=6", "method.beam_width=5"), "n_best=6"),
        ("____{1,9} ____{1,9}", (), "81 combinations"),
        ("____{2,1}", (), "no length"),
        ("", (), "no sentence"),
        ("____", ("method=template",), "fills nothing"),
        ("____", ("method=seq2seq-b", "profile=cpu"), "not trained yet: forward, backward"),
        ("____", ("method.n_candidates=100000",), "n_candidates"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(tigs, words, text, more, problem):
    ran = tigs("infill", text, *words(*more))
    assert ran.code == 2
    assert problem in ran.err
    assert ran.err.count("\n") == 1
    assert not ran.out


def test_a_task_with_contexts_needs_one(tigs, trained):
    ran = tigs("infill", "____", *trained("poetry", "forward"))
    assert (ran.code, ran.out) == (2, "")
    assert "--context" in ran.err


@pytest.mark.parametrize(("task", "model"), [("poetry", "forward"), ("aprc", "backward")])
def test_a_checkpoint_in_the_wrong_place_is_refused(tigs, trained, words, tmp_path, task, model):
    foreign = compose(trained(task, model))
    place = tmp_path / "runs/aprc/small/models/forward"
    place.mkdir(parents=True)
    shutil.copy(checkpoint_path(foreign, model), place)
    ran = tigs("infill", "____", *words(f"output_dir={tmp_path / 'runs'}"))
    assert ran.code == 2
    assert f"the model {model} of the task {task}, not forward of aprc" in ran.err


def test_pieces_of_the_help_text_mean_what_it_says():
    assert parse("____{1,3}", "aprc") == (Gap(1, 3),)
    assert expand((Gap(1, 3),), max_combinations=3) == [(BLANK,), (BLANK,) * 2, (BLANK,) * 3]
