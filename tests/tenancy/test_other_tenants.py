"""IDs of another organisation or mode: the response equals that to an unknown ID, byte for byte."""

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import psycopg
import pytest

from entrypoints.operations.operation import Operation
from tests.http.client import Client, Response
from tests.support.postgres import database
from tests.tenancy.application import (
    OPERATIONS,
    SHARED,
    ServedApplication,
    Tenancy,
    call_operation,
    create_unknown_ids,
)

pytestmark = pytest.mark.asyncio(loop_scope="module")
WITH_IDS = [operation for operation in OPERATIONS if operation.ids]
FILTERS = {"source": "src", "variant": "var", "product": "prod", "catalogue": "cat"}
"""Query parameters with IDs of a tenant's resources."""
OWN_TO_THE_REQUEST = {"request-id", "date", "ratelimit"}


async def create_tenancies(application: ServedApplication) -> list[Tenancy]:
    """Create two organisations in both modes."""
    organisations = [await application.create_organisation() for _ in range(2)]
    return [
        await application.create_tenancy(organisation, mode) for organisation in organisations for mode in (True, False)
    ]


def strip_response(answer: Response) -> tuple[int, dict[str, str], Any]:
    """Return the response without values that differ in each request."""
    headers = {name: value for name, value in answer.headers.items() if name not in OWN_TO_THE_REQUEST}
    body = answer.body.replace(answer.headers["request-id"].encode(), b"req")
    return answer.status, headers, body


async def test_ids_of_another_tenant_are_treated_as_unknown(application: ServedApplication) -> None:
    tenancies = await create_tenancies(application)
    unlike = []
    for operation in WITH_IDS:
        if operation.id in SHARED:
            continue
        for mine in tenancies:
            expected = strip_response(
                await call_operation(mine.choose_client(operation), operation, create_unknown_ids())
            )
            assert expected[0] == 404, operation.id
            for theirs in tenancies:
                if (
                    theirs is not mine
                    and strip_response(await call_operation(mine.choose_client(operation), operation, theirs.ids))
                    != expected
                ):
                    unlike.append((operation.id, mine.tenant, theirs.tenant))
    assert unlike == []


async def test_shared_resources_of_the_mode_are_found(application: ServedApplication) -> None:
    mine, sandbox, theirs, _ = await create_tenancies(application)
    for operation in WITH_IDS:
        if operation.id in SHARED:
            assert (await call_operation(mine.choose_client(operation), operation, theirs.ids)).status == 200
            unknown = await call_operation(mine.choose_client(operation), operation, create_unknown_ids())
            assert strip_response(
                await call_operation(mine.choose_client(operation), operation, sandbox.ids)
            ) == strip_response(unknown)


async def test_own_ids_are_found(application: ServedApplication) -> None:
    """Without this test the one above would prove nothing."""
    mine = (await create_tenancies(application))[0]
    for operation in WITH_IDS:
        answer = await call_operation(
            mine.choose_client(operation), operation, mine.ids, service_dry_run="true" if operation.is_write else ""
        )
        assert answer.status != 404, (operation.id, answer.body)


@pytest.mark.parametrize("mode", ["true", "explain"])
async def test_dry_runs_reveal_no_more(application: ServedApplication, mode: str) -> None:
    tenancies = await create_tenancies(application)
    mine = tenancies[0]
    for operation in WITH_IDS:
        if operation.is_write:
            expected = strip_response(
                await call_operation(
                    mine.choose_client(operation), operation, create_unknown_ids(), service_dry_run=mode
                )
            )
            for theirs in tenancies[1:]:
                assert (
                    strip_response(
                        await call_operation(mine.choose_client(operation), operation, theirs.ids, service_dry_run=mode)
                    )
                    == expected
                )


async def test_malformed_ids_and_ids_of_another_kind_reveal_nothing_about_rows(application: ServedApplication) -> None:
    """The format alone identifies them: the response is the same for every tenant, whether the row exists or not."""
    mine, theirs, *_ = await create_tenancies(application)
    for operation in WITH_IDS:
        for wrong in ("org_" + "1" * 22, "nonsense", "src_short", "SRC_" + "1" * 22, "%00", "..", "a" * 500):
            ids = dict.fromkeys(operation.ids.values(), wrong)
            expected = strip_response(await call_operation(theirs.choose_client(operation), operation, ids))
            assert expected[0] == 404
            assert strip_response(await call_operation(mine.choose_client(operation), operation, ids)) == expected, (
                operation.id,
                wrong,
            )


async def test_ids_of_another_kind_are_treated_alike_if_they_exist(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), True)
    for operation in WITH_IDS:
        for prefix in ("src", "run", "whe"):
            if prefix in operation.ids.values():
                continue
            there, nowhere = (
                dict.fromkeys(operation.ids.values(), ids[prefix]) for ids in (mine.ids, create_unknown_ids())
            )
            assert strip_response(
                await call_operation(mine.choose_client(operation), operation, there)
            ) == strip_response(await call_operation(mine.choose_client(operation), operation, nowhere))


