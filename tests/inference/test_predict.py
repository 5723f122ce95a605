"""From test sets to files of predictions: in one go, after a kill, with more templates, with other settings."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from functools import cache

import pytest
import pytorch_lightning as lightning
import torch
from torch.nn.functional import cross_entropy

from tigs.composition import compose
from tigs.config import METHODS
from tigs.data.datamodule import PredictDataModule, TemplateBatch
from tigs.data.prepare import prepare
from tigs.data.special import END_ID, SPECIAL_TOKENS, START_ID
from tigs.data.template import make_template
from tigs.data.test_sets import TestItem as Item
from tigs.errors import InferenceError, PredictionError
from tigs.inference.module import InferenceModule
from tigs.inference.predict import predict
from tigs.inference.predictions import Prediction, predictions_folder, read_predictions
from tigs.inference.required import checkpoint_path, load_models
from tigs.inference.writer import read_parts
from tigs.training.checkpoint import load_model
from tigs.training.memory import peak_memory

# Two test sets instead of six, and rounds enough to see that they work.
SETS = ["random-50", "middle-50"]
QUICK = ["test_sets.ratios=[0.5]", "method.max_rounds=2"]


@pytest.fixture
def words(trained, tmp_path):
    """Settings that find tiny trained models in a folder of the test's own."""

    def make(*more, task="poetry", models=("forward",)):
        return [*copy_models(trained, task, models, tmp_path / "runs"), *QUICK, *more]

    return make


@pytest.fixture(scope="module")
def filled(trained, tmp_path_factory):
    """The settings of a method, and the files it has made with them."""

    @cache
    def make(method):
        folder = tmp_path_factory.mktemp(method)
        config = compose([*copy_models(trained, "poetry", models_of(method), folder), *QUICK, f"method={method}"])
        return config, predict(config)

    return make


def copy_models(trained, task, models, folder):
    own = trained(task, *models or ("forward",))
    runs = next(word for word in own if word.startswith("output_dir=")).removeprefix("output_dir=")
    for name in models:
        target = folder / f"{task}/small/models/{name}"
        target.mkdir(parents=True)
        shutil.copy(f"{runs}/{task}/small/models/{name}/best.ckpt", target)
    return [*own, f"output_dir={folder}"]


def models_of(method):
    """Written out again, so that a method which asks for too much is noticed."""
    own = {
        "seq2seq-b": ["backward"],
        "seq2seq-fb": ["backward"],
        "birnn-gsn": ["birnn"],
        "birnn-bibs": ["birnn"],
        "mask-seq2seq": ["mask-seq2seq"],
        "mask-selfattn": ["mask-selfattn"],
    }
    return [] if method == "template" else ["forward", *own.get(method, [])]


def timeless(path):
    """A file without what depends on the clock and on the machine."""
    file = read_predictions(path)
    header = {**asdict(file.header), "seconds": 0, "devices": 0}
    del header["config"]
    return header, [replace(prediction, seconds=0.0) for prediction in file.predictions]


def parts_of(config):
    return predictions_folder(config) / "parts"


# What is written


