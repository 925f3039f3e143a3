"""Users, sessions and single-use links (domain/people/ports.py)."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.access.model import ROLES
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, LinkPurpose, OneTimeLink, SecurityEvent, Session, SessionKind, User
from domain.sso.model import MailDomain, SsoConnection
from domain.sso.ports import SsoStore
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
HOUR = timedelta(hours=1)


async def _add_user(backend: Backend) -> User:
    id_ = new_id("usr")
    return await backend.people.add(User(id_, f"{id_}@Fjord.example", "", None, builders.MOMENT))


async def _join_new_organisation(backend: Backend, user: User, role: str = "editor") -> str:
    org = await backend.organisation()
    async with backend.uow.begin(Tenant(org.id, True), builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, org.id, user.email, role, builders.MOMENT))
    return org.id


def _build_session(backend: Backend, user: User, org: str | None, **changes: object) -> Session:
    now, id_ = backend.now().replace(microsecond=0), new_id("ses")
    made = Session(
        id_, user.id, org, True, b"s" + id_.encode().ljust(32), SessionKind.CONSOLE, (AuthMethod.PASSWORD, AuthMethod.TOTP),
        "203.0.113.9", "a browser", now, now, now, now + HOUR,
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


async def test_an_address_belongs_to_one_user(backend: Backend) -> None:
    user = await _add_user(backend)
    assert await backend.people.get(user.id) == user
    assert await backend.people.find_by_email(user.email.upper()) == user
    again = await backend.people.add(replace(user, id=new_id("usr"), email=user.email.upper()))
    assert again == user
    await backend.people.save(named := replace(user, name="Ingrid", verified_at=builders.MOMENT))
    assert await backend.people.get(user.id) == named
    other = await _add_user(backend)
    found = await backend.people.get_many([user.id, other.id, new_id("usr")])
    assert found == {user.id: named, other.id: other} and await backend.people.get_many([]) == {}
    assert (
        await backend.people.get(new_id("usr")) is None
        and await backend.people.find_by_email("nobody@x.example") is None
    )


async def test_a_password_is_stored(backend: Backend) -> None:
    user = await _add_user(backend)
    assert await backend.people.get_password_hash(user.id) is None
    await backend.people.set_password_hash(user.id, "$argon2id$one", backend.now())
    assert await backend.people.get_password_hash(user.id) == "$argon2id$one"


async def test_an_account_is_set_up_by_one_of_several_requests(backend: Backend) -> None:
    id_, now = new_id("usr"), backend.now()
    wanted = [User(new_id("usr"), f"{id_}@Fjord.example", "Bo", None, builders.MOMENT) for _ in range(4)]
    done = await asyncio.gather(*(backend.people.add_with_password(user, f"hash of {user.id}", now) for user in wanted))
    assert sorted(done) == [False] * 3 + [True]
    won = wanted[done.index(True)]
    assert await backend.people.find_by_email(won.email) == won
    assert await backend.people.get_password_hash(won.id) == f"hash of {won.id}"
    known = await _add_user(backend)
    assert (
        await backend.people.add_with_password(replace(won, id=new_id("usr"), email=known.email.upper()), "other", now)
        is False
    )
    assert await backend.people.get_password_hash(known.id) is None and await backend.people.get(known.id) == known


async def test_security_events_are_listed_newest_first(backend: Backend) -> None:
    user, other = await _add_user(backend), await _add_user(backend)
    made = [
        SecurityEvent(new_id("sec"), user.id, kind, "", "203.0.113.9", "a browser", builders.MOMENT) for kind in "abc"
    ]
    for event in made:
        await backend.people.record_event(event)
    assert list(await backend.people.list_events(user.id, 2)) == [made[2], made[1]]
    assert list(await backend.people.list_events(other.id, 2)) == []


async def _remove_member(backend: Backend, user: User, org: str) -> None:
    """Remove the membership without the follow-up actions, as after a kill."""
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[OrgStore].remove_member(user.id)


async def _add_member(backend: Backend, user: User, org: str, role: str = "editor") -> None:
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, org, user.email, role, tx.now))


async def test_a_token_ends_with_its_membership(backend: Backend) -> None:
    user = await _add_user(backend)
    org = await _join_new_organisation(backend, user)
    token, browser = (
        _build_session(backend, user, org, kind=kind) for kind in (SessionKind.TOKEN, SessionKind.CONSOLE)
    )
    for one in (token, browser):
        await backend.sessions.add(one)
    assert list(await backend.sessions.find_tokens([token.digest])) == [token.digest]
    await _remove_member(backend, user, org)
    assert await backend.sessions.find_tokens([token.digest]) == {}
    await backend.pass_time(timedelta(seconds=1.1))
    await _add_member(backend, user, org)
    assert await backend.sessions.find_tokens([token.digest]) == {}, "the token stays revoked when the member returns"
    found = await backend.sessions.find(browser.digest)
    assert found is not None and found.principal is not None, "signed-in users stay signed in"
    again = _build_session(backend, user, org, kind=SessionKind.TOKEN, created_at=backend.now())
    await backend.sessions.add(again)
    assert list(await backend.sessions.find_tokens([again.digest])) == [again.digest]


async def _enforce_sso(backend: Backend, org: str, domain: str, **changes: bool) -> None:
    """Enforce single sign-on for the domain's users."""
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        flags = {"enforced": True, "enabled": True} | changes
        await tx[SsoStore].save_connection(
            SsoConnection(
                org,
                "https://id.example",
                "joinery",
                b"sealed",
                None,
                **flags,
                tried_at=tx.now,
                created_at=tx.now,
                updated_at=tx.now,
            )
        )
        await tx[SsoStore].save_domain(MailDomain(org, domain, "token", tx.now, None, tx.now, tx.now))


