"""Enforcement of single sign-on at sign-in and when switching organisations."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.people.model import Method
from domain.people.ports import Sessions
from domain.sso.model import OBJECT, domain_of, passes_by
from domain.sso.ports import SsoStore
from ports.unit_of_work import Tx, UnitOfWork

PROVIDERS = frozenset({Method.SSO})


@dataclass(frozen=True, slots=True)
class SsoRules:
    """Implementation of ports.people.SignInRules for enforced single sign-on."""

    uow: UnitOfWork
    sessions: Sessions

    async def allows(self, user: str, org: str, methods: Collection[Method]) -> bool:
        """Return whether a member who authenticated by `methods` may open the organisation.

        A provider's authentication counts for its own organisation, elsewhere only together with another method.
        """
        async with self.uow.read(Tenant(org, True)) as tx:
            member = await tx[SsoStore].member(user)
            if member is None:
                return False
            required = await self._must_use_sso(tx, member.email)
            own = await self._has_proven_domain(tx, member.email)
        if Method.SSO in methods:
            return own or bool(set(methods) - PROVIDERS)
        return not required or passes_by(member.role, methods)

    async def note(self, user: str, org: str, methods: Collection[Method]) -> None:
        """Audit an owner's sign-in without the enforced provider; others are not recorded."""
        if Method.SSO in methods:
            return
        context = AuditContext(Actor("user", user), "sso.passed_by")
        async with self.uow.begin(Tenant(org, True), context) as tx:
            member = await tx[SsoStore].member(user)
            if member is not None and await self._must_use_sso(tx, member.email):
                after = {"signed_in_beside": user, "methods": sorted(map(str, methods))}
                await tx[AuditLog].add(Change(OBJECT, org, "update", {}, after))

    async def barred(self, org: str, users: Sequence[str]) -> int:
        """Revoke the sessions of these members that may no longer open the organisation; return their number."""
        async with self.uow.read(Tenant(org, True)) as tx:
            now = tx.now
        ended = []
        for user in users:
            for session in await self.sessions.of_user(user):
                if Method.OPERATOR not in session.methods and not await self.allows(user, org, session.methods):
                    ended.append(session.id)
        return await self.sessions.revoke(ended, now) if ended else 0

    @staticmethod
    async def _must_use_sso(tx: Tx, email: str) -> bool:
        connection = await tx[SsoStore].connection()
        if connection is None or not (connection.enforced and connection.enabled):
            return False
        return await SsoRules._has_proven_domain(tx, email)

    @staticmethod
    async def _has_proven_domain(tx: Tx, email: str) -> bool:
        domain = domain_of(email)
        return any(one.domain == domain and one.proven_at is not None for one in await tx[SsoStore].domains())
