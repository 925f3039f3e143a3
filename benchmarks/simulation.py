"""Simulation of 10,000 tenants with Zipf sizes on a cluster: placement, busy tenants, and the relay (`make bench-simulation`).

Discrete-event simulation with a fixed seed: every run gives the same numbers. Assumptions:

- The size of a tenant is in proportion to rank^-exponent (Zipf). The load of a tenant is in proportion to size times
  a lognormal factor (sigma 1), so that some small tenants are busy.
- Shards are ranges of a uniform hash, assigned to the nodes in turn as by Citus. All nodes are equal.
- Transactions arrive at random times (Poisson). Each locks the row of its event log for a time that depends only on
  its number of events. HOLD has the times that `make bench-feed ARGS='--only network'` measured on two shared cores.
  Only these locks cause waiting: processors, disks and connections of the nodes are unlimited, so a rate may exceed
  what a node can process.
- One relay does one step at a time, like `domain/changes/usecases/network.py`: it reads the log of each publisher of
  which it was notified by a statement, copies at most MAX_BATCH_EVENTS events per transaction, and pauses between two passes.
  COSTS were measured with the publishers on the same server; `--round-trip` is added for each statement.
"""

import argparse
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.capacity_estimate import Assumptions, MeasuredCosts, estimate_capacity
from benchmarks.queue_simulation import (
    RelayCosts,
    RelayResult,
    RowHoldTime,
    SimulatedRelay,
    TransactionArrivals,
    compute_quantiles,
    simulate_row_waits,
)
from benchmarks.shard_placement import Placement, compute_zipf_shares, draw_loads
from domain.changes.usecases.network import MAX_BATCH_EVENTS

NODES = 3
EXPONENTS = (0.6, 0.8, 1.0, 1.2)
SHARDS = (32, 64, 256)
DRAWS = 20
"""Number of random sets of tenants, because the result of hashing is random."""
ISOLATED_COUNTS = (1, 3, 10)
HOLD = RowHoldTime(transaction=0.0010, event=0.000008)
COSTS = RelayCosts(transaction=0.0032, owner=0.00043, event=0.00005, sweep_per_publisher=0.000004)
TRANSACTION_RATES = (300, 1_000, 3_000)
"""Transactions a second of all tenants; the share BULK_SHARE of them are chunks of runs."""
BULK_SHARE, CHUNK_EVENTS = 0.05, 500
RANK_RANGES = {
    "busiest tenant": range(1),
    "next 9 tenants": range(1, 10),
    "next 90 tenants": range(10, 100),
    "other tenants": range(100, 10**9),
}
PUBLISHED_RATES = (20, 200, 500, 1_000, 2_000, 4_000, 8_000)
"""Published events a second of all publishers."""
PUBLISHER_COUNTS = (10, 100, 1_000, 10_000)
OFFER_COUNTS = (1e6, 1e8, 1e10)
SEED = 9
STATEMENTS_PER_PASS = 3
"""Statements of the relay per transaction, except those per publisher: query for new events, insert and commit."""


def print_figure(name: str, figure: str) -> None:
    """Print one measurement."""
    print(f"{name:<58} {figure}", flush=True)


def simulate_placement(count: int) -> None:
    """Print how evenly data and load are distributed by hash, after isolating the busiest tenants, and rebalanced."""
    for exponent in EXPONENTS:
        peaks_by_method: dict[str, list[tuple[float, float, float]]] = {}
        for draw in range(DRAWS):
            for method, peaks in _place_tenants(count, exponent, draw).items():
                peaks_by_method.setdefault(method, []).append(peaks)
        print_figure(
            f"exponent {exponent}: data of the largest tenant", f"{compute_zipf_shares(count, exponent)[0]:8.1%}"
        )
        for method, method_peaks in peaks_by_method.items():
            data, load, moved = zip(*method_peaks, strict=True)
            note = f"   moved {statistics.median(moved):.1%} of the data" if any(moved) else ""
            print_figure(f"  {method}", f"data {_format_peaks(data)}   load {_format_peaks(load)}{note}")


def _format_peaks(peaks: Sequence[float]) -> str:
    """Format the weights of the heaviest node in relation to the mean."""
    return f"peak ratio median {statistics.median(peaks):.2f}, max {max(peaks):.2f}"


