"""Organisations, members and plans in memory."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final

from adapters.memory.table import EVERYWHERE, MemoryDatabase, Table, Transaction, page_of
from domain.kernel.errors import NotFound
from domain.kernel.mail_addresses import address_key
from domain.kernel.paging import Page, PageRequest
from domain.orgs.model import Invitation, Invited, Member, Organisation, Plan


def _price(plan: Plan) -> str:
    return f"{plan.monthly:015d}{plan.code}"


ORGS: Final = Table[Organisation]("orgs", lambda org: org.id, descending=False)
MEMBERS: Final = Table[Member](
    "members",
    lambda member: f"{member.org}/{member.user}",
    unique=lambda member: (member.org, address_key(member.email)),
    conflict="This address is a member already.",
)
INVITATIONS: Final = Table[Invitation]("invitations", lambda invitation: invitation.id)
PLANS: Final = Table[Plan]("plans", lambda plan: plan.code, order=_price, descending=False)


class MemoryOrgs:
    """OrgStore."""

    def __init__(self, transaction: Transaction) -> None:
        self._org, self._transaction = transaction.tenant.org, transaction
        self._orgs = transaction.rows(ORGS, EVERYWHERE)
        self._members = transaction.rows(MEMBERS, EVERYWHERE)
        self._plans = transaction.rows(PLANS, EVERYWHERE)
        self._invitations = transaction.rows(INVITATIONS, EVERYWHERE)

    async def own(self) -> Organisation:
        own = self._orgs.get(self._org)
        if own is None:
            raise NotFound
        return replace(own, plan=self._plans.get(own.plan.code) or own.plan)

    async def change(self, name: str, api_version: str | None) -> None:
        await self._orgs.put(replace(await self.own(), name=name, api_version=api_version))

    async def add_member(self, member: Member) -> None:
        await self._members.add(member)

    async def member(self, email: str) -> Member | None:
        sought = (self._org, address_key(email))
        return next(iter(self._members.where(lambda member: (member.org, address_key(member.email)) == sought)), None)

    async def members(self, page_request: PageRequest) -> Page[Member]:
        own = self._members.where(lambda member: member.org == self._org)
        return page_of(own, page_request, lambda member: member.user, descending=False)

    async def hold_members(self, users: Collection[str]) -> Mapping[str, Member]:
        await self._transaction.lock()
        own = self._members.where(lambda member: member.org == self._org)
        return {member.user: member for member in own if member.user in users or member.role == "owner"}

    async def change_role(self, user: str, role: str) -> None:
        member = self._members.get(f"{self._org}/{user}")
        if member is not None:
            await self._members.put(replace(member, role=role))

    async def remove_member(self, user: str) -> None:
        await self._members.remove(f"{self._org}/{user}")

    async def invite(self, invitation: Invitation) -> None:
        await self._invitations.add(invitation)

    async def invitations(self, now: datetime, page_request: PageRequest) -> Page[Invitation]:
        return self._invitations.page(page_request, lambda one: one.org == self._org and one.is_open(now))

    async def invitation(self, id: str) -> Invitation | None:
        await self._transaction.lock()
        found = self._invitations.get(id)
        return found if found is not None and found.org == self._org else None

    async def settle_invitation(
        self, id: str, *, accepted_at: datetime | None = None, revoked_at: datetime | None = None
    ) -> None:
        if (found := await self.invitation(id)) is not None:
            await self._invitations.put(replace(found, accepted_at=accepted_at, revoked_at=revoked_at))

    async def plans(self) -> Sequence[Plan]:
        return self._plans.sorted()


class MemoryMemberships:
    """Memberships."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def of_user(self, user: str, page_request: PageRequest) -> Page[Organisation]:
        members = self._store.committed(MEMBERS, EVERYWHERE).values()
        orgs = self._store.committed(ORGS, EVERYWHERE)
        own = [orgs[member.org] for member in members if member.user == user]
        return page_of(own, page_request, ORGS.key, descending=False)

    async def invited(self, digest: bytes) -> Invited | None:
        kept = self._store.committed(INVITATIONS, EVERYWHERE).values()
        found = next((one for one in kept if one.digest == digest), None)
        own = self._store.committed(ORGS, EVERYWHERE).get(found.org) if found is not None else None
        return Invited(found, own) if found is not None and own is not None else None

    async def forget_invitations(self, before: datetime) -> int:
        kept = self._store.committed(INVITATIONS, EVERYWHERE).values()
        over = [one.id for one in kept if min(filter(None, (one.expires_at, one.accepted_at, one.revoked_at))) < before]
        for id_ in over:
            self._store.erase(INVITATIONS, EVERYWHERE, id_)
        return len(over)


class MemoryOrgRegistry:
    """OrgRegistry; `offer` sets a plan, as an operator would."""

    def __init__(self, store: MemoryDatabase) -> None:
        self._store = store

    async def create(self, organisation: Organisation) -> None:
        self.offer(organisation.plan)
        self._store.write(ORGS, EVERYWHERE, organisation)

    async def find(self, id_or_name: str) -> Organisation | None:
        orgs = self._store.committed(ORGS, EVERYWHERE)
        named = [org for org in orgs.values() if org.name == id_or_name]
        return orgs.get(id_or_name) or (named[0] if len(named) == 1 else None)

    async def named(self, name: str) -> Sequence[Organisation]:
        orgs = sorted(self._store.committed(ORGS, EVERYWHERE).values(), key=lambda org: org.id)
        return [org for org in orgs if name in ("", org.name)]

    async def change_plan(self, id: str, plan: Plan) -> None:
        org = self._store.committed(ORGS, EVERYWHERE).get(id)
        if org is not None:
            self._store.write(ORGS, EVERYWHERE, replace(org, plan=plan))

    async def plan(self, code: str) -> Plan | None:
        return self._store.committed(PLANS, EVERYWHERE).get(code)

    def offer(self, plan: Plan) -> None:
        """Put a plan on offer, or change it."""
        self._store.write(PLANS, EVERYWHERE, plan)
