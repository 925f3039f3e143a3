"""Organisations, members, API keys, single sign-on and plans in PostgreSQL.

Their tables are reference tables, which are written with the owner's privileges.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any

from psycopg.errors import DeadlockDetected

from adapters.postgres.nodes.connections import retry_while_busy
from adapters.postgres.stores import (
    ReferenceTableReader,
    ReferenceTableStore,
    build_field_params,
    execute_count,
    execute_one,
    fetch_all,
    fetch_first,
    fetch_page,
    load_statements,
)
from adapters.postgres.table import MultiColumnCodec, RowMapping
from domain.access.model import ApiKey, Principal, limit_scopes_to_role
from domain.access.ports import KeyStore
from domain.kernel.errors import Unavailable
from domain.kernel.mail_addresses import normalise_mail_address
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.orgs.model import Invitation, InvitationDetails, Member, MeterAllowance, Organisation, Plan
from domain.orgs.ports import Memberships, OrgRegistry, OrgStore
from domain.sso.model import LinkedIdentity, MailDomain, SsoConnection
from domain.sso.ports import SsoDirectory, SsoStore

DEADLOCK_ATTEMPTS = 5
DEADLOCK_PAUSE_SECONDS = 0.2
"""Seconds between two attempts to execute a statement that has deadlocked."""
SQL = load_statements("orgs")
_KEYS = RowMapping(ApiKey, special_codecs={"tenant": MultiColumnCodec(Tenant, {"org": "org", "livemode": "livemode"})})


def _get_user(member: Member) -> str:
    return member.user


def build_plan(*row: Any) -> Plan:
    """Build a plan from the values of its columns, from `code` to `request_log_days`."""
    code, name, tier, currency, monthly, features, meters, *days = row
    quotas = {meter: MeterAllowance(**numbers) for meter, numbers in meters.items()}
    return Plan(code, name, tier, currency, monthly, frozenset(features), quotas, *days)


def build_organisation(*row: Any) -> Organisation:
    """Build an organisation from its columns up to `created_at`, those of its plan, and `bills_overage`."""
    id_, name, kind, api_version, live, test, created_at, *plan, bills_overage = row
    return Organisation(id_, name, kind, build_plan(*plan), api_version, (live, test), created_at, bool(bills_overage))


def _build_key_and_principal(*row: Any) -> tuple[ApiKey, Principal]:
    key = _KEYS.build_from_row(*row)
    principal = Principal(
        tenant=key.tenant,
        actor=Actor("api_key", key.id),
        via="api",
        role=key.role,
        scopes=limit_scopes_to_role(key.scopes, key.role),
        organisation=build_organisation(*row[15:]),
    )
    return key, principal


def _build_address_params(email: str) -> dict[str, str]:
    return {"email_key": normalise_mail_address(email)}


def _build_invitation(*row: Any) -> InvitationDetails:
    return InvitationDetails(Invitation(*row[:10]), build_organisation(*row[10:]))


class PostgresOrgStore(ReferenceTableStore, OrgStore):
    """Organisation of the tenant, with its members and invitations."""

    _sql = SQL
    list_members = fetch_page(Member, key=_get_user)
    list_invitations = fetch_page(Invitation)
    save_settings = execute_count()
    change_role = execute_count()
    remove_member = execute_count()
    close_invitation = execute_count()
    list_plans = fetch_all(build_plan)
    find_member = fetch_first(Member, "find_member_by_email", values=_build_address_params)
    find_member_by_user = fetch_first(Member)

    async def get_organisation(self) -> Organisation:
        own = await self._fetch_first(build_organisation, "get_organisation", id=self._session.tenant.org)
        assert own is not None, "the tenant's organisation does not exist"
        return own

    async def add_member(self, member: Member) -> None:
        await self._run("add_member", email_key=normalise_mail_address(member.email), **build_field_params(member))

    async def lock_members(self, users: Collection[str]) -> Mapping[str, Member]:
        async with self._session.as_owner():
            return {row[0]: Member(*row) for row in await self._fetch_rows("lock_members", users=list(users))}

    async def add_invitation(self, invitation: Invitation) -> None:
        await self._run("add_invitation", email_key=invitation.email_key, **build_field_params(invitation))

    async def lock_invitation(self, id: str) -> Invitation | None:
        async with self._session.as_owner():
            return await self._fetch_first(Invitation, "lock_invitation", id=id)


class PostgresKeyStore(ReferenceTableStore, KeyStore):
    """API keys of the organisation."""

    _sql = SQL
    add = execute_count("add_key", values=_KEYS.build_params)
    revoke = execute_one("revoke_key")
    get = fetch_first(_KEYS.build_from_row, "get_key")

    async def page(self, page_request: PageRequest, *, revoked: bool = False) -> Page[ApiKey]:
        return await self._fetch_page(
            _KEYS.build_from_row, "list_keys", page_request, names={"ended" if revoked else "open"}
        )

    async def get_last_uses(self, ids: Collection[str]) -> Mapping[str, datetime]:
        return dict(await self._fetch_rows("get_last_uses", ids=list(ids)))

    async def revoke_by_member(self, member: str) -> Sequence[str]:
        async with self._session.as_owner():
            rows = await self._fetch_rows("revoke_keys_by_member", member=member)
        return sorted(id_ for (id_,) in rows)


class PostgresSsoStore(ReferenceTableStore, SsoStore):
    """Single sign-on settings of the organisation."""

    _sql = SQL
    find_connection = fetch_first(SsoConnection)
    save_connection = execute_count()
    list_domains = fetch_all(MailDomain)
    save_domain = execute_count()
    delete_domain = execute_one()
    find_linked_identity = fetch_first(LinkedIdentity)
    find_linked_identity_by_user = fetch_first(LinkedIdentity)
    find_member = fetch_first(Member, "find_member_by_user")
    list_members_in_domains = fetch_all(Member)

    async def delete_connection(self) -> None:
        await self._run("delete_connection")
        await self._run("delete_linked_identities")

    async def save_linked_identity(self, identity: LinkedIdentity) -> None:
        await self._run("delete_conflicting_identity", **build_field_params(identity))
        await self._run("save_linked_identity", **build_field_params(identity))


class PostgresMemberships(ReferenceTableReader, Memberships):
    """Memberships and invitations of users, across organisations."""

    _sql = SQL
    list_organisations = fetch_page(build_organisation)
    find_invitation = fetch_first(_build_invitation)

    async def delete_invitations(self, before: datetime) -> int:
        async with self._begin_as_owner() as connection:
            return await connection.run(SQL["delete_invitations"], {"before": before})


class PostgresCredentials(ReferenceTableReader):
    """API keys of all organisations, for the authentication of requests."""

    _sql = SQL

    async def find_keys(self, digests: Collection[bytes]) -> Mapping[bytes, tuple[ApiKey, Principal]]:
        proofs = [
            _build_key_and_principal(*row)
            for row in await self._fetch_rows("find_keys", digests=list(digests))
            if not row[14]
        ]
        return {proof[0].digest: proof for proof in proofs}

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation to the API version unless it is already pinned to one; return the pinned version.

        If a node is unreachable, return `version` without pinning, which a later request does.
        """
        try:
            async with self._begin_as_owner() as connection:
                rows = await connection.fetch_rows(SQL["pin_version"], {"org": org, "version": version})
        except Unavailable:
            return version
        return str(rows[0][0]) if rows else version


