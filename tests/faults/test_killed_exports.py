"""A worker crashes during an export; another one repeats it, and no file of the first remains."""

import csv
import gzip
import io
import json
import urllib.request
from pathlib import Path
from typing import Any

import openpyxl
import pytest

from domain.access.model import SCOPES
from domain.catalogue.model import ProductFilter
from domain.exports.layout import ExportFormat, ExportLayout
from domain.exports.schedules import ExportTarget, NewScheduledExport, TargetKind
from domain.exports.usecases.schedules import ScheduledExportService
from domain.exports.usecases.service import ExportRequester
from domain.kernel.clock_schedule import ClockSchedule
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from entrypoints.dependencies import Dependencies
from ports.unit_of_work import UnitOfWork
from tests.faults.conftest import FaultServices
from tests.flows.feeds import build_record
from tests.flows.service_processes import FEEDS, wait_until
from tests.support import builders
from tests.support.sftp import PASSWORD, USER, SftpServer, run_sftp_server_in_thread


@pytest.mark.parametrize("place", ["exporting", "exported"])
def test_a_killed_export_is_restarted(fault_services: FaultServices, place: str) -> None:
    tenancy = fault_services.create_organisation()
    api = tenancy.api
    source = api.create_source("push", config={"currency": "usd"})
    api.wait_for_end(api.push(source, [build_record(f"A{n}") for n in range(40)])["id"])
    with fault_services.start_crashing_worker(place) as worker:
        created = api.post("/v1/exports", {"kind": "organisation"}, expect=202)
        assert worker.wait(30) != 0
        found = api.get(f"/v1/exports/{created['id']}")
        assert found["status"] == "running" and found["files"] == []

    def over() -> dict[str, object] | None:
        found: dict[str, object] = api.get(f"/v1/exports/{created['id']}")
        return found if found["status"] in ("succeeded", "failed") else None

    export = wait_until(over, "the export has ended", within=40)
    assert export["status"] == "succeeded"
    files = {file["dataset"]: file for file in export["files"]}  # type: ignore[attr-defined]
    with urllib.request.urlopen(files["products"]["url"]) as answer:
        lines = gzip.decompress(answer.read()).splitlines()
    assert len({json.loads(line)["id"] for line in lines}) == len(lines) == 40
    own = {"org": tenancy.tenant.org, "id": created["id"]}
    deaths, keys = fault_services.services.fetch_rows("SELECT deaths, keys FROM exports WHERE id = %(id)s", **own)[0]
    assert deaths == 1 and all("-2-" in key for key in keys)
    freed = fault_services.services.fetch_rows(
        "SELECT key, freed FROM stored_objects WHERE org = %(org)s AND kind = 'export'", **own
    )
    assert {key for key, gone in freed if not gone} == set(keys)
    assert (
        fault_services.services.fetch_value(
            "SELECT count(*) FROM events WHERE org = %(org)s AND type = 'export.completed'", **own
        )
        == 1
    )
    assert (
        fault_services.services.fetch_value(
            "SELECT count(*) FROM jobs WHERE org = %(org)s AND lane LIKE 'exports:%%'", **own
        )
        == 0
    )


@pytest.mark.parametrize("place", ["exporting", "exported"])
def test_a_killed_export_of_a_view_is_complete(fault_services: FaultServices, place: str) -> None:
    tenancy = fault_services.create_organisation()
    api = tenancy.api
    source = api.create_source("push", config={"currency": "usd"})
    api.wait_for_end(api.push(source, [build_record(f"A{n}") for n in range(250)])["id"])
    body = {"kind": "products", "format": "xlsx", "columns": ["product_id", "sku"], "filters": {"source": [source]}}
    with fault_services.start_crashing_worker(place) as worker:
        created = api.post("/v1/exports", body, expect=202)
        assert worker.wait(30) != 0
    export = wait_until(lambda: _find_ended(api, created["id"]), "the export has ended", within=40)
    assert export["status"] == "succeeded" and export["rows"] == 250
    with urllib.request.urlopen(export["files"][0]["url"]) as answer:
        rows = list(openpyxl.load_workbook(io.BytesIO(answer.read())).active.iter_rows(values_only=True))
    assert rows[0] == ("product_id", "sku") and len({row[0] for row in rows[1:]}) == len(rows) - 1 == 250


def test_a_file_is_sent_once_although_the_worker_crashes(fault_services: FaultServices, tmp_path: Path) -> None:
    tenancy = fault_services.create_organisation()
    api = tenancy.api
    source = api.create_source("push", config={"currency": "usd"})
    api.wait_for_end(api.push(source, [build_record(f"A{n}") for n in range(40)])["id"])
    with run_sftp_server_in_thread(tmp_path, FEEDS) as server:
        schedule = fault_services.services.run_with_dependencies(
            lambda container: _schedule_export(container, tenancy.tenant, server)
        )
        with fault_services.start_crashing_worker("fetch") as worker:
            fault_services.services.run_with_dependencies(
                lambda container: _run_now(container, tenancy.tenant, schedule)
            )
            assert worker.wait(40) != 0
            assert not any(name.endswith("csv") for name in server.files), "no reader sees a part"
        row = {"org": tenancy.tenant.org, "id": schedule}
        query = "SELECT last_status FROM scheduled_exports WHERE id = %(id)s"
        wait_until(
            lambda: fault_services.services.fetch_value(query, **row) == "delivered", "the file was sent", within=60
        )
        [(name, data)] = server.files.items()
    rows = list(csv.reader(io.StringIO(data.decode(), newline="")))
    assert name == "products.csv" and rows[0] == ["sku"] and len(rows) == 41
    count = "SELECT count(*) FROM exports WHERE org = %(org)s"
    assert fault_services.services.fetch_value(count, **row) == 1


def _find_ended(api: Any, id: str) -> Any:
    found = api.get(f"/v1/exports/{id}")
    return found if found["status"] in ("succeeded", "failed") else None


async def _schedule_export(container: Dependencies, tenant: Tenant, server: SftpServer) -> str:
    service = container[ScheduledExportService]
    target = ExportTarget(TargetKind.SFTP, host=FEEDS, port=server.port, user=USER, folder="/in")
    (server.folder / "in").mkdir()
    credentials = {"password": PASSWORD}
    new = NewScheduledExport(
        name="Daily",
        owner="usr_nobody",
        filters=ProductFilter(),
        layout=ExportLayout(ExportFormat.CSV, ("sku",)),
        clock=ClockSchedule(7, 30),
        target=await service.test_target(target, credentials),
        file_name="products",
    )
    async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
        plan = (await tx[OrgStore].get_organisation()).plan
        return (await service.create(tx, new, credentials, ExportRequester(plan, SCOPES))).id


async def _run_now(container: Dependencies, tenant: Tenant, schedule: str) -> None:
    async with container[UnitOfWork].begin(tenant, builders.CALL) as tx:
        plan = (await tx[OrgStore].get_organisation()).plan
        await container[ScheduledExportService].run_now(tx, schedule, ExportRequester(plan, SCOPES))
