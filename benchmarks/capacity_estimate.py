"""Estimate of the machines that a number of offers needs, from measured costs and assumptions (docs/scaling.md).

Change `MeasuredCosts` and `Assumptions` for other machines or another use; all results follow from them. The results
were not tested at these sizes.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

DAY = 86_400
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class MeasuredCosts:
    """Bytes with indexes, and CPU microseconds, as `make bench-ingest`, `-read`, `-webhooks` and `-feed` measure them.

    Attributes:
        offer_bytes: Bytes of all catalogue tables per offer, with five variants per product and one offer per variant.
        offer_index_bytes: Part of `offer_bytes` that indexes take.
        event_bytes: Bytes per event.
        request_log_bytes: Bytes per request log.
        snapshot_bytes: Bytes of the stored file per offer.
        unchanged_row_us: CPU of importing an unchanged row.
        changed_row_us: CPU of importing a changed row.
        import_database_share: Share of PostgreSQL in the CPU of importing.
        page_us: CPU of reading a page.
        page_database_share: Share of PostgreSQL in the CPU of reading.
        delivery_us: CPU of a webhook delivery in the worker.
        delivery_database_us: CPU of a webhook delivery in PostgreSQL.
    """

    offer_bytes: float = 3_330
    offer_index_bytes: float = 1_110
    event_bytes: float = 1_750
    request_log_bytes: float = 600
    snapshot_bytes: float = 700
    unchanged_row_us: float = 40
    changed_row_us: float = 300
    import_database_share: float = 0.35
    page_us: float = 565
    page_database_share: float = 0.2
    delivery_us: float = 160
    delivery_database_us: float = 47


@dataclass(frozen=True, slots=True)
class Assumptions:
    """Assumed use of the service, utilisation, and monthly prices in US dollars.

    Attributes:
        daily_imports: Imports of each complete feed per day.
        daily_changed_share: Share of the offers that change per day.
        events_days: Retention of events and deliveries in days.
        published_share: Share of the events that are published to the network.
        deliveries_per_event: Webhook deliveries per event.
        delivery_bytes: Bytes per delivery.
        requests_per_offer: Average requests a second per offer, of one page each.
        request_days: Retention of request logs in days.
        snapshots_per_feed: Stored files per feed.
        peak_factor: Load of the busiest hour divided by the average.
        bloat_factor: Size of tables on disk divided by the size of their rows.
        cached_row_share: Share of the rows in memory; the indexes of the catalogue are completely in memory.
        machine_types: Available machines: cores, GiB of memory, GiB of data. The disk has twice the size of the data.
        core_utilisation: Utilisation of cores at the peak.
        memory_utilisation: Utilisation of memory.
        copies_per_node: Machines per node: primary and standbys.
        max_connections: Connections that a node supports.
        connections_per_process: Connections that a process opens to each node.
        core_price: Price of a core.
        memory_price: Price of a GiB of memory.
        disk_price: Price of a GiB of SSD.
        object_store_price: Price of a GiB in the object store.
    """

    daily_imports: float = 4
    daily_changed_share: float = 0.05
    events_days: float = 30
    published_share: float = 0.1
    deliveries_per_event: float = 1
    delivery_bytes: float = 300
    requests_per_offer: float = 1e-6
    request_days: float = 90
    snapshots_per_feed: float = 3
    peak_factor: float = 4
    bloat_factor: float = 1.3
    cached_row_share: float = 0.1
    machine_types: tuple[tuple[float, float, float], ...] = ((4, 32, 256), (16, 128, 1_024), (32, 256, 2_048))
    core_utilisation: float = 0.5
    memory_utilisation: float = 0.75
    copies_per_node: float = 2
    max_connections: float = 800
    connections_per_process: float = 10
    core_price: float = 25
    memory_price: float = 3
    disk_price: float = 0.1
    object_store_price: float = 0.02


@dataclass(frozen=True, slots=True)
class CapacityEstimate:
    """Estimated need. Sizes are in GiB, rates are events a second at the peak, CPU is in cores at the peak.

    Attributes:
        catalogue: Size of the catalogue.
        events: Size of the event logs.
        network_events: Size of the network log.
        request_logs: Size of the request logs.
        deliveries: Size of the webhook deliveries.
        snapshots: Size of the stored files.
        memory: Memory of the databases.
        event_rate: Events a second.
        database_cores: Cores for PostgreSQL.
        worker_cores: Cores for workers.
        api_cores: Cores for the API.
        node: Chosen machine type.
        nodes: Number of nodes without standbys.
        limiting_resource: Resource that determines the number of nodes: `disk`, `memory` or `cores`.
        processes: Number of processes of the service.
        connections_per_node: Connections of all processes to each node.
        monthly_price: Price per month in US dollars.
    """

    catalogue: float
    events: float
    network_events: float
    request_logs: float
    deliveries: float
    snapshots: float
    memory: float
    event_rate: float
    database_cores: float
    worker_cores: float
    api_cores: float
    node: tuple[float, float, float]
    nodes: int
    limiting_resource: str
    processes: int
    connections_per_node: float
    monthly_price: float

    @property
    def data(self) -> float:
        """Size of the databases in GiB, without standbys."""
        return self.catalogue + self.events + self.network_events + self.request_logs + self.deliveries


def compute_node_price(assumed: Assumptions, node: tuple[float, float, float]) -> float:
    """Return the monthly price of one machine."""
    cores, memory, disk = node
    return cores * assumed.core_price + memory * assumed.memory_price + 2 * disk * assumed.disk_price


def choose_nodes(assumed: Assumptions, required: Mapping[str, float]) -> tuple[tuple[float, float, float], int, str]:
    """Choose a machine type for the required `disk` and `memory` in GiB and `cores`.

    Among the options that cost at most 1.5 times the cheapest, the one with the fewest machines is chosen.

    Returns:
        The machine type, the number of machines, and the resource that determines this number.
    """
    options = []
    for node in assumed.machine_types:
        cores, memory, disk = node
        utilisations = {
            "disk": required["disk"] / disk,
            "memory": required["memory"] / (memory * assumed.memory_utilisation),
            "cores": required["cores"] / (cores * assumed.core_utilisation),
        }
        limiting_resource = max(utilisations, key=lambda name: utilisations[name])
        count = max(1, math.ceil(utilisations[limiting_resource]))
        options.append((count * compute_node_price(assumed, node), node, count, limiting_resource))
    max_price = 1.5 * min(options)[0]
    _, node, count, limiting_resource = min(
        (option for option in options if option[0] <= max_price), key=lambda option: (option[2], option[0])
    )
    return node, count, limiting_resource


def estimate_capacity(
    offers: float, measured: MeasuredCosts | None = None, assumed: Assumptions | None = None
) -> CapacityEstimate:
    """Estimate the need of a number of offers."""
    costs, assumptions = measured or MeasuredCosts(), assumed or Assumptions()
    changes_per_second, requests_per_second = (
        offers * assumptions.daily_changed_share / DAY,
        offers * assumptions.requests_per_offer,
    )
    catalogue = offers * costs.offer_bytes * assumptions.bloat_factor / GIB
    events = changes_per_second * DAY * assumptions.events_days * costs.event_bytes / GIB
    request_logs = requests_per_second * DAY * assumptions.request_days * costs.request_log_bytes / GIB
    deliveries = (
        changes_per_second
        * DAY
        * assumptions.events_days
        * assumptions.deliveries_per_event
        * assumptions.delivery_bytes
        / GIB
    )
    data = catalogue + events * (1 + assumptions.published_share) + request_logs + deliveries
    memory = (
        offers
        * (costs.offer_index_bytes + (costs.offer_bytes - costs.offer_index_bytes) * assumptions.cached_row_share)
        / GIB
    )
    importing_cores = (
        assumptions.peak_factor
        * (
            offers * assumptions.daily_imports / DAY * costs.unchanged_row_us
            + changes_per_second * costs.changed_row_us
        )
        / 1e6
    )
    deliveries_per_microsecond, reading_cores = (
        assumptions.peak_factor * changes_per_second * assumptions.deliveries_per_event / 1e6,
        assumptions.peak_factor * requests_per_second * costs.page_us / 1e6,
    )
    database_cores = (
        importing_cores * costs.import_database_share
        + reading_cores * costs.page_database_share
        + deliveries_per_microsecond * costs.delivery_database_us
    )
    worker_cores = importing_cores * (1 - costs.import_database_share) + deliveries_per_microsecond * costs.delivery_us
    api_cores = reading_cores * (1 - costs.page_database_share)
    node, nodes, limiting_resource = choose_nodes(
        assumptions, {"disk": data, "memory": memory, "cores": database_cores}
    )
    processes = sum(max(2, math.ceil(cores / assumptions.core_utilisation)) for cores in (worker_cores, api_cores)) + 2
    snapshots = offers * costs.snapshot_bytes * assumptions.snapshots_per_feed / GIB
    monthly_price = (
        nodes * assumptions.copies_per_node * compute_node_price(assumptions, node)
        + processes * (assumptions.core_price + 2 * assumptions.memory_price)
        + snapshots * assumptions.object_store_price
    )
    return CapacityEstimate(
        catalogue, events, events * assumptions.published_share, request_logs, deliveries, snapshots, memory, changes_per_second * assumptions.peak_factor, database_cores, worker_cores,
        api_cores, node, nodes, limiting_resource, processes, processes * assumptions.connections_per_process, monthly_price,
    )  # fmt: skip
