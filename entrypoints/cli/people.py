"""Commands for members of organisations, their tokens, sign-in links and sessions."""

from datetime import timedelta
from typing import Annotated

from cyclopts import Parameter

from domain.access.model import ROLES
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.sessions import SessionService
from entrypoints.cli.store import DEFAULT, OrganisationStore, Store, attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import begin, new_member, note, sign_in_link
from ports.unit_of_work import UnitOfWork

MAX_HOURS = 24 * 90
"""Maximum lifetime of an operator's token in hours."""


async def add_member(
    *, email: str, role: Annotated[str, Parameter(choices=sorted(ROLES))], store: OrganisationStore
) -> int:
    """Add a member to an organisation."""
    async with store.find() as (parts, organisation):
        member = await new_member(parts, organisation, email, role)
    answer = {"organisation": organisation.id, **attributes(member, "user", "email", "role")}
    return store.answer(answer, f"Added {member.email} as {member.role} ({member.user}).")


async def create_token(*, email: str, hours: int = 8, store: OrganisationStore) -> int:
    """Create a token with which a script acts as a member.

    Args:
        email: the member's email address
        hours: its lifetime
    """
    async with store.find() as (parts, organisation):
        user = await _find_member(parts, organisation, email)
        if not 0 < hours <= MAX_HOURS:
            raise CommandError(f"--hours must be between 1 and {MAX_HOURS}.")
        session, secret = await parts[SessionService].token(user, organisation.id, timedelta(hours=hours))
        expires_at = session.expires_at.isoformat()
        async with begin(parts, organisation, "tokens.create") as tx:
            await tx[AuditLog].add(
                Change("session", session.id, "create", {}, {"user": user.id, "expires_at": expires_at})
            )
        await note(parts, user, "token_created")
    answer = {"organisation": organisation.id, "user": user.id, "session": session.id, "token": secret}
    return store.answer(
        {**answer, "expires_at": expires_at},
        f"Created a token of {user.email}, valid until {session.expires_at:%d %B %Y %H:%M} UTC, shown only once: {secret}",
    )


async def link(*, email: str, store: OrganisationStore) -> int:
    """Create a one-time sign-in link for a member.

    Args:
        email: the member's email address
    """
    async with store.find() as (parts, organisation):
        user = await _find_member(parts, organisation, email)
        url = await sign_in_link(parts, user, organisation)
    answer = {"organisation": organisation.id, "user": user.id, "url": url}
    return store.answer(answer, f"Sign-in link for {user.email}, valid once within 15 minutes:\n{url}")


async def list_sessions(*, email: str, store: Store = DEFAULT) -> int:
    """List a person's sessions.

    Args:
        email: the person's email address
    """
    async with store.open() as parts:
        user = await _find_user(parts, email)
        sessions = await parts[SessionService].list_of(user.id)
    answer = [
        {
            "session": session.id,
            "kind": str(session.kind),
            "address": session.address,
            "last_used_at": session.seen_at.isoformat(),
        }
        for session in sessions
    ]
    lines = [
        f"{session.id}  {session.kind:<8} {session.address:<16} last used {session.seen_at:%d %B %Y %H:%M} UTC"
        for session in sessions
    ]
    return store.answer({"user": user.id, "sessions": answer}, *lines or [f"{user.email} has no sessions."])


async def end_sessions(*, email: str, session: str | None = None, store: Store = DEFAULT) -> int:
    """End a person's sessions and tokens immediately.

    Args:
        email: the person's email address
        session: end only the session with this ID
    """
    async with store.open() as parts:
        user = await _find_user(parts, email)
        if session:
            try:
                await parts[SessionService].revoke(user.id, session)
            except NotFound as error:
                raise CommandError(f"{user.email} has no active session {session!r}.") from error
        ended = 1 if session else await parts[SessionService].revoke_all(user.id)
        await note(parts, user, "sessions_ended")
    return store.answer({"user": user.id, "ended": ended}, f"Ended {ended} of {user.email}'s sessions.")


async def _find_user(parts: Dependencies, email: str) -> User:
    user: User | None = await parts[People].by_email(email)
    if user is None:
        raise CommandError(f"There is no account with the email address {email!r}. Add it with `joinery member add`.")
    return user


async def _find_member(parts: Dependencies, organisation: Organisation, email: str) -> User:
    async with parts[UnitOfWork].read(Tenant(organisation.id, True)) as tx:
        member = await tx[OrgStore].member(email)
    user: User | None = await parts[People].get(member.user) if member is not None else None
    if user is None:
        raise CommandError(f"{email} is not a member of {organisation.name}. Add them with `joinery member add`.")
    return user
