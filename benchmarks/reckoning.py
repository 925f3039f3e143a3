"""What a number of offers needs, reckoned from what was measured and from what is assumed (docs/scaling.md).

`Measured` are figures of this machine; `Assumed` is how the service is used and what machines cost. Whoever knows better
changes those: every figure follows. Nothing here was tried out at these sizes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

DAY = 86_400
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Measured:
    """Bytes with indexes, and microseconds of processor time, as `make bench-ingest`, `-read`, `-webhooks` and `-feed` tell them."""

    offer_bytes: float = 3_330
    """Of the tables that hold a catalogue, an offer: five variants a product, one offer each."""
    offer_index_bytes: float = 1_110
    event_bytes: float = 1_750
    request_log_bytes: float = 600
    snapshot_bytes: float = 700
    """Of the feed's file, an offer."""
    unchanged_row: float = 40
    changed_row: float = 300
    stored_by_database: float = 0.35
    """PostgreSQL's part of taking rows in."""
    page: float = 565
    page_by_database: float = 0.2
    delivery: float = 160
    delivery_by_database: float = 47


@dataclass(frozen=True, slots=True)
class Assumed:
    """How the service is used, and money a month."""

    readings: float = 4
    """Of each feed, whole, a day."""
    changing: float = 0.05
    """Of the offers, a day."""
    events_days: float = 30
    published: float = 0.1
    """Of the events."""
    deliveries_each: float = 1
    delivery_bytes: float = 300
    requests: float = 1e-6
    """A second and offer, on average; a page each."""
    request_days: float = 90
    snapshots: float = 3
    """Of each feed kept."""
    peak: float = 4
    """The busiest hour beside the average."""
    bloat: float = 1.3
    cached: float = 0.1
    """Of the rows; indexes of the catalogue are in memory whole."""
    machines: tuple[tuple[float, float, float], ...] = ((4, 32, 256), (16, 128, 1_024), (32, 256, 2_048))
    """Those to choose from: cores, GiB of memory, GiB of data; the disk has twice that."""
    used: float = 0.5
    """Of cores, at the peak."""
    memory_used: float = 0.75
    copies: float = 2
    """Of each node: itself and a standby."""
    connections: float = 800
    """That a node can hold."""
    per_process: float = 10
    """Connections that a process opens to each node: its pool, and those that listen."""
    core: float = 25
    memory: float = 3
    disk: float = 0.1
    objects: float = 0.02
    """US dollars a month: a core, a GiB of memory, of SSD, of an object store."""


@dataclass(frozen=True, slots=True)
class Need:
    """What it comes to. Bytes are GiB, rates a second at the peak, processor time in cores at the peak."""

    catalogue: float
    events: float
    network: float
    request_logs: float
    deliveries: float
    snapshots: float
    memory: float
    event_rate: float
    database: float
    workers: float
    api: float
    node: tuple[float, float, float]
    nodes: int
    """So many of that machine; standbys are not counted."""
    by: str
    """What decides their number."""
    processes: int
    open: float
    """Connections of all processes to each node."""
    money: float

    @property
    def data(self) -> float:
        """GiB in the database, without standbys."""
        return self.catalogue + self.events + self.network + self.request_logs + self.deliveries


def price(assumed: Assumed, node: tuple[float, float, float]) -> float:
    """Of one machine a month."""
    cores, room, disk = node
    return cores * assumed.core + room * assumed.memory + 2 * disk * assumed.disk


def cheapest(assumed: Assumed, wanted: Mapping[str, float]) -> tuple[tuple[float, float, float], int, str]:
    """The machine, how many of it, and what decides that: `disk` and `memory` in GiB, or `cores`.

    Of the ways that cost at most half as much again as the cheapest it is the one with the fewest machines.
    """
    ways = []
    for node in assumed.machines:
        cores, room, disk = node
        filled = {
            "disk": wanted["disk"] / disk,
            "memory": wanted["memory"] / (room * assumed.memory_used),
            "cores": wanted["cores"] / (cores * assumed.used),
        }
        by = max(filled, key=lambda name: filled[name])
        count = max(1, math.ceil(filled[by]))
        ways.append((count * price(assumed, node), node, count, by))
    most = 1.5 * min(ways)[0]
    _, node, count, by = min((way for way in ways if way[0] <= most), key=lambda way: (way[2], way[0]))
    return node, count, by


def needed(offers: float, measured: Measured | None = None, assumed: Assumed | None = None) -> Need:
    """The reckoning."""
    m, a = measured or Measured(), assumed or Assumed()
    changes, requests = offers * a.changing / DAY, offers * a.requests
    catalogue = offers * m.offer_bytes * a.bloat / GIB
    events = changes * DAY * a.events_days * m.event_bytes / GIB
    logs = requests * DAY * a.request_days * m.request_log_bytes / GIB
    deliveries = changes * DAY * a.events_days * a.deliveries_each * a.delivery_bytes / GIB
    data = catalogue + events * (1 + a.published) + logs + deliveries
    memory = offers * (m.offer_index_bytes + (m.offer_bytes - m.offer_index_bytes) * a.cached) / GIB
    taking = a.peak * (offers * a.readings / DAY * m.unchanged_row + changes * m.changed_row) / 1e6
    delivering, reading = a.peak * changes * a.deliveries_each / 1e6, a.peak * requests * m.page / 1e6
    database = taking * m.stored_by_database + reading * m.page_by_database + delivering * m.delivery_by_database
    workers = taking * (1 - m.stored_by_database) + delivering * m.delivery
    api = reading * (1 - m.page_by_database)
    node, nodes, by = cheapest(a, {"disk": data, "memory": memory, "cores": database})
    processes = sum(max(2, math.ceil(one / a.used)) for one in (workers, api)) + 2
    snapshots = offers * m.snapshot_bytes * a.snapshots / GIB
    money = nodes * a.copies * price(a, node) + processes * (a.core + 2 * a.memory) + snapshots * a.objects
    return Need(
        catalogue, events, events * a.published, logs, deliveries, snapshots, memory, changes * a.peak, database, workers,
        api, node, nodes, by, processes, processes * a.per_process, money,
    )  # fmt: skip
