"""How good and how dear searches are, measured side by side: every variant fills each batch in turn, so that a slow minute of the
machine falls on all of them. On the CPU.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from tigs.composition import compose
from tigs.config import MethodConfig
from tigs.data.datamodule import TemplateBatch
from tigs.data.test_sets import TestSet
from tigs.data.vocabulary import Vocabulary
from tigs.errors import InferenceError
from tigs.inference.coordinate import at_coordinate_optimum, whole_sentences
from tigs.inference.interfaces import FillResult, Infiller, SequenceModel, Templates
from tigs.inference.methods import build_infiller, models_of
from tigs.inference.module import FORWARD
from tigs.inference.reference import ReferenceTigs
from tigs.inference.score import sentence_nll
from tigs.inference.start import make_start
from tigs.inference.words import forbidden_words
from tigs.models.seq2seq import Seq2Seq
from tigs.progress import track

BATCH_SIZE = 128
"""Templates that every variant is given together, at most."""
REFERENCE = "reference"
_N_WARM_UP = 4


class Variant(NamedTuple):
    """A method with settings of its own."""

    name: str
    method: str
    settings: tuple[str, ...] = ()
    """Words that come after those of the user."""
    is_slow: bool = False
    """Run on the first few templates only."""
    is_checked: bool = False
    """Whether its fills are checked for the coordinate optimum."""


VARIANTS = (
    Variant(REFERENCE, "tigs", is_checked=True),
    Variant("exact", "tigs", ("method.margin=inf",), is_checked=True),
    Variant("margin", "tigs", is_checked=True),
    Variant("tigs-plus", "tigs-plus", is_checked=True),
    Variant("greedy", "seq2seq-f", ("method.beam_width=1",)),
    Variant("beam-5", "seq2seq-f", ("method.beam_width=5",)),
    Variant("beam-20", "seq2seq-f", ("method.beam_width=20",)),
    Variant("beam-40", "seq2seq-f", ("method.beam_width=40",), is_checked=True),
    Variant("beam-70", "seq2seq-f", ("method.beam_width=70",)),
    Variant("beam-100", "seq2seq-f", ("method.beam_width=100",)),
    Variant("beam-150", "seq2seq-f", ("method.beam_width=150",)),
    Variant("beam-200", "seq2seq-f", ("method.beam_width=200",)),
    Variant("beam-1000", "seq2seq-f", ("method.beam_width=1000",), is_slow=True),
    Variant("birnn-gsn", "birnn-gsn"),
    Variant("birnn-bibs", "birnn-bibs"),
)


class Limits(NamedTuple):
    """How many templates are used."""

    templates: int
    """by every variant"""
    slow: int
    """by those that are slow"""
    checked: int
    """for the coordinate optimum"""


class Cell(NamedTuple):
    """Templates of one strategy and ratio."""

    name: str
    batches: list[Templates]
    """Sentences of like length together; those that slow variants are given come first."""
    n_slow: int
    checked: frozenset[str]
    """ids of those that are checked for the coordinate optimum"""


@dataclass(frozen=True)
class Figures:
    """What a variant achieved in one cell, and at what price. Ratios and differences are over its own templates."""

    variant: str
    n: int
    """templates it was run on"""
    model_steps: float
    """per sentence"""
    seconds: float
    """per sentence"""
    steps_ratio: float
    """the reference's model steps over its own"""
    seconds_ratio: float
    """the reference's seconds over its own"""
    nll: float
    """per token, `</s>` included, under the forward model"""
    nll_common: float
    """the same over the templates that every variant was run on"""
    nll_above_reference: float
    """per token"""
    equal_to_reference: float
    """share of fills"""
    at_optimum: float | None
    """share of fills that no single other word improves; None if not checked"""
    n_checked: int


class Runner(NamedTuple):
    """A variant that is ready."""

    variant: Variant
    settings: MethodConfig
    infiller: Infiller


def make_runners(words: Sequence[str], networks: Mapping[str, nn.Module], *, seed: int) -> list[Runner]:
    """Every variant whose networks are there.

    Args:
        words: the user's settings; a variant's own ones have the last word.
        networks: by name, in eval mode.
        seed: of sampling.
    """
    runners = []
    for variant in VARIANTS:
        if set(models_of(variant.method)) <= networks.keys():
            settings = compose([*words, f"method={variant.method}", *variant.settings]).method
            runners.append(Runner(variant, settings, make_infiller(variant, settings, networks, seed=seed)))
    return runners


def make_infiller(
    variant: Variant, settings: MethodConfig, networks: Mapping[str, nn.Module], *, seed: int
) -> Infiller:
    """What fills: the method itself, or its straightforward form."""
    # For the reference too, because its networks are frozen on the way.
    infiller = build_infiller(settings, {name: networks[name] for name in models_of(variant.method)}, seed=seed)
    if variant.name != REFERENCE:
        return infiller
    network = cast(Seq2Seq, networks[FORWARD])
    start = make_start(settings, network, forbidden=forbidden(network, settings), seed=seed)
    return ReferenceTigs(network, start, settings)


def forbidden(network: nn.Module, settings: MethodConfig) -> Tensor:
    """(vocabulary) words that may not be filled in."""
    return forbidden_words(len(network.get_parameter("embedding.weight")), allow_unk=settings.allow_unk)


def count_words(network: nn.Module, settings: MethodConfig) -> int:
    """Words that may."""
    return int((~forbidden(network, settings)).sum())


