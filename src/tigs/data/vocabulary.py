"""The tokens that have an id of their own: built from the training split, saved as readable text that vouches for itself."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tigs.data.special import SPECIAL_TOKENS, UNK_ID
from tigs.errors import DataError

_HEADER = "# tigs vocabulary"


@dataclass(frozen=True)
class Vocabulary:
    """Tokens in the order of their ids; the special tokens come first."""

    tokens: tuple[str, ...]

    @classmethod
    def build(cls, sentences: Iterable[Sequence[str]], *, size: int, min_count: int) -> Vocabulary:
        """The `size` most frequent tokens that occur at least `min_count` times, the special tokens on top."""
        counts = Counter(token for sentence in sentences for token in sentence)
        for token in SPECIAL_TOKENS:
            del counts[token]
        # Equal counts are ordered by the token itself, so the ids never depend on the order of files.
        ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return cls(SPECIAL_TOKENS + tuple(token for token, count in ranked[:size] if count >= min_count))

    def __len__(self) -> int:
        return len(self.tokens)

    @cached_property
    def _ids(self) -> dict[str, int]:
        return {token: index for index, token in enumerate(self.tokens)}

    @cached_property
    def hash(self) -> str:
        """Identifies the vocabulary: equal hashes mean equal ids for every token."""
        return hashlib.blake2b("\n".join(self.tokens).encode(), digest_size=16).hexdigest()

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids; a token outside the vocabulary becomes that of `<unk>`."""
        return [self._ids.get(token, UNK_ID) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens of ids."""
        return [self.tokens[index] for index in ids]

    def save(self, path: Path) -> None:
        """One token a line below a line with the number of tokens and their hash."""
        header = f"{_HEADER}: {len(self)} tokens, hash {self.hash}"
        path.write_bytes(("\n".join([header, *self.tokens]) + "\n").encode())

    @classmethod
    def load(cls, path: Path) -> Vocabulary:
        """Read a saved vocabulary.

        Raises:
            DataError: if the file is not one, or was changed since it was saved.
        """
        # Split at "\n" alone: read_text() and splitlines() would also cut at characters that can stand in a token.
        header, *lines = path.read_bytes().removesuffix(b"\n").split(b"\n")
        if not header.startswith(_HEADER.encode()):
            raise DataError(
                f"{path}: not a vocabulary file", remedy="Delete its folder; it is made again from the corpus"
            )
        vocabulary = cls(tuple(line.decode(errors="replace") for line in lines))
        if not header.endswith(f"hash {vocabulary.hash}".encode()):
            raise DataError(
                f"{path}: its tokens do not match its hash, the file was changed",
                remedy="Delete its folder; it is made again from the corpus",
            )
        return vocabulary
