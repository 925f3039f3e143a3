"""Scores: probabilities that two items are the same, from weights, competing candidates and conflicts, and their evidence."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import exp2, fsum, inf, log2
from types import MappingProxyType

from domain.matching.comparisons import (
    COMPARISONS,
    FeatureFrequencies,
    FirstConflictLevel,
    Levels,
    compare_items,
    have_different_colours,
    have_different_component_counts,
    have_different_known_colours,
)
from domain.matching.features import MatchFeatures
from domain.matching.model import PairEvidence
from domain.matching.words import ACCESSORY_WORDS, FINISHES, KINDS, ORIENTATIONS, SET_KIND, USED_CONDITION, load_table

LevelTable = tuple[tuple[float, ...], ...]
"""A row for each comparison, with a number for each level."""
LevelGroups = Sequence[Sequence[Levels]]
"""One group for each item: the levels of the item's candidates."""
_PSEUDO_COUNT = 60.0
_EM_ROUNDS = 12
_MAX_BITS = 9.0
_MAX_MATCH_SHARE = 0.95
SAMPLE_SIZE = 1500
"""Number of items from which weights are learned: about this many of a tenant, or at most this many of each vendor if all items are in memory."""
MIN_GROUPS = 30
"""Minimum number of groups of candidates from which weights can be learned."""


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights from which the probability of a pair is computed.

    Attributes:
        prior: The prior log2 odds that a candidate is a match.
        m: The probability of each level among matches, by comparison.
        u: The probability of each level among other candidates, by comparison.
        bits: The weight of each level, log2(m/u), by comparison.
    """

    prior: float
    m: LevelTable
    u: LevelTable
    bits: LevelTable

    @property
    def has_all_levels(self) -> bool:
        """True if each level of each comparison has a weight; weights from an older release can lack some."""
        each = [len(comparison.level_names) for comparison in COMPARISONS]
        return all([len(row) for row in table] == each for table in (self.m, self.u, self.bits))

    def sum_weights(self, levels: Levels) -> float:
        """Return the sum of the prior and the weights of the levels of a pair, in log2 odds.

        Competing candidates, calibration and conflicts are not included.
        """
        return self.prior + sum(row[level] for row, level in zip(self.bits, levels, strict=True))


def build_weights(prior: float, m: LevelTable, u: LevelTable) -> Weights:
    """Return the weights that follow from the probabilities of the levels; level 0 (missing) has the weight 0.

    Args:
        prior: The prior log2 odds that a candidate is a match.
        m: The probability of each level among matches, by comparison.
        u: The probability of each level among other candidates, by comparison.
    """
    return Weights(prior, m, u, tuple(_compute_level_weights(at, m[at], u[at]) for at in range(len(COMPARISONS))))


def _compute_level_weights(comparison_index: int, m: Sequence[float], u: Sequence[float]) -> tuple[float, ...]:
    """Return the weight of each level of a comparison, log2(m/u), limited to 9 bits in either direction.

    Args:
        comparison_index: The index of the comparison in COMPARISONS.
        m: The probability of each level among matches.
        u: The probability of each level among other candidates.
    """
    weights = [max(-_MAX_BITS, min(_MAX_BITS, log2(matched / other))) for matched, other in zip(m, u, strict=True)]
    weights[0] = 0.0
    if COMPARISONS[comparison_index].is_ordered:
        weights[1:] = _make_non_increasing(
            weights[1:], [matched + other for matched, other in zip(m[1:], u[1:], strict=True)]
        )
    return tuple(weights)


def _make_non_increasing(values: Sequence[float], frequencies: Sequence[float]) -> list[float]:
    """Replace adjacent values that rise by their weighted mean, so that the sequence never increases.

    Args:
        values: The values in order.
        frequencies: The weight of each value in a mean.
    """
    runs: list[list[float]] = []
    for value, frequency in zip(values, frequencies, strict=True):
        runs.append([value, frequency, 1])
        while len(runs) > 1 and runs[-1][0] > runs[-2][0]:
            last, previous = runs.pop(), runs.pop()
            total = last[1] + previous[1]
            runs.append([(last[0] * last[1] + previous[0] * previous[1]) / total, total, last[2] + previous[2]])
    return [run[0] for run in runs for _ in range(int(run[2]))]


def fit_weights(left: LevelGroups, right: LevelGroups, initial: Weights) -> Weights:
    """Return weights that are fitted to candidates by expectation maximisation (EM).

    A group contains the candidates of one item. At most one of the candidates is a match. The share of groups with a
    match is estimated separately for left and right items.

    Args:
        left: The groups of the left items.
        right: The groups of the right items.
        initial: The initial weights; the fitted weights stay near them where data is scarce.
    """
    current, shares = initial, [0.5, 0.5]
    for _ in range(_EM_ROUNDS):
        counts = _LevelCounts()
        shares = [
            counts.add_groups(groups, current, share) for groups, share in zip((left, right), shares, strict=True)
        ]
        current = build_weights(
            0.0,
            _estimate_level_probabilities(counts.matched, initial.m),
            _estimate_level_probabilities(counts.other, initial.u),
        )
    return build_weights(_compute_prior((left, right), shares), current.m, current.u)


class _LevelCounts:
    """Expected numbers of pairs with each level of each comparison.

    Attributes:
        matched: The numbers among matches.
        other: The numbers among other candidates.
    """

    def __init__(self) -> None:
        self.matched = [[0.0] * len(c.level_names) for c in COMPARISONS]
        self.other = [[0.0] * len(c.level_names) for c in COMPARISONS]

    def add_groups(self, groups: LevelGroups, current: Weights, match_share: float) -> float:
        """Add the groups of the left or of the right items; return a new estimate of the share of groups with a match.

        Args:
            groups: For each item, the levels of its candidates.
            current: The current weights.
            match_share: The previous estimate.
        """
        odds_factor = _limit_share(match_share) / (1 - _limit_share(match_share)) / _compute_mean_group_size(groups)
        matched_groups = 0.0
        odds_by_levels = {
            levels: 2 ** min(current.sum_weights(levels) - current.prior, 60.0)
            for levels in {one for group in groups for one in group}
        }
        for group in groups:
            odds = [odds_factor * odds_by_levels[levels] for levels in group]
            total = 1 + fsum(odds)
            matched_groups += 1 - 1 / total
            for levels, odd in zip(group, odds, strict=True):
                probability = odd / total
                for at, level in enumerate(levels):
                    self.matched[at][level] += probability
                    self.other[at][level] += 1 - probability
        return (matched_groups + 1) / (len(groups) + 2)


def _compute_mean_group_size(groups: LevelGroups) -> float:
    """Return the mean number of candidates in a group."""
    return sum(map(len, groups)) / len(groups)


def _limit_share(share: float) -> float:
    """Return the share of items with a match, limited to values from 0.001 to 0.95."""
    return max(0.001, min(_MAX_MATCH_SHARE, share))


def _compute_prior(sides: Sequence[LevelGroups], shares: Sequence[float]) -> float:
    """Return the log2 ratio of the probability of a match to the probability that neither item has a match.

    Args:
        sides: The groups of the left items, and of the right items.
        shares: The share of groups with a match among the left items, and among the right items.
    """
    matches = fsum(share / _compute_mean_group_size(groups) for groups, share in zip(sides, shares, strict=True)) / 2
    return log2(matches / ((1 - _limit_share(shares[0])) * (1 - _limit_share(shares[1]))))


def _estimate_level_probabilities(counts: Iterable[Sequence[float]], previous: LevelTable) -> LevelTable:
    """Return the probability of each level, by comparison.

    Args:
        counts: The expected number of pairs with each level, by comparison.
        previous: The previous probabilities, which are added as pseudo-counts so that rare levels keep a probability.
    """
    tables = []
    for row, prior in zip(counts, previous, strict=True):
        total = sum(row[1:]) + _PSEUDO_COUNT
        tables.append((1.0, *((seen + _PSEUDO_COUNT * p) / total for seen, p in zip(row[1:], prior[1:], strict=True))))
    return tuple(tables)


_SHIPPED = load_table("weights")
DEFAULT_WEIGHTS = build_weights(
    -1.0, *(tuple((1.0, *_SHIPPED[c.name][side]) for c in COMPARISONS) for side in ("matches", "others"))
)
"""Default weights, used until weights are learned from the tenant's items."""
CALIBRATION_FACTOR = 0.8
"""Factor applied to the sum of weights, because features are not independent."""
MAX_CONFLICT_ODDS = -0.2
"""Maximum log2 odds of a pair with a conflict, which is never more probable than not."""
MAX_DOUBTFUL_ODDS = 3.0
"""Maximum log2 odds of a pair if each of its conflicts is probably an error, see `find_max_odds` (probability 0.89)."""
MAX_CONTESTED_ODDS = 0.5
"""Maximum log2 odds of a contested pair (`is_contested`), which a person must decide (probability 0.59)."""
MIN_CERTAIN_LOG2_ODDS = 7.64
"""Minimum log2 odds at which rules merge a pair without conflicts (probability 0.995)."""
MIN_ODDS = -60.0
"""Lower limit of log2 odds; lower values are raised to it."""


