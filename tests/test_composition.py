"""Settings: what is shipped loads, what is merged is what plain dictionaries would give, what is wrong is named."""

from __future__ import annotations

import itertools
import json
import shutil

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from tigs.composition import GROUPS, available, compose, experiments_folder, from_plain, own_words, save, to_plain
from tigs.config import METHODS, MODELS, PROPOSALS, TASKS
from tigs.errors import ConfigError

PROFILES = available("profile")


@pytest.fixture
def experiments(tmp_path, monkeypatch):
    """A copy of experiments/ that a test may spoil."""
    folder = tmp_path / "experiments"
    shutil.copytree(experiments_folder(), folder)
    monkeypatch.setattr("tigs.composition.experiments_folder", lambda: folder)
    return folder


def merged_by_hand(*layers):
    merged = {}
    for layer in layers:
        for key, value in (layer or {}).items():
            merged[key] = merged_by_hand(merged.get(key, {}), value) if isinstance(value, dict) else value
    return merged


def refusal(*words):
    with pytest.raises(ConfigError) as caught:
        compose(words)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# What is shipped


def test_every_task_and_model_has_a_file_and_no_file_is_left_over():
    assert set(available("task")) == set(TASKS)
    assert set(available("model")) == set(MODELS)
    assert set(available("method")) == set(METHODS)
    assert {"small", "cpu", "paper"} <= set(PROFILES)


@pytest.mark.parametrize(("group", "name"), [(group, name) for group in GROUPS for name in available(group)])
def test_every_shipped_file_loads_alone(group, name):
    config = compose([f"{group}={name}"])
    assert (config.profile if group == "profile" else getattr(config, group).name) == name


# The methods in turn, beside all combinations of the rest.
COMBINATIONS = [
    (*rest, method)
    for rest, method in zip(itertools.product(TASKS, PROFILES, MODELS), itertools.cycle(METHODS), strict=False)
]


@pytest.mark.parametrize(("task", "profile", "model", "method"), COMBINATIONS)
def test_a_composed_config_is_its_files_merged_in_the_documented_order(task, profile, model, method):
    def read(group, name):
        return yaml.safe_load((experiments_folder() / group / f"{name}.yaml").read_text(encoding="utf-8"))

    chosen = {"task": task, "model": model, "method": method, "profile": profile}
    layers = [read(group, name) for group, name in chosen.items()]
    parts = [layers[-1].pop(f"by_{group}", {}).get(chosen[group]) for group in ("task", "model", "method")]
    composed = to_plain(compose([f"{group}={name}" for group, name in chosen.items()]))
    # Whatever no file sets has to keep its default.
    assert composed == merged_by_hand(to_plain(from_plain({}, "")), *layers, *parts, {"profile": profile})


def test_the_paper_profile_has_the_sizes_of_the_original_code():
    sizes = {task: compose([f"task={task}", "profile=paper"]).model for task in TASKS}
    assert {task: (size.hidden, size.layers) for task, size in sizes.items()} == {
        "poetry": (512, 2),
        "dialog": (512, 1),
        "aprc": (1024, 1),
    }
    trainer = compose(["profile=paper"]).trainer
    assert (trainer.learning_rate, trainer.batch_size, trainer.max_epochs, trainer.gradient_clip) == (1e-3, 256, 30, 5)


@pytest.mark.parametrize("task", TASKS)
def test_a_models_part_of_a_profile_counts_more_than_its_tasks_part(task):
    config = compose([f"task={task}", "model=mask-selfattn", "profile=paper"])
    assert (config.model.hidden, config.model.layers, config.trainer.warmup_steps) == (512, 6, 4000)


def test_the_evaluator_is_trained_with_a_seed_of_its_own():
    assert compose(["model=evaluator"]).model.seed_offset != compose(["model=forward"]).model.seed_offset


# Words of the command line


def test_a_word_counts_more_than_any_file_and_the_last_word_most():
    config = compose(["model.hidden=64", "profile=paper", "task=aprc", "model.hidden=96"])
    assert config.model.hidden == 96


