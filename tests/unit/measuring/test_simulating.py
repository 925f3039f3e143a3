"""What reckons a cluster's size must reckon right: even placement, nothing lost, and waits as queueing theory has them."""

import math
import random
import statistics
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.placing import Placement, loads_of, shard_of, zipf
from benchmarks.queueing import Arrivals, Hold, Relay, RelayCosts, quantiles, waits_for_rows
from domain.changes.usecases.network import AT_ONCE, PAUSE

TENANTS = [f"org_{number:022d}" for number in range(10_000)]
SIZES = zipf(len(TENANTS), 1.0)
LOADS = loads_of(SIZES, 1.0, random.Random(1))
COSTS = RelayCosts(transaction=0.004, owner=0.0003, event=0.0001, heard=0.001)


def hashed(shards: int = 64) -> Placement:
    return Placement.hashed(TENANTS, shards, 3)


@pytest.mark.parametrize(("count", "exponent"), [(10, 0.0), (10_000, 1.0), (10_000, 1.2)])
def test_shares_go_by_rank(count: int, exponent: float) -> None:
    shares = zipf(count, exponent)
    assert math.isclose(sum(shares), 1)
    assert all(math.isclose(shares[0] / share, rank**exponent) for rank, share in enumerate(shares, start=1))


@pytest.mark.parametrize("shards", [32, 64, 256])
def test_hashing_is_even(shards: int) -> None:
    """Pearson's statistic stays within five standard deviations of what chance gives."""
    counts = Counter(shard_of(tenant, shards) for tenant in TENANTS)
    expected = len(TENANTS) / shards
    chi = sum((counts[shard] - expected) ** 2 / expected for shard in range(shards))
    assert set(counts) <= set(range(shards))
    assert abs(chi - (shards - 1)) < 5 * math.sqrt(2 * (shards - 1))


def test_shards_lie_on_the_nodes_in_turn() -> None:
    assert hashed(32).nodes[:4] == [0, 1, 2, 0]


@pytest.mark.parametrize("weights", [SIZES, LOADS], ids=["sizes", "loads"])
def test_whatever_is_moved_nothing_is_lost(weights: list[float]) -> None:
    hottest = sorted(range(len(weights)), key=lambda tenant: -weights[tenant])[:10]
    isolated = hashed().isolated(hottest, weights)
    rebalanced, _ = isolated.rebalanced(weights)
    for placement in (hashed(), isolated, rebalanced):
        assert math.isclose(sum(placement.by_node(weights)), 1)
        assert math.isclose(sum(placement.by_shard(weights)), 1)


def test_isolated_tenants_are_alone_and_the_others_stay() -> None:
    made = hashed().isolated([0, 1, 2], SIZES)
    tenants = Counter(made.shards)
    assert all(tenants[made.shards[tenant]] == 1 for tenant in (0, 1, 2))
    assert made.shards[3:] == hashed().shards[3:]


def test_isolating_puts_the_heaviest_on_the_lightest_nodes() -> None:
    weights = [5.0, 4.0, 3.0, 1.0, 1.0, 1.0]
    crowded = Placement([0, 0, 0, 0, 1, 2], [0, 1, 2], 3)
    assert sorted(crowded.isolated([0, 1, 2], weights).by_node(weights)) == [4.0, 5.0, 6.0]


@pytest.mark.parametrize("weights", [SIZES, LOADS], ids=["sizes", "loads"])
def test_rebalancing_evens_out(weights: list[float]) -> None:
    made, moves = hashed().rebalanced(weights)
    assert made.peak(weights) < hashed().peak(weights)
    assert made.peak(weights) < 1.02
    assert [node for shard, node in enumerate(made.nodes) if shard in moves] == [
        moves[shard] for shard in sorted(moves)
    ]
    assert all(made.nodes[shard] == node for shard, node in enumerate(hashed().nodes) if shard not in moves)


def test_rebalancing_cannot_split_a_shard() -> None:
    alone = Placement([0, 0], [0, 1, 2], 3)
    assert alone.rebalanced([0.9, 0.1]) == (alone, {})


@pytest.mark.parametrize("utilisation", [0.3, 0.5, 0.8])
def test_one_hot_row_waits_as_an_m_d_1_queue(utilisation: float) -> None:
    hold = 0.002
    arrivals = Arrivals(utilisation / hold, [1.0]).draw(200_000, random.Random(1))
    waits = waits_for_rows(arrivals, Hold(hold, 0))[0]
    assert statistics.fmean(waits) == pytest.approx(utilisation * hold / (2 * (1 - utilisation)), rel=0.05)