@dataclass(frozen=True, slots=True)
class Odds:
    """Log2 odds of a pair as the sum of four components.

    Attributes:
        weights: The sum of the prior and the weights of the levels.
        calibration: The correction for features that are not independent.
        competition: The reduction by competing candidates (other candidates of the two items), 0 or less.
        conflicts: The reduction by conflicts, 0 or less.
    """

    weights: float
    calibration: float
    competition: float
    conflicts: float

    @property
    def total(self) -> float:
        """The log2 odds of the pair: the sum of the components."""
        return self.weights + self.calibration + self.competition + self.conflicts

    @property
    def probability(self) -> float:
        """The probability that the pair is a match, between 0 and 1."""
        return convert_to_probability(self.total)


def convert_to_probability(log2_odds: float) -> float:
    """Return the probability, from 0 to 1, that corresponds to log2 odds."""
    return 1.0 / (1.0 + exp2(min(-log2_odds, 1000.0)))


def calibrate_odds(weight_sum: float) -> float:
    """Correct the sum of prior and weights for features that are not independent; return log2 odds.

    The result never decreases when the sum increases.
    """
    return max(MIN_ODDS, min(-MIN_ODDS, CALIBRATION_FACTOR * weight_sum))


def compute_odds(weight_sum: float, competition_reduction: float, max_odds: float = inf) -> Odds:
    """Return the odds of a pair with their components.

    Args:
        weight_sum: The sum of the prior and the weights of the levels.
        competition_reduction: The reduction by competing candidates, 0 or less.
        max_odds: The maximum log2 odds that the conflicts permit.
    """
    calibrated = calibrate_odds(weight_sum)
    return Odds(
        weight_sum,
        calibrated - weight_sum,
        competition_reduction,
        min(0.0, max_odds - (calibrated + competition_reduction)),
    )


