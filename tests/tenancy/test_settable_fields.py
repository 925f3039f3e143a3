"""Fields of request bodies: each is stored and returned or refused, and undo restores it."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from domain.kernel import schema
from domain.kernel.ids import new_id
from entrypoints.operations.operation import Operation, UndoSupport
from tests.http.client import Client
from tests.tenancy.application import OPERATIONS, ServedApplication, build_body, build_path
from tests.tenancy.test_every_operation import create_tenancy

pytestmark = pytest.mark.asyncio(loop_scope="module")
URL = "https://vendor.example/feed.csv"
BODIES = {"sources.create": {"name": "Pulled", "kind": "url", "connector": "csv", "config": {"url": URL}}}
VALUES: Mapping[str, Mapping[str, Any]] = {
    "brand": {"brands": [[f"Brand {new_id('vnd')}"]]},
    "sources": {
        "connector": ["json_ld"],
        "config": [{"url": URL, "currency": "eur"}, {"url": "https://other.example/feed.csv"}],
        "schedule": [
            {"interval_minutes": 60, "adaptive": True},
            {"at": ["06:30", "18:00"], "weekdays": ["mon", "fri"], "time_zone": "Europe/Berlin", "adaptive": False},
        ],
    },
    "webhooks": {
        "event_types": [["product.updated"], ["*"]],
        "filters": [{"catalogues": [schema.build_example(schema.id_schema("cat"))]}],
    },
}
"""Valid values of fields whose examples are not valid here, by area."""
ONE_VALUE = {("sources.create", "first_party"), ("sources.create", "kind")}
"""Fields that accept only their present value here: other values need a vendor or other settings."""
NEEDS_A_MODEL = {("matching.update_judge_settings", "enabled"), ("matching.update_judge_settings", "model")}
"""Fields that need a language model (tests/contract/test_judge_over_http.py)."""


def list_fields(operation: Operation) -> list[str]:
    """Return the fields of the body that the response has as well."""
    answered = (operation.reply or {}).get("properties", {})
    body = operation.body.schema.get("properties", {}) if operation.body else {}
    return [name for name in body if name in answered]


def list_values(operation: Operation, field: str) -> Iterator[Any]:
    """Yield values that fit the schema of the field."""
    assert operation.body is not None
    described = operation.body.schema["properties"][field]
    described = described.get("anyOf", [described])[0]
    if field in (given := VALUES.get(operation.area, {})):
        yield from given[field]
    elif "enum" in described:
        yield from described["enum"]
    elif described["type"] == "boolean":
        yield from (True, False)
    elif described["type"] in ("integer", "number"):
        yield from (described[bound] for bound in ("minimum", "maximum") if bound in described)
        yield schema.build_example(described)
    elif described["type"] == "string":
        yield from (f"{schema.build_example(described)}", f"{schema.build_example(described)}2")
    else:
        yield schema.build_example(described)


CREATES = [
    (operation, field)
    for operation in OPERATIONS
    if operation.method == "POST"
    and operation.status == 201
    and operation.area not in ("agreements", "brand", "uploads")
    for field in list_fields(operation)
]
PATCHES = [
    (operation, field)
    for operation in OPERATIONS
    if operation.method == "PATCH" and operation.caller_kind == "any"
    for field in list_fields(operation)
    if (operation.id, field) not in NEEDS_A_MODEL
]


def build_id(row: Any) -> str:
    return f"{row[0].id}-{row[1]}"


async def send_body(client: Client, operation: Operation, ids: Mapping[str, str], body: Any) -> Any:
    """Send the body to the operation."""
    headers = (
        {"if_match": "*"}
        if operation.requires_if_match
        else {"idempotency_key": schema.build_example(schema.id_schema("req")) + str(hash(str(body)))}
    )
    return await client.send_json(operation.method, build_path(operation, ids), body, **headers)


@pytest.mark.parametrize("row", CREATES, ids=build_id)
async def test_fields_of_created_resources_are_stored(
    application: ServedApplication, row: tuple[Operation, str]
) -> None:
    operation, field = row
    mine = await create_tenancy(application)
    usual = BODIES.get(operation.id) or build_body(operation) or {}
    client = mine.choose_client(operation)
    plain = (await send_body(client, operation, mine.ids, usual)).json()
    stored = []
    for value in list_values(operation, field):
        made = await send_body(client, operation, mine.ids, {**usual, field: value})
        if made.status < 300:
            read = await client.get(f"{operation.path}/{made.json()['id']}")
            rows = [read.json()] if read.status == 200 else (await client.get(operation.path)).json()["data"]
            [stored_row] = [one for one in rows if one["id"] == made.json()["id"]]
            assert (made.json()[field], stored_row[field]) == (value, value)
            stored.append(value)
    assert stored, "no value is accepted"
    assert (operation.id, field) in ONE_VALUE or any(value != plain.get(field) for value in stored)


@pytest.mark.parametrize("row", PATCHES, ids=build_id)
async def test_changed_fields_are_stored_and_undone(application: ServedApplication, row: tuple[Operation, str]) -> None:
    operation, field = row
    mine = await create_tenancy(application)
    if (create := next((one for one in OPERATIONS if one.id == f"{operation.area}.create"), None)) and operation.ids:
        made = await send_body(mine.client, create, mine.ids, BODIES.get(create.id) or build_body(create))
        mine.ids[next(iter(operation.ids.values()))] = made.json()["id"]
    path, stored = build_path(operation, mine.ids), 0
    for value in list_values(operation, field):
        before = (await mine.client.get(path)).json()
        if before.get(field) == value:
            continue
        changed = await send_body(mine.client, operation, mine.ids, {field: value})
        if changed.status >= 300:
            continue
        after = (await mine.client.get(path)).json()
        assert (changed.json()[field], after[field]) == (value, value)
        stored += 1
        assert isinstance(operation.undo, UndoSupport)
        entry = (await mine.client.get("/v1/audit-events?limit=1")).json()["data"][0]
        undone = await mine.client.send_json(
            "POST", f"/v1/audit-events/{entry['id']}/undo", {}, idempotency_key=entry["id"]
        )
        assert undone.status == 200, undone.body
        restored = (await mine.client.get(path)).json()
        times = ("version", "updated_at", "freshness")
        assert {k: v for k, v in restored.items() if k not in times} == {
            k: v for k, v in before.items() if k not in times
        }
    assert stored, "no value is accepted"
