"""What tests share: the command run in this process, and small clean corpora in their publishers' layouts."""

from __future__ import annotations

import json
import os
import random
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Before torch is imported: some virtual machines announce bfloat16 matrix units that they do not let a program use, and
# a test of mixed precision would end the whole process. Slower units give the same figures.
os.environ.setdefault("ONEDNN_MAX_CPU_ISA", "AVX512_CORE")

import pytest
from hypothesis import settings

from tigs.__main__ import main
from tigs.composition import compose
from tigs.config import MODELS
from tigs.data.lock import one_at_a_time

settings.register_profile("tigs", deadline=None, max_examples=50)
settings.load_profile("tigs")

# A few that are frequent and many that are rare, so that every vocabulary leaves some out.
WORDS = ["the", "a", "my", "this", "old", "red", "book", "song", "lamp", "was", "is", "very", "good", "and", "we"] * 20
WORDS += [f"rare{number}" for number in range(150)]
CHARACTERS = [*"春江花月夜山高水長天地人心風雨雲雪日落歸來去年今何處白青黃紅一二三千萬里東西南北"] * 20
CHARACTERS += [chr(ord("一") + 7 * number) for number in range(400)]


# A training of a few seconds.
TINY = (
    "data.sample_pairs=400",
    "test_sets.size=10",
    "model.hidden=16",
    "model.heads=2",
    "trainer.max_epochs=2",
    "trainer.batch_size=64",
    "trainer.accelerator=cpu",
)


class Ran(NamedTuple):
    """How a command ended and what it wrote."""

    code: int
    out: str
    err: str


@pytest.fixture
def tigs(capfd):
    """Run a command in this process; what it writes is caught at the level of file descriptors."""

    def run(*words):
        capfd.readouterr()
        try:
            code = main([str(word) for word in words])
        except SystemExit as stop:  # argparse ends --help and wrong options by itself
            code = stop.code
        return Ran(code, *capfd.readouterr())

    return run


@pytest.fixture(scope="session")
def as_sets():
    """The splits of a corpus without the order of their pairs."""
    return lambda corpus: {split: set(pairs) for split, pairs in corpus.splits.items()}


@pytest.fixture(scope="session")
def corpora(tmp_path_factory):
    """A folder with small clean corpora below `dialog`, `poetry` and `aprc`."""
    root = tmp_path_factory.mktemp("corpora")
    generator = random.Random(2019)
    _write_dialog(root / "dialog", generator)
    _write_poetry(root / "poetry", generator)
    _write_reviews(root / "aprc", generator)
    return root


@pytest.fixture(scope="session")
def small_words(corpora, tmp_path_factory):
    """The settings that prepare a small corpus in a cache which all tests share."""
    cache = tmp_path_factory.mktemp("cache")

    def words(task, *more):
        return [f"task={task}", f"data.dir={corpora / task}", f"data.cache_dir={cache}", "test_sets.size=30", *more]

    return words


@pytest.fixture(scope="session")
def tiny():
    """Settings of a training of a few seconds."""
    return TINY


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """`trained(task, *models)` gives the settings that find tiny trained models, all of them if none is named."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "trained"

    @cache
    def train(task, model):
        from tigs.training.fit import train_model  # here, so that tests of light commands stay light

        with one_at_a_time(shared), pytest.MonkeyPatch.context() as patch:
            patch.setenv("WANDB_MODE", "disabled")
            train_model(compose([*words(task), f"model={model}"]))

    def words(task):
        return [*TINY, f"task={task}", f"output_dir={shared / 'runs'}", f"data.cache_dir={shared / 'cache'}"]

    def make(task, *models):
        for model in models or MODELS:
            train(task, model)
        return words(task)

    return make


def _write_dialog(folder: Path, generator: random.Random) -> None:
    for split, n_dialogues in (("train", 60), ("validation", 15), ("test", 15)):
        (folder / split).mkdir(parents=True)
        lines = []
        for _ in range(n_dialogues):
            turns = [_sentence(generator, 2, 12) for _ in range(generator.randint(2, 6))]
            lines.append("".join(f"{turn} __eou__ " for turn in turns))
        (folder / split / f"dialogues_{split}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _write_poetry(folder: Path, generator: random.Random) -> None:
    (folder / "全唐诗").mkdir(parents=True)
    for name in ("poet.tang.0.json", "poet.song.0.json"):
        poems = []
        for _ in range(200):
            width, n_couplets = generator.choice((5, 7)), generator.choice((2, 4))
            lines = ["".join(generator.choices(CHARACTERS, k=width)) for _ in range(2 * n_couplets)]
            couplets = [f"{lines[2 * n]}，{lines[2 * n + 1]}。" for n in range(n_couplets)]
            poems.append({"author": "無名氏", "title": "無題", "paragraphs": couplets})
        (folder / "全唐诗" / name).write_text(json.dumps(poems, ensure_ascii=False), encoding="utf-8")


def _write_reviews(folder: Path, generator: random.Random) -> None:
    folder.mkdir()
    reviews = [{"reviewText": _sentence(generator, 3, 20), "overall": 5.0} for _ in range(400)]
    (folder / "reviews.jsonl").write_text("".join(json.dumps(review) + "\n" for review in reviews), encoding="utf-8")


def _sentence(generator: random.Random, shortest: int, longest: int) -> str:
    return " ".join(generator.choices(WORDS, k=generator.randint(shortest, longest))) + " ."