def make_cell(test_set: TestSet, vocabulary: Vocabulary, limits: Limits) -> Cell:
    """The first templates of a test set."""
    items = test_set.items[: limits.templates]
    batches = []
    for part in (items[: limits.slow], items[limits.slow :]):
        block = sorted(part, key=lambda item: len(item.template.tokens))
        # Of equal size: searches are slower in a small batch, the reference is not.
        size = math.ceil(len(block) / max(1, math.ceil(len(block) / BATCH_SIZE)))
        for first in range(0, len(block), size or 1):
            batch = TemplateBatch.make(block[first : first + size], vocabulary)
            ids = tuple(item.template.id for item in batch.items)
            batches.append(Templates(ids, batch.context, batch.target))
    checked = frozenset(item.template.id for item in items[: limits.checked])
    return Cell(test_set.name, batches, min(limits.slow, len(items)), checked)


def timed_fill(infiller: Infiller, templates: Templates) -> tuple[list[FillResult], float]:
    """The answers, and the seconds they took."""
    started = time.perf_counter()
    results = infiller.fill(templates)
    return results, time.perf_counter() - started


def warm_up(runners: Sequence[Runner], templates: Templates) -> None:
    """Nothing is measured that a process does only once."""
    few = templates.part(0, _N_WARM_UP)
    for runner in runners:
        runner.infiller.fill(few)


@dataclass
class _Record:
    """What a variant did, one entry per template in the order of all batches; a slow variant has fewer."""

    variant: Variant
    fills: list[tuple[int, ...]] = field(default_factory=list)
    nll: list[float] = field(default_factory=list)
    model_steps: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    """an equal share of its batch for each"""
    optimal: list[bool] = field(default_factory=list)


def measure(runners: Sequence[Runner], model: SequenceModel, cell: Cell) -> list[Figures]:
    """All variants on the templates of one cell.

    Args:
        runners: the reference among them.
        model: the forward model, which scores all fills.
        cell: what to fill.
    """
    records = {runner.variant.name: _Record(runner.variant) for runner in runners}
    for batch in track(cell.batches, f"{cell.name}: filling"):
        for runner in runners:
            record = records[runner.variant.name]
            # No batch is partly inside this limit.
            if not runner.variant.is_slow or len(record.fills) < cell.n_slow:
                _fill(runner.infiller, model, batch, record)
    checked = [record for record in records.values() if record.variant.is_checked]
    check = _Check(model, forbidden(cast(nn.Module, model), runners[0].settings))
    first = 0
    for batch in track(cell.batches, f"{cell.name}: trying every word"):
        rows = [row for row, name in enumerate(batch.ids) if name in cell.checked]
        for record in checked:
            record.optimal += check(batch, [(row, record.fills[first + row]) for row in rows])
        first += len(batch.ids)
    n_tokens = [length + 1 for batch in cell.batches for length in batch.target.lengths.tolist()]
    n_common = min(len(record.fills) for record in records.values())
    return [_figures(record, records[REFERENCE], n_tokens, n_common) for record in records.values()]


def _fill(infiller: Infiller, model: SequenceModel, batch: Templates, record: _Record) -> None:
    results, seconds = timed_fill(infiller, batch)
    fills = [result.fill for result in results]
    nll = sentence_nll(model, batch.context, whole_sentences(batch, fills)).tolist()
    if not all(map(math.isfinite, nll)):
        raise InferenceError(
            f"{record.variant.name}: the forward model gives its fills an NLL that is no number",
            remedy="Train forward again, with a lower trainer.learning_rate",
        )
    record.fills += fills
    record.nll += nll
    record.model_steps += [result.model_steps for result in results]
    record.seconds += [seconds / len(fills)] * len(fills)


# A word is not read on when it has fallen so many nats behind the one it would replace: trying every word to the end takes
# seconds for each sentence. A fill that passes may thus, rarely, still be improvable.
CHECK_MARGIN = 12.0
# What is left of them after each word behind it: wider, at every place, than the margins of the searches that are checked.
CHECK_MARGIN_DECAY = 0.95


class _Check:
    """The coordinate optimum of fills; what variants have in common is tried once."""

    def __init__(self, model: SequenceModel, forbidden: Tensor) -> None:
        self.model, self.forbidden = model, forbidden
        self.known: dict[tuple[str, tuple[int, ...]], bool] = {}

    def __call__(self, batch: Templates, fills: Sequence[tuple[int, tuple[int, ...]]]) -> list[bool]:
        """Whether each fill of a row of the batch is one."""
        new = [(row, fill) for row, fill in fills if (batch.ids[row], fill) not in self.known]
        if new:
            templates = batch.select(torch.tensor([row for row, _ in new]))
            own = [fill for _, fill in new]
            optimal = at_coordinate_optimum(
                self.model,
                templates,
                own,
                forbidden=self.forbidden,
                margin=CHECK_MARGIN,
                margin_decay=CHECK_MARGIN_DECAY,
            )
            self.known |= zip(zip(templates.ids, own, strict=True), optimal, strict=True)
        return [self.known[batch.ids[row], fill] for row, fill in fills]


def _figures(record: _Record, reference: _Record, n_tokens: Sequence[int], n_common: int) -> Figures:
    n = len(record.fills)
    nll, reference_nll = (sum(one.nll[:n]) / sum(n_tokens[:n]) for one in (record, reference))
    equal = sum(own == other for own, other in zip(record.fills, reference.fills[:n], strict=True))
    return Figures(
        variant=record.variant.name,
        n=n,
        model_steps=sum(record.model_steps) / n,
        seconds=sum(record.seconds) / n,
        steps_ratio=sum(reference.model_steps[:n]) / sum(record.model_steps),
        seconds_ratio=sum(reference.seconds[:n]) / sum(record.seconds),
        nll=nll,
        nll_common=sum(record.nll[:n_common]) / sum(n_tokens[:n_common]),
        nll_above_reference=nll - reference_nll,
        equal_to_reference=equal / n,
        at_optimum=sum(record.optimal) / len(record.optimal) if record.optimal else None,
        n_checked=len(record.optimal),
    )
