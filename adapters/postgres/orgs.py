"""Organisations, members, API keys, single sign-on and plans in PostgreSQL: reference tables, written with the owner's privileges."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.errors import DeadlockDetected

from adapters.postgres.nodes.connecting import retry
from adapters.postgres.stores import ReplicatedStore, SharedStore, done, every, first, paged, run, statements, values_of
from adapters.postgres.table import Record, Spread
from domain.access.model import ApiKey, Principal, effective_scopes
from domain.access.ports import KeyStore
from domain.kernel.errors import Unavailable
from domain.kernel.mail_addresses import address_key
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.orgs.model import Invitation, Invited, Member, Meter, Organisation, Plan
from domain.orgs.ports import Memberships, OrgRegistry, OrgStore
from domain.sso.model import Connection, Domain, Subject
from domain.sso.ports import SsoDirectory, SsoStore

ATTEMPTS = 5
PAUSE = 0.2
"""Seconds between two attempts."""
SQL = statements("orgs")
_KEYS = Record(ApiKey, exceptions={"tenant": Spread(Tenant, {"org": "org", "livemode": "livemode"})})


def _user_of(member: Member) -> str:
    return member.user


def plan_of(*row: Any) -> Plan:
    """Build a plan from its columns, code to request_log_days."""
    code, name, tier, currency, monthly, features, meters, *days = row
    quotas = {meter: Meter(**numbers) for meter, numbers in meters.items()}
    return Plan(code, name, tier, currency, monthly, frozenset(features), quotas, *days)


def organisation_of(*row: Any) -> Organisation:
    """Build an organisation from its columns followed by those of its plan."""
    id_, name, kind, api_version, live, test, created_at, *plan = row
    return Organisation(id_, name, kind, plan_of(*plan), api_version, (live, test), created_at)


def _proof(*row: Any) -> tuple[ApiKey, Principal]:
    key = _KEYS.row_of(*row)
    principal = Principal(
        tenant=key.tenant,
        actor=Actor("api_key", key.id),
        via="api",
        role=key.role,
        scopes=effective_scopes(key.scopes, key.role),
        organisation=organisation_of(*row[15:]),
    )
    return key, principal


def _by_address(email: str) -> dict[str, str]:
    return {"email_key": address_key(email)}


def _invited(*row: Any) -> Invited:
    return Invited(Invitation(*row[:10]), organisation_of(*row[10:]))


class PostgresOrgStore(SharedStore, OrgStore):
    """Organisation of the tenant, with its members and invitations."""

    _sql = SQL
    members = paged(Member, key=_user_of)
    invitations = paged(Invitation)
    change = run()
    change_role = run()
    remove_member = run()
    settle_invitation = run()
    plans = every(plan_of)
    member = first(Member, values=_by_address)

    async def own(self) -> Organisation:
        own = await self._first(organisation_of, "own", id=self._session.tenant.org)
        assert own is not None, "a tenant without an organisation"
        return own

    async def add_member(self, member: Member) -> None:
        await self._run("add_member", email_key=address_key(member.email), **values_of(member))

    async def hold_members(self, users: Collection[str]) -> Mapping[str, Member]:
        async with self._session.owning():
            return {row[0]: Member(*row) for row in await self._rows("hold_members", users=list(users))}

    async def invite(self, invitation: Invitation) -> None:
        await self._run("invite", email_key=invitation.email_key, **values_of(invitation))

    async def invitation(self, id: str) -> Invitation | None:
        async with self._session.owning():
            return await self._first(Invitation, "invitation", id=id)


class PostgresKeyStore(SharedStore, KeyStore):
    """API keys of the organisation."""

    _sql = SQL
    add = run("add_key", values=_KEYS.values)
    revoke = done("revoke_key")
    get = first(_KEYS.row_of, "key")

    async def page(self, page_request: PageRequest, *, ended: bool = False) -> Page[ApiKey]:
        return await self._page(_KEYS.row_of, "list_keys", page_request, names={"ended" if ended else "open"})

    async def used(self, ids: Collection[str]) -> Mapping[str, datetime]:
        return dict(await self._rows("key_uses", ids=list(ids)))

    async def revoke_of(self, member: str) -> Sequence[str]:
        async with self._session.owning():
            rows = await self._rows("revoke_keys_of", member=member)
        return sorted(id_ for (id_,) in rows)


class PostgresSsoStore(SharedStore, SsoStore):
    """Single sign-on settings of the organisation."""

    _sql = SQL
    connection = first(Connection)
    save = run("save_connection")
    domains = every(Domain)
    put_domain = run()
    remove_domain = done()
    subject = first(Subject)
    subject_of = first(Subject)
    member = first(Member, "member_of_user")
    members_of = every(Member)

    async def remove(self) -> None:
        await self._run("remove_connection")
        await self._run("remove_subjects")

    async def bind(self, subject: Subject) -> None:
        await self._run("unbind", **values_of(subject))
        await self._run("bind", **values_of(subject))


class PostgresMemberships(ReplicatedStore, Memberships):
    """Memberships of users across organisations."""

    _sql = SQL
    of_user = paged(organisation_of)
    invited = first(_invited)

    async def forget_invitations(self, before: datetime) -> int:
        async with self._owning() as link:
            return await link.run(SQL["forget_invitations"], {"before": before})


class PostgresCredentials(ReplicatedStore):
    """Verification of credentials across organisations."""

    _sql = SQL

    async def keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        proofs = [_proof(*row) for row in await self._rows("keys", digests=list(digests)) if not row[14]]
        return {proof[0].digest: proof for proof in proofs}

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation's API version and return the pinned one; while a node is unreachable, a later request pins it."""
        try:
            async with self._owning() as link:
                rows = await link.rows(SQL["pin"], {"org": org, "version": version})
        except Unavailable:
            return version
        return str(rows[0][0]) if rows else version


class PostgresSsoDirectory(ReplicatedStore, SsoDirectory):
    """Single sign-on connections and domains of all organisations."""

    _sql = SQL
    of_domain = first(Connection)
    due = every(Domain, "due_domains")


class PostgresOrgRegistry(ReplicatedStore, OrgRegistry):
    """Organisations and plans, for operators."""

    _sql = SQL
    named = every(organisation_of)
    plan = first(plan_of)

    async def create(self, organisation: Organisation) -> None:
        live, test = organisation.catalogues
        values = values_of(organisation) | {"plan": organisation.plan.code, "live": live, "test": test}
        await self._run_as_owner("add", values)

    async def find(self, id_or_name: str) -> Organisation | None:
        if (own := await self._first(organisation_of, "own", id=id_or_name)) is not None:
            return own
        named: Sequence[Organisation] = await self.named(id_or_name) if id_or_name else ()
        return named[0] if len(named) == 1 else None

    async def change_plan(self, id: str, plan: Plan) -> None:
        await self._run_as_owner("change_plan", {"id": id, "plan": plan.code})

    async def _run_as_owner(self, statement: str, values: Mapping[str, Any]) -> None:
        """Execute a statement as the tables' owner; retry it if it deadlocks with the move of a tenant in a cluster."""
        async with self._pool.owner() as link:
            await retry(lambda: link.run(SQL[statement], values), ATTEMPTS, PAUSE, (DeadlockDetected,))