@pytest.mark.parametrize("method", METHODS)
def test_every_template_is_filled_once_in_order_and_scored_by_the_forward_model(filled, method):
    config, paths = filled(method)
    assert paths == [predictions_folder(config) / f"{name}.jsonl" for name in SETS]
    assert sorted(path.name for path in predictions_folder(config).iterdir()) == sorted(path.name for path in paths)
    prepared = prepare(config)
    for path, test_set in zip(paths, prepared.test_sets(), strict=True):
        header, predictions = read_predictions(path).header, read_predictions(path).predictions
        assert [prediction.id for prediction in predictions] == [item.template.id for item in test_set.items]
        assert (header.method, header.set_name, header.n) == (method, test_set.name, len(test_set.items))
        assert (header.test_set_hash, header.devices) == (test_set.hash, 1)
        assert header.seconds == pytest.approx(sum(prediction.seconds for prediction in predictions), abs=1e-3)
        for prediction, item in zip(predictions, test_set.items, strict=True):
            assert prediction.context == item.template.context
            assert (prediction.template, prediction.reference) == (item.template.tokens, item.reference)
            assert (not set(prediction.fill) & set(SPECIAL_TOKENS)) == (method != "template")
            assert (prediction.forward_nll is None) == (method == "template")
            assert (prediction.unforced is None) == (not method.startswith("mask"))
    if method != "template":
        network = load_model(checkpoint_path(config, "forward")).network
        for prediction in read_predictions(paths[1]).predictions:
            assert prediction.forward_nll == pytest.approx(plain_nll(network, prepared, prediction), abs=1e-4)
            if method in ("tigs", "seq2seq-f"):
                assert prediction.nll == pytest.approx(prediction.forward_nll, abs=1e-4)


def plain_nll(network, prepared, prediction):
    """One sentence by itself, with torch's own cross-entropy."""
    encode = prepared.vocabulary.encode
    item = Item(make_template("", prediction.context, prediction.sentence, strategy="middle", ratio=1, seed=0), ())
    context = TemplateBatch.make([item], prepared.vocabulary).context
    ids = encode(prediction.sentence)
    with torch.no_grad():
        outputs, _ = network.run(network.start(context), torch.tensor([[START_ID, *ids]]))
        return cross_entropy(network.projection(outputs[0]), torch.tensor([*ids, END_ID]), reduction="sum").item()


def test_the_header_says_how_it_was_made(words):
    config = compose(words("method=seq2seq-b", "eval.limit=2", models=("forward", "backward")))
    header = read_predictions(predict(config)[0]).header
    assert (header.task, header.profile, header.corpus) == ("poetry", "small", "built-in sample corpus")
    assert list(header.checkpoints) == ["forward", "backward"]
    for name, about in header.checkpoints.items():
        path = checkpoint_path(config, name)
        assert about["path"] == str(path)
        assert about["hash"] == subprocess.check_output(["sha256sum", str(path)], text=True).split()[0]
        assert about["validation_nll"] == load_model(path).description.validation_nll
    assert header.config["method"]["name"] == "seq2seq-b"
    assert header.config["eval"]["limit"] == 2


def test_a_task_without_context_works_too(words):
    config = compose(words("eval.limit=3", task="aprc"))
    for path in predict(config):
        assert [prediction.context for prediction in read_predictions(path).predictions] == [(), (), ()]


def test_distinct_fills_are_kept_beside_the_best(words):
    config = compose(words("method=seq2seq-f", "method.n_best=3", "eval.limit=4"))
    for prediction in read_predictions(predict(config)[0]).predictions:
        fills = [" ".join(prediction.fill), *(fill for fill, _ in prediction.alternatives)]
        assert len(set(fills)) == len(fills) == 3
        assert [prediction.nll, *(nll for _, nll in prediction.alternatives)] == sorted(
            [prediction.nll, *(nll for _, nll in prediction.alternatives)]
        )


# Inside a Trainer


def module_of(config):
    prepared = prepare(config)
    items = prepared.test_sets()[0].items
    networks = {name: model.network for name, model in load_models(config, prepared, items).items()}
    return InferenceModule(config.method, networks, prepared.vocabulary, seed=config.seed), items


@pytest.mark.parametrize("method", METHODS)
def test_it_works_in_a_foreign_trainer_and_changes_nothing_in_the_models(filled, method):
    config, paths = filled(method)
    module, items = module_of(config)
    before = {name: value.clone() for name, value in module.state_dict().items()}
    trainer = lightning.Trainer(accelerator="cpu", devices=1, logger=False, enable_checkpointing=False)
    batches = trainer.predict(module, datamodule=PredictDataModule(config, items))
    found = {prediction.id: prediction for batch in batches for prediction in batch}
    assert set(found) == {item.template.id for item in items}
    after = module.state_dict()
    assert list(after) == list(before)
    assert all(torch.equal(after[name], before[name]) for name in before)
    assert all(parameter.grad is None for parameter in module.parameters())
    stored = read_predictions(paths[0]).predictions
    assert [replace(found[own.id], seconds=0.0) for own in stored] == [replace(own, seconds=0.0) for own in stored]


