"""How the cost of a search grows with the vocabulary, the sentence, the blanks and K: exponents fitted to measurements."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, cast

import torch
from torch import nn

from tigs.config import MethodConfig
from tigs.data.batch import Padded, pad
from tigs.data.special import BLANK_ID, SPECIAL_TOKENS, UNK_ID
from tigs.inference.benchmark import Runner, count_words, make_infiller, timed_fill
from tigs.inference.interfaces import Templates
from tigs.inference.module import FORWARD
from tigs.inference.proposals import count_candidates
from tigs.models.seq2seq import Seq2Seq
from tigs.progress import track

N_TEMPLATES = 24
"""Of each point, unless there are fewer sentences."""
MEASURED = ("reference", "exact", "margin", "tigs-plus")
_SHARES_OF_VOCABULARY = (0.25, 0.5, 1.0)
_N_BLANKS = (1, 2, 4, 8)
_N_CANDIDATES = (10, 20, 40, 80)
# Sentences from 4 to 7 tokens, from 8 to 15 and so on; each with as many blanks as the shortest can well have.
_SHORTEST, _BLANKS_BY_LENGTH = 4, 2
# The best of them counts: the rest is disturbance.
_REPEATS = 2


class Sentence(NamedTuple):
    """Ids of a sentence and of what it answers to."""

    context: Sequence[int]
    words: Sequence[int]


class Point(NamedTuple):
    """Where a cost is measured."""

    size: float
    """of what grows"""
    templates: Templates
    network: Seq2Seq
    n_candidates: int | None = None
    """K, where it is not that of the settings"""


@dataclass(frozen=True)
class Growth:
    """Costs per sentence of one variant along one direction; the exponent is the slope of log cost over log size."""

    along: str
    variant: str
    n: int
    """templates at each size"""
    sizes: tuple[float, ...]
    model_steps: tuple[float, ...]
    seconds: tuple[float, ...]
    steps_exponent: float
    seconds_exponent: float


def measure_growth(
    runners: Sequence[Runner], networks: Mapping[str, nn.Module], sentences: Sequence[Sentence], *, seed: int
) -> list[Growth]:
    """All directions along which the sentences reach far enough.

    Args:
        runners: those of `MEASURED` are measured.
        networks: that the runners were made of.
        sentences: without blanks.
        seed: of the runners.
    """
    own = [runner for runner in runners if runner.variant.name in MEASURED]
    network = cast(Seq2Seq, networks[FORWARD])
    growths = []
    for along, points in growth_points(network, sentences).items():
        if len(points) < 2:
            continue
        # K is what the paper's method is slow by.
        measured = [runner for runner in own if along != "K" or runner.variant.method == "tigs"]
        costs: dict[str, list[tuple[float, float]]] = {runner.variant.name: [] for runner in measured}
        for point in track(points, f"growth with {along}"):
            for name, cost in _costs(measured, networks, point, seed=seed).items():
                costs[name].append(cost)
        n = len(points[0].templates.ids)
        growths += [_growth(along, name, n, [point.size for point in points], costs[name]) for name in costs]
    return growths


def growth_points(network: Seq2Seq, sentences: Sequence[Sentence]) -> dict[str, list[Point]]:
    """The sizes along each direction; everything else stays the same, the number of templates too."""
    n_words = len(network.word_vectors) - len(SPECIAL_TOKENS)
    with_blanks = [one for one in sentences if len(one.words) >= _N_BLANKS[-1]][:N_TEMPLATES]
    points: dict[str, list[Point]] = {"vocabulary": [], "length": [], "blanks": [], "K": []}
    if with_blanks:
        usual = make_templates(with_blanks, n_blanks=_N_BLANKS[2])
        for share in _SHARES_OF_VOCABULARY:
            n_tokens = len(SPECIAL_TOKENS) + int(share * n_words)
            points["vocabulary"].append(
                Point(n_tokens, _only_known(usual, n_tokens), cut_vocabulary(network, n_tokens))
            )
        points["blanks"] = [Point(n, make_templates(with_blanks, n_blanks=n), network) for n in _N_BLANKS]
        points["K"] = [Point(n, usual, network, n) for n in _N_CANDIDATES if n <= n_words]
    for bucket in _by_length(sentences):
        mean = sum(len(one.words) for one in bucket) / len(bucket)
        points["length"].append(Point(mean, make_templates(bucket, n_blanks=_BLANKS_BY_LENGTH), network))
    return points


def make_templates(sentences: Sequence[Sentence], *, n_blanks: int) -> Templates:
    """Blanks at random places; those of a smaller number are among those of a larger."""
    templates = []
    for number, sentence in enumerate(sentences):
        places = random.Random(number).sample(range(len(sentence.words)), len(sentence.words))[:n_blanks]
        templates.append([BLANK_ID if place in places else word for place, word in enumerate(sentence.words)])
    ids = tuple(map(str, range(len(sentences))))
    return Templates(ids, pad([sentence.context for sentence in sentences]), pad(templates))


def cut_vocabulary(network: Seq2Seq, n_tokens: int) -> Seq2Seq:
    """The same network as if it knew the first `n_tokens` words alone."""
    smaller = copy.deepcopy(network)
    tables: list[nn.Embedding | nn.Linear] = [smaller.embedding, smaller.projection]
    if smaller.encoder is not None:
        tables.append(smaller.encoder.embedding)
    for table in tables:
        table.weight = nn.Parameter(table.weight[:n_tokens].clone(), requires_grad=False)
    smaller.projection.bias = nn.Parameter(smaller.projection.bias[:n_tokens].clone(), requires_grad=False)
    return smaller


def fit_exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """b of the least squares fit of log cost = a + b log size."""
    x, y = ([math.log(value) for value in values] for values in (sizes, costs))
    mean_x, mean_y = sum(x) / len(x), sum(y) / len(y)
    covariance = sum((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True))
    return covariance / sum((a - mean_x) ** 2 for a in x)


def _only_known(templates: Templates, n_tokens: int) -> Templates:
    """Words that a smaller vocabulary lacks become `<unk>`."""

    def known(padded: Padded) -> Padded:
        return Padded(torch.where(padded.ids < n_tokens, padded.ids, UNK_ID), padded.lengths)

    return Templates(templates.ids, known(templates.context), known(templates.target))


def _by_length(sentences: Sequence[Sentence]) -> list[list[Sentence]]:
    """The first sentences of each range of lengths that has enough of them, each range twice as long as the one before."""
    buckets: dict[int, list[Sentence]] = {}
    for sentence in sentences:
        if len(sentence.words) >= _SHORTEST:
            buckets.setdefault(int(math.log2(len(sentence.words))), []).append(sentence)
    wanted = min(N_TEMPLATES, len(sentences) // 4)
    return [bucket[:wanted] for _, bucket in sorted(buckets.items()) if 0 < wanted <= len(bucket)]


def _costs(
    runners: Sequence[Runner], networks: Mapping[str, nn.Module], point: Point, *, seed: int
) -> dict[str, tuple[float, float]]:
    """Model steps and seconds per sentence of each variant at one point, measured in turn."""
    own_networks = {**networks, FORWARD: point.network}
    made = []
    for runner in runners:
        settings = _settings_at(runner.settings, point, networks[FORWARD])
        infiller = make_infiller(runner.variant, settings, own_networks, seed=seed)
        made.append(Runner(runner.variant, settings, infiller))
    costs: dict[str, tuple[float, float]] = {}
    for _ in range(_REPEATS):
        for runner in made:
            results, seconds = timed_fill(runner.infiller, point.templates)
            _, before = costs.get(runner.variant.name, (0.0, math.inf))
            steps = sum(result.model_steps for result in results) / len(results)
            costs[runner.variant.name] = (steps, min(before, seconds / len(results)))
    return costs


def _settings_at(settings: MethodConfig, point: Point, whole: nn.Module) -> MethodConfig:
    """K as the point says, or as large as in the whole vocabulary where the settings give a share of it."""
    usual = count_candidates(settings.n_candidates, count_words(whole, settings))
    most = count_words(point.network, settings)
    return replace(settings, n_candidates=float(min(point.n_candidates or usual, most)))


def _growth(along: str, variant: str, n: int, sizes: Sequence[float], costs: Sequence[tuple[float, float]]) -> Growth:
    steps, seconds = zip(*costs, strict=True)
    return Growth(
        along,
        variant,
        n,
        tuple(sizes),
        steps,
        seconds,
        steps_exponent=fit_exponent(sizes, steps),
        seconds_exponent=fit_exponent(sizes, seconds),
    )
