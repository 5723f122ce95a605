"""A sweep sees validation sentences alone, searches nothing twice, and its figures are true."""

from __future__ import annotations

import json
from dataclasses import asdict, replace

import pytest
import torch

from tigs.composition import compose
from tigs.data.batch import pad
from tigs.data.corpora.pairs import Pair
from tigs.data.prepare import prepare
from tigs.data.special import END_ID
from tigs.data.template import make_template
from tigs.errors import ConfigError, EvaluationError
from tigs.evaluation.likelihood import Evaluator
from tigs.inference.interfaces import Templates
from tigs.inference.methods import build_infiller
from tigs.inference.module import InferenceModule
from tigs.inference.required import checkpoint_path, load_models
from tigs.inference.sweep import sweep, validation_sets
from tigs.inference.sweep_results import Figures, Result, Row, Subject, best_rows, criterion, read_results
from tigs.inference.sweep_settings import Setting, sweep_settings

# On which templates

CELLS = ("random-25", "middle-25", "random-50", "middle-50", "random-75", "middle-75")


@pytest.fixture
def poetry(trained):
    """The settings of tiny trained models, and the prepared data."""

    def make(*more, models=("forward", "evaluator")):
        config = compose([*trained("poetry", *models), *more])
        return config, prepare(config)

    return make


def pairs_of(split):
    return {
        Pair(tuple(context.split()), tuple(target.split()))
        for context, target in zip(split["context"], split["target"], strict=True)
    }


@pytest.mark.parametrize("task", ["poetry", "dialog", "aprc"])
def test_templates_are_of_validation_sentences_and_of_no_test_sentence(small_words, task):
    config = compose(small_words(task))
    prepared = prepare(config)
    made = validation_sets(config, prepared, n_templates=10_000)
    validation = pairs_of(prepared.split("validation"))
    tested = {item.reference for test_set in prepared.test_sets() for item in test_set.items}
    assert tuple(test_set.name for test_set in made) == CELLS
    for test_set in made:
        pairs = {Pair(item.template.context, item.reference) for item in test_set.items}
        assert pairs == validation, "all there are, as fewer than 10,000 are there"
        assert not {pair.target for pair in pairs} & tested


def test_templates_are_cut_as_those_of_the_test_sets(poetry):
    config, prepared = poetry("test_sets.seed=5")
    for test_set in (*validation_sets(config, prepared, n_templates=7), *prepared.test_sets()):
        for item in test_set.items:
            template, names = item.template, {"strategy": test_set.strategy, "ratio": test_set.ratio}
            assert template == make_template(template.id, template.context, item.reference, seed=5, **names)


def test_templates_depend_on_the_data_and_the_seed_alone(poetry):
    config, prepared = poetry()
    few = validation_sets(config, prepared, n_templates=3)
    more = validation_sets(replace(config, seed=9), prepared, n_templates=6)
    assert [len(test_set.items) for test_set in few] == [3] * 6
    assert [test_set.items for test_set in few] == [test_set.items[:3] for test_set in more]
    other = poetry("test_sets.seed=1")
    assert [one.hash for one in few if one.strategy == "random"] != [
        one.hash for one in validation_sets(*other, n_templates=3) if one.strategy == "random"
    ]


def test_cells_are_chosen_by_name(poetry):
    config, prepared = poetry()
    made = validation_sets(config, prepared, n_templates=3, cells=["middle-75", "random-25"])
    assert [test_set.name for test_set in made] == ["random-25", "middle-75"]
    with pytest.raises(ConfigError, match=r"no cell 'random-30'\. Choose from: random-25, middle-25"):
        validation_sets(config, prepared, n_templates=3, cells=["random-30"])
    with pytest.raises(ConfigError, match="--templates 0"):
        validation_sets(config, prepared, n_templates=0)


# What is found

N_TEMPLATES = 6
TWO_CELLS = ("random-50", "middle-75")


