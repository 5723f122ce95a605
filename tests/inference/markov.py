"""Models whose every probability is known: each word depends on the word before it, on its place, and on the context.

They satisfy the interfaces of `tigs.inference.interfaces` and nothing more. Double precision, so that rounding decides nothing.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import BLANK_ID, END_ID, SPECIAL_TOKENS, START_ID, UNK_ID
from tigs.models.nll import NLL

WORDS = tuple(range(len(SPECIAL_TOKENS), len(SPECIAL_TOKENS) + 6))
N_TOKENS = len(SPECIAL_TOKENS) + len(WORDS)


class MarkovState(NamedTuple):
    """Which table of transitions each row uses next."""

    table: Tensor
    """(rows)"""

    def select(self, rows: Tensor) -> MarkovState:
        return MarkovState(self.table[rows])

    def join(self, others: Sequence[MarkovState]) -> MarkovState:
        return MarkovState(torch.cat([self.table, *(other.table for other in others)]))


class Markov:
    """P(y | x) = product of `transitions[table, previous, word]`.

    The first word of the context names the first table. Each step uses the next one, so that a row out of place or out of step
    is noticed, and no two sentences are equally likely because they hold the same pairs of words in another order.
    """

    def __init__(self, transitions: Tensor, *, first_token: int = START_ID, moving: bool = True) -> None:
        """Take probabilities (tables, vocabulary, vocabulary); not `moving`: all steps use the same table."""
        self.transitions, self.first_token, self.pace = transitions.double(), first_token, int(moving)
        # Orthogonal, so that a vector says how much of each word is in it, yet no two words are equally far from a third.
        random = torch.randn(N_TOKENS, N_TOKENS, generator=torch.Generator().manual_seed(1), dtype=torch.double)
        self.vectors = torch.linalg.qr(random)[0] * torch.linspace(1, 2, N_TOKENS)[:, None]

    @property
    def word_vectors(self) -> Tensor:
        return self.vectors

    def start(self, context: Padded) -> MarkovState:
        tables = [self.first_table(row[:n]) for row, n in zip(context.ids, context.lengths, strict=True)]
        return MarkovState(torch.tensor(tables, dtype=torch.long))

    def first_table(self, context: Sequence[int] | Tensor) -> int:
        return int(context[0]) % len(self.transitions) if len(context) else 0

    def step(self, state: MarkovState, tokens: Tensor) -> tuple[Tensor, MarkovState]:
        outputs, state = self.run(state, tokens[:, None])
        return outputs[:, 0], state

    def run(self, state: MarkovState, tokens: Tensor) -> tuple[Tensor, MarkovState]:
        assert len(tokens) == len(state.table)
        n_steps, n_tables = tokens.shape[1], len(self.transitions)
        tables = (state.table[:, None] + self.pace * torch.arange(n_steps)) % n_tables  # (rows, time)
        after = MarkovState((state.table + self.pace * n_steps) % n_tables)
        logits = self.transitions.log()
        if not tokens.is_floating_point():
            return logits[tables, tokens], after
        words = tokens @ torch.linalg.inv(self.vectors)  # (rows, time, vocabulary) how much of each word is in a vector
        return torch.einsum("rtv,rtvw->rtw", words, logits[tables]), after

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        return torch.log_softmax(outputs, dim=-1)

    def nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        per_token = -self.log_probabilities(outputs).gather(1, targets[:, None]).squeeze(1)
        return NLL(per_token.sum(), per_token.detach())

    def least_nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Between nothing and all of it, so that a search which takes the bound for the NLL is noticed."""
        return self.nll(outputs, targets).per_token * (0.5 + 0.5 * torch.sin(outputs[:, 0]) ** 2)

    def exact_nlls(self, context: Sequence[int], sentence: Sequence[int]) -> Tensor:
        """(words + 1) of each word and of `</s>`, read from the table, without any of the above."""
        said = torch.tensor([self.first_token, *sentence, END_ID])
        tables = (self.first_table(context) + self.pace * torch.arange(len(said) - 1)) % len(self.transitions)
        return -self.transitions[tables, said[:-1], said[1:]].log()

    def exact_nll(self, context: Sequence[int], sentence: Sequence[int], *, end: bool = True) -> Tensor:
        """() of the whole sentence; `end`: with `</s>`."""
        nlls = self.exact_nlls(context, sentence)
        return nlls.sum() if end else nlls[:-1].sum()


