"""Probabilities of pairs: learned weights, calibration, rivals, conflicts, and the evidence of each pair."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import exp2, fsum, inf, log2

from domain.matching.comparisons import COMPARISONS, Different, Levels, colours_differ, shades_apart
from domain.matching.features import MatchFeatures
from domain.matching.model import PairEvidence
from domain.matching.words import ACCESSORIES, FINISHES, alike, data

Table = tuple[tuple[float, ...], ...]
Groups = Sequence[Sequence[Levels]]
"""The levels of each asked item's candidates."""
_STRENGTH = 60.0
_ROUNDS = 12
_MOST = 9.0
_SURE = 0.95
SAMPLE = 1500
"""Number of items, of each of two sides, from whose candidates weights are learned."""
FEWEST = 30
"""Minimum number of candidate groups from which weights can be learned."""


@dataclass(frozen=True, slots=True)
class Weights:
    """The prior log2 odds of a candidate, and log2(m/u) of every level of every comparison."""

    prior: float
    m: Table
    u: Table
    bits: Table

    @property
    def fits(self) -> bool:
        """Return whether there is a weight for each level that comparisons have by now; weights that were learnt by an older release may lack some."""
        each = [len(comparison.levels) for comparison in COMPARISONS]
        return all([len(row) for row in table] == each for table in (self.m, self.u, self.bits))

    def total(self, levels: Levels) -> float:
        """Return the sum of prior and weights: log2 odds before rivals, calibration and conflicts."""
        return self.prior + sum(row[level] for row, level in zip(self.bits, levels, strict=True))


def weights(prior: float, m: Table, u: Table) -> Weights:
    """Return weights of the shares m and u of each level (level 0 weighs nothing)."""
    return Weights(prior, m, u, tuple(_bits(at, m[at], u[at]) for at in range(len(COMPARISONS))))


def _bits(at: int, m: Sequence[float], u: Sequence[float]) -> tuple[float, ...]:
    made = [max(-_MOST, min(_MOST, log2(x / y))) for x, y in zip(m, u, strict=True)]
    made[0] = 0.0
    if COMPARISONS[at].ordered:
        made[1:] = _falling(made[1:], [x + y for x, y in zip(m[1:], u[1:], strict=True)])
    return tuple(made)


def _falling(values: Sequence[float], shares: Sequence[float]) -> list[float]:
    """Return the values with neighbours that rise levelled out to their mean, weighed by how common they are."""
    runs: list[list[float]] = []
    for value, share in zip(values, shares, strict=True):
        runs.append([value, share, 1])
        while len(runs) > 1 and runs[-1][0] > runs[-2][0]:
            last, before = runs.pop(), runs.pop()
            whole = last[1] + before[1]
            runs.append([(last[0] * last[1] + before[0] * before[1]) / whole, whole, last[2] + before[2]])
    return [run[0] for run in runs for _ in range(int(run[2]))]