@pytest.mark.parametrize("profile", PROFILES)
def test_a_folder_is_read_without_naming_the_source(profile):
    assert compose([f"profile={profile}", "data.dir=/corpus"]).data.source == "folder"


@pytest.mark.parametrize("path", ["/my corpora/#1 #2", "010", "[draft", "a: b", "yes", "1e3", "C:\\data", "-", "k=v"])
def test_a_path_is_taken_as_it_stands(path):
    config = compose([f"data.dir={path}"])
    assert config.data.dir == path
    assert from_plain(yaml.safe_load(yaml.safe_dump(to_plain(config))), "") == config


@pytest.mark.parametrize("written", ["inf", ".inf", "Infinity"])
def test_a_margin_may_be_infinite(written):
    """tigs-plus has a finite one."""
    config = compose(["method=tigs-plus", f"method.margin={written}"])
    assert config.method.margin == float("inf")
    plain = json.loads(json.dumps(to_plain(config), allow_nan=False))
    assert from_plain(plain, "") == config


def test_null_clears_a_setting():
    assert (
        compose(["data.max_train_pairs=5", "data.max_train_pairs=null", "data.dir=null"]).data.max_train_pairs is None
    )


# What is refused


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        ("model.hiden=3", "model.hidden"),
        ("hidden=3", "model.hidden"),
        ("trainer.learningrate=1", "trainer.learning_rate"),
        ("data.maximum_target_length=3", "data.max_target_length"),
        ("testsets.size=3", "test_sets"),
        ("model.hidden.size=3", "model.hidden"),
    ],
)
def test_an_unknown_key_names_the_nearest_and_the_word(word, nearest):
    message = refusal("task=dialog", word)
    assert f"'{word}'" in message
    assert f"Did you mean '{nearest}'?" in message


def test_a_key_like_no_other_lists_what_there_is():
    assert "data, eval, method, model, output_dir" in refusal("qqqq=1")


@pytest.mark.parametrize("group", ["task", "model", "profile"])
def test_an_unknown_key_in_a_file_names_the_file_and_the_nearest(experiments, group):
    name = {"task": "dialog", "model": "birnn", "profile": "cpu"}[group]
    (experiments / group / f"{name}.yaml").write_text("trainer:\n  batch_sise: 3\n", encoding="utf-8")
    message = refusal(f"{group}={name}")
    assert f"experiments/{group}/{name}.yaml" in message
    assert "'trainer.batch_sise'" in message
    assert "'trainer.batch_size'" in message


@pytest.mark.parametrize(
    ("part", "wrong", "nearest"),
    [
        ({"by_task": {"poety": {"seed": 1}}}, "by_task.poety", "by_task.poetry"),
        ({"by_task": {"poetry": {"model": {"layrs": 1}}}}, "by_task.poetry.model.layrs", "by_task.poetry.model.layers"),
        ({"by_model": {"bi-rnn": {"seed": 1}}}, "by_model.bi-rnn", "by_model.birnn"),
        ({"by_model": {"birnn": {"sed": 1}}}, "by_model.birnn.sed", "by_model.birnn.seed"),
        ({"by_method": {"tig": {"seed": 1}}}, "by_method.tig", "by_method.tigs"),
        ({"by_tasks": {"poetry": {"seed": 1}}}, "by_tasks", "by_task"),
    ],
)
def test_a_slip_in_a_part_for_another_task_or_model_is_an_error_too(experiments, part, wrong, nearest):
    (experiments / "profile" / "cpu.yaml").write_text(yaml.safe_dump(part), encoding="utf-8")
    message = refusal("task=dialog", "model=forward", "profile=cpu")
    assert "experiments/profile/cpu.yaml" in message
    assert f"unknown key '{wrong}'" in message
    assert f"'{nearest}'?" in message


@pytest.mark.parametrize("part", [{"by_task": "poetry"}, {"by_model": ["birnn"]}, {"by_task": {"dialog": 5}}])
def test_a_part_of_a_profile_must_be_a_group(experiments, part):
    (experiments / "profile" / "cpu.yaml").write_text(yaml.safe_dump(part), encoding="utf-8")
    assert "a group of settings" in refusal("profile=cpu")


