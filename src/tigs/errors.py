"""Errors that a user can cause. Each says in one line what is wrong and what to do; the command line prints just that line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class TigsError(Exception):
    """Something the user can mend. Exit code 2, no traceback unless `--debug`."""

    def __init__(self, problem: str, *, remedy: str) -> None:
        self.problem = problem
        self.remedy = remedy
        super().__init__(f"{problem}. {remedy}")


class ConfigError(TigsError):
    """An unknown key, a value of the wrong type or out of range, or settings that contradict each other."""


class DataError(TigsError):
    """A corpus file that is missing, damaged, laid out wrongly, or of which nothing is left after cleaning."""


class DownloadError(TigsError):
    """A publisher that cannot be reached, or a file that arrives damaged."""


class CheckpointError(TigsError):
    """A checkpoint that is missing, damaged, or made for other data."""


class PredictionError(TigsError):
    """A file of predictions that is damaged, incomplete, or made for another test set."""


class InferenceError(TigsError):
    """A template that a model cannot fill, or a model that answers with something that is no number."""


class EvaluationError(TigsError):
    """Figures that cannot be made, a damaged file of figures, or figures that must not stand beside each other."""


class TrackingError(TigsError):
    """W&B that cannot be reached when it has to be."""


@contextmanager
def disk_errors(kind: type[TigsError], problem: str, *, remedy: str) -> Iterator[None]:
    """A full disk or a forbidden folder is the user's to mend; `problem` says what could not be written, and where."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # not the system's: a library of ours uses the same class for its own ends
            raise
        raise kind(f"{problem} ({error.strerror})", remedy=remedy) from error
