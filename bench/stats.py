"""Medians, percentiles, and how sure a ratio of two medians is."""

import math
import random
import statistics

RESAMPLES = 1000


def percentile(values, percent):
    """The nearest-rank percentile: a value that was measured, not one between two."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def ratio(upper, lower):
    """(ratio of medians, low, high): 95 % of bootstrap resamples lie between the last two.

    `upper` and `lower` map round -> time. Whole rounds are drawn, so that what disturbed a round
    disturbs both.
    """
    rounds = [r for r in upper if r in lower]
    chance = random.Random(1)
    drawn = []
    for _ in range(RESAMPLES):
        some = chance.choices(rounds, k=len(rounds))
        drawn.append(
            statistics.median([upper[r] for r in some])
            / statistics.median([lower[r] for r in some])
        )
    middle = statistics.median([upper[r] for r in rounds]) / statistics.median(
        [lower[r] for r in rounds]
    )
    return middle, percentile(drawn, 2.5), percentile(drawn, 97.5)