def test_empty_parts_and_empty_files_change_nothing(experiments):
    (experiments / "profile" / "cpu.yaml").write_text("by_task:\nby_model:\n  birnn:\n", encoding="utf-8")
    (experiments / "profile" / "paper.yaml").write_text("# nothing yet\n", encoding="utf-8")
    cpu, paper = (to_plain(compose(["model=birnn", f"profile={name}"])) for name in ("cpu", "paper"))
    assert {**cpu, "profile": ""} == {**paper, "profile": ""}


def test_a_file_that_is_not_yaml_names_its_line(experiments):
    (experiments / "task" / "poetry.yaml").write_text("task:\n  name: poetry\n  other: [1\n", encoding="utf-8")
    message = refusal("task=poetry")
    assert "experiments/task/poetry.yaml line " in message


@pytest.mark.parametrize(
    ("word", "must"),
    [
        ("model.hidden=wide", "a whole number"),
        ("model.hidden=1.5", "a whole number"),
        ("model.hidden=true", "a whole number"),
        ("seed=null", "a whole number"),
        ("data.max_train_pairs=few", "a whole number or null"),
        ("trainer.learning_rate=fast", "a number"),
        ("data.split_eight_lines=perhaps", "true or false"),
        ("test_sets.ratios=0.5", "a list of numbers"),
        ("test_sets.ratios=[half]", "a list of numbers"),
        ("test_sets.strategies=random", "a list of words"),
        ("data=5", "a group of settings"),
        ("vocabulary=null", "a group of settings"),
    ],
)
def test_a_value_of_the_wrong_type_says_which_field_and_what_it_must_be(word, must):
    message = refusal(word)
    assert message.startswith(f"'{word}': {word.partition('=')[0]}")
    assert f"It must be {must}" in message


@pytest.mark.parametrize(
    ("word", "must"),
    [
        ("test_sets.ratios=[0.5,0]", "above 0"),
        ("test_sets.ratios=[1.5]", "at most 1"),
        ("test_sets.ratios=[]", "at least one value"),
        ("test_sets.strategies=[midle]", "'middle'"),
        ("test_sets.size=0", "at least 1"),
        ("data.max_target_length=0", "at least 1"),
        ("data.validation_share=0.5", "below 0.5"),
        ("data.source=folders", "sample, download, folder"),
        ("vocabulary.size=0", "at least 1"),
        ("model.dropout=1", "below 1"),
        ("model.dropout=-0.1", "at least 0"),
        ("trainer.learning_rate=-1", "above 0"),
        ("trainer.learning_rate=.nan", "above 0"),
        ("method.margin=0", "above 0"),
        ("method.margin=-inf", "above 0"),
        ("method.margin=.nan", "above 0"),
        ("method.margin_decay=0", "above 0"),
        ("method.margin_decay=1.5", "at most 1"),
        ("method.refill_margin_decay=1.5", "at most 1"),
        ("method.refills=-1", "at least 0"),
        ("method.refill_width=0", "at least 1"),
        ("method.refill_least=0", "at least 1"),
        ("method.pair_width=-1", "at least 0"),
        ("method.proposal=nearst", "'nearest'"),
        ("trainer.devices=-2", "at least -1"),
        ("trainer.precision=8", "32-true"),
        ("seed=-1", "at least 0"),
    ],
)
def test_a_value_out_of_range_says_which_field_and_what_is_allowed(word, must):
    message = refusal(word)
    assert message.startswith(word.partition("=")[0])
    assert must in message


