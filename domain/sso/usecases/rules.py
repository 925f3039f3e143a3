"""Enforcement of single sign-on, at sign-in and when a session switches to another organisation."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.people.model import AuthMethod
from domain.people.ports import Sessions
from domain.sso.model import CONNECTION_OBJECT, is_exempt, parse_email_domain
from domain.sso.ports import SsoStore
from ports.unit_of_work import Tx, UnitOfWork

PROVIDERS = frozenset({AuthMethod.SSO})


@dataclass(frozen=True, slots=True)
class SsoRules:
    """Implementation of `domain.people.ports.SignInRules` for organisations that enforce single sign-on."""

    uow: UnitOfWork
    sessions: Sessions

    async def allows(self, user: str, org: str, methods: Collection[AuthMethod]) -> bool:
        """Return whether a member who authenticated by `methods` may open the organisation.

        Single sign-on alone suffices only if the member's address is in a verified domain of this organisation.
        """
        async with self.uow.begin_reading(Tenant(org, True)) as tx:
            member = await tx[SsoStore].find_member(user)
            if member is None:
                return False
            required = await self._must_use_sso(tx, member.email)
            is_own_provider = await self._has_verified_domain(tx, member.email)
        if AuthMethod.SSO in methods:
            return is_own_provider or bool(set(methods) - PROVIDERS)
        return not required or is_exempt(member.role, methods)

    async def record_bypass(self, user: str, org: str, methods: Collection[AuthMethod]) -> None:
        """Record in the audit log if the user signed in without single sign-on although it is enforced for the user."""
        if AuthMethod.SSO in methods:
            return
        context = AuditContext(Actor("user", user), "sso.passed_by")
        async with self.uow.begin(Tenant(org, True), context) as tx:
            member = await tx[SsoStore].find_member(user)
            if member is not None and await self._must_use_sso(tx, member.email):
                after = {"signed_in_beside": user, "methods": sorted(map(str, methods))}
                await tx[AuditLog].add(Change(CONNECTION_OBJECT, org, "update", {}, after))

    async def revoke_barred(self, org: str, users: Sequence[str]) -> int:
        """Revoke the members' sessions that may not open the organisation under the current rules.

        Return their number.
        """
        async with self.uow.begin_reading(Tenant(org, True)) as tx:
            now = tx.now
        ended = []
        for user in users:
            for session in await self.sessions.list_by_user(user):
                if AuthMethod.OPERATOR not in session.methods and not await self.allows(user, org, session.methods):
                    ended.append(session.id)
        return await self.sessions.revoke(ended, now) if ended else 0

    @staticmethod
    async def _must_use_sso(tx: Tx, email: str) -> bool:
        """Return whether the organisation enforces single sign-on for the email address."""
        connection = await tx[SsoStore].find_connection()
        if connection is None or not (connection.enforced and connection.enabled):
            return False
        return await SsoRules._has_verified_domain(tx, email)

    @staticmethod
    async def _has_verified_domain(tx: Tx, email: str) -> bool:
        """Return whether the organisation has verified the domain of the email address."""
        domain = parse_email_domain(email)
        return any(one.domain == domain and one.proven_at is not None for one in await tx[SsoStore].list_domains())