def test_known_words_keep_their_spelling(filled):
    config, _ = filled("tigs")
    module, _ = module_of(config)
    sentence = ("zzz-not-a-word", "，", "zzz-nor-this", "。")
    template = make_template("x", ("zzz",), sentence, strategy="middle", ratio=0.5, seed=0)
    batch = TemplateBatch.make([Item(template, sentence[1:3])], prepare(config).vocabulary)
    (prediction,) = module.predict_step(batch, 0)
    assert isinstance(prediction, Prediction)
    assert (prediction.sentence[0], prediction.sentence[3]) == (sentence[0], sentence[3])
    assert prediction.context == ("zzz",)
    assert prediction.reference == sentence


# Again


def test_a_finished_file_is_left_alone(words, capfd):
    config = compose(words("eval.limit=5"))
    paths = predict(config)
    before = [(path.stat().st_mtime_ns, path.read_bytes()) for path in paths]
    capfd.readouterr()
    for limit in (5, 3):
        own = replace(config, eval=replace(config.eval, limit=limit, batch_size=2))
        assert predict(own) == paths
        assert capfd.readouterr().err.count("finished before, 5 sentences") == 2
    assert [(path.stat().st_mtime_ns, path.read_bytes()) for path in paths] == before


def test_a_higher_limit_keeps_what_is_there_and_fills_the_rest(words):
    made = words()
    small, large = compose([*made, "eval.limit=4"]), compose(made)
    before = [read_predictions(path).predictions for path in predict(small)]
    for path, kept, test_set in zip(predict(large), before, prepare(large).test_sets(), strict=True):
        file = read_predictions(path)
        # With their times: they were not filled again.
        assert file.predictions[:4] == kept
        assert [prediction.id for prediction in file.predictions] == [item.template.id for item in test_set.items]
        assert file.header.n == 10
    assert not parts_of(large).exists()


@pytest.mark.parametrize("change", ["method.beam_width=2", "seed=1"])
def test_other_settings_are_filled_again(words, change):
    made = words("eval.limit=3")
    first = [(timeless(path)[0], path.read_bytes()) for path in predict(compose(made))]
    paths = predict(compose([*made, change]))
    for path, (before, content) in zip(paths, first, strict=True):
        file = read_predictions(path)
        (aside,) = path.parent.glob(f"{path.stem}.*.jsonl")
        assert aside.read_bytes() == content
        key, _, value = change.rpartition("=")
        found = file.header.config
        for part in key.split("."):
            found = found[part]
        assert found == json.loads(value)
        assert file.header.test_set_hash == before["test_set_hash"]


def test_another_model_fills_again(words):
    config = compose(words("eval.limit=3", "method=seq2seq-f"))
    first = [read_predictions(path) for path in predict(config)]
    path = checkpoint_path(config, "forward")
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["state_dict"]["model.projection.bias"] *= -3
    torch.save(checkpoint, path)
    second = [read_predictions(path) for path in predict(config)]
    for before, after in zip(first, second, strict=True):
        assert before.header.checkpoints["forward"]["hash"] != after.header.checkpoints["forward"]["hash"]
        assert before.predictions[0].forward_nll != after.predictions[0].forward_nll


# Interrupted