def learn(left: Groups, right: Groups, start: Weights) -> Weights:
    """Return weights that fit the candidates of items of both sides (EM), starting at `start` and held near it where little is seen.

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
    """Counts of levels among matches and among other candidates, as shares of pairs."""

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
    """Return the share of items with a match, bounded below 1."""
    return max(0.001, min(_SURE, share))


def _prior(sides: Sequence[Groups], shares: Sequence[float]) -> float:
    """Return log2 odds that a candidate matches, against both of its items having no match at all."""
    matches = fsum(share / _size(groups) for groups, share in zip(sides, shares, strict=True)) / 2
    return log2(matches / ((1 - _believed(shares[0])) * (1 - _believed(shares[1]))))


def _shares(counts: Iterable[Sequence[float]], before: Table) -> Table:
    """Return the shares of the levels of each comparison, smoothed by the previous shares as pseudo-counts."""
    made = []
    for row, prior in zip(counts, before, strict=True):
        whole = sum(row[1:]) + _STRENGTH
        made.append((1.0, *((seen + _STRENGTH * p) / whole for seen, p in zip(row[1:], prior[1:], strict=True))))
    return tuple(made)


_SHIPPED = data("weights")
SHIPPED = weights(-1.0, *(tuple((1.0, *_SHIPPED[c.name][side]) for c in COMPARISONS) for side in ("matches", "others")))
"""Default shares of the levels among matches (m) and among other candidates (u)."""
SCALE = 0.8
"""Factor applied to the sum of weights, because features are not independent."""
FORBIDDEN = -0.2
"""Maximum log2 odds of a pair with a conflict, which is never more probable than not."""
DOUBTED = 3.0
"""The same if all its conflicts are often wrong: a person must look at the pair (0.89)."""
CONTESTED = 0.5
"""The same for a pair that rules would merge without its one conflict: a person decides (0.59)."""
CERTAIN = 7.64
"""Minimum log2 odds at which rules merge a pair without conflict: a probability of 0.995."""
LEAST = -60.0
"""Log2 odds below which pairs are not distinguished."""


@dataclass(frozen=True, slots=True)
class Odds:
    """log2 odds of a pair as parts that add up: the sum of prior and weights, then calibration, rivals and conflicts."""

    weights: float
    calibration: float
    rivals: float
    conflicts: float

    @property
    def total(self) -> float:
        """Return log2 of the odds."""
        return self.weights + self.calibration + self.rivals + self.conflicts

    @property
    def probability(self) -> float:
        """Return the probability between 0 and 1."""
        return probability(self.total)


def probability(odds: float) -> float:
    """Return the probability of log2 odds."""
    return 1.0 / (1.0 + exp2(min(-odds, 1000.0)))


def calibrated(weights: float) -> float:
    """Return log2 odds that a sum of prior and weights stands for, rivals aside; it rises with the sum."""
    return max(LEAST, min(-LEAST, SCALE * weights))


def odds(weights: float, rivals: float, most: float = inf) -> Odds:
    """Return the odds of a pair of which its rivals take so much, and whose conflicts allow it `most`."""
    own = calibrated(weights)
    return Odds(weights, own - weights, rivals, min(0.0, most - (own + rivals)))


ROUNDS = 16
_MOST_ODDS = 60.0
Pair = tuple[str, str]


def taken(odds: Mapping[Pair, float]) -> dict[Pair, float]:
    """Return the reduction (0 or less) of each pair's log2 odds by its rivals; `odds` are those of every pair alone."""
    plain = {pair: 2.0 ** min(own, _MOST_ODDS) for pair, own in odds.items()}
    sides: tuple[dict[str, list[Pair]], dict[str, list[Pair]]] = defaultdict(list), defaultdict(list)
    for pair in odds:
        for groups, id in zip(sides, pair, strict=True):
            groups[id].append(pair)
    free = dict.fromkeys(odds, 1.0), dict.fromkeys(odds, 1.0)
    for _ in range(ROUNDS):
        # both sides at once, so that the order does not matter
        before, free = free, (_free(sides[0], plain, free[1]), _free(sides[1], plain, free[0]))
        if free == before:
            break
    return {pair: log2(free[0][pair]) + log2(free[1][pair]) for pair in odds}


def _free(
    groups: Mapping[str, list[Pair]], odds: Mapping[Pair, float], other: Mapping[Pair, float]
) -> dict[Pair, float]:
    """Return for each pair the probability that its item of this side matches no other item."""
    found: dict[Pair, float] = {}
    for pairs in groups.values():
        shares = [odds[pair] * other[pair] for pair in pairs]
        for at, pair in enumerate(pairs):
            found[pair] = 1.0 / (1.0 + fsum(shares[:at] + shares[at + 1 :]))
    return found


CONFLICTS = ("gtin", "dimensions", "colour", "finish", "size", "pieces", "brand", "accessory")
"""All names that `conflicts` returns."""
_AT = {comparison.name: at for at, comparison in enumerate(COMPARISONS)}
_GTIN, _BRAND, _COLOUR, _DIMENSIONS, _SIZE, _PIECES, _PRICE, _CODE = (
    _AT[name] for name in ("gtin", "brand", "colour", "dimensions", "size", "pieces", "price", "code")
)
_ALIKE = range(1, 4)
"""Levels of prices within 40% of each other."""
_OWN = (1, 2)
"""Levels of a shared code that few other items have."""
_SAME = 1
_TELLING = -2.0
"""Weight above which a level is common among matches too."""
_FOR = "for"
OFTEN = 3
"""Minimum number of a side's items with a brand for the side to know the brand."""
Known = Callable[[MatchFeatures], bool]
"""Predicate whether both sides know an item's brand."""


