"""The capacity estimate for a number of offers: assumptions have an effect, and nothing is rounded away."""

from dataclasses import replace

import pytest

from benchmarks.capacity_estimate import (
    DAY,
    GIB,
    Assumptions,
    MeasuredCosts,
    choose_nodes,
    compute_node_price,
    estimate_capacity,
)

SMALL, LARGE = (4.0, 32.0, 256.0), (32.0, 256.0, 2_048.0)


def test_the_space_of_a_catalogue_depends_on_its_offers() -> None:
    measured, assumed = MeasuredCosts(offer_bytes=1_000), Assumptions(bloat_factor=1.5)
    assert estimate_capacity(1e6, measured, assumed).catalogue == pytest.approx(1.5e9 / GIB)
    assert estimate_capacity(2e6, measured, assumed).catalogue == pytest.approx(3e9 / GIB)


def test_the_space_of_events_depends_on_changes_and_days() -> None:
    assumed = Assumptions(
        daily_changed_share=0.1, events_days=20, published_share=0.25, deliveries_per_event=2, delivery_bytes=500
    )
    need = estimate_capacity(1e6, MeasuredCosts(event_bytes=1_000), assumed)
    assert need.events == pytest.approx(2e9 / GIB)
    assert need.network_events == pytest.approx(0.5e9 / GIB)
    assert need.deliveries == pytest.approx(2e9 / GIB)
    assert need.event_rate == pytest.approx(4 * 1e5 / DAY)


def test_processor_time_depends_on_rows_and_requests() -> None:
    assumed = Assumptions(
        daily_imports=1, daily_changed_share=0, requests_per_offer=1, peak_factor=1, deliveries_per_event=0
    )
    need = estimate_capacity(
        DAY,
        MeasuredCosts(unchanged_row_us=100, import_database_share=0.25, page_us=1_000, page_database_share=0.5),
        assumed,
    )
    assert need.worker_cores == pytest.approx(75e-6)
    assert need.api_cores == pytest.approx(DAY * 500e-6)
    assert need.database_cores == pytest.approx(25e-6 + DAY * 500e-6)


def test_the_peak_affects_processors_but_not_space() -> None:
    calm, busy = (
        estimate_capacity(1e8, assumed=Assumptions(peak_factor=1)),
        estimate_capacity(1e8, assumed=Assumptions(peak_factor=8)),
    )
    assert busy.database_cores == pytest.approx(8 * calm.database_cores)
    assert busy.data == pytest.approx(calm.data)


def test_all_data_is_the_sum_of_its_parts() -> None:
    need = estimate_capacity(1e9)
    assert need.data == pytest.approx(
        need.catalogue + need.events + need.network_events + need.request_logs + need.deliveries
    )


@pytest.mark.parametrize(
    ("wanted", "count", "by"),
    [
        ({"disk": 1, "memory": 1, "cores": 0.01}, 1, "memory"),
        ({"disk": 257, "memory": 1, "cores": 0.1}, 2, "disk"),
        ({"disk": 1, "memory": 49, "cores": 0.1}, 3, "memory"),
        ({"disk": 1, "memory": 1, "cores": 7}, 4, "cores"),
    ],
)
def test_the_scarcest_resource_determines_the_nodes(wanted: dict[str, float], count: int, by: str) -> None:
    assumed = Assumptions(machine_types=(SMALL,), core_utilisation=0.5, memory_utilisation=0.75)
    assert choose_nodes(assumed, wanted) == (SMALL, count, by)


def test_small_nodes_are_chosen_unless_few_large_ones_cost_about_the_same() -> None:
    assumed = Assumptions(machine_types=(SMALL, LARGE))
    assert compute_node_price(assumed, SMALL) < compute_node_price(assumed, LARGE)
    assert choose_nodes(assumed, {"disk": 10, "memory": 1, "cores": 1}) == (SMALL, 1, "cores")
    assert choose_nodes(assumed, {"disk": 2_048, "memory": 1, "cores": 1}) == (LARGE, 1, "disk")
    dear = replace(assumed, machine_types=(SMALL, (32.0, 256.0, 1_024.0)))
    assert choose_nodes(dear, {"disk": 1_025, "memory": 1, "cores": 1}) == (SMALL, 5, "disk")


def test_standbys_cost_as_much_as_their_primaries() -> None:
    alone, two = (
        estimate_capacity(1e8, assumed=Assumptions(copies_per_node=1)),
        estimate_capacity(1e8, assumed=Assumptions(copies_per_node=2)),
    )
    assert two.monthly_price - alone.monthly_price == pytest.approx(
        alone.nodes * compute_node_price(Assumptions(), alone.node)
    )


def test_connections_depend_on_processes() -> None:
    need = estimate_capacity(1e10, assumed=Assumptions(connections_per_process=10))
    assert need.connections_per_node == 10 * need.processes
    assert need.processes > 100
