"""One model from nothing to a checkpoint, and what happens when the command is given again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import torch

from tigs.__main__ import main
from tigs.composition import compose
from tigs.config import MODELS, TASKS
from tigs.data.datamodule import FitDataModule
from tigs.data.prepare import prepare
from tigs.errors import CheckpointError, ConfigError
from tigs.training.checkpoint import load_model, read_description, require_fit
from tigs.training.fit import model_folder, train_model


@pytest.mark.parametrize(
    ("task", "name"), [*(("poetry", name) for name in MODELS), ("aprc", "forward"), ("aprc", "birnn")]
)
def test_training_leaves_a_checkpoint_that_gives_its_own_validation_nll(tiny_words, task, name):
    config = compose([*tiny_words, f"task={task}", f"model={name}"])
    trained = train_model(config)
    loaded = load_model(model_folder(config) / "best.ckpt")
    data = FitDataModule(config, masked=name.startswith("mask"))
    total = n_tokens = 0.0
    with torch.no_grad():
        for batch in data.val_dataloader():
            nll = loaded.network(batch)["nll"]
            total += nll.total.item()
            n_tokens += len(nll.per_token)
    assert trained.validation_nll == pytest.approx(total / n_tokens, abs=1e-4)
    assert loaded.vocabulary == prepare(config).vocabulary
    assert loaded.description.model == name
    require_fit(loaded.description, prepare(config), model_folder(config) / "best.ckpt")


def test_a_model_outlives_the_options_of_searches(tiny_words):
    config = compose([*tiny_words, "model=forward"])
    train_model(config)
    path = model_folder(config) / "best.ckpt"
    checkpoint = torch.load(path, weights_only=True)
    checkpoint["tigs"]["config"]["method"]["an_option_of_old"] = 3
    torch.save(checkpoint, path)
    assert load_model(path).config.model == config.model
    checkpoint["tigs"]["config"]["model"]["an_option_of_old"] = 3
    torch.save(checkpoint, path)
    with pytest.raises(ConfigError, match="an_option_of_old"):
        load_model(path)


def test_figures_go_to_a_csv_and_fills_beside_it(tiny_words):
    config = compose([*tiny_words, "model=forward"])
    train_model(config)
    folder = model_folder(config)
    with (folder / "metrics.csv").open() as stream:
        names = {row["name"] for row in csv.DictReader(stream) if float(row["value"]) > 0}
    wanted = ["train/nll", "train/learning_rate", "train/gradient_norm", "train/tokens_per_second"]
    wanted += ["train/perplexity", "validation/nll", "validation/perplexity"]
    assert names >= set(wanted)
    with (folder / "sample_fills.csv").open() as stream:
        fills = list(csv.DictReader(stream))
    assert len(fills) == 2 * config.trainer.sample_fills
    for fill in fills:
        template, filled = fill["template"].split(), fill["fill"].split()
        assert "<blank>" in template
        assert all(token in ("<blank>", word) for token, word in zip(template, filled, strict=True))
        assert "<" not in fill["fill"]


def test_a_finished_model_is_skipped_and_untouched(tiny_words):
    config = compose([*tiny_words, "model=forward"])
    first = train_model(config)
    checkpoint = model_folder(config) / "best.ckpt"
    before = checkpoint.stat().st_mtime_ns
    second = train_model(config)
    assert second.skipped
    assert not first.skipped
    assert second.validation_nll == first.validation_nll
    assert checkpoint.stat().st_mtime_ns == before


def test_other_settings_never_pass_for_the_same_training(tiny_words):
    train_model(compose([*tiny_words, "model=forward"]))
    assert train_model(compose([*tiny_words, "model=forward", "test_sets.size=5", "trainer.strategy=ddp"])).skipped
    with pytest.raises(CheckpointError, match=r"model\.hidden=8 \(was 16\)"):
        train_model(compose([*tiny_words, "model=forward", "model.hidden=8"]))


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["vocabulary.size=50"], "its vocabulary of 7 tokens"),
        (["task=aprc"], "for the task poetry"),
        # The same words with the same ids, but other validation sentences.
        (["data.max_context_length=15"], "other pairs"),
    ],
)
def test_a_checkpoint_of_another_vocabulary_or_task_or_corpus_is_refused(tiny_words, words, problem):
    # The two marks that every line ends with, so that the third case leaves the vocabulary as it is.
    own = [*tiny_words, "vocabulary.size=2"]
    config = compose([*own, "model=forward"])
    train_model(config)
    path = model_folder(config) / "best.ckpt"
    with pytest.raises(CheckpointError, match=problem):
        require_fit(read_description(path), prepare(compose([*own, *words])), path)


def test_damaged_and_foreign_files_are_refused(tiny_words, tmp_path):
    config = compose([*tiny_words, "model=forward"])
    train_model(config)
    path = model_folder(config) / "best.ckpt"
    cut = tmp_path / "cut.ckpt"
    cut.write_bytes(path.read_bytes()[:2000])
    foreign = tmp_path / "foreign.ckpt"
    torch.save({"state_dict": {}}, foreign)
    newer = torch.load(path, weights_only=True)
    newer["tigs"]["format_version"] = 99
    torch.save(newer, tmp_path / "newer.ckpt")
    for file, problem in (
        (cut, "damaged"),
        (foreign, "damaged"),
        (tmp_path / "newer.ckpt", "format 99"),
        (tmp_path / "none.ckpt", "no such"),
    ):
        with pytest.raises(CheckpointError, match=problem):
            load_model(file)


def _bytes_read():
    """By this process so far."""
    return int(Path("/proc/self/io").read_text().split()[1])


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="only Linux says how much a process has read")
def test_what_a_checkpoint_says_is_read_without_its_weights(tiny_words):
    config = compose([*tiny_words, "model=forward", "model.hidden=64"])
    train_model(config)
    path = model_folder(config) / "last.ckpt"
    before = _bytes_read()
    assert read_description(path).model == "forward"
    assert _bytes_read() - before < path.stat().st_size / 3


def test_a_training_that_goes_on_reads_its_checkpoint_once_before_lightning_does(tiny_words, monkeypatch):
    config = compose([*tiny_words, "model=forward"])
    train_model(config)
    (model_folder(config) / "finished.json").unlink()
    read, load = [], torch.load

    def note_and_load(file, *arguments, **options):
        read.append(Path(getattr(file, "name", file)).name)
        return load(file, *arguments, **options)

    monkeypatch.setattr(torch, "load", note_and_load)
    train_model(config)
    assert read == ["last.ckpt", "last.ckpt", "best.ckpt"]


def test_the_commands_print_tables_and_json(tiny_words, capsys):
    assert main(["train", *tiny_words, "model=forward", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["corpus"] == "built-in sample corpus"
    (model,) = document["models"]
    assert main(["train", *tiny_words, "model=forward"]) == 0
    captured = capsys.readouterr()
    assert "finished before" in captured.err
    assert f"{model['validation_nll']:.3f}" in captured.out
    assert main(["show", model["checkpoint"]]) == 0
    shown = capsys.readouterr().out
    for fact in ("poetry", "forward", f"{model['parameters']:,}", f"{model['validation_nll']:.4f}", "built-in sample"):
        assert fact in shown
    assert main(["show", "no/such.ckpt"]) == 2
    assert "no such checkpoint" in capsys.readouterr().err


def test_a_finished_model_is_checked_even_without_its_last_checkpoint(tiny_words):
    config = compose([*tiny_words, "model=forward"])
    train_model(config)
    (model_folder(config) / "last.ckpt").unlink()
    assert train_model(config).skipped
    with pytest.raises(CheckpointError, match="other settings"):
        train_model(compose([*tiny_words, "model=forward", "seed=3"]))
    (model_folder(config) / "best.ckpt").unlink()
    assert not train_model(config).skipped


def test_a_moved_folder_keeps_its_best_model(tiny_words, tmp_path):
    """Two epochs, the folder moved, then more epochs at a rate that spoils the model: the best one must survive."""
    words = [*tiny_words, "model=forward", "trainer.max_epochs=4", "trainer.patience=5"]
    config, moved = compose(words), compose([*words, f"output_dir={tmp_path / 'moved'}"])
    train_model(config)
    last = model_folder(config) / "last.ckpt"
    checkpoint = torch.load(last, weights_only=True)
    # As if the first epochs had been far better than what is to come.
    for name, state in checkpoint["callbacks"].items():
        if name.startswith("MovableCheckpoint") and state["best_model_score"] is not None:
            state["best_model_score"] = torch.tensor(0.5)
            state["best_k_models"] = dict.fromkeys(state["best_k_models"], torch.tensor(0.5))
    for counter in ("current", "total"):
        progress = checkpoint["loops"]["fit_loop"]["epoch_progress"][counter]
        progress |= {"ready": 2, "started": 2, "processed": 2, "completed": 1}
    torch.save(checkpoint, last)
    model_folder(moved).parent.mkdir(parents=True)
    model_folder(config).rename(model_folder(moved))
    (model_folder(moved) / "finished.json").unlink()
    before = (model_folder(moved) / "best.ckpt").read_bytes()
    assert train_model(moved).epochs == 4
    assert (model_folder(moved) / "best.ckpt").read_bytes() == before


def test_early_stopping_stays_stopped(tiny_words):
    words = [*tiny_words, "model=forward", "trainer.max_epochs=30", "trainer.patience=1", "trainer.learning_rate=0.5"]
    config = compose(words)
    first = train_model(config)
    assert first.epochs < 30
    (model_folder(config) / "finished.json").unlink()  # killed just before it would have been written
    again = train_model(config)
    assert (again.epochs, again.best_epoch, again.validation_nll) == (
        first.epochs,
        first.best_epoch,
        first.validation_nll,
    )


def test_what_the_machine_or_the_disk_lacks_is_said_in_one_line(tiny_words, tmp_path, capsys):
    (tmp_path / "file").write_text("in the way")
    for words, problem in (
        (["profile=paper", "data.source=sample", "trainer.accelerator=gpu"], "do not fit this machine"),
        (["trainer.devices=-1"], "do not fit this machine"),
        ([f"output_dir={tmp_path / 'file'}"], "cannot write"),
    ):
        assert main(["train", *tiny_words, "model=forward", *words]) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert "Traceback" not in error


def test_two_seeds_give_two_models_and_one_seed_gives_one(tiny_words, tmp_path):
    def weights(folder, *words):
        config = compose([*tiny_words, "model=forward", f"output_dir={tmp_path / folder}", *words])
        train_model(config)
        return load_model(model_folder(config) / "best.ckpt").network.state_dict()

    first, again, other = weights("a"), weights("b"), weights("c", "seed=1")
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not all(torch.equal(first[name], other[name]) for name in first)


@pytest.fixture
def _leave_process_group():
    """The paper's profile starts DDP even for one process; later tests must not find themselves inside it."""
    yield
    if torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


@pytest.mark.usefixtures("_leave_process_group")
@pytest.mark.parametrize(
    ("profile", "task", "name"),
    [
        *(
            (profile, task, name)
            for profile in ("small", "cpu")
            for task in TASKS
            for name in ("forward", "mask-selfattn")
        ),
        # The paper's sizes make checkpoints of hundreds of megabytes: each task and each kind of model once.
        ("paper", "poetry", "forward"),
        ("paper", "dialog", "mask-selfattn"),
        ("paper", "aprc", "birnn"),
    ],
)
def test_every_profile_takes_a_training_step(tmp_path, shared_cache, profile, task, name):
    """Its own sizes, precision and schedule, on a shrunken sample and the CPU."""
    shrunken = ["data.source=sample", "data.sample_pairs=400", "data.max_train_pairs=16", "test_sets.size=5"]
    here = ["trainer.accelerator=cpu", "trainer.devices=1", "trainer.max_epochs=1", "trainer.sample_fills=1"]
    chosen = [f"task={task}", f"profile={profile}", f"model={name}"]
    config = compose([*chosen, *shrunken, *here, f"output_dir={tmp_path}", f"data.cache_dir={shared_cache}"])
    assert train_model(config).epochs == 1