def test_chunks_among_small_ones_wait_as_an_m_g_1_queue() -> None:
    hold, bulk, chunk = Hold(0.001, 0.00001), 0.1, 500
    mean = hold.of(1) * (1 - bulk) + hold.of(chunk) * bulk
    square = hold.of(1) ** 2 * (1 - bulk) + hold.of(chunk) ** 2 * bulk
    rate = 0.6 / mean
    waits = waits_for_rows(Arrivals(rate, [1.0], bulk, chunk).draw(200_000, random.Random(1)), hold)[0]
    assert statistics.fmean(waits) == pytest.approx(rate * square / (2 * (1 - 0.6)), rel=0.05)


def test_organisations_never_wait_for_each_other() -> None:
    waits = waits_for_rows(iter([(0.0, 1, 1), (0.0, 2, 1), (0.001, 1, 1)]), Hold(0.002, 0))
    assert waits == {1: [0.0, pytest.approx(0.001)], 2: [0.0]}


def test_tenants_come_by_their_shares() -> None:
    drawn = list(Arrivals(10, [0.7, 0.3]).draw(50_000, random.Random(1)))
    assert sum(tenant == 0 for _, tenant, _ in drawn) / len(drawn) == pytest.approx(0.7, abs=0.01)
    assert drawn[-1][0] == pytest.approx(5_000, rel=0.03)


@pytest.mark.parametrize("rate", [50.0, 2_000.0, 20_000.0])
def test_everything_is_relayed_once_in_its_owner_s_order(rate: float) -> None:
    arrivals = list(Arrivals(rate, zipf(100, 1.0), 0.01, 700).draw(3_000, random.Random(1)))
    told = Relay(COSTS).run(iter(arrivals))
    wrote = Counter[int]()
    for _, owner, events in arrivals:
        wrote[owner] += events
    for owner, events in wrote.items():
        assert [number for one, number in told.order if one == owner] == list(range(events))
    assert len(told.lags) == len(told.order) == sum(wrote.values())
    assert min(told.lags) >= COSTS.transaction + COSTS.owner + COSTS.event


def test_a_lonely_event_costs_what_its_parts_cost() -> None:
    told = Relay(COSTS).run(iter([(1.0, 7, 1), (9.0, 8, 1)]))
    assert told.lags == [pytest.approx(0.0054), pytest.approx(0.0054)]


def test_what_comes_during_a_look_waits_for_the_next() -> None:
    told = Relay(COSTS).run(iter([(1.0, 7, 1), (1.002, 8, 1)]))
    look = COSTS.transaction + COSTS.owner + COSTS.event
    assert told.lags[1] == pytest.approx(COSTS.heard + look + PAUSE + look - 0.002)


def test_a_sweep_over_many_publishers_holds_events_up() -> None:
    moments = [(number / 100, 0, 1) for number in range(1_200)]
    calm = Relay(COSTS, 10_000).run(iter(moments))
    swept = Relay(replace(COSTS, known=0.00001), 10_000).run(iter(moments))
    assert max(calm.lags) < 0.02
    assert max(swept.lags) == pytest.approx(0.1 + 0.0054, abs=0.02)
    assert sum(lag > 0.02 for lag in swept.lags) == pytest.approx(2 * 10, abs=4)


def test_a_large_chunk_takes_several_transactions() -> None:
    told = Relay(COSTS).run(iter([(1.0, 7, AT_ONCE + 1)]))
    first = COSTS.heard + COSTS.transaction + COSTS.owner + AT_ONCE * COSTS.event
    assert told.lags[:AT_ONCE] == [pytest.approx(first)] * AT_ONCE
    assert told.lags[AT_ONCE] == pytest.approx(first + COSTS.transaction + COSTS.owner + COSTS.event)


def test_a_relay_copies_no_more_than_its_costs_let_it() -> None:
    count = 40_000
    told = Relay(COSTS).run(Arrivals(100_000, [1.0]).draw(count, random.Random(1)))
    most = AT_ONCE / (COSTS.transaction + COSTS.owner + AT_ONCE * COSTS.event)
    assert count / told.ended == pytest.approx(most, rel=0.05)
    assert told.utilisation > 0.97


def test_quantiles() -> None:
    assert quantiles([3, 1, 2, 4], 0, 0.5, 0.99) == [1, 3, 4]
    assert all(math.isnan(value) for value in quantiles([], 0.5))
