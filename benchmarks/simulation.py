"""Ten thousand tenants of Zipf sizes on the nodes of a cluster, reckoned: placement, hot tenants, the relay (`make bench-simulation`).

A discrete-event simulation with a seed, of the standard library alone; the same numbers come out of every run. It assumes:

- Tenants' sizes are Zipf's: that of rank r goes by r to the power of minus the exponent. What they ask for (load) goes by
  their size times a lognormal factor (sigma 1): some small ones are hot.
- Shards are ranges of an even hash and lie on the nodes in turn, as Citus places them. All nodes are alike.
- Transactions arrive at random moments (Poisson). Each holds its log's row for a time that depends on its events alone; what was
  measured on two shared cores by `make bench-feed ARGS='--only network'` stands in HOLD. Waiting is for the row alone: processors,
  disks and connections of the nodes are never the limit here, which is why a rate that a node cannot do may be told.
- The relay is one, and does one thing at a time, as `domain/changes/usecases/network.py` does: it reads each publisher that it
  heard of by a statement of its own, copies at most AT_ONCE events in a transaction, and pauses between two looks. Its costs
  (COSTS) were measured with the publishers on the same server; `--round-trip` is added for each of its statements.
"""

import argparse
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace

from benchmarks.placing import Placement, loads_of, zipf
from benchmarks.queueing import Arrivals, Hold, Relay, RelayCosts, Relayed, quantiles, waits_for_rows
from benchmarks.reckoning import Assumed, Measured, needed
from domain.changes.usecases.network import AT_ONCE

NODES = 3
EXPONENTS = (0.6, 0.8, 1.0, 1.2)
SHARDS = (32, 64, 256)
DRAWS = 20
"""Sets of tenants: what comes of hashing is luck."""
ISOLATED = (1, 3, 10)
HOLD = Hold(transaction=0.0010, event=0.000008)
COSTS = RelayCosts(transaction=0.0032, owner=0.00043, event=0.00005, known=0.000004)
WRITES = (300, 1_000, 3_000)
"""Transactions a second of all tenants; one in twenty is a chunk of a run."""
BULK, CHUNK = 0.05, 500
CLASSES = {
    "the hottest": range(1),
    "the next 9": range(1, 10),
    "the next 90": range(10, 100),
    "the others": range(100, 10**9),
}
PUBLISHED = (20, 200, 500, 1_000, 2_000, 4_000, 8_000)
"""Published events a second of all publishers."""
PUBLISHERS = (10, 100, 1_000, 10_000)
OFFERS = (1e6, 1e8, 1e10)
SEED = 9
STATEMENTS = 3
"""Of a look and its commit, aside from those for each publisher: the question, the insert, the commit."""


def line(name: str, figure: str) -> None:
    """One figure."""
    print(f"{name:<58} {figure}", flush=True)


def placement_figures(count: int) -> None:
    """How even it is by hash alone, what isolating the hottest brings, and moving shards by what they hold."""
    for exponent in EXPONENTS:
        found: dict[str, list[tuple[float, float, float]]] = {}
        for draw in range(DRAWS):
            for name, placed in _draw(count, exponent, draw).items():
                found.setdefault(name, []).append(placed)
        line(f"exponent {exponent}: the largest tenant's data", f"{zipf(count, exponent)[0]:8.1%}")
        for name, peaks in found.items():
            data, load, moved = zip(*peaks, strict=True)
            also = f"   moved {statistics.median(moved):.1%} of the data" if any(moved) else ""
            line(f"  {name}", f"data {_spread(data)}   load {_spread(load)}{also}")


def _spread(peaks: Sequence[float]) -> str:
    """The heaviest node beside the average."""
    return f"peak {statistics.median(peaks):.2f}, at worst {max(peaks):.2f}"


def _draw(count: int, exponent: float, draw: int) -> dict[str, tuple[float, float, float]]:
    """For one set of tenants: by each way of placing them, the peaks of data and load, and what was moved."""
    sizes, tenants = zipf(count, exponent), [f"org_{draw}_{number:020d}" for number in range(count)]
    loads = loads_of(sizes, 1.0, random.Random(SEED + draw))
    hottest = sorted(range(count), key=lambda tenant: -loads[tenant])
    found = {}
    for shards in SHARDS:
        placement = Placement.hashed(tenants, shards, NODES)
        found[f"{shards} shards, by hash"] = (placement, 0.0)
    placement = found["64 shards, by hash"][0]
    for some in ISOLATED:
        isolated = placement.isolated(hottest[:some], loads)
        found[f"64 shards, {some} hottest isolated"] = (isolated, sum(sizes[tenant] for tenant in hottest[:some]))
    for told, weights in (("size", sizes), ("load", loads)):
        made, moves = placement.rebalanced(weights)
        by_shard = placement.by_shard(sizes)
        found[f"64 shards, rebalanced by {told}"] = (made, sum(by_shard[shard] for shard in moves))
    return {name: (made.peak(sizes), made.peak(loads), moved) for name, (made, moved) in found.items()}