def _place_tenants(count: int, exponent: float, draw: int) -> dict[str, tuple[float, float, float]]:
    """Place one random set of tenants by each method; return the peak ratios of data and load, and the moved share."""
    sizes, tenants = compute_zipf_shares(count, exponent), [f"org_{draw}_{number:020d}" for number in range(count)]
    loads = draw_loads(sizes, 1.0, random.Random(SEED + draw))
    busiest_tenants = sorted(range(count), key=lambda tenant: -loads[tenant])
    placements = {}
    for shards in SHARDS:
        placement = Placement.create_by_hash(tenants, shards, NODES)
        placements[f"{shards} shards, by hash"] = (placement, 0.0)
    placement = placements["64 shards, by hash"][0]
    for isolated_count in ISOLATED_COUNTS:
        isolated = placement.isolate(busiest_tenants[:isolated_count], loads)
        placements[f"64 shards, {isolated_count} busiest tenants isolated"] = (
            isolated,
            sum(sizes[tenant] for tenant in busiest_tenants[:isolated_count]),
        )
    for measure, weights in (("size", sizes), ("load", loads)):
        new_placement, moves = placement.rebalance(weights)
        by_shard = placement.sum_by_shard(sizes)
        placements[f"64 shards, rebalanced by {measure}"] = (new_placement, sum(by_shard[shard] for shard in moves))
    return {
        name: (new_placement.compute_peak_ratio(sizes), new_placement.compute_peak_ratio(loads), moved_share)
        for name, (new_placement, moved_share) in placements.items()
    }


def simulate_waits(count: int, hold: RowHoldTime, transactions: int) -> None:
    """Print how long transactions wait for the row of their event log, by the tenant's rank in load."""
    for events in (1, 100, 1_000):
        max_rate = 1 / hold.compute_seconds(events)
        print_figure(
            f"maximum of one organisation, {events:,} events each",
            f"{max_rate:8,.0f} transactions/s   {max_rate * events:,.0f} events/s",
        )
    for exponent in EXPONENTS[1:]:
        shares = compute_zipf_shares(count, exponent)
        for rate in TRANSACTION_RATES:
            arrivals = TransactionArrivals(rate, shares, BULK_SHARE, CHUNK_EVENTS)
            waits = simulate_row_waits(arrivals.draw(transactions, random.Random(SEED)), hold)
            busy = (
                rate
                * shares[0]
                * (hold.compute_seconds(1) * (1 - BULK_SHARE) + hold.compute_seconds(CHUNK_EVENTS) * BULK_SHARE)
            )
            print_figure(
                f"exponent {exponent}, {rate:,} transactions/s",
                f"busiest row locked {min(busy, 1):.0%} of the time",
            )
            for label, ranks in RANK_RANGES.items():
                _print_waits(f"  wait for the row lock, {label}", waits, ranks)


def _print_waits(name: str, waits: Mapping[int, Sequence[float]], ranks: range) -> None:
    selected_waits = [wait for tenant, tenant_waits in waits.items() if tenant in ranks for wait in tenant_waits]
    print_figure(name, f"{_format_quantiles(selected_waits)}   {len(selected_waits):,} transactions")


def _format_quantiles(seconds: Sequence[float]) -> str:
    percentages = (50, 95, 99)
    values = compute_quantiles(seconds, *(percentage / 100 for percentage in percentages))
    return "  ".join(
        f"p{percentage} {value * 1000:9.1f} ms" for percentage, value in zip(percentages, values, strict=True)
    )


def simulate_relay(costs: RelayCosts, events: int) -> None:
    """Print the delays up to the network log by number of publishers and rate, and the maximum rate of one relay."""
    for publisher_count in PUBLISHER_COUNTS:
        shares = compute_zipf_shares(publisher_count, 1.0)
        for rate in PUBLISHED_RATES:
            result = SimulatedRelay(costs, publisher_count).run(
                TransactionArrivals(rate, shares).draw(events, random.Random(SEED))
            )
            _print_relay_result(f"{publisher_count:,} publishers, {rate:,} events/s", result)
    result = SimulatedRelay(costs, 1_000).run(
        TransactionArrivals(20, compute_zipf_shares(1_000, 1.0), 0.02, CHUNK_EVENTS).draw(
            events // 4, random.Random(SEED)
        )
    )
    _print_relay_result(f"1,000 publishers, 20 transactions/s, 2% of {CHUNK_EVENTS} events", result)
    for publisher_count in (1, 10, MAX_BATCH_EVENTS):
        max_rate = MAX_BATCH_EVENTS / (
            costs.transaction + costs.owner * publisher_count + costs.event * MAX_BATCH_EVENTS
        )
        print_figure(
            f"maximum rate of one relay, {MAX_BATCH_EVENTS // publisher_count} events per publisher",
            f"{max_rate:8,.0f} events/s",
        )