@pytest.mark.parametrize(
    "word", ["test_sets.ratios=[1]", "model.dropout=0", "data.max_target_length=12", "trainer.devices=-1", "seed=0"]
)
def test_the_bounds_themselves_are_allowed(word):
    compose([word])


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["data.source=folder"], "data.dir"),
        (["data.dir="], "data.dir"),
        (["data.dir=/corpus", "data.source=download"], "data.source=download"),
        (["data.min_target_length=9", "data.max_target_length=8"], "data.max_target_length=8"),
        (["model=mask-selfattn", "model.hidden=10", "model.heads=4"], "model.heads=4"),
        (["trainer.devices=0"], "trainer.devices"),
        # It would take another task's limits along.
        (["task=poetry", "task.name=dialog"], "task=dialog"),
        (["model.name=birnn"], "model=birnn"),
        (["data.dir=???"], "data.dir"),
        (["model.hidden=???"], "model.hidden"),
        (["data.dir=${HOME}"], "HOME"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(words, named):
    assert named in refusal(*words)


@pytest.mark.parametrize("group", ["task", "model", "profile"])
def test_an_unknown_choice_lists_the_choices(group):
    message = refusal(f"{group}=nonsense")
    assert "'nonsense'" in message
    assert all(name in message for name in available(group))


@pytest.mark.parametrize("word", ["poetry", "=poetry", "--task"])
def test_a_word_without_a_value_is_not_a_setting(word):
    assert f"'{word}' is not a setting" in refusal(word)


# Saving


OVERRIDES = st.fixed_dictionaries(
    {
        "task": st.sampled_from(TASKS),
        "model": st.sampled_from(MODELS),
        "profile": st.sampled_from(PROFILES),
    },
    optional={
        "seed": st.integers(0, 2**31),
        "output_dir": st.text("ab /-_é詩'\"#:", min_size=1),
        "data.max_train_pairs": st.none() | st.integers(1, 10**9),
        "data.split_eight_lines": st.booleans(),
        "data.test_share": st.floats(0.001, 0.499),
        "test_sets.ratios": st.lists(st.floats(0.001, 1), min_size=1, max_size=4),
        "test_sets.strategies": st.lists(st.sampled_from(["random", "middle"]), min_size=1, max_size=2),
        "model.dropout": st.floats(0, 0.999),
        "trainer.learning_rate": st.floats(1e-8, 1e3),
        "trainer.precision": st.sampled_from(["32-true", "bf16-mixed"]),
        "method.margin": st.floats(1e-3, 1e3),
        "method.proposal": st.sampled_from(PROPOSALS),
    },
)


def as_words(overrides):
    return [f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in overrides.items()]


@settings(max_examples=15)
@given(OVERRIDES)
def test_overrides_arrive_and_plain_values_give_the_same_config_again(overrides):
    config = compose(as_words(overrides))
    plain = to_plain(config)
    for key, value in overrides.items():
        section, _, name = key.rpartition(".")
        assert (plain[section] if section else plain)[name] == value or key in ("task", "model")
    assert from_plain(plain, "a checkpoint") == config
    # No OmegaConf object is left and no infinity: torch's weights_only and json both take it as it is.
    assert json.loads(json.dumps(plain, allow_nan=False)) == plain


@settings(max_examples=15)
@given(OVERRIDES)
def test_a_saved_config_is_the_config(tmp_path_factory, overrides):
    config = compose(as_words(overrides))
    path = tmp_path_factory.mktemp("config") / "config.yaml"
    save(config, path)
    assert from_plain(yaml.safe_load(path.read_text(encoding="utf-8")), str(path)) == config


@pytest.mark.parametrize(
    ("values", "problem"), [({"modle": {}}, "'model'"), ({"seed": "x"}, "seed"), ({"seed": -1}, "seed=-1")]
)
def test_plain_values_are_checked_like_any_other(values, problem):
    with pytest.raises(ConfigError, match=problem):
        from_plain(values, "old.ckpt")


@pytest.mark.parametrize("chosen", [(), ("task=dialog", "profile=cpu", "model=mask-selfattn", "method=tigs-plus")])
@pytest.mark.parametrize(
    "words",
    [
        {},
        {"data.dir": "a folder #1"},
        {"method.margin": "inf", "method.step_size": "1e-05", "eval.limit": "7", "data.max_train_pairs": "null"},
        {"test_sets.ratios": "[0.1, 0.25]", "test_sets.strategies": '["middle"]', "method.allow_unk": "true"},
    ],
)
def test_a_configuration_is_made_again_from_its_own_words(chosen, words):
    config = compose([*chosen, *(f"{key}={value}" for key, value in words.items())])
    own = own_words(config)
    assert compose([*chosen, *(f"{key}={value}" for key, value in own.items())]) == config
    assert own.keys() <= words.keys() | {"data.source"}, "nothing that is the profile's own"
