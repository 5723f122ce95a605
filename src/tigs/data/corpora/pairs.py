"""Pairs of (context, target) on their way from published files into splits, and the count of what was dropped and why."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tigs.config import DataConfig

SPLITS = ("train", "validation", "test")

# The reasons for dropping that every corpus shares; a corpus may add its own.
CONTEXT_TOO_LONG = "context longer than data.max_context_length"
TARGET_TOO_LONG = "target longer than data.max_target_length"
TARGET_TOO_SHORT = "target shorter than data.min_target_length"
DUPLICATE = "duplicate: pair that stands earlier in the same split"
TARGET_IN_TRAIN = "duplicate: test or validation target that stands in train"
TARGET_IN_TEST = "duplicate: validation target that stands in test"
BEYOND_LIMIT = "beyond data.max_train_pairs"


class Pair(NamedTuple):
    """One sentence to be filled and what it answers to; `context` is empty for an unconditional task."""

    context: tuple[str, ...]
    target: tuple[str, ...]


@dataclass(frozen=True)
class Corpus:
    """The clean pairs of each split, and how many were dropped for each reason."""

    splits: dict[str, list[Pair]]
    dropped: Counter[str]


def hash_share(text: str) -> float:
    """A number in [0, 1) that depends on the text alone: the same on every machine and for every order of files."""
    digest = hashlib.blake2b(text.encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def split_by_hash(text: str, settings: DataConfig) -> str:
    """The split in which a text belongs, for corpora whose publisher gives none."""
    share = hash_share(text)
    if share < settings.test_share:
        return "test"
    if share < settings.test_share + settings.validation_share:
        return "validation"
    return "train"


@dataclass
class PairCollector:
    """Takes pairs one at a time, keeps the clean ones, counts the others by reason."""

    settings: DataConfig
    dropped: Counter[str] = field(default_factory=Counter)
    _kept: dict[str, dict[Pair, None]] = field(default_factory=lambda: {split: {} for split in SPLITS})

    def drop(self, reason: str, n_pairs: int = 1) -> None:
        """Count pairs that a corpus cannot use."""
        self.dropped[reason] += n_pairs

    def add(self, split: str, pair: Pair) -> None:
        """Keep the pair, or count why not."""
        reason = self._reason_to_drop(split, pair)
        if reason:
            self.drop(reason)
        else:
            self._kept[split][pair] = None

    def _reason_to_drop(self, split: str, pair: Pair) -> str | None:
        if len(pair.target) < self.settings.min_target_length:
            return TARGET_TOO_SHORT
        if len(pair.target) > self.settings.max_target_length:
            return TARGET_TOO_LONG
        if len(pair.context) > self.settings.max_context_length:
            return CONTEXT_TOO_LONG
        if pair in self._kept[split]:
            return DUPLICATE
        return None

    def finish(self) -> Corpus:
        """The corpus: no target of the test split stands in another split, none of the validation split in train."""
        train_targets = {pair.target for pair in self._kept["train"]}
        test = self._without(self._kept["test"], train_targets, TARGET_IN_TRAIN)
        validation = self._without(self._kept["validation"], train_targets, TARGET_IN_TRAIN)
        validation = self._without(validation, {pair.target for pair in test}, TARGET_IN_TEST)
        train = list(self._kept["train"])
        limit = self.settings.max_train_pairs
        if limit is not None and len(train) > limit:
            self.drop(BEYOND_LIMIT, len(train) - limit)
            # By hash rather than by position, so that the part is a fair sample of files that are sorted by age or author.
            train = sorted(train, key=lambda pair: hash_share(" ".join(pair.context + pair.target)))[:limit]
        return Corpus({"train": train, "validation": list(validation), "test": list(test)}, self.dropped)

    def _without(self, pairs: dict[Pair, None], targets: set[tuple[str, ...]], reason: str) -> dict[Pair, None]:
        left = {pair: None for pair in pairs if pair.target not in targets}
        if len(left) < len(pairs):
            self.drop(reason, len(pairs) - len(left))
        return left