async def test_filters_by_ids_of_another_tenant_return_nothing(application: ServedApplication) -> None:
    tenancies = await create_tenancies(application)
    for operation in OPERATIONS:
        for name, prefix in FILTERS.items():
            if operation.method != "GET" or name not in operation.query:
                continue
            for mine in tenancies:
                assert await _list_resources(mine.client, operation, f"?{name}={mine.ids[prefix]}")
                for theirs in tenancies:
                    if theirs is not mine:
                        assert not await _list_resources(mine.client, operation, f"?{name}={theirs.ids[prefix]}")


async def _list_resources(client: Client, operation: Operation, query: str) -> list[Any]:
    answer = await call_operation(client, operation, {}, query)
    assert answer.status == 200, (operation.id, query, answer.body)
    found: list[Any] = answer.json()["data"]
    return found


async def test_no_list_contains_resources_of_another_tenant(application: ServedApplication) -> None:
    tenancies = await create_tenancies(application)
    for operation in OPERATIONS:
        if operation.method != "GET" or operation.id in SHARED:
            continue
        for mine in tenancies:
            answer = await call_operation(
                mine.choose_client(operation), operation, mine.ids, "?limit=100" if operation.paging else ""
            )
            assert answer.status == 200, (operation.id, answer.body)
            assert not [
                (operation.id, id_)
                for theirs in tenancies
                if theirs is not mine
                for id_ in theirs.ids.values()
                if id_.encode() in answer.body and id_ not in mine.ids.values()
            ]


async def test_refused_writes_have_no_effect(application: ServedApplication) -> None:
    """The other tenant is unchanged, and the caller's data contains nothing of it."""
    mine, _, theirs, _ = await create_tenancies(application)
    before = await _read_rows(theirs)
    for operation in WITH_IDS:
        if operation.is_write:
            await call_operation(mine.choose_client(operation), operation, theirs.ids)
    await asyncio.sleep(0.05)
    assert await _read_rows(theirs) == before


async def _read_rows(tenancy: Tenancy) -> Mapping[str, list[str]]:
    """Return every row of the tenant as text, by table."""
    from tests.tenancy.schema import list_tenant_tables

    found: dict[str, list[str]] = {}
    async with await psycopg.AsyncConnection.connect(await database()) as owner:
        for table in await list_tenant_tables(owner):
            if table.has_mode and not table.is_partition and table.name != "request_logs":  # written with a delay
                cursor = await owner.execute(
                    f"SELECT t::text FROM {table.name} t WHERE org = %s AND livemode = %s ORDER BY 1".encode(),
                    (tenancy.tenant.org, tenancy.tenant.livemode),
                )
                found[table.name] = [row[0] for row in await cursor.fetchall()]
    return found


async def test_cursors_are_valid_for_one_tenant_only(application: ServedApplication) -> None:
    """Invalid for another organisation, mode, list or filter; and they cannot be forged."""
    tenancies = await create_tenancies(application)
    mine = tenancies[0]
    for number in range(3):
        await mine.client.post("/v1/sources", {"name": f"S{number}", "kind": "push"})
    cursor = (await mine.client.get("/v1/sources?limit=1")).json()["next_cursor"]
    assert (await mine.client.get(f"/v1/sources?limit=1&starting_after={cursor}")).status == 200
    elsewhere = [(theirs.client, "/v1/sources?") for theirs in tenancies[1:]]
    elsewhere += [(mine.client, path) for path in ("/v1/request-logs?", f"/v1/sources/{mine.ids['src']}/runs?")]
    elsewhere += [(mine.client, path) for path in ("/v1/products?", "/v1/products?brand=x&", "/v1/offers?")]
    for client, path in elsewhere:
        _check_refusal(await client.get(f"{path}starting_after={cursor}"))
    for forged in ("", "x", cursor[:-1], cursor + "A", cursor[::-1], mine.ids["src"], "%00", "A" * 3000):
        _check_refusal(await mine.client.get(f"/v1/sources?starting_after={forged}"))


def _check_refusal(answer: Response) -> None:
    assert answer.status == 400, answer.body
    assert json.loads(answer.body)["code"] == "invalid_request"
    codes = {code for _, code in answer.faults}
    assert codes <= {"invalid_cursor", "too_short", "too_long", "invalid_format"}, codes


async def test_an_idempotency_key_belongs_to_one_tenant(application: ServedApplication) -> None:
    tenancies = await create_tenancies(application)
    body = {"name": "Same", "kind": "push"}
    answers = [await each.client.post("/v1/sources", body, idempotency_key="shared") for each in tenancies]
    assert [answer.status for answer in answers] == [201] * 4
    assert len({answer.json()["id"] for answer in answers}) == 4
    assert not any("idempotent-replayed" in answer.headers for answer in answers)
