"""What a search may ask of a model, and what it answers. No search sees more of a model than this.

Our networks offer these methods themselves; any other model can be searched through an object of a few lines that has them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

from torch import Tensor

from tigs.data.batch import Padded
from tigs.data.special import BLANK_ID
from tigs.models.nll import NLL

S = TypeVar("S", bound="State")


class State(Protocol):
    """What a model knows after a prefix; its content is the model's own affair."""

    def select(self: S, rows: Tensor) -> S:
        """The state of chosen rows, in that order; a row may be chosen many times."""


@runtime_checkable
class JoinableState(State, Protocol):
    """A state of sentences that have been read up to different places, as a recurrent model has them.

    A search then visits blanks at different places together; with any other state only those at the same place.
    """

    def join(self: S, others: Sequence[S]) -> S:
        """The rows of several states, one after the other."""


class SequenceModel(Protocol):
    """P(y | x), one token after the other."""

    first_token: int
    """What is read before the first token of a sentence."""

    @property
    def word_vectors(self) -> Tensor:
        """(vocabulary, size) the input vectors of all words."""

    def start(self, context: Padded) -> Any:
        """The state before the first token is read, one row per context."""

    def step(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read one token per row, ids (rows) or vectors (rows, size); the output predicts the next token."""

    def run(self, state: Any, tokens: Tensor) -> tuple[Tensor, Any]:
        """Read a whole suffix, ids (rows, time) or vectors (rows, time, size)."""

    def log_probabilities(self, outputs: Tensor) -> Tensor:
        """(..., vocabulary) of the next token, from outputs (..., size)."""

    def nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        """NLL of targets (tokens), from outputs (tokens, size); no batch of logits is held."""

    def least_nll(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """(tokens) what the NLL of each target is at least; the cheaper and the closer, the faster a search. 0 would do."""


class TwoSidedModel(Protocol):
    """P(y_t | all other words, x), and a reader from each end of the sentence. It gives `</s>` no probability."""

    @property
    def left_reader(self) -> SequenceModel:
        """Predicts each word from those before it."""

    @property
    def right_reader(self) -> SequenceModel:
        """Predicts each word from those after it; reads reversed sentences."""

    def start_both(self, context: Padded) -> tuple[Any, Any]:
        """The states of both readers before their first token; the context is encoded once."""

    def joint_outputs(self, left: Tensor, right: Tensor) -> Tensor:
        """(..., size) what the joint head sees, from both readers' outputs (..., size) for the same word."""

    def joint_log_probabilities(self, outputs: Tensor) -> Tensor:
        """(..., vocabulary) from joint outputs."""

    def joint_nll(self, outputs: Tensor, targets: Tensor) -> NLL:
        """NLL of targets (tokens), from joint outputs (tokens, size)."""


class Templates(NamedTuple):
    """Sentences to fill together."""

    ids: tuple[str, ...]
    """They seed every random choice, so that a fill does not depend on its neighbours in a batch."""
    context: Padded
    target: Padded
    """`<blank>` in the holes."""

    @property
    def blanks(self) -> Tensor:
        """(batch, longest) true at blanks."""
        return self.target.ids == BLANK_ID

    def fills(self, words: Tensor) -> list[tuple[int, ...]]:
        """What stands in the blanks of whole sentences (batch, longest)."""
        return [tuple(row[blank].tolist()) for row, blank in zip(words, self.blanks, strict=True)]

    @property
    def reversed(self) -> Templates:
        """The same sentences from their last word to their first."""
        return Templates(self.ids, self.context, self.target.reversed)

    def select(self, rows: Tensor) -> Templates:
        """Chosen sentences, padded as before."""
        context, target = (Padded(padded.ids[rows], padded.lengths[rows]) for padded in (self.context, self.target))
        return Templates(tuple(self.ids[row] for row in rows.tolist()), context, target)

    def part(self, first: int, last: int) -> Templates:
        """The sentences from `first` to before `last`, no longer padded than they need."""

        def cut(padded: Padded) -> Padded:
            lengths = padded.lengths[first:last]
            return Padded(padded.ids[first:last, : int(lengths.max())], lengths)

        return Templates(self.ids[first:last], cut(self.context), cut(self.target))


@dataclass(frozen=True)
class Alternative:
    """One of several answers."""

    fill: tuple[int, ...]
    nll: float


@dataclass(frozen=True)
class FillResult:
    """A method's answer for one sentence."""

    fill: tuple[int, ...]
    """One id per blank, from left to right."""
    nll: float | None
    """What the method minimised, in nats over the whole sentence: the NLL under its own model; None without a model."""
    trace: tuple[float, ...] = ()
    """`nll` at the start and after every round."""
    rounds: int = 0
    """visits of every blank, and refills"""
    model_steps: int = 0
    """Tokens read by a decoder for one hypothesis; reading one with gradients counts as three."""
    alternatives: tuple[Alternative, ...] = ()
    """At most `n_best` distinct fills, best first; the first is `fill` itself."""


@runtime_checkable
class FreeWriter(Protocol):
    """A method whose model can also write without being made to reproduce the template."""

    def write_freely(self, templates: Templates) -> list[tuple[int, ...]]:
        """One sentence per template."""


class Infiller(Protocol):
    """A method."""

    def fill(self, templates: Templates) -> list[FillResult]:
        """One answer per template, in the same order."""
