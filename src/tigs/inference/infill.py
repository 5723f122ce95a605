"""Fill the gaps of one sentence that somebody has written, of known or unknown lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tigs.config import Config
from tigs.data.batch import pad
from tigs.data.gapped_text import Piece, expand
from tigs.data.special import BLANK, SPECIAL_TOKENS
from tigs.data.vocabulary import Vocabulary
from tigs.errors import InferenceError
from tigs.inference.interfaces import Infiller, Templates


@dataclass(frozen=True)
class Answer:
    """A whole sentence."""

    tokens: tuple[str, ...]
    fill: tuple[str, ...]
    nll: float
    """Under the method's own model, over the whole sentence."""

    @property
    def nll_per_token(self) -> float:
        """`</s>` counts as a token; sentences of different lengths are compared by this."""
        return self.nll / (len(self.tokens) + 1)


def infill(
    infiller: Infiller,
    vocabulary: Vocabulary,
    config: Config,
    *,
    context: Sequence[str],
    pieces: Sequence[Piece],
) -> list[Answer]:
    """The `method.n_best` best sentences by NLL per token, over every combination of lengths that the gaps allow.

    Args:
        infiller: a method on trained models.
        vocabulary: of those models.
        config: what they were trained with, for the lengths they know, and the options of the method.
        context: tokens that the sentence answers to; none for a task without context.
        pieces: its tokens and gaps.

    Raises:
        InferenceError: for a token that the models do not know, a sentence that is too long for them, or too many
            combinations.
    """
    _require_known(vocabulary, [*context, *(piece for piece in pieces if isinstance(piece, str))])
    _require_length(len(context), config.data.max_context_length, "context")
    longest = sum(1 if isinstance(piece, str) else piece.longest for piece in pieces)
    _require_length(longest, config.data.max_target_length, "sentence")
    sentences = expand(pieces, max_combinations=config.method.max_combinations)
    if not all(sentences):
        raise InferenceError("there is no sentence to fill", remedy="Write one, with ____ for every missing token")
    templates = Templates(
        tuple(" ".join(tokens) for tokens in sentences),
        pad([vocabulary.encode(context)] * len(sentences)),
        pad([vocabulary.encode(tokens) for tokens in sentences]),
    )
    answers = []
    for tokens, result in zip(sentences, infiller.fill(templates), strict=True):
        for other in result.alternatives:
            if not math.isfinite(other.nll):
                raise InferenceError(
                    f"the model gives this sentence an NLL of {other.nll}",
                    remedy="Train it again, with a lower trainer.learning_rate",
                )
            fill = tuple(vocabulary.decode(other.fill))
            words = iter(fill)
            whole = tuple(next(words) if token == BLANK else token for token in tokens)
            answers.append(Answer(whole, fill, other.nll))
    return sorted(answers, key=lambda answer: answer.nll_per_token)[: config.method.n_best]


def _require_known(vocabulary: Vocabulary, tokens: Iterable[str]) -> None:
    known = set(vocabulary.tokens) - set(SPECIAL_TOKENS)
    unknown = sorted({token for token in tokens if token not in known})
    if unknown:
        raise InferenceError(
            f"not in the vocabulary of the model: {', '.join(unknown)}",
            remedy="Write another word, or leave a gap ____ there",
        )


def _require_length(length: int, longest: int, what: str) -> None:
    if length > longest:
        raise InferenceError(
            f"the {what} can have {length} tokens, the model was trained on at most {longest}",
            remedy="Shorten it or its gaps, or train a model on longer sentences",
        )