def conflicts(a: MatchFeatures, b: MatchFeatures, levels: Levels, known: Known = lambda _: False) -> tuple[str, ...]:
    """Return the names of contradictory features: gtin, brand, dimensions, size, colour, finish, pieces, accessory.

    Brands contradict only where both are `known`: a retailer that writes its own name knows no others' brands, and of an alias
    one side knows nothing.
    """
    found: list[str] = []
    if levels[_GTIN] == Different.GTIN:
        found.append("gtin")
    if levels[_BRAND] == Different.BRAND and known(a) and known(b):
        found.append("brand")
    if levels[_DIMENSIONS] == Different.DIMENSIONS:
        found.append("dimensions")
    if levels[_SIZE] == Different.SIZE:
        found.append("size")
    if levels[_COLOUR] >= Different.COLOUR:
        if shades_apart(a, b):
            apart = (a.shades ^ b.shades) - a.words - b.words
            found.append("finish" if apart <= FINISHES else "colour")
        elif colours_differ(a, b):
            found.append("colour")
    if levels[_PIECES] >= Different.PIECES:
        found.append("pieces")
    if _foreign(a, b) or _foreign(b, a):
        found.append("accessory")
    return tuple(found)


def most(found: Collection[str], levels: Levels, weights: Weights) -> float:
    """Return the log2 odds that conflicts leave a pair at most; infinity without any.

    GTINs and brands are often wrong. So is that only one side says how many are sold together, where that is learnt to be left out at
    will, and a price like that of one piece or a code of the item itself is there to say so.
    """
    if not found:
        return inf
    doubts = {"gtin", "brand"}
    backed = levels[_PRICE] in _ALIKE or levels[_CODE] in _OWN or levels[_GTIN] == _SAME
    if backed and levels[_PIECES] == Different.PIECES and weights.bits[_PIECES][Different.PIECES] > _TELLING:
        doubts.add("pieces")
    return DOUBTED if doubts.issuperset(found) else FORBIDDEN


def contested(found: Collection[str], levels: Levels, free: float) -> bool:
    """Return whether a pair is one for people: rules would merge it but for one fact, which is as often a slip as a difference.

    `free` are its log2 odds without the conflict, rivals counted. A code of the item itself has to be behind it: one GTIN is
    often given to all colours. Packs are never meant.
    """
    return free >= CERTAIN and len(found) == 1 and "pieces" not in found and levels[_CODE] in _OWN


def _foreign(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether the accessory `a` has a kind that `b` lacks; an item `for` something is not a main item."""
    return (
        bool(a.accessory)
        and _FOR not in b.words
        and b.words.isdisjoint(ACCESSORIES)
        and not any(alike(k, w) for k in a.accessory for w in b.words)
    )


WORTH = -8.0
"""log2 odds below which a candidate is nobody's rival."""
Compared = dict[Pair, Levels]
"""Pairs of a left and a right id with their levels."""


@dataclass(frozen=True, slots=True)
class Scored:
    """A pair with its levels, the components of its odds and its conflicts."""

    left: str
    right: str
    levels: Levels
    odds: Odds
    conflicts: tuple[str, ...]


def scored(
    left: Mapping[str, MatchFeatures],
    right: Mapping[str, MatchFeatures],
    pairs: Compared,
    weights: Weights,
    least: float = WORTH,
    *,
    known: Known,
) -> Iterator[Scored]:
    """Yield every pair with log2 odds over `least`, in the order of their ids; what rivals take is reckoned over all of these."""
    sums = {levels: weights.total(levels) for levels in set(pairs.values())}
    found = {
        pair: conflicts(left[pair[0]], right[pair[1]], levels, known)
        for pair, levels in pairs.items()
        if calibrated(sums[levels]) > least
    }
    bound = {pair: most(names, pairs[pair], weights) for pair, names in found.items()}
    lost = taken({pair: min(calibrated(sums[pairs[pair]]), limit) for pair, limit in bound.items()})
    for pair, names in sorted(found.items()):
        levels, limit = pairs[pair], bound[pair]
        if limit == FORBIDDEN and contested(names, levels, calibrated(sums[levels]) + lost[pair]):
            limit = CONTESTED
        yield Scored(*pair, levels, odds(sums[levels], lost[pair], limit), names)


def evidence(pair: Scored, left: MatchFeatures, right: MatchFeatures, weights: Weights) -> list[PairEvidence]:
    """Return the components of a pair's evidence; with `weights.prior` they add up to the log2 odds."""
    found = [
        PairEvidence(made.name, level, row[level], made.levels[level], made.shown(left), made.shown(right))
        for made, level, row in zip(COMPARISONS, pair.levels, weights.bits, strict=True)
        if level
    ]
    odds = pair.odds
    found += [
        PairEvidence("calibration", 0, odds.calibration, "facts that go together"),
        PairEvidence("rivals", 0, odds.rivals, "other candidates of either item"),
        PairEvidence("conflicts", 0, odds.conflicts, ", ".join(pair.conflicts)),
    ]
    return found if pair.conflicts else found[:-1]
