"""The API crashes while a source is connected with a file in the console; the repeated form completes it once."""

import asyncio
import re
import signal
from collections.abc import Iterator
from http.client import HTTPException

import pytest

from tests.faults.conftest import CRASH_POINTS
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.postgres.databases import create_database
from tests.support.console_browser import ConsoleBrowser, create_session

FEED = b"SKU,Product Name,Width (cm),Price,Qty\n" + b"".join(
    b"ASH-%d,Ash chair %d,45,99.00,40\n" % (number, number) for number in range(200)
)
PLACE = "/console/sources/new/file"
SENDING = ("before:uploads.announce", "after:uploads.announce", "exporting")
CONNECTING = (
    "before:sources.create", "after:sources.create", "before:uploads.announce", "after:uploads.announce", "exporting",
    "before:uploads.complete", "after:uploads.complete",
)  # fmt: skip


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Create a database without processes."""
    processes = ServiceProcesses(asyncio.run(create_database("connecting")), tmp_path_factory.mktemp("connecting"))
    try:
        yield processes
    finally:
        processes.stop()


def _kill_api_during(
    services: ServiceProcesses, place: str, person: ConsoleBrowser, page: str, path: str, **fields: object
) -> None:
    """Submit the form to an API that crashes at the place."""
    services.stop()
    api = services.start_api((*CRASH_POINTS, "api", place))
    with pytest.raises((OSError, HTTPException)):
        person.submit(page, path, **fields)
    assert api.wait(20) == -signal.SIGKILL
    services.processes.remove(api)
    services.start_api()


def _assert_ledger_is_correct(services: ServiceProcesses, tenancy: Tenancy) -> None:
    """Check that the counted storage equals the sum of the ledger."""
    org = tenancy.tenant.org
    kept = services.fetch_value(
        "SELECT coalesce(sum(bytes), 0) FROM stored_objects WHERE org = %(org)s AND NOT freed", org=org
    )
    counted = services.fetch_rows("SELECT bytes FROM storage_usage WHERE org = %(org)s AND livemode", org=org)
    assert counted == ([(kept,)] if counted else []), (counted, kept)
    lasting = "SELECT count(*) FROM stored_objects WHERE org = %(org)s AND NOT freed AND kind = 'upload' AND free_after > now() + interval '8 days'"
    assert services.fetch_value(lasting, org=org) == 0, "unused uploads expire"


@pytest.mark.parametrize("place", SENDING)
def test_a_crash_during_the_upload_creates_one_source(services: ServiceProcesses, place: str) -> None:
    services.stop()
    services.start_api()
    tenancy = services.create_organisation()
    person = ConsoleBrowser(
        services.port, services.run_with_dependencies(lambda container: create_session(container, tenancy.tenant))
    )
    form = person.get(PLACE)
    _kill_api_during(services, place, person, form, PLACE, file=("ash.csv", FEED))
    _assert_ledger_is_correct(services, tenancy)
    assert "Ash chair 1" in person.submit(form, PLACE, file=("ash.csv", FEED))
    _assert_ledger_is_correct(services, tenancy)


@pytest.mark.parametrize("place", CONNECTING)
def test_a_crash_during_the_creation_creates_one_source(services: ServiceProcesses, place: str) -> None:
    services.stop()
    services.start_api()
    tenancy = services.create_organisation()
    person = ConsoleBrowser(
        services.port, services.run_with_dependencies(lambda container: create_session(container, tenancy.tenant))
    )
    looked = person.submit(person.get(PLACE), PLACE, file=("ash.csv", FEED))
    [draft] = re.findall(r'name="draft" value="([^"]+)"', looked)
    fields = {"draft": draft, "name": "Ash", "currency": "usd"}
    _kill_api_during(services, place, person, looked, f"{PLACE}/connect", **fields)
    assert "Run of Ash" in person.submit(looked, f"{PLACE}/connect", **fields)
    for table, count in (("sources", 1), ("runs", 1), ("uploads", 1)):
        assert (
            services.fetch_value(f"SELECT count(*) FROM {table} WHERE org = %(org)s", org=tenancy.tenant.org) == count
        ), table
    _assert_ledger_is_correct(services, tenancy)
