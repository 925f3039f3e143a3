"""Every scope and role against every operation, and equal responses for every reason of a 401."""

import asyncio
import time
from datetime import timedelta

import pytest

from adapters.postgres.nodes.pool import Pool
from domain.access.model import ROLES, SCOPES
from domain.access.ports import KeyStore
from domain.access.usecases import generate_api_key
from domain.kernel.tenancy import Tenant
from entrypoints.operations.operation import Operation
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client, Response
from tests.support import builders
from tests.tenancy.application import OPERATIONS, ServedApplication, call_operation, create_unknown_ids

pytestmark = pytest.mark.asyncio(loop_scope="module")
SCOPED = [operation for operation in OPERATIONS if operation.scope]
ADDITIONAL_SCOPES = {"exports.create": "products:read"}
"""Scopes that the body of the test request requires in addition to the operation's scope."""


def _is_permitted(operation: Operation, scopes: frozenset[str], role: str) -> bool:
    """Return whether an API key with these scopes, bound to a member with that role, may call the operation."""
    needed = {operation.scope or "", ADDITIONAL_SCOPES.get(operation.id, "")} - {""}
    return operation.caller_kind == "any" and needed <= scopes & ROLES[role]


async def test_all_other_scopes_are_not_sufficient(application: ServedApplication) -> None:
    tenant = Tenant((await application.create_organisation()).id, True)
    for scope in sorted({operation.scope or "" for operation in SCOPED}):
        client = await application.create_client(tenant, scopes=SCOPES - {scope})
        for operation in SCOPED:
            answer = await call_operation(client, operation, create_unknown_ids())
            if scope in (operation.scope, ADDITIONAL_SCOPES.get(operation.id)):
                assert (answer.status, answer.code) == (403, "permission_denied"), operation.id
                assert "ratelimit" in answer.headers
            elif operation.caller_kind == "any":
                assert answer.status not in (401, 403), (operation.id, scope, answer.body)


async def test_the_required_scope_is_sufficient(application: ServedApplication) -> None:
    for scope in sorted(SCOPES):
        client = await application.create_client(
            Tenant((await application.create_organisation()).id, True), scopes=frozenset({scope})
        )
        for operation in OPERATIONS:
            answer = await call_operation(client, operation, create_unknown_ids())
            refused = answer.status in (401, 403)
            assert refused is not _is_permitted(operation, frozenset({scope}), "owner"), (
                operation.id,
                scope,
                answer.body,
            )


async def test_a_key_without_scopes_is_refused(application: ServedApplication) -> None:
    client = await application.create_client(
        Tenant((await application.create_organisation()).id, True), scopes=frozenset()
    )
    for operation in OPERATIONS:
        answer = await call_operation(client, operation, create_unknown_ids())
        assert (answer.status == 403) is not _is_permitted(operation, frozenset(), "owner"), operation.id


@pytest.mark.parametrize("role", sorted(ROLES))
async def test_a_members_key_has_no_more_scopes_than_the_role(application: ServedApplication, role: str) -> None:
    organisation = await application.create_organisation()
    member = await application.add_member(organisation, role)
    tenant = Tenant(organisation.id, True)
    client = await application.create_client(tenant, role=role, member=member.user)
    for operation in OPERATIONS:
        answer = await call_operation(client, operation, create_unknown_ids())
        refused = answer.status in (401, 403)
        assert refused is not _is_permitted(operation, SCOPES, role), (operation.id, answer.body)


async def test_a_demoted_members_key_loses_scopes_immediately(application: ServedApplication) -> None:
    """Scopes are limited by the member's current role, not by the role at the creation of the key."""
    organisation = await application.create_organisation()
    member = await application.add_member(organisation, "owner")
    client = await application.create_client(Tenant(organisation.id, True), member=member.user)
    assert (await client.post("/v1/sources", {"name": "A", "kind": "push"})).status == 201
    async with application.dependencies[Pool].connect_as_owner() as link:
        await link.driver_connection.execute("UPDATE members SET role = 'viewer' WHERE org = %s", (organisation.id,))
    await _wait_for_status(client, 403, method="POST")


async def test_a_former_members_key_is_rejected(application: ServedApplication) -> None:
    organisation = await application.create_organisation()
    member = await application.add_member(organisation, "owner")
    client = await application.create_client(Tenant(organisation.id, True), member=member.user)
    assert (await client.get("/v1/sources")).status == 200
    async with application.dependencies[Pool].connect_as_owner() as link:
        await link.driver_connection.execute("DELETE FROM members WHERE org = %s", (organisation.id,))
    await _wait_for_status(client, 401)


async def test_permission_is_checked_before_the_resource_is_loaded(application: ServedApplication) -> None:
    mine = await application.create_tenancy(await application.create_organisation(), True)
    client = await application.create_client(mine.tenant, scopes=frozenset({"org:read"}))
    for operation in SCOPED:
        if operation.ids and operation.scope != "org:read":
            own, none = (
                await call_operation(client, operation, mine.ids),
                await call_operation(client, operation, create_unknown_ids()),
            )
            assert own.status == none.status == 403
            assert _strip_request_id(own) == _strip_request_id(none)


async def test_every_reason_for_a_401_has_the_same_response(application: ServedApplication) -> None:
    tenant = Tenant((await application.create_organisation()).id, True)
    _, good = await application.create_key(tenant)
    revoked, revoked_secret = await application.create_key(tenant)
    async with application.dependencies[UnitOfWork].begin(tenant, builders.CALL) as tx:
        assert await tx[KeyStore].revoke(revoked.id)
    clock = application.dependencies[Clock]
    secrets = {
        "none": None,
        "nonsense": "nonsense",
        "unknown": generate_api_key(True, False),
        "mistyped": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "revoked": revoked_secret,
        "expired": (await application.create_key(tenant, expires_at=clock.now() - timedelta(seconds=1)))[1],
        "elsewhere": (await application.create_key(tenant, networks=("192.0.2.0/24",)))[1],
    }
    for operation in OPERATIONS:
        answers = {
            why: await call_operation(Client(application.app, secret), operation, create_unknown_ids())
            for why, secret in secrets.items()
        }
        assert {answer.status for answer in answers.values()} == {401}, operation.id
        alike = {
            (_strip_request_id(answer), tuple(sorted(_strip_headers(answer).items()))) for answer in answers.values()
        }
        assert len(alike) == 1, (operation.id, answers)


async def test_revocation_takes_effect_within_a_second_in_every_process(application: ServedApplication) -> None:
    """The key is in use when it is revoked: caches keep it for less than a second."""
    tenant = Tenant((await application.create_organisation()).id, True)
    key, secret = await application.create_key(tenant)
    client = Client(application.app, secret)
    assert (await client.get("/v1/sources")).status == 200
    async with application.dependencies[UnitOfWork].begin(tenant, builders.CALL) as tx:
        assert await tx[KeyStore].revoke(key.id)
    await _wait_for_status(client, 401)


async def _wait_for_status(client: Client, status: int, *, method: str = "GET") -> None:
    started = time.monotonic()
    while True:
        if method == "GET":
            answer = await client.get("/v1/sources")
        else:
            answer = await client.post("/v1/sources", {"name": "B", "kind": "push"})
        if answer.status == status:
            return
        assert time.monotonic() - started < 1.0, answer.body
        await asyncio.sleep(0.02)


def _strip_request_id(answer: Response) -> bytes:
    return answer.body.replace(answer.headers["request-id"].encode(), b"req")


def _strip_headers(answer: Response) -> dict[str, str]:
    return {name: value for name, value in answer.headers.items() if name not in ("request-id", "date")}