MAX_COMPETITION_ROUNDS = 16
"""Maximum number of rounds in which the reductions by competing candidates are refined."""
_MAX_LOG2_ODDS = 60.0
Pair = tuple[str, str]


def compute_competition_reductions(
    odds_without_competition: Mapping[Pair, float], duplicates: Mapping[Pair, Collection[Pair]] = MappingProxyType({})
) -> dict[Pair, float]:
    """Return the reduction of each pair's log2 odds by competing candidates of its items, 0 or less.

    Args:
        odds_without_competition: The log2 odds of each pair without this reduction.
        duplicates: For each pair, the pairs of the same item that do not compete with it (`find_duplicates`).
    """
    odds_by_pair = {pair: 2.0 ** min(pair_odds, _MAX_LOG2_ODDS) for pair, pair_odds in odds_without_competition.items()}
    sides: tuple[dict[str, list[Pair]], dict[str, list[Pair]]] = defaultdict(list), defaultdict(list)
    for pair in odds_without_competition:
        for groups, id in zip(sides, pair, strict=True):
            groups[id].append(pair)
    unmatched = dict.fromkeys(odds_without_competition, 1.0), dict.fromkeys(odds_without_competition, 1.0)
    for _ in range(MAX_COMPETITION_ROUNDS):
        # both sides at once, so the order does not matter
        previous, unmatched = (
            unmatched,
            (
                _compute_unmatched_probabilities(sides[0], odds_by_pair, unmatched[1], duplicates),
                _compute_unmatched_probabilities(sides[1], odds_by_pair, unmatched[0], duplicates),
            ),
        )
        if unmatched == previous:
            break
    return {pair: log2(unmatched[0][pair]) + log2(unmatched[1][pair]) for pair in odds_without_competition}


