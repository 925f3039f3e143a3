"""Simulations of a cluster: even placement, no lost load, and waiting times of queueing theory."""

import math
import random
import statistics
from collections import Counter
from dataclasses import replace

import pytest

from benchmarks.queue_simulation import (
    RelayCosts,
    RowHoldTime,
    SimulatedRelay,
    TransactionArrivals,
    compute_quantiles,
    simulate_row_waits,
)
from benchmarks.shard_placement import Placement, compute_shard, compute_zipf_shares, draw_loads
from domain.changes.usecases.network import MAX_BATCH_EVENTS, PAUSE_SECONDS

TENANTS = [f"org_{number:022d}" for number in range(10_000)]
SIZES = compute_zipf_shares(len(TENANTS), 1.0)
LOADS = draw_loads(SIZES, 1.0, random.Random(1))
COSTS = RelayCosts(transaction=0.004, owner=0.0003, event=0.0001, notification_delay=0.001)


def place_by_hash(shards: int = 64) -> Placement:
    return Placement.create_by_hash(TENANTS, shards, 3)


@pytest.mark.parametrize(("count", "exponent"), [(10, 0.0), (10_000, 1.0), (10_000, 1.2)])
def test_shares_depend_on_the_rank(count: int, exponent: float) -> None:
    shares = compute_zipf_shares(count, exponent)
    assert math.isclose(sum(shares), 1)
    assert all(math.isclose(shares[0] / share, rank**exponent) for rank, share in enumerate(shares, start=1))


@pytest.mark.parametrize("shards", [32, 64, 256])
def test_hashing_is_even(shards: int) -> None:
    """Pearson's statistic stays within five standard deviations of its expected value."""
    counts = Counter(compute_shard(tenant, shards) for tenant in TENANTS)
    expected = len(TENANTS) / shards
    chi = sum((counts[shard] - expected) ** 2 / expected for shard in range(shards))
    assert set(counts) <= set(range(shards))
    assert abs(chi - (shards - 1)) < 5 * math.sqrt(2 * (shards - 1))


def test_shards_are_placed_on_the_nodes_in_turn() -> None:
    assert place_by_hash(32).nodes[:4] == [0, 1, 2, 0]


@pytest.mark.parametrize("weights", [SIZES, LOADS], ids=["sizes", "loads"])
def test_moving_shards_loses_no_load(weights: list[float]) -> None:
    hottest = sorted(range(len(weights)), key=lambda tenant: -weights[tenant])[:10]
    isolated = place_by_hash().isolate(hottest, weights)
    rebalanced, _ = isolated.rebalance(weights)
    for placement in (place_by_hash(), isolated, rebalanced):
        assert math.isclose(sum(placement.sum_by_node(weights)), 1)
        assert math.isclose(sum(placement.sum_by_shard(weights)), 1)


def test_isolated_tenants_have_their_own_shards() -> None:
    isolated = place_by_hash().isolate([0, 1, 2], SIZES)
    tenants = Counter(isolated.shards)
    assert all(tenants[isolated.shards[tenant]] == 1 for tenant in (0, 1, 2))
    assert isolated.shards[3:] == place_by_hash().shards[3:]


def test_the_heaviest_tenants_are_isolated_on_the_lightest_nodes() -> None:
    weights = [5.0, 4.0, 3.0, 1.0, 1.0, 1.0]
    uneven = Placement([0, 0, 0, 0, 1, 2], [0, 1, 2], 3)
    assert sorted(uneven.isolate([0, 1, 2], weights).sum_by_node(weights)) == [4.0, 5.0, 6.0]


@pytest.mark.parametrize("weights", [SIZES, LOADS], ids=["sizes", "loads"])
def test_rebalancing_evens_out_the_load(weights: list[float]) -> None:
    rebalanced, moves = place_by_hash().rebalance(weights)
    assert rebalanced.compute_peak_ratio(weights) < place_by_hash().compute_peak_ratio(weights)
    assert rebalanced.compute_peak_ratio(weights) < 1.02
    assert [node for shard, node in enumerate(rebalanced.nodes) if shard in moves] == [
        moves[shard] for shard in sorted(moves)
    ]
    assert all(
        rebalanced.nodes[shard] == node for shard, node in enumerate(place_by_hash().nodes) if shard not in moves
    )


def test_rebalancing_cannot_split_a_shard() -> None:
    alone = Placement([0, 0], [0, 1, 2], 3)
    assert alone.rebalance([0.9, 0.1]) == (alone, {})


@pytest.mark.parametrize("utilisation", [0.3, 0.5, 0.8])
def test_one_hot_row_waits_as_an_m_d_1_queue(utilisation: float) -> None:
    hold = 0.002
    arrivals = TransactionArrivals(utilisation / hold, [1.0]).draw(200_000, random.Random(1))
    waits = simulate_row_waits(arrivals, RowHoldTime(hold, 0))[0]
    assert statistics.fmean(waits) == pytest.approx(utilisation * hold / (2 * (1 - utilisation)), rel=0.05)