class PostgresSsoDirectory(ReferenceTableReader, SsoDirectory):
    """Single sign-on connections and domains of all organisations."""

    _sql = SQL
    find_by_domain = fetch_first(SsoConnection)
    list_domains_to_check = fetch_all(MailDomain)


class PostgresOrgRegistry(ReferenceTableReader, OrgRegistry):
    """Organisations and plans, for operators."""

    _sql = SQL
    list_by_name = fetch_all(build_organisation)
    find_plan = fetch_first(build_plan)
    find_by_catalogue = fetch_first(build_organisation)

    async def create(self, organisation: Organisation) -> None:
        live, test = organisation.catalogues
        values = build_field_params(organisation) | {"plan": organisation.plan.code, "live": live, "test": test}
        await self._run_as_owner("add_organisation", values)

    async def find(self, id_or_name: str) -> Organisation | None:
        if (own := await self._fetch_first(build_organisation, "get_organisation", id=id_or_name)) is not None:
            return own
        named: Sequence[Organisation] = await self.list_by_name(id_or_name) if id_or_name else ()
        return named[0] if len(named) == 1 else None

    async def find_names(self, ids: Sequence[str]) -> Mapping[str, str]:
        return dict(await self._fetch_rows("find_names", ids=list(ids)))

    async def change_plan(self, id: str, plan: Plan) -> None:
        await self._run_as_owner("change_plan", {"id": id, "plan": plan.code})

    async def _run_as_owner(self, statement: str, values: Mapping[str, Any]) -> None:
        """Execute an SQL statement as the owner of the tables; repeat it if it deadlocks with the move of a tenant."""
        async with self._pool.connect_as_owner() as connection:
            await retry_while_busy(
                lambda: connection.run(SQL[statement], values),
                DEADLOCK_ATTEMPTS,
                DEADLOCK_PAUSE_SECONDS,
                (DeadlockDetected,),
            )
