"""Commands for members of organisations: membership, tokens, sign-in links and sessions."""

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
from entrypoints.cli.store import DEFAULT_OPTIONS, CommandOptions, OrganisationOptions, select_attributes
from entrypoints.dependencies import Dependencies
from entrypoints.errors import CommandError
from entrypoints.provisioning import (
    add_organisation_member,
    begin_operator_change,
    create_sign_in_link,
    record_security_event,
)
from ports.unit_of_work import UnitOfWork

MAX_TOKEN_HOURS = 24 * 90
"""Maximum lifetime in hours of a token that an operator creates."""


async def add_member(
    *, email: str, role: Annotated[str, Parameter(choices=sorted(ROLES))], options: OrganisationOptions
) -> int:
    """Add a member to an organisation.

    Args:
        email: Email address of the person.
        role: Role of the member.
    """
    async with options.open_organisation() as (dependencies, organisation):
        member = await add_organisation_member(dependencies, organisation, email, role)
    result = {"organisation": organisation.id, **select_attributes(member, "user", "email", "role")}
    return options.print_result(result, f"Added {member.email} as {member.role} ({member.user}).")


async def create_token(*, email: str, hours: int = 8, options: OrganisationOptions) -> int:
    """Create a token with which a script acts as a member.

    Args:
        email: Email address of the member.
        hours: Lifetime of the token in hours.
    """
    async with options.open_organisation() as (dependencies, organisation):
        user = await _find_member(dependencies, organisation, email)
        if not 0 < hours <= MAX_TOKEN_HOURS:
            raise CommandError(f"--hours must be between 1 and {MAX_TOKEN_HOURS}.")
        session, secret = await dependencies[SessionService].create_token(user, organisation.id, timedelta(hours=hours))
        expires_at = session.expires_at.isoformat()
        async with begin_operator_change(dependencies, organisation, "tokens.create") as tx:
            await tx[AuditLog].add(
                Change("session", session.id, "create", {}, {"user": user.id, "expires_at": expires_at})
            )
        await record_security_event(dependencies, user, "token_created")
    result = {"organisation": organisation.id, "user": user.id, "session": session.id, "token": secret}
    return options.print_result(
        {**result, "expires_at": expires_at},
        f"Created a token of {user.email}, valid until {session.expires_at:%d %B %Y %H:%M} UTC, shown only once: {secret}",
    )


async def create_link(*, email: str, options: OrganisationOptions) -> int:
    """Create a one-time sign-in link for a member.

    Args:
        email: Email address of the member.
    """
    async with options.open_organisation() as (dependencies, organisation):
        user = await _find_member(dependencies, organisation, email)
        url = await create_sign_in_link(dependencies, user, organisation)
    result = {"organisation": organisation.id, "user": user.id, "url": url}
    return options.print_result(result, f"Sign-in link for {user.email}, valid once within 15 minutes:\n{url}")


async def list_sessions(*, email: str, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """List a person's sessions.

    Args:
        email: Email address of the person.
    """
    async with options.open_dependencies() as dependencies:
        user = await _find_user(dependencies, email)
        sessions = await dependencies[SessionService].list_active(user.id)
    result = [
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
    return options.print_result({"user": user.id, "sessions": result}, *lines or [f"{user.email} has no sessions."])


async def end_sessions(*, email: str, session: str | None = None, options: CommandOptions = DEFAULT_OPTIONS) -> int:
    """End a person's sessions and tokens immediately.

    Args:
        email: Email address of the person.
        session: End only the session with this ID.
    """
    async with options.open_dependencies() as dependencies:
        user = await _find_user(dependencies, email)
        if session:
            try:
                await dependencies[SessionService].revoke(user.id, session)
            except NotFound as error:
                raise CommandError(f"{user.email} has no active session {session!r}.") from error
        ended = 1 if session else await dependencies[SessionService].revoke_all(user.id)
        await record_security_event(dependencies, user, "sessions_ended")
    return options.print_result({"user": user.id, "ended": ended}, f"Ended {ended} of {user.email}'s sessions.")


async def _find_user(dependencies: Dependencies, email: str) -> User:
    """Return the user with the email address. Raises CommandError if there is none."""
    user: User | None = await dependencies[People].find_by_email(email)
    if user is None:
        raise CommandError(
            f"There is no account with the email address {email!r}. Add the person with `joinery member add`."
        )
    return user


async def _find_member(dependencies: Dependencies, organisation: Organisation, email: str) -> User:
    """Return the member with the email address. Raises CommandError if the organisation has none."""
    async with dependencies[UnitOfWork].begin_reading(Tenant(organisation.id, True)) as tx:
        member = await tx[OrgStore].find_member(email)
    user: User | None = await dependencies[People].get(member.user) if member is not None else None
    if user is None:
        raise CommandError(f"{email} is not a member of {organisation.name}. Add the person with `joinery member add`.")
    return user
