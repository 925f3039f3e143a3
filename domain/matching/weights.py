"""The weights of levels: how much likelier each is among matches than by coincidence, and how both are learnt without labels."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import fsum, log2
from typing import Final

from domain.matching.comparisons import COMPARISONS, Levels

Table = tuple[tuple[float, ...], ...]
Groups = Sequence[Sequence[Levels]]
"""The levels of each asked item's candidates."""

_STRENGTH: Final = 60.0
_ROUNDS: Final = 12
_MOST: Final = 9.0
_SURE: Final = 0.95


SAMPLE: Final = 1500
"""Items, of each side where there are two, whose candidates weights are learnt from."""
FEWEST: Final = 30
"""Groups of candidates below which nothing can be learnt from them."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The prior log2 odds of a candidate, and log2(m/u) of every level of every comparison."""

    prior: float
    m: Table
    u: Table
    bits: Table

    @property
    def fits(self) -> bool:
        """Whether there is a weight for each level that comparisons have by now; weights that were learnt by an older release may lack some."""
        each = [len(comparison.levels) for comparison in COMPARISONS]
        return all([len(row) for row in table] == each for table in (self.m, self.u, self.bits))

    def total(self, levels: Levels) -> float:
        """Prior and weights together: log2 of the odds before rivals, calibration and conflicts."""
        return self.prior + sum(row[level] for row, level in zip(self.bits, levels, strict=True))


def weights(prior: float, m: Table, u: Table) -> Weights:
    """Weights of the shares m and u of each level (level 0 weighs nothing)."""
    return Weights(prior, m, u, tuple(_bits(at, m[at], u[at]) for at in range(len(COMPARISONS))))


def _bits(at: int, m: Sequence[float], u: Sequence[float]) -> tuple[float, ...]:
    made = [max(-_MOST, min(_MOST, log2(x / y))) for x, y in zip(m, u, strict=True)]
    made[0] = 0.0
    if COMPARISONS[at].ordered:
        made[1:] = _falling(made[1:], [x + y for x, y in zip(m[1:], u[1:], strict=True)])
    return tuple(made)


def _falling(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    """The values with neighbours that rise levelled out to their mean, weighed by how common they are."""
    runs: list[list[float]] = []
    for value, share in zip(values, shares, strict=True):
        runs.append([value, share, 1])
        while len(runs) > 1 and runs[-1][0] > runs[-2][0]:
            last, before = runs.pop(), runs.pop()
            whole = last[1] + before[1]
            runs.append([(last[0] * last[1] + before[0] * before[1]) / whole, whole, last[2] + before[2]])
    return [run[0] for run in runs for _ in range(int(run[2]))]


def learn(left: Groups, right: Groups, start: Weights) -> Weights:
    """Weights that fit the candidates of items of both sides (EM), starting at `start` and held near it where little is seen.

    A group's candidates are rivals: at most one of them is taken to be the match, and how many groups have one is
    learnt for each side.
    """
    found, shares = start, [0.5, 0.5]
    for _ in range(_ROUNDS):
        counts = _Counts()
        shares = [counts.take(groups, found, share) for groups, share in zip((left, right), shares, strict=True)]
        found = weights(0.0, _shares(counts.matched, start.m), _shares(counts.other, start.u))
    return weights(_prior((left, right), shares), found.m, found.u)


class _Counts:
    """How often each level was seen among matches and among other candidates, in shares of pairs."""

    def __init__(self) -> None:
        self.matched = [[0.0] * len(c.levels) for c in COMPARISONS]
        self.other = [[0.0] * len(c.levels) for c in COMPARISONS]

    def take(self, groups: Groups, found: Weights, share: float) -> float:
        """Count one side's groups; answers the share of them that have a match, given what was believed of it."""
        each = _believed(share) / (1 - _believed(share)) / _size(groups)
        have = 0.0
        single = {
            levels: 2 ** min(found.total(levels) - found.prior, 60.0)
            for levels in {one for group in groups for one in group}
        }
        for group in groups:
            odds = [each * single[levels] for levels in group]
            whole = 1 + fsum(odds)
            have += 1 - 1 / whole
            for levels, odd in zip(group, odds, strict=True):
                part = odd / whole
                for at, level in enumerate(levels):
                    self.matched[at][level] += part
                    self.other[at][level] += 1 - part
        return (have + 1) / (len(groups) + 2)


def _size(groups: Groups) -> float:
    return sum(map(len, groups)) / len(groups)


def _believed(share: float) -> float:
    """A share of items with a match as far as it is believed: never that nearly all have one."""
    return max(0.001, min(_SURE, share))


def _prior(sides: Sequence[Groups], shares: Sequence[float]) -> float:
    """log2 odds that a candidate matches, against both of its items having no match at all."""
    matches = fsum(share / _size(groups) for groups, share in zip(sides, shares, strict=True)) / 2
    return log2(matches / ((1 - _believed(shares[0])) * (1 - _believed(shares[1]))))


def _shares(counts: Iterable[Sequence[float]], before: Table) -> Table:
    """Shares of the levels of each comparison that can be compared, with what was believed before as so many more pairs."""
    made = []
    for row, prior in zip(counts, before, strict=True):
        whole = sum(row[1:]) + _STRENGTH
        made.append((1.0, *((seen + _STRENGTH * p) / whole for seen, p in zip(row[1:], prior[1:], strict=True))))
    return tuple(made)


_SHIPPED: Final = {
    "gtin": ((0.9, 0.1), (0.002, 0.998)),
    "code": ((0.6, 0.12, 0.04, 0.04, 0.03, 0.1, 0.1), (0.004, 0.004, 0.01, 0.004, 0.02, 0.35, 0.6)),
    "title": ((0.3, 0.22, 0.2, 0.12, 0.08, 0.05, 0.03), (0.02, 0.03, 0.07, 0.14, 0.22, 0.27, 0.25)),
    "quantities": ((0.45, 0.28, 0.14, 0.1, 0.03), (0.1, 0.15, 0.15, 0.3, 0.3)),
    "brand": ((0.6, 0.2, 0.1, 0.1), (0.35, 0.15, 0.3, 0.2)),
    "colour": ((0.6, 0.15, 0.1, 0.06, 0.05, 0.04), (0.06, 0.06, 0.08, 0.1, 0.1, 0.6)),
    "dimensions": ((0.3, 0.3, 0.25, 0.1, 0.05), (0.02, 0.08, 0.15, 0.1, 0.65)),
    "size": ((0.95, 0.05), (0.1, 0.9)),
    "weight": ((0.8, 0.12, 0.08), (0.05, 0.15, 0.8)),
    "price": ((0.25, 0.35, 0.25, 0.1, 0.05), (0.05, 0.14, 0.22, 0.26, 0.33)),
    "pieces": ((0.85, 0.1, 0.05), (0.15, 0.65, 0.2)),
    "description": ((0.3, 0.3, 0.4), (0.05, 0.25, 0.7)),
}

SHIPPED: Final = weights(
    -1.0,
    tuple((1.0, *_SHIPPED[c.name][0]) for c in COMPARISONS),
    tuple((1.0, *_SHIPPED[c.name][1]) for c in COMPARISONS),
)
"""What is believed before any item was seen: shares of the levels among matches (m) and among other candidates (u)."""