@pytest.fixture
def swept(trained, tmp_path):
    """Run a sweep of two cells from words; gives the prepared data, the templates and the rows."""

    def run(*words, models=("forward", "evaluator"), one_at_a_time=False, n_templates=N_TEMPLATES):
        settings = sweep_settings(
            [*trained("poetry", *models), "method.max_rounds=2", *words], one_at_a_time=one_at_a_time
        )
        prepared = prepare(settings[0].config)
        test_sets = validation_sets(settings[0].config, prepared, n_templates=n_templates, cells=TWO_CELLS)
        return prepared, test_sets, sweep(settings, prepared, test_sets, tmp_path / "sweeps" / "own.json")

    return run


def step_by_step(network, context, sentence):
    """The NLL of one sentence, one token at a time from the whole softmax."""
    with torch.no_grad():
        state, token, total = network.start(pad([context])), network.first_token, 0.0
        for target in (*sentence, END_ID):
            outputs, state = network.step(state, torch.tensor([token]))
            total -= float(network.log_probabilities(outputs)[0, target])
            token = target
    return total


@pytest.mark.parametrize(
    ("method", "models"),
    [
        ("tigs", ["forward", "evaluator"]),
        ("seq2seq-b", ["forward", "backward", "evaluator"]),
        ("birnn-gsn", ["forward", "birnn", "evaluator"]),
    ],
)
def test_figures_are_those_of_fills_made_and_scored_one_sentence_at_a_time(swept, method, models):
    prepared, test_sets, (row,) = swept(f"method={method}", "eval.batch_size=4", models=models)
    config = row.setting.config
    loaded = load_models(config, prepared, [])
    networks = {name: model.network for name, model in loaded.items()}
    infiller = build_infiller(config.method, networks, seed=config.seed)
    evaluator = Evaluator.load(checkpoint_path(config, "evaluator"))
    encode, decode = prepared.vocabulary.encode, prepared.vocabulary.decode
    for test_set, result in zip(test_sets, row.results, strict=True):
        assert (result.subject.cell, result.n) == (test_set.name, N_TEMPLATES)
        totals = dict.fromkeys(asdict(result.figures), 0.0)
        n_tokens = 0
        for template in (item.template for item in test_set.items):
            context, target = encode(template.context), encode(template.tokens)
            (answer,) = infiller.fill(Templates((template.id,), pad([context]), pad([target])))
            for position, word in zip(template.blank_positions, answer.fill, strict=True):
                target[position] = word
            n_tokens += len(target) + 1
            totals["forward_nll"] += step_by_step(networks["forward"], context, target)
            totals["evaluator_nll"] += sum(*evaluator.score([template.context], [decode(target)]))
            totals["own_nll"] += answer.nll
            totals["model_steps"] += answer.model_steps
        for name in ("forward_nll", "evaluator_nll", "own_nll"):
            assert getattr(result.figures, name) == pytest.approx(totals[name] / n_tokens, abs=1e-5)
        assert result.figures.model_steps == pytest.approx(totals["model_steps"] / N_TEMPLATES)
        assert result.figures.seconds > 0
        assert (result.figures.own_nll == pytest.approx(result.figures.forward_nll, abs=1e-4)) == (method == "tigs")


def without_seconds(rows):
    return [[replace(result, figures=replace(result.figures, seconds=0.0)) for result in row.results] for row in rows]


@pytest.fixture
def searches(monkeypatch):
    """The options of every search, in order; `searches.stop_after` ends them like Ctrl-C."""

    class Searches(list):
        stop_after = None

    made = Searches()
    usual = InferenceModule.predict_step

    def predict_step(self, batch, batch_idx):
        if len(made) == made.stop_after:
            raise KeyboardInterrupt
        made.append((self.settings.step_size, len(batch.items[0].template.blank_positions)))
        return usual(self, batch, batch_idx)

    monkeypatch.setattr(InferenceModule, "predict_step", predict_step)
    return made


def test_an_interrupted_sweep_goes_on_where_it_stopped(swept, searches, tmp_path):
    words = ["method=tigs", "method.step_size=3,10,30", "method.beam_width=1"]
    searches.stop_after = 3
    with pytest.raises(KeyboardInterrupt):
        swept(*words)
    path = tmp_path / "sweeps" / "own.json"
    assert [(one.subject.method["step_size"], one.subject.cell) for one in read_results(path)] == [
        (3, "random-50"),
        (3, "middle-75"),
        (10, "random-50"),
    ]
    searches.stop_after = None
    *_, rows = swept(*words)
    assert len(searches) == 6
    assert len(set(searches)) == 6, "nothing was searched twice"
    path.unlink()
    *_, in_one_go = swept(*words)
    assert without_seconds(rows) == without_seconds(in_one_go)