def _compute_unmatched_probabilities(
    pairs_by_item: Mapping[str, list[Pair]],
    odds: Mapping[Pair, float],
    opposite: Mapping[Pair, float],
    duplicates: Mapping[Pair, Collection[Pair]],
) -> dict[Pair, float]:
    """Return for each pair the probability that one item of the pair matches none of the item's other candidates.

    The item is the left item of each pair, or the right item of each pair.

    Args:
        pairs_by_item: The pairs by the ID of this item.
        odds: The odds (not log2) of each pair without competing candidates.
        opposite: For each pair, the same probability for the opposite item of the pair.
        duplicates: For each pair, the pairs of the same item that do not compete with it.
    """
    found: dict[Pair, float] = {}
    for pairs in pairs_by_item.values():
        shares = [odds[pair] * opposite[pair] for pair in pairs]
        for at, pair in enumerate(pairs):
            rivals = shares[:at] + shares[at + 1 :]
            if same := duplicates.get(pair):
                rivals = [
                    share for share, other in zip(shares, pairs, strict=True) if other != pair and other not in same
                ]
            found[pair] = 1.0 / (1.0 + fsum(rivals))
    return found


CONFLICTS = (
    "gtin", "dimensions", "colour", "finish", "size", "pieces", "count", "orientation", "condition", "brand", "accessory"
)  # fmt: skip
"""All names that `find_conflicts` can return."""
_INDEX_BY_NAME = {comparison.name: at for at, comparison in enumerate(COMPARISONS)}
_GTIN, _TITLE, _BRAND, _COLOUR, _DIMENSIONS, _SIZE, _PIECES, _PRICE, _CODE, _QUANTITIES = (
    _INDEX_BY_NAME[name]
    for name in ("gtin", "title", "brand", "colour", "dimensions", "size", "pieces", "price", "code", "quantities")
)
_SIMILAR_PRICE_LEVELS = range(1, 4)
"""Levels of two prices that differ by at most 40%."""
_RARE_CODE_LEVELS = (1, 2)
"""Levels of the code comparison for a shared code that few other items have."""
_EQUAL_LEVEL = 1
_OPPOSITE_ORIENTATIONS = tuple(permutations(frozenset((word,)) for word in sorted(ORIENTATIONS)))
_MIN_COMMON_BITS = -2.0
"""Weight in bits (log2(m/u)) above which a level counts as common among matches: m is more than a quarter of u."""
MIN_BRAND_ITEMS = 3
"""Minimum number of items of each brand that both sources must have, so that two brands can contradict each other."""
BrandTest = Callable[[MatchFeatures], bool]
"""Function that returns whether both sources have at least `MIN_BRAND_ITEMS` items of an item's brand."""


def find_conflicts(
    a: MatchFeatures, b: MatchFeatures, levels: Levels, is_brand_in_both: BrandTest = lambda _: False
) -> tuple[str, ...]:
    """Return the names of the features in which two items contradict each other, such as `gtin` or `brand`.

    Args:
        a: The first item.
        b: The second item.
        levels: The levels of the pair.
        is_brand_in_both: Returns whether both sources have several items of an item's brand. Only then can brands
            contradict each other, because a retailer may state only its own name, and one source may use another name
            of the brand.
    """
    colour = _find_colour_conflict(a, b) if levels[_COLOUR] >= FirstConflictLevel.COLOUR else None
    is_conflict_by_name = {
        "gtin": levels[_GTIN] == FirstConflictLevel.GTIN,
        "brand": levels[_BRAND] == FirstConflictLevel.BRAND and is_brand_in_both(a) and is_brand_in_both(b),
        "dimensions": levels[_DIMENSIONS] == FirstConflictLevel.DIMENSIONS,
        "size": levels[_SIZE] == FirstConflictLevel.SIZE,
        "colour": colour == "colour",
        "finish": colour == "finish",
        "pieces": levels[_PIECES] >= FirstConflictLevel.PIECES or _is_set_of_item(a, b) or _is_set_of_item(b, a),
        "count": levels[_QUANTITIES] >= FirstConflictLevel.QUANTITIES and have_different_component_counts(a, b),
        "orientation": (a.words & ORIENTATIONS, b.words & ORIENTATIONS) in _OPPOSITE_ORIENTATIONS,
        "condition": (USED_CONDITION in a.words) != (USED_CONDITION in b.words),
        "accessory": _are_accessory_and_item(a, b) and _EQUAL_LEVEL not in (levels[_GTIN], levels[_CODE]),
    }
    return tuple(name for name, is_conflict in is_conflict_by_name.items() if is_conflict)


