"""Operations on a cluster: merges, exports, audits, erasure, restore and secret rotation."""

import asyncio
import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy, free_port, wait_until
from tests.flows.test_account_races import test_one_of_several_concurrent_authenticator_setups_succeeds  # noqa: F401  the same on a cluster
from tests.flows.test_console import test_a_file_is_inspected_connected_and_imported  # noqa: F401
from tests.flows.test_operators import (  # noqa: F401
    organisation_id,
    test_a_deleted_organisation_leaves_no_data,
    test_a_members_token_acts_as_the_person_until_revoked,
)
from tests.flows.test_usage import test_a_run_counts_created_and_changed_records  # noqa: F401
from tests.support.citus import create_cluster_database, drop_database
from tests.support.forkserver import run_joinery


@pytest.fixture
def fjord(services: ServiceProcesses) -> Tenancy:
    """Create an organisation in live mode."""
    return services.create_organisation()


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run a separate service whose processes are stopped and started."""
    address = asyncio.run(create_cluster_database("operated"))
    made = ServiceProcesses(address, tmp_path_factory.mktemp("operated"))
    try:
        yield made
    finally:
        made.stop()
        asyncio.run(drop_database(address))


def _run_command(services: ServiceProcesses, *words: object) -> Any:
    done = run_joinery(*words, "--json", env=services.env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _build_record(name: str, vendor: str) -> dict[str, Any]:
    offer = {"price": {"amount": "249.00", "currency": "usd"}, "quantity": 3}
    variant = {"external_id": f"{vendor}-{name}-1", "sku": name, "gtin": "4006381333931", "offers": [offer]}
    product = {"external_id": f"{vendor}-{name}", "title": "Walnut lounge chair Vester", "brand": "Lindgren"}
    return {"product": product, "variants": [variant]}


def test_products_are_merged_and_unmerged_on_every_node(tenants: dict[str, list[Tenancy]]) -> None:
    for api in (there[0].api for there in tenants.values()):
        mine = []
        for vendor in ("one", "two"):
            source = api.create_source("push", config={"currency": "usd"})
            assert api.wait_for_end(api.push(source, [_build_record("V-1", vendor)])["id"])["status"] == "succeeded"
            mine.append(source)
        pair = wait_until(lambda api=api: api.list_all("/v1/match-pairs"), "they are matched")[0]  # type: ignore[misc]
        if pair["status"] == "open":
            pair = api.post(f"/v1/match-pairs/{pair['id']}/merge")
        of_both = {
            key for source in mine for key in [product["id"] for product in api.list_all("/v1/products", source=source)]
        }
        assert len(of_both) == 1, "both sources are of one product"
        for merge in reversed(api.list_all("/v1/merges", status="applied")):
            assert api.call("POST", f"/v1/merges/{merge['id']}/undo").status in (200, 409)
        assert api.list_all("/v1/merges", status="applied") == []
        assert sum(len(api.list_all("/v1/products", source=source)) for source in mine) == 2


def test_exports_audits_and_diagnosis_work(services: ServiceProcesses, tenants: dict[str, list[Tenancy]]) -> None:
    for tenancy in (there[1] for there in tenants.values()):
        api = tenancy.api
        source = api.create_source("file", config={"currency": "usd"})
        assert api.import_file(source, build_catalogue(5))["status"] == "succeeded"
        created = api.post("/v1/exports", {"kind": "products"})
        done = wait_until(
            lambda api=api, created=created: (
                (found := api.get(f"/v1/exports/{created['id']}"))["status"] == "succeeded" and found
            ),  # type: ignore[misc]
            "it is exported",
        )
        assert done["rows"] == 5
        audited = _run_command(services, "audit", "verify", "--org", tenancy.tenant.org)
        assert audited["whole"] and any(chain["entries"] for chain in audited["chains"])
    findings = {found["name"]: found["state"] for found in _run_command(services, "doctor")["findings"]}
    assert findings["database"] == "ok"


def test_a_backup_is_restored_under_another_secret(own: ServiceProcesses, tmp_path: Path) -> None:
    worker, api = own.start("worker"), own.start_api()
    tenancies = [own.create_organisation() for _ in range(4)]
    for tenancy in tenancies:
        source = tenancy.api.create_source("file", config={"currency": "usd"})
        assert tenancy.api.import_file(source, build_catalogue(4))["status"] == "succeeded"
        hook = {"url": "https://receiver.example/", "event_types": ["*"]}
        tenancy.api.post("/v1/webhook-endpoints", hook)
    before = [tenancy.api.get("/v1/products") for tenancy in tenancies]
    report = _run_command(own, "backup", tmp_path / "whole")
    own.stop(worker, api)
    former = own.env["JOINERY_SECRET"]
    own.env |= {"JOINERY_SECRET": secrets.token_hex(20), "JOINERY_SECRET_FORMER": former}
    worker, scheduler, api = own.start("worker"), own.start("scheduler"), own.start_api()
    wait_until(lambda: _run_command(own, "secret", "status")["retirable"], "all is sealed anew", within=60, every=0.5)
    assert _run_command(own, "secret", "retire")["retired"]
    assert [tenancy.api.get("/v1/products") for tenancy in tenancies] == before
    own.stop(worker, scheduler, api)

    empty = asyncio.run(create_cluster_database("restored", distributed=False, migrated=False))
    again = ServiceProcesses(
        empty, tmp_path, {"JOINERY_SECRET": former, "JOINERY_OBJECTS_URL": (tmp_path / "objects").as_uri()}
    )
    try:
        assert _run_command(again, "restore", tmp_path / "whole")["tables"] == report["tables"]
        done = run_joinery("cluster", "init", "--shards", "4", env=again.env)
        assert done.returncode == 0, done.stderr
        again.port = free_port()
        again.env["JOINERY_PORT"] = str(again.port)
        again.start("worker")
        again.start_api()
        for tenancy, products in zip(tenancies, before, strict=True):
            restored = type(tenancy.api)(again.port, tenancy.api.secret)
            assert restored.get("/v1/products") == products
            source = restored.create_source("file", config={"currency": "usd"})
            assert restored.import_file(source, build_catalogue(2, first=50))["status"] == "succeeded"
        assert _run_command(again, "audit", "verify")["whole"]
    finally:
        again.stop()
        asyncio.run(drop_database(empty))
