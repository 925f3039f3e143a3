"""Management of members, invitations and keys: permissions, immediate effects, and the last owner."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import pytest
import pytest_asyncio

from adapters.aesgcm import AesGcmVault
from adapters.memory_limits import MemoryLimits
from domain.access.model import ROLES, Principal
from domain.access.usecases import AccessService
from domain.kernel.errors import (
    AuthenticationRequired,
    Conflict,
    DomainError,
    InvalidRequest,
    NotFound,
    PermissionDenied,
    RateLimited,
)
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.oauth.model import App, AppKind, AppOrigin, Token, TokenFamily, TokenKind
from domain.oauth.usecases.apps import AppService, NewApp
from domain.oauth.usecases.oauth_consents import OAuthConsentService
from domain.orgs.model import INVITATION_LIFETIME, Invitation, Member, Organisation
from domain.orgs.ports import OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from domain.people.usecases.attempt_limits import AttemptLimiter, DeviceCookies
from domain.people.usecases.invitations import INVITATION_PATH, InvitationService
from domain.people.usecases.keys import KeyService, NewKey
from domain.people.usecases.members import MemberService, OrgSettingsService
from ports.unit_of_work import Tx
from tests.http.application import create_active_keys
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
BASE = "https://api.joinery.test"
SCOPES = frozenset({"products:read"})


class BackendClock:
    """Clock that returns the backend's time."""

    def __init__(self, backend: Backend) -> None:
        self.now = backend.now


@dataclass
class MemberHarness:
    """Organisation with users by name."""

    backend: Backend
    org: Organisation
    users: dict[str, User] = field(default_factory=dict)

    def __post_init__(self) -> None:
        backend = self.backend
        self.access = AccessService(backend.credentials, create_active_keys())
        self.mail = OutgoingMail(
            backend.outbox, AesGcmVault("a secret of at least thirty-two characters"), BackendClock(backend)
        )
        self.members, self.keys = MemberService(), KeyService(self.access)
        self.invitations = InvitationService(
            backend.memberships,
            backend.people,
            self.access,
            self.mail,
            AttemptLimiter(MemoryLimits(lambda: backend.now().timestamp()), DeviceCookies(self.access)),
            BackendClock(backend),
            BASE,
        )

    async def add_member(self, role: str, name: str = "") -> User:
        """Add a member with that role."""
        id_ = new_id("usr")
        user = await self.backend.people.add(User(id_, f"{id_}@fjord.example", "", builders.MOMENT, builders.MOMENT))
        async with self.backend.uow.begin(Tenant(self.org.id, True), builders.CALL) as tx:
            await tx[OrgStore].add_member(Member(user.id, self.org.id, user.email, role, builders.MOMENT))
        self.users[name or role] = user
        return user

    @asynccontextmanager
    async def begin_as(self, name: str, *, livemode: bool = True) -> AsyncIterator[Tx]:
        """Begin a transaction of that person."""
        context = AuditContext(Actor("user", self.users[name].id), "console")
        async with self.backend.uow.begin(Tenant(self.org.id, livemode), context) as tx:
            yield tx

    async def list_roles(self) -> dict[str, str]:
        """Return the role of each person by name."""
        async with self.backend.uow.begin_reading(Tenant(self.org.id, True)) as tx:
            found = {member.user: member.role for member in (await tx[OrgStore].list_members(PageRequest(100))).items}
        return {name: found[user.id] for name, user in self.users.items() if user.id in found}

    async def find_mailed_secret(self, email: str) -> str:
        """Return the secret of the newest invitation in the outbox."""
        message = next(one for one in await self.mail.list_latest(200) if one.to == email)
        return self.mail.decrypt_text(message).partition(BASE + INVITATION_PATH)[2].split()[0]


@pytest_asyncio.fixture
async def harness(backend: Backend) -> MemberHarness:
    made = MemberHarness(backend, await backend.organisation(name="Fjord & Fjell"))
    for role in ("owner", "admin", "developer", "viewer"):
        await made.add_member(role)
    return made


async def _expect_refusal(harness: MemberHarness, name: str, act: object, kind: type[DomainError]) -> None:
    with pytest.raises(kind):
        async with harness.begin_as(name) as tx:
            await act(tx)  # type: ignore[operator]