def test_chunks_among_small_ones_wait_as_an_m_g_1_queue() -> None:
    hold, bulk, chunk = RowHoldTime(0.001, 0.00001), 0.1, 500
    mean = hold.compute_seconds(1) * (1 - bulk) + hold.compute_seconds(chunk) * bulk
    square = hold.compute_seconds(1) ** 2 * (1 - bulk) + hold.compute_seconds(chunk) ** 2 * bulk
    rate = 0.6 / mean
    waits = simulate_row_waits(TransactionArrivals(rate, [1.0], bulk, chunk).draw(200_000, random.Random(1)), hold)[0]
    assert statistics.fmean(waits) == pytest.approx(rate * square / (2 * (1 - 0.6)), rel=0.05)


def test_organisations_never_wait_for_each_other() -> None:
    waits = simulate_row_waits(iter([(0.0, 1, 1), (0.0, 2, 1), (0.001, 1, 1)]), RowHoldTime(0.002, 0))
    assert waits == {1: [0.0, pytest.approx(0.001)], 2: [0.0]}


def test_tenants_are_drawn_by_their_shares() -> None:
    drawn = list(TransactionArrivals(10, [0.7, 0.3]).draw(50_000, random.Random(1)))
    assert sum(tenant == 0 for _, tenant, _ in drawn) / len(drawn) == pytest.approx(0.7, abs=0.01)
    assert drawn[-1][0] == pytest.approx(5_000, rel=0.03)


@pytest.mark.parametrize("rate", [50.0, 2_000.0, 20_000.0])
def test_events_are_relayed_once_in_the_order_of_their_owner(rate: float) -> None:
    arrivals = list(TransactionArrivals(rate, compute_zipf_shares(100, 1.0), 0.01, 700).draw(3_000, random.Random(1)))
    result = SimulatedRelay(COSTS).run(iter(arrivals))
    wrote = Counter[int]()
    for _, owner, events in arrivals:
        wrote[owner] += events
    for owner, events in wrote.items():
        assert [number for one, number in result.order if one == owner] == list(range(events))
    assert len(result.lags) == len(result.order) == sum(wrote.values())
    assert min(result.lags) >= COSTS.transaction + COSTS.owner + COSTS.event


def test_a_single_event_costs_the_sum_of_its_parts() -> None:
    result = SimulatedRelay(COSTS).run(iter([(1.0, 7, 1), (9.0, 8, 1)]))
    assert result.lags == [pytest.approx(0.0054), pytest.approx(0.0054)]


def test_events_during_a_poll_wait_for_the_next() -> None:
    result = SimulatedRelay(COSTS).run(iter([(1.0, 7, 1), (1.002, 8, 1)]))
    look = COSTS.transaction + COSTS.owner + COSTS.event
    assert result.lags[1] == pytest.approx(COSTS.notification_delay + look + PAUSE_SECONDS + look - 0.002)


def test_a_sweep_over_many_publishers_delays_events() -> None:
    moments = [(number / 100, 0, 1) for number in range(1_200)]
    calm = SimulatedRelay(COSTS, 10_000).run(iter(moments))
    swept = SimulatedRelay(replace(COSTS, sweep_per_publisher=0.00001), 10_000).run(iter(moments))
    assert max(calm.lags) < 0.02
    assert max(swept.lags) == pytest.approx(0.1 + 0.0054, abs=0.02)
    assert sum(lag > 0.02 for lag in swept.lags) == pytest.approx(2 * 10, abs=4)


def test_a_large_chunk_takes_several_transactions() -> None:
    result = SimulatedRelay(COSTS).run(iter([(1.0, 7, MAX_BATCH_EVENTS + 1)]))
    first = COSTS.notification_delay + COSTS.transaction + COSTS.owner + MAX_BATCH_EVENTS * COSTS.event
    assert result.lags[:MAX_BATCH_EVENTS] == [pytest.approx(first)] * MAX_BATCH_EVENTS
    assert result.lags[MAX_BATCH_EVENTS] == pytest.approx(first + COSTS.transaction + COSTS.owner + COSTS.event)


def test_a_relays_throughput_is_limited_by_its_costs() -> None:
    count = 40_000
    result = SimulatedRelay(COSTS).run(TransactionArrivals(100_000, [1.0]).draw(count, random.Random(1)))
    most = MAX_BATCH_EVENTS / (COSTS.transaction + COSTS.owner + MAX_BATCH_EVENTS * COSTS.event)
    assert count / result.ended == pytest.approx(most, rel=0.05)
    assert result.utilisation > 0.97


def test_quantiles_are_computed() -> None:
    assert compute_quantiles([3, 1, 2, 4], 0, 0.5, 0.99) == [1, 3, 4]
    assert all(math.isnan(value) for value in compute_quantiles([], 0.5))
