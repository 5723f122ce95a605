"""Names and order of methods and test sets in every table and picture: the paper's, with TIGS last, then what is ours alone."""

from __future__ import annotations

from collections.abc import Iterable

LABELS = {
    "template": "Template",
    "seq2seq-f": "Seq2Seq-f",
    "seq2seq-b": "Seq2Seq-b",
    "seq2seq-fb": "Seq2Seq-f+b",
    "birnn-bibs": "BiRNN-BiBS",
    "birnn-gsn": "BiRNN-GSN",
    "mask-seq2seq": "Mask-Seq2Seq",
    "mask-selfattn": "Mask-Self-attn",
    "tigs": "TIGS",
    "tigs-plus": "TIGS-plus",
}
TASK_LABELS = {"dialog": "Dialog", "poetry": "Poetry", "aprc": "APRC"}


def label(method: str) -> str:
    """The name the paper gives a method; a method of our own goes by its id."""
    return LABELS.get(method, method)


def in_order(methods: Iterable[str]) -> list[str]:
    """The paper's order, then further methods by name."""
    rank = {method: number for number, method in enumerate(LABELS)}
    return sorted(set(methods), key=lambda method: (rank.get(method, len(rank)), method))


def sets_in_order(names: Iterable[str]) -> list[str]:
    """`random-25`, `middle-25`, `random-50`, ...: by ratio, and random first, as in the paper's Table 1."""
    return sorted(set(names), key=lambda name: (_ratio(name), not name.startswith("random-"), name))


def set_label(name: str) -> str:
    """`random-25` for people: `25 % random`."""
    strategy, _, ratio = name.rpartition("-")
    return f"{ratio} % {strategy}"


def _ratio(name: str) -> float:
    return float(name.rpartition("-")[2])