async def test_managers_change_roles_and_only_owners_appoint_owners(harness: MemberHarness) -> None:
    people, change = harness.users, harness.members.change_role
    async with harness.begin_as("admin") as tx:
        changed = await change(tx, people["viewer"].id, "editor")
        assert changed.role == "editor"
        [recorded] = tx.recorded.changes
        assert (recorded.object, recorded.before, recorded.after) == ("member", {"role": "viewer"}, {"role": "editor"})
    await _expect_refusal(harness, "developer", lambda tx: change(tx, people["viewer"].id, "admin"), PermissionDenied)
    await _expect_refusal(harness, "admin", lambda tx: change(tx, people["admin"].id, "owner"), PermissionDenied)
    await _expect_refusal(harness, "admin", lambda tx: change(tx, people["owner"].id, "viewer"), PermissionDenied)
    await _expect_refusal(harness, "owner", lambda tx: change(tx, people["viewer"].id, "king"), InvalidRequest)
    await _expect_refusal(harness, "owner", lambda tx: change(tx, new_id("usr"), "viewer"), NotFound)
    async with harness.begin_as("owner") as tx:
        await change(tx, people["admin"].id, "owner")
    assert await harness.list_roles() == {
        "owner": "owner",
        "admin": "owner",
        "developer": "developer",
        "viewer": "editor",
    }


async def test_consents_end_with_the_membership(harness: MemberHarness) -> None:
    viewer, now = harness.users["viewer"], harness.backend.now()
    app = App("app_1" + viewer.id, "app_1" + viewer.id, AppKind.WEB, AppOrigin.REGISTERED, "Sync", ("https://a.example/",), SCOPES, now, now)  # fmt: skip
    await harness.backend.token_store.save_app(app)
    async with harness.begin_as("viewer") as tx:
        grant = await OAuthConsentService.ensure_consent(tx, app, viewer.id, SCOPES)
    family = TokenFamily(new_id("fam"), app.id, harness.org.id, viewer.id, grant.id, now, now + timedelta(hours=1))
    token = Token(b"a" + family.id.encode(), family.id, TokenKind.ACCESS, SCOPES, None, now, now + timedelta(hours=1))
    await harness.backend.token_store.add_family(family, [token])
    proofs = harness.backend.token_store.find_tokens
    assert (await proofs([token.digest]))[token.digest][0].revoked_at is None
    async with harness.begin_as("owner") as tx:
        await harness.members.remove(tx, viewer.id)
        assert "oauth_grant" in [change.object for change in tx.recorded.changes]
    await _expect_refusal(
        harness, "viewer", lambda tx: OAuthConsentService.ensure_consent(tx, app, viewer.id, SCOPES), PermissionDenied
    )
    async with harness.begin_as("owner") as tx:
        await tx[OrgStore].add_member(Member(viewer.id, harness.org.id, viewer.email, "owner", builders.MOMENT))
    back = (await proofs([token.digest])).get(token.digest)
    assert back is None or back[0].revoked_at is not None, "former sessions of a returning member stay revoked"


async def test_the_last_owner_cannot_leave(harness: MemberHarness) -> None:
    owner = harness.users["owner"].id
    await _expect_refusal(harness, "owner", lambda tx: harness.members.change_role(tx, owner, "admin"), Conflict)
    await _expect_refusal(harness, "owner", harness.members.leave, Conflict)
    await _expect_refusal(harness, "owner", lambda tx: harness.members.remove(tx, owner), Conflict)
    async with harness.begin_as("viewer") as tx:
        await harness.members.leave(tx)
    assert "viewer" not in await harness.list_roles()


