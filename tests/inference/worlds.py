"""Worlds to search in: tiny trained models with and without a context, and a chain whose every probability is known."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, NamedTuple

import torch
from hypothesis import strategies as st
from torch import Tensor
from torch.nn.functional import cross_entropy

from tigs.composition import compose
from tigs.config import MODELS, MethodConfig
from tigs.data.batch import pad
from tigs.data.special import BLANK_ID, END_ID, START_ID
from tigs.inference.interfaces import FillResult, Infiller, Templates
from tigs.inference.methods import METHODS, Parts, build_infiller
from tigs.inference.start import Start, Started
from tigs.inference.tigs import Tigs
from tigs.inference.words import forbidden_words

from .markov import N_TOKENS, WORDS, Markov, all_fills, apply, random_markov, random_two_sided

Ids = Sequence[int]
FORBIDDEN = forbidden_words(N_TOKENS, allow_unk=False)
CONTEXTS = st.lists(st.sampled_from(WORDS), max_size=2)


class Case(NamedTuple):
    """One template, as plain lists."""

    id: str
    context: list[int]
    template: list[int]

    @property
    def n_blanks(self) -> int:
        return self.template.count(BLANK_ID)

    def filled(self, fill: Ids) -> list[int]:
        return apply(self.template, fill)


def together(cases: Sequence[Case]) -> Templates:
    """A batch of them."""
    ids, contexts, templates = zip(*cases, strict=True)
    return Templates(tuple(ids), pad(contexts), pad(templates))


@st.composite
def small_templates(draw: Callable[..., Any], most_blanks: int = 3) -> list[int]:
    """Templates with few enough fills to try them all."""
    length = draw(st.integers(1, 6))
    blanks = draw(st.sets(st.integers(0, length - 1), max_size=most_blanks))
    return [BLANK_ID if place in blanks else draw(st.sampled_from(WORDS)) for place in range(length)]


@st.composite
def small_cases(draw: Callable[..., Any], most_blanks: int = 3) -> list[Case]:
    """A few such templates, with contexts."""
    pairs = draw(st.lists(st.tuples(CONTEXTS, small_templates(most_blanks)), min_size=1, max_size=4))
    return [Case(str(number), *pair) for number, pair in enumerate(pairs)]


def by_nll(model: Markov, case: Case) -> list[tuple[float, tuple[int, ...]]]:
    """All fills with their exact NLL, best first."""
    return sorted((model.exact_nll(case.context, words).item(), fill) for fill, words in all_fills(case.template))


def some_fills(cases: Sequence[Case], seed: int) -> list[tuple[int, ...]]:
    """Somewhere to start from."""
    return [tuple(WORDS[(seed + 5 * place) % 6] for place in range(case.n_blanks)) for case in cases]


def start_from(fills: Sequence[Ids]) -> Start:
    """A start that fills in given words."""

    def start(templates: Templates) -> Started:
        words = templates.target.ids.clone()
        words[templates.blanks] = torch.tensor([word for fill in fills for word in fill], dtype=torch.long)
        return Started(words, torch.zeros_like(templates.target.lengths))

    return start


def tigs_from(
    model: Any, cases: Sequence[Case], fills: Sequence[Ids], *, n_tokens: int = N_TOKENS, **options: Any
) -> list[FillResult]:
    """TIGS from given words."""
    settings = MethodConfig(**{"n_candidates": 3, **options})
    forbidden = forbidden_words(n_tokens, allow_unk=settings.allow_unk)
    return Tigs(model, start_from(fills), settings, forbidden=forbidden).fill(together(cases))


@cache
def shipped(method: str) -> MethodConfig:
    """The settings of its own file."""
    return compose([f"method={method}", "profile=paper"]).method


@dataclass
class World:
    """Models, and pairs (context, sentence) that they know."""

    networks: Mapping[str, Any]
    n_tokens: int
    pairs: list[tuple[list[int], list[int]]]

    def infiller(self, method: str, *, seed: int = 0, **options: Any) -> Infiller:
        settings = replace(shipped(method), **options)
        networks = {name: self.networks[name] for name in METHODS[method].models}
        return build_infiller(settings, networks, seed=seed)

    def fill(self, method: str, cases: Sequence[Case], *, seed: int = 0, **options: Any) -> list[FillResult]:
        return self.infiller(method, seed=seed, **options).fill(together(cases))

    def cases(
        self,
        number: int,
        *,
        ratios: Sequence[float] = (0.25, 0.5, 0.75),
        longest: int = 1000,
        most_blanks: int = 1000,
        seed: int = 0,
    ) -> list[Case]:
        """Random templates of the world's sentences, at least one blank in each."""
        generator = random.Random(seed)
        cases = []
        while len(cases) < number:
            context, sentence = generator.choice(self.pairs)
            sentence = sentence[: generator.randint(1, longest)]
            n_blanks = min(max(1, int(generator.choice(ratios) * len(sentence))), most_blanks)
            blanks = generator.sample(range(len(sentence)), n_blanks)
            template = [BLANK_ID if place in blanks else word for place, word in enumerate(sentence)]
            cases.append(Case(f"{seed}/{len(cases)}", context, template))
        return cases

    @torch.no_grad()
    def rescore(self, method: str, case: Case, fill: Ids) -> tuple[float, ...]:
        """What the method says it minimises, computed for one sentence by plain means; two possible values for seq2seq-fb."""
        words = case.filled(fill)
        if method in ("tigs", "tigs-plus", "seq2seq-f"):
            return (self._nll("forward", case.context, words),)
        if method == "seq2seq-b":
            return (self._nll("backward", case.context, words[::-1]),)
        if method == "seq2seq-fb":
            return self.rescore("seq2seq-f", case, fill) + self.rescore("seq2seq-b", case, fill)
        if method == "birnn-gsn":
            return (self._pseudo_nll(case.context, words),)
        if method == "birnn-bibs":
            return (self._one_way(case.context, words, "left") + self._one_way(case.context, words, "right"),)
        return (self._nll(method, [*case.context, END_ID, *case.template], words),)

    def _nll(self, model: str, context: Ids, words: Ids) -> float:
        network = self.networks[model]
        outputs, _ = network.run(network.start(pad([context])), torch.tensor([[START_ID, *words]]))
        return cross_entropy(network.projection(outputs[0]), torch.tensor([*words, END_ID]), reduction="sum").item()

    def _pseudo_nll(self, context: Ids, words: Ids) -> float:
        """Of each word given all others."""
        network = self.networks["birnn"]
        sides = [self._read(network.left_to_right, context, [START_ID, *words[:-1]])]
        sides.append(self._read(network.right_to_left, context, [END_ID, *words[:0:-1]]).flip(0))
        logits = network.joint_projection(torch.tanh(network.joint_layer(torch.cat(sides, dim=1))))
        return cross_entropy(logits, torch.tensor(words), reduction="sum").item()

    def _one_way(self, context: Ids, words: Ids, side: str) -> float:
        network = self.networks["birnn"]
        if side == "left":
            logits = network.left_to_right_projection(
                self._read(network.left_to_right, context, [START_ID, *words[:-1]])
            )
            return cross_entropy(logits, torch.tensor(words), reduction="sum").item()
        logits = network.right_to_left_projection(self._read(network.right_to_left, context, [END_ID, *words[:0:-1]]))
        return cross_entropy(logits, torch.tensor(words[::-1]), reduction="sum").item()

    def _read(self, decoder: Any, context: Ids, words: Ids) -> Tensor:
        """(words, hidden) what a decoder of the two-sided model says after each word."""
        network = self.networks["birnn"]
        encoded = (None, None) if network.encoder is None else network.encoder(pad([context]))
        outputs, _ = decoder.run(decoder.start(1, *encoded), network.embedding(torch.tensor([words])))
        return outputs[0]


