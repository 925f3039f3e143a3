"""From added weights to a probability that means what it says, in parts that still add up."""

from dataclasses import dataclass
from math import exp2
from typing import Final

SCALE: Final = 0.8
"""Facts are never wholly independent, so their sum claims too much: it is taken at this share."""

OFFSET: Final = 0.0
"""What is added to a sum, in log2 odds."""

FORBIDDEN: Final = -0.2
"""The most log2 odds that a pair with a conflict has: such a pair is never likelier than not."""

DOUBTED: Final = 3.0
"""The same where its conflicts are of a kind that is often wrong: to be looked at (0.89), not to be merged."""

CONTESTED: Final = 0.5
"""The same for a pair that would be merged by rules but for one conflict: people are asked (0.59)."""

CERTAIN: Final = 7.64
"""log2 odds from which a pair without conflict is merged by rules: a probability of 0.995."""

LEAST: Final = -60.0
"""log2 odds below which nothing is told apart any more."""


@dataclass(frozen=True, slots=True)
class Odds:
    """log2 odds of a pair as parts that add up: the sum of prior and weights, then calibration, rivals and conflicts."""

    weights: float
    calibration: float
    rivals: float
    conflicts: float

    @property
    def total(self) -> float:
        """log2 of the odds."""
        return self.weights + self.calibration + self.rivals + self.conflicts

    @property
    def probability(self) -> float:
        """Between 0 and 1."""
        return probability(self.total)


def probability(odds: float) -> float:
    """The probability of log2 odds."""
    return 1.0 / (1.0 + exp2(min(-odds, 1000.0)))


def calibrated(weights: float) -> float:
    """log2 odds that a sum of prior and weights stands for, rivals aside; it rises with the sum."""
    return max(LEAST, min(-LEAST, SCALE * weights + OFFSET))


def allowed(own: float, most: float | None) -> float:
    """The log2 odds of a pair as far as its conflicts allow them; `most` is None for one without."""
    return own if most is None else min(own, most)


def odds(weights: float, rivals: float, most: float | None) -> Odds:
    """The odds of a pair of which its rivals take so much, and whose conflicts allow it `most`."""
    own = calibrated(weights)
    together = own + rivals
    return Odds(weights, own - weights, rivals, allowed(together, most) - together)