PASSWORD, CODE, PASSKEY, SSO, OPERATOR = (
    (AuthMethod.PASSWORD,),
    (AuthMethod.PASSWORD, AuthMethod.TOTP),
    (AuthMethod.PASSKEY,),
    (AuthMethod.SSO,),
    (AuthMethod.OPERATOR,),
)


async def test_sessions_lose_access_when_single_sign_on_is_enforced(backend: Backend) -> None:
    """Sessions depend on stored data only, even if the process that should end them died; a lower role counts as well."""
    domain = f"{new_id('usr')[4:].lower()}.example"
    user = await backend.people.add(User(new_id("usr"), f"Ada@{domain}", "", None, builders.MOMENT))
    org = await _join_new_organisation(backend, user, "owner")
    made = {
        methods: _build_session(backend, user, org, methods=methods)
        for methods in (PASSWORD, CODE, PASSKEY, SSO, OPERATOR)
    }
    for one in made.values():
        await backend.sessions.add(one)

    async def let_in() -> set[tuple[AuthMethod, ...]]:
        found = {methods: await backend.sessions.find(one.digest) for methods, one in made.items()}
        return {methods for methods, one in found.items() if one is not None and one.principal is not None}

    assert await let_in() == set(made)
    await _enforce_sso(backend, org, domain, enforced=False)
    assert await let_in() == set(made)
    await _enforce_sso(backend, org, domain)
    assert await let_in() == {CODE, PASSKEY, SSO, OPERATOR}
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[OrgStore].change_role(user.id, "admin")
    assert await let_in() == {SSO, OPERATOR}
    await _enforce_sso(backend, org, domain, enabled=False)
    assert await let_in() == set(made)
    await _enforce_sso(backend, org, domain)
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[SsoStore].delete_domain(domain)
    assert await let_in() == set(made), "nobody of the domain has to use single sign-on"


async def test_a_session_has_the_members_current_permissions(backend: Backend) -> None:
    user = await _add_user(backend)
    org = await _join_new_organisation(backend, user)
    session = _build_session(backend, user, org, livemode=False)
    await backend.sessions.add(session)
    found = await backend.sessions.find(session.digest)
    assert found is not None and found.session == session and found.user == user
    principal = found.principal
    assert principal is not None and principal.tenant == Tenant(org, False) and principal.scopes == ROLES["editor"]
    assert principal.actor == Actor("user", user.id) and principal.via == "console"
    assert principal.is_personal_token and principal.is_console_session and not principal.has_fixed_mode
    assert await backend.sessions.find(b"s" + b"x" * 32) is None


async def test_a_user_without_an_organisation_has_a_session_without_permissions(backend: Backend) -> None:
    user = await _add_user(backend)
    org = (await backend.organisation()).id
    for looked_at in (None, org):
        await backend.sessions.add(session := _build_session(backend, user, looked_at))
        found = await backend.sessions.find(session.digest)
        assert found is not None and found.principal is None


