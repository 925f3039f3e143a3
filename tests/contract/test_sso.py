"""Storage of single sign-on (domain/sso/ports.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.sso.model import LinkedIdentity, MailDomain, SsoConnection
from domain.sso.ports import SsoStore
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
HOUR = timedelta(hours=1)
THEN = builders.MOMENT


def _build_connection(org: str, **changes: object) -> SsoConnection:
    made = SsoConnection(org, "https://id.example", "client", b"sealed", "viewer", False, True, None, THEN, THEN)
    return replace(made, **changes)  # type: ignore[arg-type]


def _create_domain() -> str:
    return f"{new_id('org')[4:].lower()}.example"


async def test_a_connection_is_stored_changed_and_removed(backend: Backend) -> None:
    tenant = await backend.tenant()
    made = _build_connection(tenant.org)
    later = replace(
        made,
        issuer="https://other.example",
        sealed=b"other",
        joins_as=None,
        enforced=True,
        enabled=False,
        tried_at=THEN,
    )
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        assert await tx[SsoStore].find_connection() is None
        await tx[SsoStore].save_connection(made)
        assert await tx[SsoStore].find_connection() == made
        await tx[SsoStore].save_connection(later)
    async with backend.uow.begin(Tenant(tenant.org, False), builders.CALL) as tx:
        assert await tx[SsoStore].find_connection() == later, "modes share the connection"
        await tx[SsoStore].delete_connection()
        assert await tx[SsoStore].find_connection() is None


async def test_a_proven_domain_leads_to_its_connection(backend: Backend) -> None:
    first, second = await backend.tenant(), await backend.tenant()
    waiting = MailDomain(first.org, _create_domain(), "token", None, None, None, THEN)
    proven = replace(waiting, proven_at=THEN, looked_at=THEN)
    for tenant in (first, second):
        async with backend.uow.begin(tenant, builders.CALL) as tx:
            await tx[SsoStore].save_connection(_build_connection(tenant.org))
            await tx[SsoStore].save_domain(replace(waiting, org=tenant.org))
    assert await backend.sso.find_by_domain(waiting.domain) is None
    async with backend.uow.begin(first, builders.CALL) as tx:
        await tx[SsoStore].save_domain(proven)
        assert list(await tx[SsoStore].list_domains()) == [proven]
    assert await backend.sso.find_by_domain(waiting.domain) == _build_connection(first.org)
    with pytest.raises(Conflict):
        async with backend.uow.begin(second, builders.CALL) as tx:
            await tx[SsoStore].save_domain(replace(proven, org=second.org))
    async with backend.uow.begin(first, builders.CALL) as tx:
        await tx[SsoStore].save_connection(_build_connection(first.org, enabled=False))
    assert await backend.sso.find_by_domain(waiting.domain) is None
    async with backend.uow.begin(first, builders.CALL) as tx:
        assert await tx[SsoStore].delete_domain(waiting.domain)
        assert not await tx[SsoStore].delete_domain(waiting.domain)
        assert list(await tx[SsoStore].list_domains()) == []
    async with backend.uow.begin_reading(second) as tx:
        assert [one.domain for one in await tx[SsoStore].list_domains()] == [waiting.domain]


async def test_due_domains_are_listed_by_age(backend: Backend) -> None:
    tenant = await backend.tenant()
    made = [
        MailDomain(tenant.org, _create_domain(), "t", THEN, None, THEN + n * HOUR, THEN) if n < 3 else
        MailDomain(tenant.org, _create_domain(), "t", None, None, THEN, THEN) for n in range(4)
    ]  # fmt: skip
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for one in made:
            await tx[SsoStore].save_domain(one)
    due = [one for one in await backend.sso.list_domains_to_check(THEN + 2 * HOUR, 10_000) if one.org == tenant.org]
    assert due == made[:2]


async def test_a_subject_is_one_user_and_a_user_one_subject(backend: Backend) -> None:
    tenant, other = await backend.tenant(), await backend.tenant()
    user = new_id("usr")
    made = LinkedIdentity(tenant.org, "https://id.example", "s-1", user, "a@x.example", THEN, THEN)
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SsoStore].save_linked_identity(made)
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-1") == made
        assert await tx[SsoStore].find_linked_identity_by_user(made.issuer, user) == made
        assert await tx[SsoStore].find_linked_identity("https://else.example", "s-1") is None
        await tx[SsoStore].save_linked_identity(seen := replace(made, email="b@x.example", seen_at=THEN + HOUR))
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-1") == seen
        await tx[SsoStore].save_linked_identity(moved := replace(made, subject="s-2"))
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-1") is None
        assert await tx[SsoStore].find_linked_identity_by_user(made.issuer, user) == moved
    async with backend.uow.begin(other, builders.CALL) as tx:
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-2") is None
        await tx[SsoStore].save_linked_identity(replace(moved, org=other.org))
        await tx[SsoStore].delete_connection()
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-2") is None
    async with backend.uow.begin_reading(tenant) as tx:
        assert await tx[SsoStore].find_linked_identity(made.issuer, "s-2") == moved


async def test_members_are_found_by_domain(backend: Backend) -> None:
    tenant = await backend.tenant()
    domain = _create_domain()
    made = [
        Member(new_id("usr"), tenant.org, f"P{n}@{name}", "viewer", THEN)
        for n, name in enumerate((domain.upper(), f"sub.{domain}", "x.example"))
    ]
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        for member in made:
            await tx[OrgStore].add_member(member)
    async with backend.uow.begin_reading(tenant) as tx:
        assert list(await tx[SsoStore].list_members_in_domains([domain])) == made[:1]
        assert (
            await tx[SsoStore].find_member(made[1].user) == made[1]
            and await tx[SsoStore].find_member(new_id("usr")) is None
        )