async def test_two_owners_cannot_leave_concurrently(harness: MemberHarness) -> None:
    await harness.add_member("owner", "second")
    people = harness.users

    async def demote(by: str, whom: str) -> None:
        async with harness.begin_as(by) as tx:
            await tx[OrgStore].list_members(PageRequest())  # so that both have begun
            await asyncio.sleep(0.05)
            await harness.members.change_role(tx, people[whom].id, "viewer")

    async def leave(who: str) -> None:
        async with harness.begin_as(who) as tx:
            await asyncio.sleep(0.05)
            await harness.members.leave(tx)

    done = await asyncio.gather(demote("owner", "owner"), leave("second"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["Conflict", "NoneType"]
    assert list((await harness.list_roles()).values()).count("owner") == 1
    left = next(name for name, role in (await harness.list_roles()).items() if role == "owner")
    await harness.add_member("owner", "third")
    done = await asyncio.gather(demote(left, "third"), demote("third", left), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["NoneType", "PermissionDenied"]
    assert list((await harness.list_roles()).values()).count("owner") == 1


async def test_no_key_and_no_app_manages_members(harness: MemberHarness) -> None:
    for actor in (Actor("api_key", new_id("key")), Actor("app", new_id("app"), harness.users["owner"].id)):
        async with harness.backend.uow.begin(Tenant(harness.org.id, True), AuditContext(actor, "x")) as tx:
            with pytest.raises(PermissionDenied):
                await harness.members.change_role(tx, harness.users["viewer"].id, "admin")
            with pytest.raises(PermissionDenied):
                await harness.keys.create(tx, NewKey("A key"))


async def test_removing_a_member_revokes_their_keys_in_both_modes(harness: MemberHarness) -> None:
    secrets = []
    for livemode in (True, False):
        async with harness.begin_as("developer", livemode=livemode) as tx:
            secrets.append((await harness.keys.create(tx, NewKey("Sync")))[1])
    async with harness.begin_as("admin") as tx:
        await harness.members.remove(tx, harness.users["developer"].id)
        assert [change.object for change in tx.recorded.changes] == ["member", "api_key", "api_key"]
    assert [await _authenticate(harness, secret) for secret in secrets] == [None, None]
    async with harness.backend.uow.begin(Tenant(harness.org.id, True), builders.CALL) as tx:
        member = harness.users["developer"]
        await tx[OrgStore].add_member(Member(member.id, harness.org.id, member.email, "owner", builders.MOMENT))
    assert [await _authenticate(harness, secret) for secret in secrets] == [None, None], (
        "returning members have no keys"
    )


async def _authenticate(harness: MemberHarness, secret: str) -> Principal | None:
    try:
        proof = await harness.access.find(harness.access.compute_digest(secret))
        return harness.access.verify(proof, "203.0.113.7", harness.backend.now())
    except AuthenticationRequired:
        return None


async def test_a_key_is_created_within_the_scopes_of_its_creator(harness: MemberHarness) -> None:
    request = NewKey("  Sync   job ", restricted=True, networks=("203.0.113.7", "2001:db8::1/32"), days=30)
    async with harness.begin_as("developer", livemode=False) as tx:
        key, secret = await harness.keys.create(tx, request)
        [recorded] = tx.recorded.changes
    assert secret.startswith("svc_rk_test_") and key.last4 == secret[-4:] and key.name == "Sync job"
    assert key.scopes == ROLES["developer"] and key.networks == ("203.0.113.7/32", "2001:db8::/32")
    assert key.expires_at is not None and secret not in str(recorded) and "digest" not in recorded.after
    principal = await _authenticate(harness, secret)
    assert principal is not None and principal.scopes == ROLES["developer"] and not principal.tenant.livemode
    for wrong, field_ in (
        (NewKey(" "), "name"),
        (NewKey("x", scopes=frozenset({"billing:write"})), "scopes"),
        (NewKey("x", scopes=frozenset({"nonsense"})), "scopes"),
        (NewKey("x", networks=("everywhere",)), "networks"),
        (NewKey("x", days=0), "expires"),
    ):
        async with harness.begin_as("developer") as tx:
            with pytest.raises(InvalidRequest) as caught:
                await harness.keys.create(tx, wrong)
        assert caught.value.fields[0].field == field_
    await _expect_refusal(harness, "viewer", lambda tx: harness.keys.create(tx, NewKey("x")), PermissionDenied)
    async with harness.begin_as("developer", livemode=False) as tx:
        with pytest.raises(Conflict):
            await harness.keys.create(tx, request)


async def test_keys_are_listed_and_revoked(harness: MemberHarness) -> None:
    made = {}
    for name in ("owner", "developer"):
        async with harness.begin_as(name) as tx:
            made[name] = (await harness.keys.create(tx, NewKey(f"Of {name}")))[0]
    await _expect_refusal(harness, "developer", lambda tx: harness.keys.revoke(tx, made["owner"].id), PermissionDenied)
    await _expect_refusal(harness, "owner", lambda tx: harness.keys.revoke(tx, new_id("key")), NotFound)
    async with harness.begin_as("developer") as tx:
        await harness.keys.revoke(tx, made["developer"].id)
    await _expect_refusal(harness, "owner", lambda tx: harness.keys.revoke(tx, made["developer"].id), NotFound)
    at = harness.backend.now()
    log = builders.request_log(Tenant(harness.org.id, True), actor=Actor("api_key", made["owner"].id), created_at=at)
    await harness.backend.sink.write([log])
    async with harness.begin_as("viewer") as tx:
        listed = await harness.keys.list_keys(tx, PageRequest())
        ended = await harness.keys.list_keys(tx, PageRequest(), revoked=True)
    assert [key.id for key in listed.page.items] == [made["owner"].id] and list(listed.last_used_at) == [
        made["owner"].id
    ]
    assert [key.id for key in ended.page.items] == [made["developer"].id]


async def _send_invitation(harness: MemberHarness, by: str, email: str, role: str = "editor") -> Invitation:
    async with harness.begin_as(by) as tx:
        made, secret = await harness.invitations.invite(tx, email, role)
        assert secret not in str(tx.recorded.changes)
    await harness.invitations.send(made, secret, harness.org.name)
    return made


@asynccontextmanager
async def _begin_as_user(harness: MemberHarness, user: User) -> AsyncIterator[Tx]:
    async with harness.backend.uow.begin(Tenant(harness.org.id, True), AuditContext(Actor("user", user.id), "x")) as tx:
        yield tx


async def _set_up_user(harness: MemberHarness, made: Invitation) -> User:
    user = await harness.invitations.build_new_user(made, "Bo")
    assert await harness.backend.people.get(user.id) is None
    assert await harness.backend.people.add_with_password(user, "$argon2id$one", builders.MOMENT)
    return user


async def test_a_newcomer_accepts_by_the_mailed_link(harness: MemberHarness) -> None:
    email = f"{new_id('usr')}@Oak.example"
    made = await _send_invitation(harness, "admin", f"  {email} ")
    secret = await harness.find_mailed_secret(email)
    offer = await harness.invitations.find_open(secret)
    assert offer is not None and offer.details.invitation == made and offer.details.organisation == harness.org
    assert not offer.has_account and offer.inviter_name == harness.users["admin"].display_name
    user = await _set_up_user(harness, made)
    assert user.verified_at is None and user.name == "Bo"
    async with _begin_as_user(harness, user) as tx:
        member = await harness.invitations.accept(tx, user, made)
        assert [change.object for change in tx.recorded.changes] == ["invitation", "member"]
    assert (member.user, member.role, member.email) == (user.id, "editor", user.email)
    user = await harness.invitations.mark_verified(user)
    assert await harness.backend.people.get(user.id) == user and user.verified_at is not None
    assert await harness.invitations.find_open(secret) is None
    async with _begin_as_user(harness, user) as tx:
        with pytest.raises(NotFound):
            await harness.invitations.accept(tx, user, made)
    await _expect_refusal(
        harness, "owner", lambda tx: harness.invitations.invite(tx, email.upper(), "viewer"), Conflict
    )


async def test_an_invitation_is_valid_for_its_address_only(harness: MemberHarness) -> None:
    made = await _send_invitation(harness, "owner", f"{new_id('usr')}@oak.example", "owner")
    other = await harness.backend.people.add(
        User(new_id("usr"), f"{new_id('usr')}@elm.example", "", None, builders.MOMENT)
    )
    async with _begin_as_user(harness, other) as tx:
        with pytest.raises(PermissionDenied):
            await harness.invitations.accept(tx, other, made)
    for wrong in ("", "svc_invite_", "svc_invite_" + "0" * 38):
        assert await harness.invitations.find_open(wrong) is None


@pytest.mark.parametrize("verified_at", [None, builders.MOMENT])
async def test_an_existing_account_is_signed_in_to_and_never_set_up_again(
    harness: MemberHarness, verified_at: datetime | None
) -> None:
    """Includes accounts that an operator created and that have never signed in."""
    known = await harness.backend.people.add(
        User(new_id("usr"), f"{new_id('usr')}@oak.example", "Ola", verified_at, builders.MOMENT)
    )
    made = await _send_invitation(harness, "owner", known.email)
    offer = await harness.invitations.find_open(await harness.find_mailed_secret(known.email))
    assert offer is not None and offer.has_account
    with pytest.raises(Conflict):
        await harness.invitations.build_new_user(made, "Somebody else")
    async with _begin_as_user(harness, known) as tx:
        assert (await harness.invitations.accept(tx, known, made)).user == known.id


async def test_roles_limit_invitations(harness: MemberHarness) -> None:
    invite = harness.invitations.invite
    await _expect_refusal(harness, "developer", lambda tx: invite(tx, "a@oak.example", "viewer"), PermissionDenied)
    await _expect_refusal(harness, "admin", lambda tx: invite(tx, "a@oak.example", "owner"), PermissionDenied)
    for wrong in (
        "",
        "a",
        "a@b",
        "a@b c.example",
        "a@b.example,c@d.example",
        "a\n@b.example",
        "x" * 300 + "@b.example",
    ):
        await _expect_refusal(harness, "owner", lambda tx, wrong=wrong: invite(tx, wrong, "viewer"), InvalidRequest)
    await _expect_refusal(harness, "owner", lambda tx: invite(tx, harness.users["viewer"].email, "viewer"), Conflict)


async def test_invitations_expire_and_are_revoked(harness: MemberHarness) -> None:
    first, second = f"{new_id('usr')}@oak.example", f"{new_id('usr')}@oak.example"
    old = await _send_invitation(harness, "owner", first)
    secret = await harness.find_mailed_secret(first)
    again = await _send_invitation(harness, "admin", first, "viewer")
    assert await harness.invitations.find_open(secret) is None, "there is a newer one"
    gone = await _send_invitation(harness, "owner", second, "owner")
    async with harness.begin_as("owner") as tx:
        listed = (await tx[OrgStore].list_invitations(tx.now, PageRequest())).items
    assert [one.id for one in listed] == [gone.id, again.id] and old.id not in {one.id for one in listed}
    await _expect_refusal(harness, "admin", lambda tx: harness.invitations.revoke(tx, gone.id), PermissionDenied)
    async with harness.begin_as("owner") as tx:
        await harness.invitations.revoke(tx, gone.id)
    await _expect_refusal(harness, "owner", lambda tx: harness.invitations.revoke(tx, gone.id), NotFound)
    async with harness.begin_as("owner") as tx:
        await harness.members.remove(tx, harness.users["admin"].id)
    user = await _set_up_user(harness, again)
    async with _begin_as_user(harness, user) as tx:
        with pytest.raises(NotFound):
            await harness.invitations.accept(tx, user, again)
    assert again.expires_at - again.created_at == INVITATION_LIFETIME
    assert not replace(again, expires_at=again.created_at).is_open(again.created_at + timedelta(seconds=1))


async def test_settings_of_managers_require_their_current_role(harness: MemberHarness) -> None:
    """Applies also to a person who loaded the page with a higher role."""
    settings, apps = OrgSettingsService(("2026-10-04",)), AppService(harness.access.compute_digest)
    admin = harness.users["admin"].id
    was = Principal(
        Tenant(harness.org.id, True),
        Actor("user", admin),
        "console",
        "admin",
        ROLES["admin"],
        harness.org,
        is_console_session=True,
    )
    async with harness.begin_as("admin") as tx:
        assert (await settings.change(tx, "Fjord", None)).name == "Fjord"
    async with harness.begin_as("owner") as tx:
        await harness.members.change_role(tx, admin, "viewer")
    await _expect_refusal(harness, "admin", lambda tx: settings.change(tx, "Oak", None), PermissionDenied)
    machine = NewApp("Sync", AppKind.MACHINE)
    await _expect_refusal(harness, "admin", lambda tx: apps.create_app(tx, was, machine), PermissionDenied)


async def _create_invitation(harness: MemberHarness, email: str) -> tuple[Invitation, str]:
    async with harness.begin_as("owner") as tx:
        return await harness.invitations.invite(tx, email, "viewer")


async def test_invitations_are_rate_limited(harness: MemberHarness) -> None:
    await harness.add_member("owner")
    for _ in range(3):
        await _create_invitation(harness, "bo@oak.example")
    with pytest.raises(RateLimited) as limited:
        await _create_invitation(harness, "BO@oak.example")
    assert limited.value.retry_after
    for number in range(27):
        await _create_invitation(harness, f"b{number}@oak.example")
    with pytest.raises(RateLimited):
        await _create_invitation(harness, "cy@oak.example")


async def test_an_invitation_email_contains_no_text_of_the_inviter(harness: MemberHarness) -> None:
    owner = await harness.add_member("owner")
    hostile = "Security notice: confirm at https://evil.example/x"
    await harness.backend.people.save(replace(owner, name=hostile))
    made, secret = await _create_invitation(harness, "bo@oak.example")
    await harness.invitations.send(made, secret, f"Oak\u202e {hostile}")
    letter = (await harness.mail.list_latest())[0]
    assert letter.subject == "You are invited to an organisation on Joinery"
    text = harness.mail.decrypt_text(letter)
    assert "evil" not in text and "\u202e" not in text and owner.email in text and INVITATION_PATH + secret in text
