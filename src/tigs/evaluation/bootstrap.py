"""How sure a figure is: the paired bootstrap over sentences (Koehn 2004). Needs no torch.

A resample draws as many sentences as there are, with replacement; all that matters is how often each was drawn. Figures are
functions of sums over sentences, so all resamples together are one matrix product. Every method on a test set meets the same
resamples, which is what makes comparisons paired.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from tigs.evaluation.metrics import Figure

N_RESAMPLES = 1000
MIN_SENTENCES = 20
"""With fewer, chance alone would seem significant far more often than once in twenty (5 sentences: 14 %, 10 sentences: 8 %)."""
_SEED = 2019
_PERCENTILES = (2.5, 97.5)

Array = npt.NDArray[np.float64]
OfSums = Callable[[Array], Array]
"""From sums (..., columns) over sentences to figures (...)."""


@lru_cache(maxsize=4)
def resamples(n: int) -> Array:
    """(N_RESAMPLES, n) how often each of `n` sentences was drawn; every row sums to `n`."""
    # numpy promises never to change the numbers of this generator, which it does not of the newer ones.
    drawn = np.random.RandomState(_SEED).randint(n, size=(N_RESAMPLES, n))
    rows = np.arange(N_RESAMPLES)[:, None] * n
    counts = np.bincount((rows + drawn).ravel(), minlength=N_RESAMPLES * n)
    frozen = counts.reshape(N_RESAMPLES, n).astype(np.float64)
    frozen.flags.writeable = False  # it is shared by all who ask
    return frozen


def ratio(sums: Array) -> Array:
    """The first column over the second: per token, per blank or per sentence."""
    return sums[..., 0] / sums[..., 1]


def estimate(statistics: npt.ArrayLike, of_sums: OfSums = ratio) -> Figure:
    """A figure over all sentences, with its interval.

    Args:
        statistics: (sentences, columns) what is summed.
        of_sums: the figure as a function of the sums.
    """
    table = np.asarray(statistics, dtype=np.float64)
    value = of_sums(table.sum(axis=0))
    return Figure.rounded(float(value), *interval(of_sums(resamples(len(table)) @ table)))


def estimate_mean(values: npt.ArrayLike) -> Figure:
    """The mean over sentences, with its interval."""
    column = np.asarray(values, dtype=np.float64)
    return estimate(np.stack([column, np.ones_like(column)], axis=1))


def estimate_difference(first: npt.ArrayLike, second: npt.ArrayLike, of_sums: OfSums = ratio) -> tuple[Figure, float]:
    """A figure of one method less that of another on the same sentences, with its interval and two-sided p-value.

    The p-value is 1 where there are fewer than `MIN_SENTENCES`: nothing counts as significant there.

    Args:
        first: (sentences, columns) of the one.
        second: (sentences, columns) of the other, in the same order of sentences.
        of_sums: the figure as a function of the sums.
    """
    tables = [np.asarray(statistics, dtype=np.float64) for statistics in (first, second)]
    if len(tables[0]) != len(tables[1]):
        raise ValueError(f"{len(tables[0])} and {len(tables[1])} sentences cannot be paired")
    value = float(of_sums(tables[0].sum(axis=0)) - of_sums(tables[1].sum(axis=0)))
    drawn = resamples(len(tables[0]))
    differences = of_sums(drawn @ tables[0]) - of_sums(drawn @ tables[1])  # (N_RESAMPLES)
    # If there were no difference, resamples would scatter around zero as they now do around the one that was seen; what is as
    # large then is chance. The one that was seen counts too, so no p-value is zero.
    as_large = np.abs(differences - value) >= abs(value)
    enough = len(tables[0]) >= MIN_SENTENCES
    p_value = (1 + int(as_large.sum())) / (1 + N_RESAMPLES) if enough else 1.0
    return Figure.rounded(value, *interval(differences)), p_value


def interval(values: Array) -> tuple[float, float]:
    """The middle 95 % of resampled figures."""
    low, high = np.percentile(values, _PERCENTILES)
    return float(low), float(high)