def test_what_is_known_serves_other_sweeps_and_what_differs_is_searched(swept, searches, tmp_path):
    words = ["method=tigs", "method.beam_width=1"]
    base = compose(["method=tigs"]).method.step_size
    swept(*words, f"method.step_size=3.5,{base}")
    assert len(searches) == 4
    swept(*words, "method.step_size=3.5,35", one_at_a_time=True)  # the base and 3.5 are known
    assert [step for step, _ in searches[4:]] == [35, 35]
    # Blanks in the middle are the same for every seed of the templates.
    for n_searches, other in ((8, "seed=1"), (10, "method.patience=1"), (11, "test_sets.seed=1")):
        swept(*words, other)
        assert len(searches) == n_searches
    swept(*words, n_templates=N_TEMPLATES + 1)
    assert len(searches) == 13
    assert len(read_results(tmp_path / "sweeps" / "own.json")) == 13, "nothing is thrown away"
    swept(*words)
    assert len(searches) == 13


def test_a_model_trained_again_is_searched_again(swept, searches, tmp_path):
    swept("method=seq2seq-f")
    path = tmp_path / "sweeps" / "own.json"
    document = json.loads(path.read_text())
    for result in document["results"]:
        assert set(result["subject"]["checkpoints"]) == {"forward", "evaluator"}
        result["subject"]["checkpoints"]["evaluator"] = "another"
    path.write_text(json.dumps(document))
    swept("method=seq2seq-f")
    assert len(searches) == 4


@pytest.mark.parametrize("text", ["{", "[]", '{"format_version": 1, "results": [{}]}', '{"format_version": 0}'])
def test_a_damaged_file_is_named_and_kept(swept, tmp_path, text):
    path = tmp_path / "sweeps" / "own.json"
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(EvaluationError, match=r"own\.json: not a file of sweep results, or damaged\. Delete it"):
        swept("method=seq2seq-f")
    assert path.read_text() == text


def test_an_option_that_does_not_fit_the_models_is_refused_before_anything_is_searched(swept, searches):
    with pytest.raises(ConfigError, match=r"more than the \d+ words of the vocabulary"):
        swept("method=tigs", "method.n_candidates=5,9000")
    assert not searches


def test_a_method_without_a_model_has_nothing_to_tune(swept):
    with pytest.raises(ConfigError, match="the method template has nothing to tune"):
        swept("method=seq2seq-f,template")


# Which is best


def row(method, *figures):
    """A row with the given (evaluator's NLL, forward NLL, model steps) in each cell."""
    subject = Subject({}, 0, {}, "", "")
    results = [
        Result(subject, 1, 0, Figures(forward, evaluator, 0.0, 0.0, steps, 0.0))
        for evaluator, forward, steps in figures
    ]
    return Row(Setting({}, compose([f"method={method}"])), tuple(results))


def test_the_lowest_mean_by_the_evaluator_is_best_and_of_equal_ones_the_cheapest():
    rows = [row("tigs", (2, 0, 9), (4, 0, 9)), row("tigs", (3, 7, 5), (3, 7, 9)), row("tigs", (1, 0, 1), (6, 0, 1))]
    assert criterion(rows) == "evaluator_nll"
    (best,) = best_rows(rows)
    assert best is rows[1]


def test_without_an_evaluator_the_forward_model_decides():
    rows = [row("tigs", (None, 2, 1)), row("tigs", (None, 1, 9))]
    assert criterion(rows) == "forward_nll"
    (best,) = best_rows(rows)
    assert best is rows[1]


def test_every_method_has_a_best_of_its_own():
    rows = [row("tigs", (3, 3, 1)), row("seq2seq-f", (5, 1, 1)), row("tigs", (2, 9, 1)), row("seq2seq-f", (4, 4, 1))]
    best = best_rows(rows)
    assert best[0] is rows[2]
    assert best[1] is rows[3]
    assert len(best) == 2