def _find_colour_conflict(a: MatchFeatures, b: MatchFeatures) -> str | None:
    """Return the name of the conflict of two colours, `colour` or `finish`; None if they are no conflict."""
    if have_different_known_colours(a, b):
        apart = (a.shades ^ b.shades) - a.words - b.words
        return "finish" if apart <= FINISHES else "colour"
    return "colour" if have_different_colours(a, b) else None


def find_max_odds(conflict_names: Collection[str], levels: Levels, weights: Weights) -> float:
    """Return the maximum log2 odds of a pair with these conflicts; infinity without conflicts.

    A conflict of GTINs or brands is often an error. A conflict of pack sizes counts as a likely error only if one item
    states no pack size, the weights show that pack sizes are often omitted, and the prices, a rare code or the GTIN
    indicate the same item.

    Args:
        conflict_names: The names of the conflicts.
        levels: The levels of the pair.
        weights: The current weights.
    """
    if not conflict_names:
        return inf
    doubts = {"gtin", "brand"}
    backed = (
        levels[_PRICE] in _SIMILAR_PRICE_LEVELS or levels[_CODE] in _RARE_CODE_LEVELS or levels[_GTIN] == _EQUAL_LEVEL
    )
    if (
        backed
        and levels[_PIECES] == FirstConflictLevel.PIECES
        and weights.bits[_PIECES][FirstConflictLevel.PIECES] > _MIN_COMMON_BITS
    ):
        doubts.add("pieces")
    return MAX_DOUBTFUL_ODDS if doubts.issuperset(conflict_names) else MAX_CONFLICT_ODDS


def is_contested(conflict_names: Collection[str], levels: Levels, odds_without_conflict: float) -> bool:
    """Return whether rules would merge the pair if its only conflict were an error, so that a person must decide.

    The items must share a code that few other items have; one GTIN is not enough, because it is often used for all
    colours. Conflicts of pack sizes are excluded.

    Args:
        conflict_names: The names of the conflicts.
        levels: The levels of the pair.
        odds_without_conflict: The log2 odds of the pair, reduced by competing candidates but not by the conflict.
    """
    return (
        odds_without_conflict >= MIN_CERTAIN_LOG2_ODDS
        and len(conflict_names) == 1
        and "pieces" not in conflict_names
        and levels[_CODE] in _RARE_CODE_LEVELS
    )


