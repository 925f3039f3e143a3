"""Properties of every row of the operation table, without knowledge of a particular operation."""

from collections.abc import Mapping
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from domain.kernel import schema
from entrypoints.http.execute import UNSTORED_STATUSES
from entrypoints.operations.openapi import PREVIEW
from entrypoints.operations.operation import Operation
from tests.http.client import Response
from tests.tenancy.application import OPERATIONS, ServedApplication, Tenancy, build_body, build_path, call_operation
from tests.tenancy.test_other_tenants import _read_rows

pytestmark = pytest.mark.asyncio(loop_scope="module")
WRITES = [operation for operation in OPERATIONS if operation.is_write]
NOTED = {"request_logs", "key_uses"}
"""Tables that are written after the request."""
PASSING = {
    *("request_logs", "key_uses", "idempotency_keys", "events", "event_logs", "event_log_terms"),
    *("demand_signal_ids", "demand_hours"),
}
"""Tables of records of requests, samples of events and counts of signals, which are no resources."""
LISTS = [operation for operation in OPERATIONS if operation.paging in ("both", "forward")]


async def create_tenancy(application: ServedApplication, livemode: bool = False) -> Tenancy:
    """Create a tenant in test mode by default, with one resource of each type."""
    return await application.create_tenancy(await application.create_organisation(), livemode)


def check_schema(answer: Response, described: Mapping[str, Any], name: str) -> None:
    """Check the response body against its schema."""
    faults = [
        f"{'.'.join(map(str, e.path))}: {e.message}"
        for e in Draft202012Validator(dict(described)).iter_errors(answer.json())
    ]
    assert not faults, (name, faults)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda row: row.id)
async def test_responses_match_their_schemas(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application, livemode=operation.area == "billing")
    answer = await call_operation(mine.choose_client(operation), operation, mine.ids)
    if answer.status < 300:
        assert answer.status == operation.status
        if operation.reply is not None and not operation.is_stream:
            check_schema(answer, operation.reply, operation.id)
    else:
        assert answer.json()["code"] in operation.errors, (answer.status, answer.body)


@pytest.mark.parametrize("operation", WRITES, ids=lambda row: row.id)
async def test_dry_runs_have_no_effect_and_explain(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application, livemode=operation.area == "billing")
    before = await _read_rows(mine)
    for mode in ("true", "explain"):
        answer = await call_operation(mine.choose_client(operation), operation, mine.ids, service_dry_run=mode)
        if answer.status >= 300:
            assert answer.json()["code"] in operation.errors, (answer.status, answer.body)
            continue
        assert answer.headers["service-dry-run"] == mode
        if mode == "explain":
            assert (answer.status, answer.json()["operation"]) == (200, operation.id)
            described = PREVIEW | {"properties": {**PREVIEW["properties"], **operation.preview}}
            check_schema(answer, described, operation.id)
    after = await _read_rows(mine)
    assert {name: rows for name, rows in after.items() if name not in NOTED} == {
        name: rows for name, rows in before.items() if name not in NOTED
    }


async def test_every_change_of_a_resource_is_audited(application: ServedApplication) -> None:
    unaudited = set()
    for operation in WRITES:
        if operation.is_stream:
            continue  # a turn changes no resource; the changes that it makes are audited as their own operations
        mine = await create_tenancy(application)
        before = await _read_rows(mine)
        answer = await call_operation(mine.choose_client(operation), operation, mine.ids)
        after = await _read_rows(mine)
        changed = {name for name, rows in after.items() if rows != before[name]} - PASSING
        if changed and before["audit_entries"] == after["audit_entries"]:
            unaudited.add((operation.id, answer.status, *sorted(changed)))
    assert unaudited == set()


@pytest.mark.parametrize(
    "operation", [row for row in WRITES if row.requires_idempotency_key and not row.is_stream], ids=lambda row: row.id
)
async def test_a_repeated_key_repeats_the_response_without_effect(
    application: ServedApplication, operation: Operation
) -> None:
    mine = await create_tenancy(application, livemode=operation.area == "billing")
    missing = await mine.choose_client(operation).send_json(
        "POST", build_path(operation, mine.ids), build_body(operation)
    )
    assert missing.faults == {("header.Idempotency-Key", "required")}
    first = await call_operation(mine.choose_client(operation), operation, mine.ids, idempotency_key="once")
    if first.status in UNSTORED_STATUSES:
        assert first.json()["code"] == "permission_denied"
        return
    kept = await _read_rows(mine)
    again = await call_operation(mine.choose_client(operation), operation, mine.ids, idempotency_key="once")
    assert (again.status, again.headers["idempotent-replayed"]) == (first.status, "true")
    if first.status < 400:
        assert again.body == first.body
    assert {name: rows for name, rows in (await _read_rows(mine)).items() if name not in NOTED} == {
        name: rows for name, rows in kept.items() if name not in NOTED
    }
    other = await call_operation(mine.choose_client(operation), operation, mine.ids, "?", idempotency_key="once")
    assert other.headers.get("idempotent-replayed") == "true"


@pytest.mark.parametrize("operation", [row for row in WRITES if row.requires_if_match], ids=lambda row: row.id)
async def test_a_change_requires_the_current_version(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    path, body = build_path(operation, mine.ids), build_body(operation)
    assert (await mine.choose_client(operation).send_json(operation.method, path, body)).status == 428
    stale = await mine.choose_client(operation).send_json(operation.method, path, body, if_match='"999-x"')
    assert (stale.status, stale.code) == (412, "precondition_failed")


@pytest.mark.parametrize("operation", LISTS, ids=lambda row: row.id)
async def test_lists_accept_valid_cursors_only(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    page = await call_operation(mine.choose_client(operation), operation, mine.ids, "?limit=1")
    assert page.status == 200, page.body
    assert len(page.json()["data"]) <= 1
    if page.json()["has_more"]:
        following = await call_operation(
            mine.client, operation, mine.ids, f"?limit=1&starting_after={page.json()['next_cursor']}"
        )
        assert following.status == 200
        assert following.json()["data"] != page.json()["data"]
    for query, code in (
        ("limit=0", "too_small"),
        ("limit=101", "too_large"),
        ("starting_after=x", "invalid_cursor"),
        ("nothing=1", "unknown_field"),
    ):
        refused = await call_operation(mine.choose_client(operation), operation, mine.ids, f"?{query}")
        assert refused.faults == {(f"query.{query.split('=')[0]}", code)}, operation.id
    backwards = await call_operation(mine.choose_client(operation), operation, mine.ids, "?ending_before=x")
    expected = "invalid_cursor" if operation.paging == "both" else "unknown_field"
    assert backwards.faults == {("query.ending_before", expected)}


@pytest.mark.parametrize("operation", [row for row in WRITES if row.body is not None], ids=lambda row: row.id)
async def test_bodies_refuse_unknown_fields(application: ServedApplication, operation: Operation) -> None:
    mine = await create_tenancy(application)
    assert operation.body is not None
    body = {**(build_body(operation) or schema.build_example(operation.body.schema)), "no_such_field": 1}
    headers = {"if_match": "*"} if operation.requires_if_match else {}
    headers |= {"idempotency_key": "k"} if operation.requires_idempotency_key else {}
    answer = await mine.choose_client(operation).send_json(
        operation.method, build_path(operation, mine.ids), body, **headers
    )
    assert answer.faults == {("no_such_field", "unknown_field")}
