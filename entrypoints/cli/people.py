"""What operators do about people: members, a member's token, links to sign in, sessions."""

import argparse
from datetime import timedelta
from typing import Final

from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.errors import NotFound
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member, Organisation
from domain.orgs.ports import OrgStore
from domain.people.model import Purpose, SecurityEvent, Session, User
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container, found_organisation, operator_call
from entrypoints.container import Container

LONGEST_TOKEN: Final = 24 * 90
"""Hours for which an operator's token may last."""
SIGN_IN: Final = "/console/link/"
"""The page that a link to sign in leads to; what follows the # is sent to nobody by itself."""


async def add_member(options: argparse.Namespace) -> int:
    """`joinery member add`."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        member = await new_member(parts, organisation, options.email, options.role)
    answer = {"organisation": organisation.id, "user": member.user, "email": member.email, "role": member.role}
    return answered(options, answer, f"Added {member.email} as {member.role} ({member.user}).")


async def new_member(parts: Container, organisation: Organisation, email: str, role: str) -> Member:
    """Add a person, known by that address or new, to the organisation. Raises Conflict for a member."""
    now = parts.clock().now()
    user = await parts.people().add(User(new_id("usr"), email.strip(), "", None, now))
    async with parts.uow().begin(Tenant(organisation.id, True), operator_call("members.add")) as tx:
        member = Member(user.id, organisation.id, user.email, role, tx.now)
        await tx[OrgStore].add_member(member)
        await tx[AuditLog].add(Change("member", user.id, "create", {}, {"email": member.email, "role": role}))
    return member


async def create_token(options: argparse.Namespace) -> int:
    """`joinery token create`: a bearer with which a script acts as a member does in the console."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        user = await _member(parts, organisation, options.email)
        if not 0 < options.hours <= LONGEST_TOKEN:
            raise CommandError(f"A token lasts at least an hour and at most {LONGEST_TOKEN} hours.")
        session, secret = await parts.sessions().token(user, organisation.id, timedelta(hours=options.hours))
        async with parts.uow().begin(Tenant(organisation.id, True), operator_call("tokens.create")) as tx:
            after = {"user": user.id, "expires_at": session.expires_at.isoformat()}
            await tx[AuditLog].add(Change("session", session.id, "create", {}, after))
        await _note(parts, user, "token_created", "by an operator")
    answer = {"organisation": organisation.id, "user": user.id, "session": session.id, "token": secret}
    answer["expires_at"] = session.expires_at.isoformat()
    return answered(
        options,
        answer,
        f"Token of {user.email}, until {session.expires_at:%d %B %Y %H:%M} UTC, shown only now: {secret}",
    )


async def link(options: argparse.Namespace) -> int:
    """`joinery session link`: a link with which a member signs in, once."""
    async with container(options) as parts:
        organisation = await found_organisation(parts, options.org)
        user = await _member(parts, organisation, options.email)
        url = await sign_in_link(parts, user, organisation)
    answer = {"organisation": organisation.id, "user": user.id, "url": url}
    return answered(options, answer, f"For {user.email}, good for one use within 15 minutes:\n{url}")


async def sign_in_link(parts: Container, user: User, organisation: Organisation) -> str:
    """The address of a page that signs the person in, once."""
    made, secret = await parts.links().make(user, Purpose.SIGN_IN, organisation.id)
    async with parts.uow().begin(Tenant(organisation.id, True), operator_call("sessions.link")) as tx:
        after = {"user": user.id, "expires_at": made.expires_at.isoformat()}
        await tx[AuditLog].add(Change("sign_in_link", user.id, "create", {}, after))
    await _note(parts, user, "link_made", "by an operator")
    return parts.settings().base_url.rstrip("/") + SIGN_IN + secret


async def list_sessions(options: argparse.Namespace) -> int:
    """`joinery session list`."""
    async with container(options) as parts:
        user = await _user(parts, options.email)
        sessions = await parts.sessions().list_of(user.id)
    answer = [
        {"session": one.id, "kind": str(one.kind), "address": one.address, "last_used_at": one.seen_at.isoformat()}
        for one in sessions
    ]
    lines = "\n".join(map(_line, sessions)) or f"{user.email} is signed in nowhere."
    return answered(options, {"user": user.id, "sessions": answer}, lines)


async def end_sessions(options: argparse.Namespace) -> int:
    """`joinery session end`: one session, or all of a person's."""
    async with container(options) as parts:
        user = await _user(parts, options.email)
        if options.session:
            try:
                await parts.sessions().revoke(user.id, options.session)
            except NotFound as error:
                raise CommandError(f"{user.email} has no session {options.session!r} in force.") from error
            ended = 1
        else:
            ended = await parts.sessions().revoke_all(user.id)
        await _note(parts, user, "sessions_ended", "by an operator")
    return answered(options, {"user": user.id, "ended": ended}, f"Ended {ended} of {user.email}'s sessions.")


def _line(session: Session) -> str:
    return f"{session.id}  {session.kind:<8} {session.address:<16} last used {session.seen_at:%d %B %Y %H:%M} UTC"


async def _note(parts: Container, user: User, kind: str, detail: str) -> None:
    now = parts.clock().now()
    await parts.people().note(SecurityEvent(new_id("sec"), user.id, kind, detail, "", "", now))


async def _user(parts: Container, email: str) -> User:
    """The person of that address. Raises CommandError."""
    user = await parts.people().by_email(email)
    if user is None:
        raise CommandError(f"Nobody is known by the address {email!r}; add them with `joinery member add`.")
    return user


async def _member(parts: Container, organisation: Organisation, email: str) -> User:
    """The member of that address. Raises CommandError."""
    async with parts.uow().read(Tenant(organisation.id, True)) as tx:
        member = await tx[OrgStore].member(email)
    user = await parts.people().get(member.user) if member is not None else None
    if user is None:
        raise CommandError(f"{email} is no member of {organisation.name}; add them with `joinery member add`.")
    return user