def _is_set_of_item(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether `a` is a set of several items, and `b` is a single item."""
    is_single = b.kind in KINDS and len(KINDS & b.words) <= 1 and not b.pieces and not b.packs
    return a.kind == SET_KIND and is_single and SET_KIND not in b.words


def _are_accessory_and_item(a: MatchFeatures, b: MatchFeatures) -> bool:
    """Return whether one item is an accessory and the other is a main item."""
    kinds = {a.kind, b.kind}
    return not (kinds.isdisjoint(ACCESSORY_WORDS) or kinds.isdisjoint(KINDS))


MIN_COMPETING_ODDS = -8.0
"""Log2 odds below which another candidate of an item does not compete with a pair."""
LevelsByPair = dict[Pair, Levels]
"""Levels of compared pairs, by the pair of the left and the right item's ID."""


def find_duplicates(
    left: Mapping[str, MatchFeatures],
    right: Mapping[str, MatchFeatures],
    levels_by_pair: LevelsByPair,
    frequencies: FeatureFrequencies,
) -> Mapping[Pair, Collection[Pair]]:
    """Return for each pair the other pairs of either item whose candidates are duplicates of the pair's candidate.

    Some vendors list an item twice, and both listings match. Two candidates are duplicates if they share a rare code or
    the GTIN with the item, and do not contradict each other.

    Args:
        left: The items of the left side by ID.
        right: The items of the right side by ID.
        levels_by_pair: The levels of the compared pairs.
        frequencies: The frequencies of words and codes among the items of both sides.
    """
    groups: dict[tuple[str | None, int, str], list[Pair]] = defaultdict(list)
    for pair, levels in levels_by_pair.items():
        a, b = left[pair[0]], right[pair[1]]
        shared = a.codes & b.codes if levels[_CODE] == _EQUAL_LEVEL else frozenset[str]()
        for key in (*shared, a.gtin) if levels[_GTIN] == _EQUAL_LEVEL else shared:
            for side in (0, 1):
                groups[key, side, pair[side]].append(pair)
    found: dict[Pair, set[Pair]] = defaultdict(set)
    for (_, side, _), pairs in groups.items():
        candidates = left if side else right
        for one, other in combinations(pairs, 2):
            x, y = candidates[one[1 - side]], candidates[other[1 - side]]
            if not find_conflicts(x, y, compare_items(x, y, frequencies)):
                found[one].add(other)
                found[other].add(one)
    return found


@dataclass(frozen=True, slots=True)
class ScoredCandidate:
    """Scored pair of items.

    Attributes:
        left: The ID of the left item.
        right: The ID of the right item.
        levels: The level of each comparison.
        odds: The log2 odds with their components.
        conflicts: The names of the conflicts.
    """

    left: str
    right: str
    levels: Levels
    odds: Odds
    conflicts: tuple[str, ...]


def score_candidates(
    left: Mapping[str, MatchFeatures],
    right: Mapping[str, MatchFeatures],
    levels_by_pair: LevelsByPair,
    weights: Weights,
    min_odds: float = MIN_COMPETING_ODDS,
    *,
    frequencies: FeatureFrequencies,
    is_brand_in_both: BrandTest,
) -> Iterator[ScoredCandidate]:
    """Yield the scored pairs, ordered by their IDs.

    Pairs with log2 odds up to `min_odds` are omitted and do not compete with other pairs.

    Args:
        left: The items of the left side by ID.
        right: The items of the right side by ID.
        levels_by_pair: The levels of the compared pairs.
        weights: The current weights.
        min_odds: The lower limit of the log2 odds, before reductions by competing candidates and conflicts.
        frequencies: The frequencies of words and codes among the items of both sides.
        is_brand_in_both: Returns whether both sources have several items of an item's brand.
    """
    sums = {levels: weights.sum_weights(levels) for levels in set(levels_by_pair.values())}
    names_by_pair = {
        pair: find_conflicts(left[pair[0]], right[pair[1]], levels, is_brand_in_both)
        for pair, levels in levels_by_pair.items()
        if calibrate_odds(sums[levels]) > min_odds
    }
    limits = {pair: find_max_odds(names, levels_by_pair[pair], weights) for pair, names in names_by_pair.items()}
    duplicates = find_duplicates(left, right, {pair: levels_by_pair[pair] for pair in limits}, frequencies)
    reductions = compute_competition_reductions(
        {pair: min(calibrate_odds(sums[levels_by_pair[pair]]), limit) for pair, limit in limits.items()}, duplicates
    )
    for pair, names in sorted(names_by_pair.items()):
        levels, limit = levels_by_pair[pair], limits[pair]
        if any(levels_by_pair[other][_TITLE] < levels[_TITLE] for other in duplicates.get(pair, ())):
            # the other listing has a more similar title, so this one can be of a sibling with the same code
            reductions[pair] = min(reductions[pair], MAX_DOUBTFUL_ODDS - calibrate_odds(sums[levels]))
        if limit == MAX_CONFLICT_ODDS and is_contested(names, levels, calibrate_odds(sums[levels]) + reductions[pair]):
            limit = MAX_CONTESTED_ODDS
        yield ScoredCandidate(*pair, levels, compute_odds(sums[levels], reductions[pair], limit), names)


def build_evidence(
    pair: ScoredCandidate, left: MatchFeatures, right: MatchFeatures, weights: Weights
) -> list[PairEvidence]:
    """Return the evidence of a pair: one entry for each comparison, and one each for calibration, competing candidates and conflicts.

    The weights of the entries and `weights.prior` add up to the log2 odds of the pair.
    """
    found = [
        PairEvidence(
            made.name,
            level,
            row[level],
            made.level_names[level],
            made.get_evidence_value(left),
            made.get_evidence_value(right),
        )
        for made, level, row in zip(COMPARISONS, pair.levels, weights.bits, strict=True)
        if level
    ]
    odds = pair.odds
    found += [
        PairEvidence("calibration", 0, odds.calibration, "correlated features"),
        PairEvidence("rivals", 0, odds.competition, "competing candidates of either item"),
        PairEvidence("conflicts", 0, odds.conflicts, ", ".join(pair.conflicts)),
    ]
    return found if pair.conflicts else found[:-1]
