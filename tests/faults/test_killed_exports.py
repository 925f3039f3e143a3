"""A worker crashes during an export; another one repeats it, and no file of the first remains."""

import gzip
import json
import urllib.request

import pytest

from tests.faults.conftest import FaultServices
from tests.flows.feeds import build_record
from tests.flows.service_processes import wait_until


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