def _print_relay_result(name: str, result: RelayResult) -> None:
    warning = "   OVERLOADED" if result.utilisation > 0.97 else ""
    print_figure(
        name,
        f"{_format_quantiles(result.lags)}   busy {result.utilisation:4.0%}   max waiting {result.max_waiting:,}{warning}",
    )


def print_capacity() -> None:
    """Print the capacity for a million, a hundred million and ten billion offers (capacity_estimate.py)."""
    costs, assumed = MeasuredCosts(), Assumptions()
    for offers in OFFER_COUNTS:
        need = estimate_capacity(offers, costs, assumed)
        name = f"{offers / 1e6:,.0f} million offers"
        tables = (need.catalogue, need.events, need.network_events, need.request_logs, need.deliveries)
        print_figure(
            f"{name}: data, GiB",
            f"{need.data:12,.0f}   catalogue, events, network, request logs, deliveries "
            + " ".join(f"{size:,.0f}" for size in tables),
        )
        print_figure("  snapshots in the object store, GiB", f"{need.snapshots:12,.0f}")
        print_figure("  memory required, GiB", f"{need.memory:12,.0f}")
        print_figure(
            "  events a second at the peak",
            f"{need.event_rate:12,.0f}   published {need.event_rate * assumed.published_share:,.0f}",
        )
        print_figure(
            "  cores at the peak",
            f"{need.database_cores:12,.1f} PostgreSQL   {need.worker_cores:,.1f} workers   {need.api_cores:,.1f} API",
        )
        print_figure(
            "  nodes",
            f"{need.nodes:12,}   of {need.node[0]:.0f} cores, {need.node[1]:.0f} GiB, limited by {need.limiting_resource}; with standbys {need.nodes * assumed.copies_per_node:,.0f}",
        )
        print_figure(
            "  processes, and connections to each node",
            f"{need.processes:12,}   {need.connections_per_node:,.0f} of {assumed.max_connections:,.0f}",
        )
        print_figure("  price per month, US dollars", f"{need.monthly_price:12,.0f}")


def main(arguments: argparse.Namespace) -> None:
    """Run all simulations."""
    started = time.perf_counter()
    simulate_placement(arguments.tenants)
    simulate_waits(
        arguments.tenants, RowHoldTime(arguments.hold / 1e3, arguments.hold_event / 1e6), arguments.transactions
    )
    round_trip = arguments.round_trip / 1e3
    costs = replace(
        COSTS,
        transaction=arguments.relay / 1e3 + round_trip * STATEMENTS_PER_PASS,
        owner=arguments.relay_owner / 1e3 + round_trip,
        event=arguments.relay_event / 1e6,
    )
    simulate_relay(costs, arguments.events)
    print_capacity()
    print_figure("duration of the simulation", f"{time.perf_counter() - started:8.1f} s")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tenants", type=int, default=10_000)
    options.add_argument(
        "--transactions", type=int, default=100_000, help="transactions per simulation (default: 100,000)"
    )
    options.add_argument("--events", type=int, default=40_000, help="published events per simulation (default: 40,000)")
    options.add_argument(
        "--hold", type=float, default=HOLD.transaction * 1e3, help="ms for which a transaction locks the row"
    )
    options.add_argument("--hold-event", type=float, default=HOLD.event * 1e6, help="additional µs per event")
    options.add_argument(
        "--relay", type=float, default=COSTS.transaction * 1e3, help="ms of a transaction of the relay"
    )
    options.add_argument("--relay-owner", type=float, default=COSTS.owner * 1e3, help="additional ms per publisher")
    options.add_argument("--relay-event", type=float, default=COSTS.event * 1e6, help="additional µs per event")
    options.add_argument(
        "--round-trip", type=float, default=0.0, help="network round trip to the publishers' nodes in ms (default: 0)"
    )
    main(options.parse_args())