async def test_a_console_session_is_no_token(backend: Backend) -> None:
    user = await _add_user(backend)
    org = await _join_new_organisation(backend, user, "viewer")
    console, token = _build_session(backend, user, org), _build_session(backend, user, org, kind=SessionKind.TOKEN)
    for session in (console, token):
        await backend.sessions.add(session)
    proofs = await backend.sessions.find_tokens([console.digest, token.digest, b"p" + b"x" * 32])
    assert list(proofs) == [token.digest]
    credential, principal = proofs[token.digest]
    assert credential.expires_at == token.expires_at and principal.role == "viewer"


async def test_sessions_are_changed_and_ended(backend: Backend) -> None:
    user = await _add_user(backend)
    org = await _join_new_organisation(backend, user)
    moved = _build_session(backend, user, None)
    await backend.sessions.add(moved)
    await backend.sessions.save(replace(moved, org=org, livemode=False))
    await backend.sessions.record_use(moved.id, later := moved.seen_at + HOUR)
    kept = await backend.sessions.find(moved.digest)
    assert kept is not None and (kept.session.org, kept.session.livemode, kept.session.seen_at) == (org, False, later)
    await backend.sessions.revoke((moved.id,), backend.now())
    first, second = _build_session(backend, user, None), _build_session(backend, user, None)
    for session in (first, second):
        await backend.sessions.add(session)
    later = first.seen_at + HOUR
    seen = replace(first, livemode=False, seen_at=later, confirmed_at=later, methods=(AuthMethod.PASSKEY,))
    await backend.sessions.save(seen)
    await backend.sessions.save(replace(seen, seen_at=first.seen_at, confirmed_at=first.confirmed_at))
    assert list(await backend.sessions.list_by_user(user.id)) == [second, seen]
    now = backend.now()
    assert await backend.sessions.revoke([first.id, new_id("ses")], now) == 1
    assert await backend.sessions.revoke([first.id], now) == 0
    await backend.sessions.save(seen)
    found = await backend.sessions.find(first.digest)
    assert found is not None and found.session.revoked_at is not None
    assert list(await backend.sessions.list_by_user(user.id)) == [second]


async def test_long_expired_sessions_are_deleted(backend: Backend) -> None:
    user, now = await _add_user(backend), backend.now()
    old = _build_session(backend, user, None, expires_at=now - 3 * HOUR)
    young = _build_session(backend, user, None)
    for session in (old, young):
        await backend.sessions.add(session)
    assert await backend.sessions.delete_ended(now - 2 * HOUR) >= 1
    assert await backend.sessions.find(old.digest) is None and await backend.sessions.find(young.digest) is not None


async def test_a_link_is_used_once(backend: Backend) -> None:
    user, now = await _add_user(backend), backend.now().replace(microsecond=0)

    def link(purpose: LinkPurpose, lasts: timedelta = HOUR) -> OneTimeLink:
        return OneTimeLink(b"s" + new_id("ses").encode(), purpose, user.id, None, now, now + lasts)

    first, other = link(LinkPurpose.SIGN_IN), link(LinkPurpose.SET_PASSWORD)
    for made in (first, other):
        await backend.links.add(made)
    assert await backend.links.find(first.digest, LinkPurpose.SIGN_IN, now) == first
    assert await backend.links.use(first.digest, LinkPurpose.SET_PASSWORD, now) is None
    assert await backend.links.use(first.digest, LinkPurpose.SIGN_IN, now) == first
    assert await backend.links.use(first.digest, LinkPurpose.SIGN_IN, now) is None
    assert await backend.links.find(first.digest, LinkPurpose.SIGN_IN, now) is None
    second, third = link(LinkPurpose.SIGN_IN), link(LinkPurpose.SIGN_IN)
    await backend.links.add(second)
    await backend.links.add(third)
    assert await backend.links.use(second.digest, LinkPurpose.SIGN_IN, now) is None, "there is a newer one"
    assert await backend.links.use(third.digest, LinkPurpose.SIGN_IN, now + 2 * HOUR) is None, "the link has expired"
    assert await backend.links.use(other.digest, LinkPurpose.SET_PASSWORD, now) == other
    await backend.links.invalidate_unused(third.user)
    assert await backend.links.find(third.digest, LinkPurpose.SIGN_IN, now) is None
