"""A worker crashes while it counts, writes or commits a snapshot: it is counted once, without remains."""

import signal
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from domain.storage.ports import StorageUpkeep
from domain.storage.usecases import OrphanTotal, StorageSweeper
from entrypoints.dependencies import Dependencies
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from tests.faults.conftest import FaultServices
from tests.flows.feeds import build_catalogue, build_record

FILE = build_catalogue(30)
_LEDGER = "SELECT kind, bytes, freed FROM stored_objects WHERE org = %(org)s AND bytes > 0 AND NOT freed"
_USED = "SELECT bytes FROM storage_usage WHERE org = %(org)s AND livemode"


def list_objects(faults: FaultServices, org: str) -> list[Path]:
    """Return the organisation's files in the object store."""
    root = Path(unquote(urlsplit(faults.services.env["JOINERY_OBJECTS_URL"]).path))
    return [path for path in root.rglob("*") if path.is_file() and org in path.parts]


def sweep_storage(faults: FaultServices) -> OrphanTotal:
    """Free due objects, like the scheduler."""

    async def sweep(container: Dependencies) -> OrphanTotal:
        sweeper = StorageSweeper(
            container[UnitOfWork], container[StorageUpkeep], container[ObjectStore], container[Clock]
        )
        await sweeper.free_due()
        return await sweeper.sum_orphans()

    found: OrphanTotal = faults.services.run_with_dependencies(sweep)
    return found


@pytest.mark.parametrize("place", ["fetch", "counted", "written", "fetched", "end"])
def test_an_upload_counts_once(fault_services: FaultServices, place: str) -> None:
    tenancy = fault_services.create_organisation()
    org = tenancy.tenant.org
    source = tenancy.api.create_source("file", config={"currency": "usd"})
    with fault_services.start_crashing_worker(place) as trapped:
        run = tenancy.api.upload_file(source, FILE)
        assert trapped.wait(90) == -signal.SIGKILL
        fault_services.services.processes.remove(trapped)
        assert fault_services.services.fetch_value(_USED, org=org) == len(FILE), (
            "neither twice nor not at all, even now"
        )
    assert tenancy.api.wait_for_end(run)["status"] == "succeeded"
    assert fault_services.services.fetch_rows(_LEDGER, org=org) == [("snapshot", len(FILE), False)]
    assert fault_services.services.fetch_value(_USED, org=org) == len(FILE)
    sweep_storage(fault_services)
    assert [path.read_bytes() for path in list_objects(fault_services, org)] == [FILE]
    assert fault_services.services.fetch_value("SELECT count(*) FROM stored_objects WHERE org = %(org)s", org=org) == 1


@pytest.mark.parametrize("place", ["counted", "written", "fetched", "end"])
def test_a_push_counts_once(fault_services: FaultServices, place: str) -> None:
    tenancy = fault_services.create_organisation()
    org = tenancy.tenant.org
    source = tenancy.api.create_source("push", config={"currency": "usd"})
    with fault_services.start_crashing_worker(place) as trapped:
        run = tenancy.api.push(source, [build_record("A")], batch="b", more=True)["id"]
        tenancy.api.push(source, [build_record("B")], batch="b")
        pushed = fault_services.services.fetch_value(_USED, org=org)
        assert trapped.wait(90) == -signal.SIGKILL
        fault_services.services.processes.remove(trapped)
        assert fault_services.services.fetch_value(_USED, org=org) == pushed
    assert tenancy.api.wait_for_end(run)["status"] == "succeeded"
    assert fault_services.services.fetch_rows(_LEDGER, org=org) == [("snapshot", pushed, False)]
    sweep_storage(fault_services)
    assert [path.stat().st_size for path in list_objects(fault_services, org)] == [pushed]
    assert fault_services.services.fetch_value("SELECT count(*) FROM push_parts WHERE org = %(org)s", org=org) == 0