class MarkovWorld(World):
    """The same where everything can be read from a table."""

    def infiller(self, method: str, *, seed: int = 0, **options: Any) -> Infiller:
        # A share of eleven tokens would be nothing.
        settings = replace(shipped(method), **{"n_candidates": 3, **options})
        forbidden = forbidden_words(self.n_tokens, allow_unk=settings.allow_unk)
        return METHODS[method].make(Parts(settings, self.networks, forbidden, seed))

    def _nll(self, model: str, context: Ids, words: Ids) -> float:
        markov: Markov = self.networks[model]
        return markov.exact_nll(context, words).item()

    def _pseudo_nll(self, context: Ids, words: Ids) -> float:
        joint = self.networks["birnn"].exact_joint
        return -sum(joint(context, words, place)[word].log().item() for place, word in enumerate(words))

    def _one_way(self, context: Ids, words: Ids, side: str) -> float:
        two_sided = self.networks["birnn"]
        if side == "left":
            return two_sided.left_reader.exact_nll(context, words, end=False).item()
        return two_sided.right_reader.exact_nll(context, words[::-1], end=False).item()


def markov_world(seed: int = 0) -> MarkovWorld:
    """Small enough to try every fill."""
    generator = random.Random(seed)
    pairs = [
        (generator.choices(WORDS, k=generator.randint(0, 2)), generator.choices(WORDS, k=generator.randint(1, 9)))
        for _ in range(50)
    ]
    networks = {name: random_markov(seed + number) for number, name in enumerate(MODELS)}
    return MarkovWorld({**networks, "birnn": random_two_sided(seed)}, N_TOKENS, pairs)
