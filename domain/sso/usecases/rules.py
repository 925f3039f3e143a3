"""Who has to come in by single sign-on: asked when somebody signs in, and when they look at another organisation."""

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
    """ports.people.SignInRules, for organisations that have their people come in by their own provider."""

    uow: UnitOfWork
    sessions: Sessions

    async def allows(self, user: str, org: str, methods: Collection[Method]) -> bool:
        """Whether somebody who has shown who they are by `methods` may look at the organisation.

        A provider's word counts for the organisation whose provider it is, and elsewhere only beside something of one's own.
        """
        async with self.uow.read(Tenant(org, True)) as tx:
            member = await tx[SsoStore].member(user)
            if member is None:
                return False
            obliged = await self._obliged(tx, member.email)
            own = await self._own(tx, member.email)
        if Method.SSO in methods:
            return own or bool(set(methods) - PROVIDERS)
        return not obliged or passes_by(member.role, methods)

    async def note(self, user: str, org: str, methods: Collection[Method]) -> None:
        """Tell in the audit log that an owner has come in beside the provider; nothing for everybody else."""
        if Method.SSO in methods:
            return
        context = AuditContext(Actor("user", user), "sso.passed_by")
        async with self.uow.begin(Tenant(org, True), context) as tx:
            member = await tx[SsoStore].member(user)
            if member is not None and await self._obliged(tx, member.email):
                after = {"signed_in_beside": user, "methods": sorted(map(str, methods))}
                await tx[AuditLog].add(Change(OBJECT, org, "update", {}, after))

    async def barred(self, org: str, users: Sequence[str]) -> int:
        """End the sessions of these members that may look at the organisation no more; answers how many."""
        async with self.uow.read(Tenant(org, True)) as tx:
            now = tx.now
        ended = []
        for user in users:
            for session in await self.sessions.of_user(user):
                if Method.OPERATOR not in session.methods and not await self.allows(user, org, session.methods):
                    ended.append(session.id)
        return await self.sessions.revoke(ended, now) if ended else 0

    @staticmethod
    async def _obliged(tx: Tx, email: str) -> bool:
        connection = await tx[SsoStore].connection()
        if connection is None or not (connection.enforced and connection.enabled):
            return False
        return await SsoRules._own(tx, email)

    @staticmethod
    async def _own(tx: Tx, email: str) -> bool:
        domain = domain_of(email)
        return any(one.domain == domain and one.proven_at is not None for one in await tx[SsoStore].domains())
