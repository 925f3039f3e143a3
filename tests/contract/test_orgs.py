"""Organisations, members and plans (domain/orgs/ports.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import INVITATION_LIFETIME, Invitation, InvitationDetails, Member, Organisation
from domain.orgs.ports import OrgStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.pagination import check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


def _build_member(org: str, email: str, **changes: str) -> Member:
    fields = {"user": new_id("usr"), "role": "admin"} | changes
    return Member(org=org, email=email, created_at=builders.MOMENT, **fields)


async def test_the_own_organisation_is_read(backend: Backend) -> None:
    org = await backend.organisation(name="Möbelhaus Ø", kind="vendor")
    await backend.organisation()
    for livemode in (True, False):
        async with backend.uow.begin_reading(Tenant(org.id, livemode)) as tx:
            assert await tx[OrgStore].get_organisation() == org


async def test_name_and_version_are_changed(backend: Backend) -> None:
    org, other = await backend.organisation(), await backend.organisation()
    for version in ("2026-10-04", None):
        async with backend.uow.begin(Tenant(org.id, True), CALL) as tx:
            await tx[OrgStore].save_settings("Fjord & Söhne", version)
        async with backend.uow.begin_reading(Tenant(org.id, False)) as tx:
            assert await tx[OrgStore].get_organisation() == replace(org, name="Fjord & Söhne", api_version=version)
    assert await backend.registry.find(other.id) == other


async def test_organisations_are_found_by_id_or_unique_name(backend: Backend) -> None:
    name, doubled = f"Name {new_id('org')}", f"Doubled {new_id('org')}"
    org = await backend.organisation(name=name)
    for _ in range(2):
        await backend.organisation(name=doubled)
    assert await backend.registry.find(org.id) == org
    assert await backend.registry.find(name) == org
    assert await backend.registry.find(name.upper()) is None
    assert await backend.registry.find(doubled) is None
    assert await backend.registry.find("nobody") is None


async def test_organisations_are_listed_by_name(backend: Backend) -> None:
    name = f"Twice {new_id('org')}"
    first, second = await backend.organisation(name=name), await backend.organisation(name=name)
    assert await backend.registry.list_by_name(name) == [first, second]
    assert await backend.registry.list_by_name("nobody") == []
    everybody = await backend.registry.list_by_name("")
    assert [org for org in everybody if org.name == name] == [first, second]


async def test_names_of_organisations_are_found_by_id(backend: Backend) -> None:
    first, second = await backend.organisation(name="First"), await backend.organisation(name="Second")
    found = await backend.registry.find_names([first.id, second.id, new_id("org")])
    assert found == {first.id: "First", second.id: "Second"}
    assert await backend.registry.find_names([]) == {}


async def test_the_plan_is_changed(backend: Backend) -> None:
    org = await backend.organisation()
    async with backend.uow.begin_reading(Tenant(org.id, True)) as tx:
        plan = next(plan for plan in await tx[OrgStore].list_plans() if plan != org.plan)
    await backend.registry.change_plan(org.id, plan)
    await backend.registry.change_plan("org_unknown", plan)
    changed = await backend.registry.find(org.id)
    assert changed is not None and (changed.plan, changed.catalogues) == (plan, org.catalogues)
    async with backend.uow.begin_reading(Tenant(org.id, True)) as tx:
        assert (await tx[OrgStore].get_organisation()).plan == plan


async def test_plans_are_stored(backend: Backend) -> None:
    org = await backend.organisation()
    assert await backend.registry.find_plan(org.plan.code) == org.plan
    assert await backend.registry.find_plan("no such plan") is None
    async with backend.uow.begin_reading(Tenant(org.id, True)) as tx:
        plans = await tx[OrgStore].list_plans()
    assert org.plan in plans
    shipped = [
        plan for plan in plans if plan.code in ("free", "standard", "high", "max")
    ]  # other tests create plans as well
    assert [plan.monthly for plan in shipped] == sorted(plan.monthly for plan in shipped)


async def test_members_are_found_by_address(backend: Backend) -> None:
    org, other = await backend.organisation(), await backend.organisation()
    member = _build_member(org.id, "Anna.Öst@Fjord.example")
    async with backend.uow.begin(Tenant(org.id, True), CALL) as tx:
        await tx[OrgStore].add_member(member)
        with pytest.raises(Conflict):
            async with tx.savepoint():
                await tx[OrgStore].add_member(_build_member(org.id, "anna.Öst@fjord.EXAMPLE"))
        assert await tx[OrgStore].find_member("ANNA.ÖST@FJORD.example") == member
        assert await tx[OrgStore].find_member("bo@fjord.example") is None
    async with backend.uow.begin(Tenant(other.id, False), CALL) as tx:
        assert await tx[OrgStore].find_member(member.email) is None
        await tx[OrgStore].add_member(_build_member(other.id, member.email, user=member.user))


async def test_organisations_of_a_user_are_listed(backend: Backend) -> None:
    user = new_id("usr")
    orgs = [await backend.organisation() for _ in range(5)]
    for org in orgs:
        async with backend.uow.begin(Tenant(org.id, True), CALL) as tx:
            await tx[OrgStore].add_member(_build_member(org.id, "anna@fjord.example", user=user))
            await tx[OrgStore].add_member(_build_member(org.id, "bo@fjord.example"))

    async def fetch(page_request: PageRequest) -> Page[Organisation]:
        return await backend.memberships.list_organisations(user, page_request)

    await check_pagination(fetch, sorted(orgs, key=lambda org: org.id), lambda org: org.id)


async def test_members_are_listed_changed_and_removed(backend: Backend) -> None:
    org, other = await backend.organisation(), await backend.organisation()
    tenant = Tenant(org.id, True)
    members = [
        _build_member(org.id, f"{n}@fjord.example", role=role) for n, role in enumerate(("owner", "viewer", "editor"))
    ]
    async with backend.uow.begin(tenant, CALL) as tx:
        for member in members:
            await tx[OrgStore].add_member(member)
    async with backend.uow.begin(Tenant(other.id, True), CALL) as tx:
        await tx[OrgStore].add_member(outsider := _build_member(other.id, "0@fjord.example"))

    async def fetch(page_request: PageRequest) -> Page[Member]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[OrgStore].list_members(page_request)

    await check_pagination(fetch, members, lambda member: member.user)
    async with backend.uow.begin(tenant, CALL) as tx:
        held = await tx[OrgStore].lock_members([members[1].user, outsider.user])
        assert held == {member.user: member for member in members[:2]}
        await tx[OrgStore].change_role(members[1].user, "billing")
        await tx[OrgStore].remove_member(members[2].user)
        await tx[OrgStore].change_role(outsider.user, "viewer")
        await tx[OrgStore].remove_member(outsider.user)
    async with backend.uow.begin_reading(tenant) as tx:
        page = await tx[OrgStore].list_members(PageRequest())
    assert list(page.items) == [members[0], replace(members[1], role="billing")]
    async with backend.uow.begin_reading(Tenant(other.id, True)) as tx:
        assert (await tx[OrgStore].list_members(PageRequest())).items == (outsider,)


def _build_invitation(backend: Backend, org: str, **changes: object) -> Invitation:
    now, id_ = backend.now().replace(microsecond=0), new_id("mbi")
    made = Invitation(
        id_, org, "Bo@Fjord.example", "editor", new_id("usr"), id_.encode(), now, now + INVITATION_LIFETIME
    )
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_an_invitation_is_open_until_it_is_decided(backend: Backend) -> None:
    org, other = await backend.organisation(), await backend.organisation()
    tenant, now = Tenant(org.id, True), backend.now()
    made = [_build_invitation(backend, org.id) for _ in range(3)]
    over = _build_invitation(backend, org.id, expires_at=now - timedelta(hours=1))
    async with backend.uow.begin(tenant, CALL) as tx:
        for one in (*made, over):
            await tx[OrgStore].add_invitation(one)
        assert await tx[OrgStore].lock_invitation(made[0].id) == made[0]

    async def fetch(page_request: PageRequest) -> Page[Invitation]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[OrgStore].list_invitations(now, page_request)

    await check_pagination(fetch, made[::-1], lambda one: one.id)
    async with backend.uow.begin(Tenant(other.id, False), CALL) as tx:
        assert await tx[OrgStore].lock_invitation(made[0].id) is None
        await tx[OrgStore].close_invitation(made[0].id, revoked_at=now)
        assert (await tx[OrgStore].list_invitations(now, PageRequest())).items == ()
    at = now.replace(microsecond=0)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[OrgStore].close_invitation(made[0].id, accepted_at=at)
        await tx[OrgStore].close_invitation(made[1].id, revoked_at=at)
    assert [one.id for one in (await fetch(PageRequest())).items] == [made[2].id]
    assert await backend.memberships.find_invitation(made[0].digest) == InvitationDetails(
        replace(made[0], accepted_at=at), org
    )
    assert await backend.memberships.find_invitation(over.digest) == InvitationDetails(over, org)
    assert await backend.memberships.find_invitation(b"unknown") is None


async def test_long_expired_invitations_are_deleted(backend: Backend) -> None:
    org, now = await backend.organisation(), backend.now()
    day = timedelta(days=1)
    gone = [_build_invitation(backend, org.id, expires_at=now - 3 * day), _build_invitation(backend, org.id)]
    kept = [_build_invitation(backend, org.id), _build_invitation(backend, org.id, expires_at=now - day)]
    async with backend.uow.begin(Tenant(org.id, True), CALL) as tx:
        for one in (*gone, *kept):
            await tx[OrgStore].add_invitation(one)
        await tx[OrgStore].close_invitation(gone[1].id, accepted_at=now - 3 * day)
    assert await backend.memberships.delete_invitations(now - 2 * day) >= 2
    found = [await backend.memberships.find_invitation(one.digest) for one in (*gone, *kept)]
    assert [one is None for one in found] == [True, True, False, False]
