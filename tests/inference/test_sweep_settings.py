"""A sweep tries exactly the settings it is asked for, each once."""

from __future__ import annotations

import pytest

from tigs.composition import compose
from tigs.errors import ConfigError
from tigs.inference import sweep_settings as settings_module
from tigs.inference.sweep_settings import sweep_settings


def tried(words, *, one_at_a_time=False, keys=("name", "step_size", "n_candidates")):
    made = sweep_settings(words, one_at_a_time=one_at_a_time)
    return [tuple(getattr(setting.config.method, key) for key in keys) for setting in made]


def test_a_grid_has_every_combination_once_in_the_order_of_the_words():
    assert tried(["method=seq2seq-f,tigs", "method.step_size=3,10", "method.n_candidates=7,0.5"]) == [
        (name, step, number) for name in ("seq2seq-f", "tigs") for step in (3, 10) for number in (7, 0.5)
    ]


def test_each_value_alone_beside_the_base():
    base = compose(["method=tigs"]).method
    made = ["method.step_size=3.5,35", "method=tigs", "method.n_candidates=7,9", "method.beam_width=2"]
    assert tried(made, one_at_a_time=True, keys=("step_size", "n_candidates", "beam_width")) == [
        (base.step_size, base.n_candidates, 2),
        (3.5, base.n_candidates, 2),
        (35, base.n_candidates, 2),
        (base.step_size, 7, 2),
        (base.step_size, 9, 2),
    ]


def test_every_method_has_a_base_of_its_own_which_is_tried_once():
    patience = {name: compose([f"method={name}"]).method.patience for name in ("tigs", "seq2seq-f")}
    assert patience == {"tigs": 2, "seq2seq-f": 1}
    words = ["method=tigs,seq2seq-f", "method.patience=1,2", "method.momentum=0.123,0.456"]
    expected = []
    for name, own in patience.items():
        momentum = compose([f"method={name}"]).method.momentum
        expected += [(name, own, momentum), (name, 3 - own, momentum), (name, own, 0.123), (name, own, 0.456)]
    assert tried(words, one_at_a_time=True, keys=("name", "patience", "momentum")) == expected


def test_equal_settings_are_tried_once():
    assert tried(["method.step_size=3,3.0,10,3e0"], keys=("step_size",)) == [(3,), (10,)]


def test_the_last_word_about_a_key_counts():
    assert tried(["method.step_size=3,10", "method.step_size=5"], keys=("step_size",)) == [(5,)]
    assert tried(["method.step_size=5", "method.step_size=3,10"], keys=("step_size",)) == [(3,), (10,)]


def test_a_comma_elsewhere_is_no_list():
    (setting,) = sweep_settings(["output_dir=a,b", "test_sets.ratios=[0.25,0.5]", "seed=4"], one_at_a_time=False)
    assert setting.config == compose(["output_dir=a,b", "test_sets.ratios=[0.25,0.5]", "seed=4"])


def test_a_row_shows_what_is_varied_and_its_words_make_it():
    words = ["method=tigs,seq2seq-f", "method.step_size=3,10", "method.start=greedy", "method.allow_unk=true,false"]
    labels = {}
    for one_at_a_time in (False, True):
        made = sweep_settings(words, one_at_a_time=one_at_a_time)
        for setting in made:
            assert compose(["method.start=greedy", *setting.words.split()]) == setting.config
        labels[one_at_a_time] = [setting.label for setting in made]
    assert labels[False][0] == "method=tigs step_size=3 allow_unk=true"
    step_size = compose(["method=tigs"]).method.step_size
    assert labels[True][0] == f"base: method=tigs step_size={step_size:g} allow_unk=false"
    assert labels[True][1] == "method=tigs step_size=3"
    (alone,) = sweep_settings(["method=seq2seq-b"], one_at_a_time=False)
    assert alone.label == "method=seq2seq-b"


def test_the_number_of_settings_is_bounded(monkeypatch):
    monkeypatch.setattr(settings_module, "MAX_SETTINGS", 4)
    four, five = ["method.step_size=1,2", "method.patience=1,2"], ["method.step_size=1,2,3,4,5"]
    assert len(tried(four)) == 4
    with pytest.raises(ConfigError, match="make 5 settings, a sweep has at most 4"):
        tried(five)
    with pytest.raises(ConfigError, match="make 5 settings"):
        tried(four, one_at_a_time=True)
    with pytest.raises(ConfigError, match="make 9 settings"):
        tried([*four, "method=tigs,seq2seq-f,seq2seq-b"][1:], one_at_a_time=True)


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("seed=1,2", "seed"),
        ("test_sets.ratios=0.25,0.5", r"test_sets\.ratios"),
        ("task=poetry,dialog", "there is no task 'poetry,dialog'"),
        ("method.step_siz=1,2", r"Did you mean 'method\.step_size'"),
        ("method.step_size=1,a", r"method\.step_size: Value 'a'"),
        ("method.step_size=1,-1", r"method\.step_size=-1.* is not allowed"),
        ("method.step_size=1,,2", "a value is missing"),
        ("method.step_size=1,", "a value is missing"),
        ("method=tigs,tiggs", "there is no method 'tiggs'"),
        ("method.name=tigs,seq2seq-f", "Write method=tigs"),
    ],
)
def test_a_word_that_cannot_be_is_named(word, problem):
    with pytest.raises(ConfigError, match=problem):
        sweep_settings([word], one_at_a_time=False)


def test_what_is_printed_can_be_written_again():
    words = ["method=tigs-plus", "method.refills=2", "method.n_candidates=8,16"]
    for setting in sweep_settings(words, one_at_a_time=False):
        assert compose(setting.words.split()).method == setting.config.method
    shipped = compose(["method=tigs-plus"]).method.n_candidates
    assert sweep_settings(words, one_at_a_time=True)[0].label == f"base: n_candidates={shipped:g}"


@pytest.mark.parametrize("one_at_a_time", [True, False])
def test_a_mistyped_key_is_named(one_at_a_time):
    with pytest.raises(ConfigError, match="stepsize"):
        sweep_settings(["method.stepsize=1,2"], one_at_a_time=one_at_a_time)
