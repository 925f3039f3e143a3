"""The reckoning of what a number of offers needs: what is assumed must show, and nothing may be rounded away."""

from dataclasses import replace

import pytest

from benchmarks.reckoning import DAY, GIB, Assumed, Measured, cheapest, needed, price

SMALL, LARGE = (4.0, 32.0, 256.0), (32.0, 256.0, 2_048.0)


def test_room_of_a_catalogue_goes_by_its_offers() -> None:
    measured, assumed = Measured(offer_bytes=1_000), Assumed(bloat=1.5)
    assert needed(1e6, measured, assumed).catalogue == pytest.approx(1.5e9 / GIB)
    assert needed(2e6, measured, assumed).catalogue == pytest.approx(3e9 / GIB)


def test_room_of_events_goes_by_changes_and_days() -> None:
    assumed = Assumed(changing=0.1, events_days=20, published=0.25, deliveries_each=2, delivery_bytes=500)
    need = needed(1e6, Measured(event_bytes=1_000), assumed)
    assert need.events == pytest.approx(2e9 / GIB)
    assert need.network == pytest.approx(0.5e9 / GIB)
    assert need.deliveries == pytest.approx(2e9 / GIB)
    assert need.event_rate == pytest.approx(4 * 1e5 / DAY)


def test_processor_time_goes_by_rows_and_requests() -> None:
    assumed = Assumed(readings=1, changing=0, requests=1, peak=1, deliveries_each=0)
    need = needed(DAY, Measured(unchanged_row=100, stored_by_database=0.25, page=1_000, page_by_database=0.5), assumed)
    assert need.workers == pytest.approx(75e-6)
    assert need.api == pytest.approx(DAY * 500e-6)
    assert need.database == pytest.approx(25e-6 + DAY * 500e-6)


def test_the_peak_counts_for_processors_and_not_for_room() -> None:
    calm, busy = needed(1e8, assumed=Assumed(peak=1)), needed(1e8, assumed=Assumed(peak=8))
    assert busy.database == pytest.approx(8 * calm.database)
    assert busy.data == pytest.approx(calm.data)


def test_all_data_is_the_sum_of_its_parts() -> None:
    need = needed(1e9)
    assert need.data == pytest.approx(need.catalogue + need.events + need.network + need.request_logs + need.deliveries)


@pytest.mark.parametrize(
    ("wanted", "count", "by"),
    [
        ({"disk": 1, "memory": 1, "cores": 0.01}, 1, "memory"),
        ({"disk": 257, "memory": 1, "cores": 0.1}, 2, "disk"),
        ({"disk": 1, "memory": 49, "cores": 0.1}, 3, "memory"),
        ({"disk": 1, "memory": 1, "cores": 7}, 4, "cores"),
    ],
)
def test_what_is_scarcest_decides(wanted: dict[str, float], count: int, by: str) -> None:
    assumed = Assumed(machines=(SMALL,), used=0.5, memory_used=0.75)
    assert cheapest(assumed, wanted) == (SMALL, count, by)


def test_small_machines_where_they_do_and_few_where_many_would_hardly_cost_less() -> None:
    assumed = Assumed(machines=(SMALL, LARGE))
    assert price(assumed, SMALL) < price(assumed, LARGE)
    assert cheapest(assumed, {"disk": 10, "memory": 1, "cores": 1}) == (SMALL, 1, "cores")
    assert cheapest(assumed, {"disk": 2_048, "memory": 1, "cores": 1}) == (LARGE, 1, "disk")
    dear = replace(assumed, machines=(SMALL, (32.0, 256.0, 1_024.0)))
    assert cheapest(dear, {"disk": 1_025, "memory": 1, "cores": 1}) == (SMALL, 5, "disk")


def test_standbys_cost_as_much_as_what_they_stand_by_for() -> None:
    alone, two = needed(1e8, assumed=Assumed(copies=1)), needed(1e8, assumed=Assumed(copies=2))
    assert two.money - alone.money == pytest.approx(alone.nodes * price(Assumed(), alone.node))


def test_connections_go_by_processes() -> None:
    need = needed(1e10, assumed=Assumed(per_process=10))
    assert need.open == 10 * need.processes
    assert need.processes > 100