class TwoSidedMarkov:
    """A stationary chain that can be read from both ends: both readers give a sentence the same probability (without `</s>`).

    The second table is the first one backward in time; both have the same stationary distribution.
    """

    def __init__(self, transitions: Tensor) -> None:
        """Take probabilities (vocabulary, vocabulary) over the words and `<unk>`; others count for nothing."""
        inside = torch.tensor([UNK_ID, *WORDS])
        forward = torch.full((N_TOKENS, N_TOKENS), 1e-9, dtype=torch.double)
        forward[inside[:, None], inside] = transitions[inside[:, None], inside].double()
        forward = forward / forward.sum(dim=1, keepdim=True)
        self.stationary = torch.linalg.matrix_power(forward, 10_000)[UNK_ID]  # (vocabulary)
        # Bayes: P(before | word) = P(before) P(word | before) / P(word).
        backward = forward.t() * self.stationary / self.stationary[:, None]
        both = torch.stack([forward, backward])  # (2, vocabulary, vocabulary)
        both[:, [START_ID, END_ID]] = self.stationary
        self.left_reader = Markov(both, first_token=START_ID, moving=False)
        self.right_reader = Markov(both.flip(0), first_token=END_ID, moving=False)

    def start_both(self, context: Padded) -> tuple[MarkovState, MarkovState]:
        return self.left_reader.start(context), self.right_reader.start(context)

    def joint_outputs(self, left: Tensor, right: Tensor) -> Tensor:
        """Bayes again: P(word | both sides) ~ P(word | left) P(word | right) / P(word)."""
        return left + right - self.stationary.log()

    def joint_log_probabilities(self, outputs: Tensor) -> Tensor:
        return torch.log_softmax(outputs, dim=-1)

    def joint_nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        return self.left_reader.nll(outputs, targets)

    def exact_joint(self, context: Sequence[int], sentence: Sequence[int], position: int) -> Tensor:
        """P(word at position | rest) (vocabulary), by trying every word in the whole sentence."""
        tried = [[*sentence[:position], word, *sentence[position + 1 :]] for word in range(N_TOKENS)]
        nll = torch.stack([self.left_reader.exact_nll(context, words, end=False) for words in tried])
        return torch.softmax(-nll, dim=0)


def random_markov(seed: int, *, sharpness: float = 2.0) -> Markov:
    """Special tokens are as likely as words in it: whoever does not forbid them will fill them in."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(7, N_TOKENS, N_TOKENS, generator=generator, dtype=torch.double)
    return Markov(torch.softmax(sharpness * logits, dim=-1))


def slopes(
    model: Markov, context: Sequence[int], sentence: Sequence[int], place: int, *, counted: Sequence[bool] | None = None
) -> dict[int, float]:
    """What the words behind `place` begin to pay on the way from its word's vector to every other's, by finite differences.

    `counted`: which of the words and `</s>` count.
    """
    current = model.word_vectors[[model.first_token, *sentence]]  # (words + 1, size)
    targets = torch.tensor([*sentence, END_ID])[1 + place :]
    weights = torch.ones(len(targets)) if counted is None else torch.tensor(counted)[1 + place :]

    def behind(word: int, part: float) -> float:
        vectors = current.clone()
        vectors[1 + place] += part * (model.word_vectors[word] - vectors[1 + place])
        outputs, _ = model.run(MarkovState(torch.tensor([model.first_table(context)])), vectors[None])
        return (weights * model.nll(outputs[0, 1 + place :], targets).per_token).sum().item()

    return {word: (behind(word, 1e-5) - behind(word, -1e-5)) / 2e-5 for word in WORDS}


def table_of(given_rows: Mapping[int, Mapping[int, float]]) -> Tensor:
    """(1, vocabulary, vocabulary) some transitions given; what is left is spread over the others."""
    table = torch.full((N_TOKENS, N_TOKENS), 1 / N_TOKENS, dtype=torch.double)
    for before, row in given_rows.items():
        table[before] = (1 - sum(row.values())) / (N_TOKENS - len(row))
        for word, probability in row.items():
            table[before, word] = probability
    return table[None]


def random_two_sided(seed: int, *, sharpness: float = 2.0) -> TwoSidedMarkov:
    """The same from both ends."""
    return TwoSidedMarkov(random_markov(seed, sharpness=sharpness).transitions[0])


def all_fills(template: Sequence[int], *, words: Sequence[int] = WORDS) -> Iterator[tuple[tuple[int, ...], list[int]]]:
    """Every fill of a template (ids, `<blank>` in the holes), with the whole sentence."""
    for fill in itertools.product(words, repeat=list(template).count(BLANK_ID)):
        yield fill, apply(template, fill)


def apply(template: Sequence[int], fill: Sequence[int]) -> list[int]:
    """The whole sentence."""
    left = iter(fill)
    return [next(left) if token == BLANK_ID else token for token in template]