def row_figures(count: int, hold: Hold, transactions: int) -> None:
    """What a transaction waits for its log's row, by how hot its tenant is."""
    for events in (1, 100, 1_000):
        most = 1 / hold.of(events)
        line(
            f"most of one organisation, {events:,} events each",
            f"{most:8,.0f} transactions/s   {most * events:,.0f} events/s",
        )
    for exponent in EXPONENTS[1:]:
        shares = zipf(count, exponent)
        for rate in WRITES:
            arrivals = Arrivals(rate, shares, BULK, CHUNK)
            waits = waits_for_rows(arrivals.draw(transactions, random.Random(SEED)), hold)
            busy = rate * shares[0] * (hold.of(1) * (1 - BULK) + hold.of(CHUNK) * BULK)
            line(
                f"exponent {exponent}, {rate:,} transactions/s",
                f"the hottest row is held {min(busy, 1):.0%} of the time",
            )
            for name, some in CLASSES.items():
                _waited(f"  wait for the row, {name}", waits, some)


def _waited(name: str, waits: Mapping[int, Sequence[float]], some: range) -> None:
    found = [wait for tenant, each in waits.items() if tenant in some for wait in each]
    line(name, f"{_told(found)}   of {len(found):,}")


def _told(seconds: Sequence[float]) -> str:
    shares = (50, 95, 99)
    found = quantiles(seconds, *(share / 100 for share in shares))
    return "  ".join(f"p{share} {value * 1000:9.1f} ms" for share, value in zip(shares, found, strict=True))


def relay_figures(costs: RelayCosts, events: int) -> None:
    """From commit to the network's log, by how much is published and by how many; and where one relay is at its end."""
    for count in PUBLISHERS:
        shares = zipf(count, 1.0)
        for rate in PUBLISHED:
            found = Relay(costs, count).run(Arrivals(rate, shares).draw(events, random.Random(SEED)))
            _relayed(f"{count:,} publishers, {rate:,} events/s", found)
    found = Relay(costs, 1_000).run(Arrivals(20, zipf(1_000, 1.0), 0.02, CHUNK).draw(events // 4, random.Random(SEED)))
    _relayed(f"1,000 publishers, 20 transactions/s, 2% of {CHUNK} events", found)
    for count in (1, 10, AT_ONCE):
        most = AT_ONCE / (costs.transaction + costs.owner * count + costs.event * AT_ONCE)
        line(f"most that one relay copies, {AT_ONCE // count} events a publisher", f"{most:8,.0f} events/s")


def _relayed(name: str, found: Relayed) -> None:
    end = "   AT ITS END" if found.utilisation > 0.97 else ""
    line(name, f"{_told(found.lags)}   busy {found.utilisation:4.0%}   most waiting {found.most_waiting:,}{end}")


def size_figures() -> None:
    """What a million, a hundred million and ten billion offers need (reckoning.py)."""
    measured, assumed = Measured(), Assumed()
    for offers in OFFERS:
        need = needed(offers, measured, assumed)
        name = f"{offers / 1e6:,.0f} million offers"
        parts = (need.catalogue, need.events, need.network, need.request_logs, need.deliveries)
        line(
            f"{name}: data, GiB",
            f"{need.data:12,.0f}   catalogue, events, network, request logs, deliveries "
            + " ".join(f"{part:,.0f}" for part in parts),
        )
        line("  snapshots in the object store, GiB", f"{need.snapshots:12,.0f}")
        line("  memory that is wanted, GiB", f"{need.memory:12,.0f}")
        line(
            "  events a second, at the peak",
            f"{need.event_rate:12,.0f}   published {need.event_rate * assumed.published:,.0f}",
        )
        line(
            "  cores at the peak",
            f"{need.database:12,.1f} PostgreSQL   {need.workers:,.1f} workers   {need.api:,.1f} API",
        )
        line(
            "  nodes",
            f"{need.nodes:12,}   of {need.node[0]:.0f} cores, {need.node[1]:.0f} GiB, for {need.by}; with standbys {need.nodes * assumed.copies:,.0f}",
        )
        line(
            "  processes, connections to each node",
            f"{need.processes:12,}   {need.open:,.0f} of {assumed.connections:,.0f}",
        )
        line("  money a month, US dollars", f"{need.money:12,.0f}")


def main(told: argparse.Namespace) -> None:
    """Every figure of the command."""
    began = time.perf_counter()
    placement_figures(told.tenants)
    row_figures(told.tenants, Hold(told.hold / 1e3, told.hold_event / 1e6), told.transactions)
    trip = told.round_trip / 1e3
    costs = replace(
        COSTS,
        transaction=told.relay / 1e3 + trip * STATEMENTS,
        owner=told.relay_owner / 1e3 + trip,
        event=told.relay_event / 1e6,
    )
    relay_figures(costs, told.events)
    size_figures()
    line("the simulation took", f"{time.perf_counter() - began:8.1f} s")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--tenants", type=int, default=10_000)
    options.add_argument("--transactions", type=int, default=100_000, help="of each figure (default: 100,000)")
    options.add_argument("--events", type=int, default=40_000, help="published, of each figure (default: 40,000)")
    options.add_argument("--hold", type=float, default=HOLD.transaction * 1e3, help="ms that a row is held")
    options.add_argument("--hold-event", type=float, default=HOLD.event * 1e6, help="µs more for each event")
    options.add_argument("--relay", type=float, default=COSTS.transaction * 1e3, help="ms of a look and its commit")
    options.add_argument("--relay-owner", type=float, default=COSTS.owner * 1e3, help="ms more for each publisher")
    options.add_argument("--relay-event", type=float, default=COSTS.event * 1e6, help="µs more for each event")
    options.add_argument("--round-trip", type=float, default=0.0, help="ms to the publishers' nodes (default: 0)")
    main(options.parse_args())
