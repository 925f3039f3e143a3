"""Example area for tests of the pipeline: things that are created, read, listed, updated and deleted."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from adapters.api_json.resource import Body
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.jobs.model import NewJob
from domain.jobs.ports import JobStore
from domain.kernel import schema
from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.ids import new_id
from domain.kernel.paging import Page
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from entrypoints.operations.operation import Area, Operation, Read, ReadContext, Reply, Write, WriteContext

THING = schema.response_object(
    "thing", {"id": schema.id_schema("src"), "name": schema.text("oak"), "version": schema.integer(1)}
)
CREATE = schema.strict_object(
    {
        "name": schema.text("oak", max_length=10),
        "size": schema.number(1.5),
        "deep": {},
        "words": schema.array(schema.text("a", max_length=3), max_items=2),
        "maybe": schema.nullable(schema.strict_object({"on": schema.boolean()}, ("on",))),
    },
    ("name",),
)


@dataclass
class Thing:
    """Stored thing."""

    org: str
    livemode: bool
    id: str
    name: str
    version: int = 1


MINUTE = timedelta(minutes=1)
THINGS: dict[str, Thing] = {}
CALLS: list[Any] = []
BEHAVIOUR: dict[str, Any] = {}


def reset() -> None:
    """Delete all things and recorded calls."""
    THINGS.clear()
    CALLS.clear()
    BEHAVIOUR.clear()


def to_wire(thing: Thing) -> dict[str, Any]:
    """Return the JSON of a thing."""
    return {"object": "thing", "id": thing.id, "name": thing.name, "version": thing.version}


def _find_own(call: ReadContext[None]) -> Thing:
    thing = THINGS.get(call.ids["id"])
    tenant = call.principal.tenant
    if thing is None or (thing.org, thing.livemode) != (tenant.org, tenant.livemode):
        raise NotFound(f"No thing {call.ids['id']}.")
    return thing


def add_thing(org: str, name: str = "oak", *, livemode: bool = True) -> Thing:
    """Store a thing."""
    thing = Thing(org, livemode, new_id("src"), name)
    THINGS[thing.id] = thing
    return thing


async def create(call: WriteContext[None]) -> Reply:
    """Create a thing and a member of its name, which a rollback removes."""
    CALLS.append(call)
    name, tenant, tx = call.command["name"], call.principal.tenant, call.tx
    thing = Thing(tenant.org, tenant.livemode, new_id("src"), name)
    member = Member(new_id("usr"), tenant.org, f"{name}@example.org", "viewer", datetime(2026, 1, 1, tzinfo=UTC))
    await tx[OrgStore].add_member(member)
    await tx[AuditLog].add(Change("thing", thing.id, "create", {}, {"name": name}))
    await tx[JobStore].add(NewJob("things.check", f"thing:{thing.id}", tenant))
    if BEHAVIOUR.get("then"):
        raise BEHAVIOUR["then"]
    if isinstance(call.command.get("size"), float):
        raise TypeError("a float got in")
    return Reply(to_wire(thing), headers={"Location": f"{call.base_url}/v1/things/{thing.id}"})


async def read(call: ReadContext[None]) -> Reply:
    """Return a thing."""
    thing = _find_own(call)
    return Reply(to_wire(thing), version=thing.version)


async def list_numbers(call: ReadContext[None]) -> Reply:
    """Return a page of numbers."""
    CALLS.append(call)
    start = int(call.page_request.key) if call.page_request.key else (101 if call.page_request.backwards else 0)
    step = range(start - 1, 0, -1) if call.page_request.backwards else range(start + 1, 101)
    found = list(step[: call.page_request.limit])
    more = len(step) > len(found)
    page = Page(tuple(sorted(found)), more, str(found[-1]) if more else None)
    return call.build_page_reply(page, lambda number: {"object": "number", "number": number})


async def update(call: WriteContext[None]) -> Reply:
    """Rename a thing when the version is the expected one."""
    thing = _find_own(call)
    if call.expected_version not in (None, thing.version):
        raise PreconditionFailed(f"The version is {thing.version}.")
    if not call.tx.is_dry_run:
        thing.name, thing.version = call.command["name"], thing.version + 1
    return Reply(to_wire(thing), version=thing.version)


async def delete(call: WriteContext[None]) -> Reply:
    """Delete a thing."""
    thing = _find_own(call)
    if not call.tx.is_dry_run:
        del THINGS[thing.id]
    return Reply()


async def poke(call: WriteContext[None]) -> Reply:
    """Do what the test defines, without any IDs."""
    CALLS.append(call)
    if BEHAVIOUR.get("then"):
        raise BEHAVIOUR["then"]
    return Reply({"object": "poke", "size": Decimal("1.50"), "body": call.command})


async def peek(call: ReadContext[None]) -> Reply:
    """Fail as the test defines."""
    if BEHAVIOUR.get("then"):
        raise BEHAVIOUR["then"]
    return Reply({"object": "peek", "at": call.version}, etag=BEHAVIOUR.get("etag"))


def _row(id_: str, method: str, path: str, handler: Any, **more: Any) -> Operation:
    given: dict[str, Any] = {"scope": "sources:read", "reply": THING, "summary": id_} | more
    if isinstance(given.get("body"), dict):
        given["body"] = Body(given["body"], lambda value: value)
    if method == "GET":
        return Read(id=id_, path=path, handler=handler, **given)
    return Write(id=id_, method=method, path=path, handler=handler, **given)


_WRITE: dict[str, Any] = {"scope": "sources:write", "rate": "write"}
_ID: dict[str, Any] = {"ids": {"id": "src"}}
OPERATIONS = (
    _row("things.list", "GET", "/v1/things", list_numbers, paging="both", query={"colour": schema.text("red"), "big": schema.boolean()}),
    _row("things.forward", "GET", "/v1/forward", list_numbers, paging="forward"),
    _row("things.create", "POST", "/v1/things", create, body=CREATE, status=201, **_WRITE),
    _row("things.read", "GET", "/v1/things/{id}", read, **_ID),
    _row("things.static", "GET", "/v1/things/special", peek),
    _row("things.update", "PATCH", "/v1/things/{id}", update, body=schema.strict_object({"name": schema.text("a")}, ("name",)),
         requires_if_match=True, **_ID, **_WRITE),
    _row("things.remove", "DELETE", "/v1/things/{id}", delete, status=204, **_ID, **_WRITE),
    _row("things.poke", "POST", "/v1/things/{id}/poke", poke,
         body=Body(schema.strict_object({"a": {}}), lambda value: value or None, is_required=False), **_ID, **_WRITE),
    _row("things.act", "POST", "/v1/things/{id}/act", poke, **_ID, **_WRITE),
    _row("things.heavy", "POST", "/v1/heavy", poke, scope="sources:write", rate="expensive"),
    _row("things.export", "POST", "/v1/bulk", poke, scope="exports:write", rate="export", feature="bulk_exports"),
    _row("things.keyless", "POST", "/v1/keyless", poke, scope="sources:write", rate="expensive", ignores_idempotency_key=True),
    _row("things.owner", "POST", "/v1/owner", poke, caller_kind="owner", **_WRITE),
    _row("things.person", "POST", "/v1/person", poke, caller_kind="person", **_WRITE),
    _row("things.session", "POST", "/v1/session", poke, caller_kind="member_session", **_WRITE),
)  # fmt: skip
AREA = Area("things", "Things", "Toys.", lambda _: None, OPERATIONS)