def start(words):
    return subprocess.Popen(
        [sys.executable, "-m", "tigs", "eval", *words],
        env={**os.environ, "WANDB_MODE": "disabled", "OMP_NUM_THREADS": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Where the tests run in the background of a shell, Ctrl-C is switched off, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def interrupt(words, number):
    """Send a signal as soon as some templates of the second set are done."""
    process = start(words)
    folder = parts_of(compose(words)) / SETS[1]
    while len(read_all(folder)) < 2 and process.poll() is None:
        time.sleep(0.002)
    process.send_signal(number)
    output, _ = process.communicate(timeout=100)
    return process.returncode, output


def read_all(folder):
    found = {}
    for identity in folder.glob("*"):
        found |= read_parts(identity)
    return found


# One at a time and long enough that a signal falls in between.
SLOW = ["eval.batch_size=1", "method=birnn-gsn", "method.max_rounds=40", "method.temperature=5"]


@pytest.fixture
def calm(words, tmp_path):
    """Settings, and the files of a run that nobody disturbed."""
    made = words(*SLOW, models=("forward", "birnn", "evaluator"))
    # As in the process that will be disturbed: sums over several threads may differ in the last digit.
    torch.set_num_threads(1)
    shutil.copytree(tmp_path / "runs", tmp_path / "calm")
    return made, [timeless(path) for path in predict(compose([*made, f"output_dir={tmp_path / 'calm'}"]))]


def without_place(files):
    return [({**header, "checkpoints": None}, predictions) for header, predictions in files]


def test_after_a_kill_the_same_command_goes_on_to_the_same_files(calm):
    made, expected = calm
    config = compose(made)
    code, _ = interrupt(made, signal.SIGKILL)
    assert code == -signal.SIGKILL, "it was finished before it could be killed"
    assert [path.stem for path in predictions_folder(config).glob("*.jsonl")] == SETS[:1], "finished sets are whole"
    done = read_all(parts_of(config) / SETS[1])
    assert 0 < len(done) < 10
    paths = predict(config)
    assert without_place(map(timeless, paths)) == without_place(expected)
    after = {prediction.id: prediction for prediction in read_predictions(paths[1]).predictions}
    assert {name: after[name] for name in done} == done, "with their times: they were not filled again"
    assert not parts_of(config).exists()


def test_ctrl_c_says_that_the_same_command_goes_on(calm):
    made, expected = calm
    code, output = interrupt(made, signal.SIGINT)
    assert code == 130
    assert "The same command goes on" in output
    assert output.rstrip().endswith("tigs eval: interrupted")
    assert "Traceback" not in output
    assert without_place(map(timeless, predict(compose(made)))) == without_place(expected)


@pytest.mark.parametrize("damage", [lambda text: text[:-20], lambda text: text[:300] + b"\xff\x00" + text[302:]])
def test_damaged_lines_of_a_part_are_filled_again(words, damage):
    config = compose(words("method=seq2seq-f"))
    expected = [timeless(path) for path in predict(config)]
    # As if the last set had been killed before its parts were put together.
    path = predictions_folder(config) / f"{SETS[1]}.jsonl"
    header, lines = read_predictions(path).header, path.read_bytes().split(b"\n", 1)[1]
    path.unlink()
    part = parts_of(config) / SETS[1] / header.identity / "3-0123abcd.jsonl"
    part.parent.mkdir(parents=True)
    part.write_bytes(damage(lines))
    done = read_parts(part.parent)
    assert len(done) == 9
    paths = predict(config)
    header, predictions = timeless(paths[1])
    assert {own.id: own.fill for own in predictions} == {own.id: own.fill for own in expected[1][1]}
    for own, other in zip(predictions, expected[1][1], strict=True):
        assert own.nll == pytest.approx(other.nll, abs=1e-4)
    assert [timeless(path) for path in paths[:1]] == expected[:1]


def test_what_a_higher_limit_left_behind_is_not_lost(words):
    made = words("method=seq2seq-f")
    config = compose(made)
    path = predict(config)[0]
    file, lines = read_predictions(path), path.read_text().split("\n")[1:]
    path.unlink()
    part = parts_of(config) / SETS[0] / file.header.identity / "0-0123abcd.jsonl"
    part.parent.mkdir(parents=True)
    part.write_text("\n".join(lines[1::2]) + "\n")
    predict(compose([*made, "eval.limit=3"]))
    assert [own.id for own in read_predictions(path).predictions] == [own.id for own in file.predictions[:3]]
    predict(config)
    again = read_predictions(path).predictions
    assert [again[number] for number in (1, 3, 5, 7, 9)] == [file.predictions[number] for number in (1, 3, 5, 7, 9)]
    assert [own.id for own in again] == [own.id for own in file.predictions]
    assert not parts_of(config).exists()


# Numbers that are none


@pytest.mark.parametrize(
    ("method", "model"),
    [
        ("tigs", "forward"),
        ("seq2seq-f", "forward"),
        ("seq2seq-b", "backward"),
        ("seq2seq-b", "forward"),  # which only scores
        ("birnn-gsn", "forward"),  # which only makes the start
        ("birnn-gsn", "birnn"),
        ("birnn-bibs", "birnn"),
        ("mask-seq2seq", "mask-seq2seq"),
        ("mask-selfattn", "mask-selfattn"),
    ],
)
def test_a_model_that_answers_with_no_number_is_named_with_the_template(words, method, model):
    config = compose(words(f"method={method}", models=models_of(method)))
    spoil(checkpoint_path(config, model))
    with pytest.raises(InferenceError, match=rf"template [0-9a-f]{{16}}: the model {model} gives it an NLL") as error:
        predict(config)
    assert f"Train {model} again" in error.value.remedy


def spoil(path, name=None, row=slice(None)):
    """Make weights of a checkpoint something that is no number."""
    checkpoint = torch.load(path, weights_only=True)
    for key, weights in checkpoint["state_dict"].items():
        if name is None or key == f"model.{name}":
            weights[row] = float("nan")
    torch.save(checkpoint, path)


def test_what_was_filled_before_the_error_stays_but_is_not_taken_for_another_models(words):
    config = compose(words("method=seq2seq-f", "eval.batch_size=1"))
    path = checkpoint_path(config, "forward")
    whole = path.read_bytes()
    prepared = prepare(config)
    by_length = sorted(prepared.test_sets()[0].items, key=lambda item: len(item.template.tokens))
    early, late = ({*item.template.context} for item in (by_length[0], by_length[-1]))
    (word, *_) = prepared.vocabulary.encode(sorted(late - early))
    spoil(path, "encoder.embedding.weight", word)
    with pytest.raises(InferenceError, match="the model forward"):
        predict(config)
    (part,) = (parts_of(config) / SETS[0]).glob("*/*.jsonl")
    assert 0 < len(read_parts(part.parent)) < 10
    part.write_text(part.read_text().replace('"model_steps": ', '"model_steps": 9999'))
    path.write_bytes(whole)
    assert max(prediction.model_steps for prediction in read_predictions(predict(config)[0]).predictions) < 9999
    assert not parts_of(config).exists()


def test_a_folder_that_cannot_be_written_is_named(words, tmp_path):
    config = compose(words())
    (tmp_path / "runs/poetry/small/predictions").write_text("in the way")
    with pytest.raises(PredictionError, match=r"predictions.*cannot write the predictions"):
        predict(config)


@pytest.mark.parametrize("method", [pytest.param("tigs", marks=pytest.mark.slow), "tigs-plus"])
def test_peak_memory_does_not_grow_with_the_number_of_sentences(words, tmp_path, method):
    """Of test sets of two and of ten sentences, two at a time."""
    own = words(f"method={method}", "eval.batch_size=2")

    def peak(limit):
        shutil.rmtree(tmp_path / "runs/poetry/small/predictions", ignore_errors=True)
        return peak_memory(lambda: predict(compose([*own, f"eval.limit={limit}"])))

    # Sentences differ in what they need; five times the memory would be growth.
    assert peak(10) < 2.5 * peak(2)
