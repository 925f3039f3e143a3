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
from tests.http.fakes import working_keys
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
class House:
    """Organisation with users by name."""

    backend: Backend
    org: Organisation
    people: dict[str, User] = field(default_factory=dict)

    def __post_init__(self) -> None:
        backend = self.backend
        self.access = AccessService(backend.credentials, working_keys())
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

    async def add(self, role: str, name: str = "") -> User:
        """Add a member with that role."""
        id_ = new_id("usr")
        user = await self.backend.people.add(User(id_, f"{id_}@fjord.example", "", builders.MOMENT, builders.MOMENT))
        async with self.backend.uow.begin(Tenant(self.org.id, True), builders.CALL) as tx:
            await tx[OrgStore].add_member(Member(user.id, self.org.id, user.email, role, builders.MOMENT))
        self.people[name or role] = user
        return user

    @asynccontextmanager
    async def acts(self, name: str, *, livemode: bool = True) -> AsyncIterator[Tx]:
        """Begin a transaction of that person."""
        context = AuditContext(Actor("user", self.people[name].id), "console")
        async with self.backend.uow.begin(Tenant(self.org.id, livemode), context) as tx:
            yield tx

    async def roles(self) -> dict[str, str]:
        """Return the role of each person by name."""
        async with self.backend.uow.begin_reading(Tenant(self.org.id, True)) as tx:
            found = {member.user: member.role for member in (await tx[OrgStore].list_members(PageRequest(100))).items}
        return {name: found[user.id] for name, user in self.people.items() if user.id in found}

    async def secret_mailed_to(self, email: str) -> str:
        """Return the secret of the newest invitation in the outbox."""
        message = next(one for one in await self.mail.list_latest(200) if one.to == email)
        return self.mail.decrypt_text(message).partition(BASE + INVITATION_PATH)[2].split()[0]


@pytest_asyncio.fixture
async def house(backend: Backend) -> House:
    made = House(backend, await backend.organisation(name="Fjord & Fjell"))
    for role in ("owner", "admin", "developer", "viewer"):
        await made.add(role)
    return made


async def _refused(house: House, name: str, act: object, kind: type[DomainError]) -> None:
    with pytest.raises(kind):
        async with house.acts(name) as tx:
            await act(tx)  # type: ignore[operator]


async def test_managers_change_roles_and_only_owners_make_owners(house: House) -> None:
    people, change = house.people, house.members.change_role
    async with house.acts("admin") as tx:
        changed = await change(tx, people["viewer"].id, "editor")
        assert changed.role == "editor"
        [recorded] = tx.recorded.changes
        assert (recorded.object, recorded.before, recorded.after) == ("member", {"role": "viewer"}, {"role": "editor"})
    await _refused(house, "developer", lambda tx: change(tx, people["viewer"].id, "admin"), PermissionDenied)
    await _refused(house, "admin", lambda tx: change(tx, people["admin"].id, "owner"), PermissionDenied)
    await _refused(house, "admin", lambda tx: change(tx, people["owner"].id, "viewer"), PermissionDenied)
    await _refused(house, "owner", lambda tx: change(tx, people["viewer"].id, "king"), InvalidRequest)
    await _refused(house, "owner", lambda tx: change(tx, new_id("usr"), "viewer"), NotFound)
    async with house.acts("owner") as tx:
        await change(tx, people["admin"].id, "owner")
    assert await house.roles() == {"owner": "owner", "admin": "owner", "developer": "developer", "viewer": "editor"}


async def test_what_people_let_apps_do_ends_with_them(house: House) -> None:
    viewer, now = house.people["viewer"], house.backend.now()
    app = App("app_1" + viewer.id, "app_1" + viewer.id, AppKind.WEB, AppOrigin.REGISTERED, "Sync", ("https://a.example/",), SCOPES, now, now)  # fmt: skip
    await house.backend.token_store.save_app(app)
    async with house.acts("viewer") as tx:
        grant = await OAuthConsentService.ensure_consent(tx, app, viewer.id, SCOPES)
    family = TokenFamily(new_id("fam"), app.id, house.org.id, viewer.id, grant.id, now, now + timedelta(hours=1))
    token = Token(b"a" + family.id.encode(), family.id, TokenKind.ACCESS, SCOPES, None, now, now + timedelta(hours=1))
    await house.backend.token_store.add_family(family, [token])
    proofs = house.backend.token_store.find_tokens
    assert (await proofs([token.digest]))[token.digest][0].revoked_at is None
    async with house.acts("owner") as tx:
        await house.members.remove(tx, viewer.id)
        assert "oauth_grant" in [change.object for change in tx.recorded.changes]
    await _refused(
        house, "viewer", lambda tx: OAuthConsentService.ensure_consent(tx, app, viewer.id, SCOPES), PermissionDenied
    )
    async with house.acts("owner") as tx:
        await tx[OrgStore].add_member(Member(viewer.id, house.org.id, viewer.email, "owner", builders.MOMENT))
    back = (await proofs([token.digest])).get(token.digest)
    assert back is None or back[0].revoked_at is not None, "who comes back gets no old sign-in back"


async def test_an_owner_stays(house: House) -> None:
    owner = house.people["owner"].id
    await _refused(house, "owner", lambda tx: house.members.change_role(tx, owner, "admin"), Conflict)
    await _refused(house, "owner", house.members.leave, Conflict)
    await _refused(house, "owner", lambda tx: house.members.remove(tx, owner), Conflict)
    async with house.acts("viewer") as tx:
        await house.members.leave(tx)
    assert "viewer" not in await house.roles()


async def test_two_owners_who_go_at_once_do_not_both(house: House) -> None:
    await house.add("owner", "second")
    people = house.people

    async def demote(by: str, whom: str) -> None:
        async with house.acts(by) as tx:
            await tx[OrgStore].list_members(PageRequest())  # so that both have begun
            await asyncio.sleep(0.05)
            await house.members.change_role(tx, people[whom].id, "viewer")

    async def leave(who: str) -> None:
        async with house.acts(who) as tx:
            await asyncio.sleep(0.05)
            await house.members.leave(tx)

    done = await asyncio.gather(demote("owner", "owner"), leave("second"), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["Conflict", "NoneType"]
    assert list((await house.roles()).values()).count("owner") == 1
    left = next(name for name, role in (await house.roles()).items() if role == "owner")
    await house.add("owner", "third")
    done = await asyncio.gather(demote(left, "third"), demote("third", left), return_exceptions=True)
    assert sorted(type(one).__name__ for one in done) == ["NoneType", "PermissionDenied"]
    assert list((await house.roles()).values()).count("owner") == 1


async def test_no_key_and_no_app_manages_members(house: House) -> None:
    for actor in (Actor("api_key", new_id("key")), Actor("app", new_id("app"), house.people["owner"].id)):
        async with house.backend.uow.begin(Tenant(house.org.id, True), AuditContext(actor, "x")) as tx:
            with pytest.raises(PermissionDenied):
                await house.members.change_role(tx, house.people["viewer"].id, "admin")
            with pytest.raises(PermissionDenied):
                await house.keys.create(tx, NewKey("A key"))


async def test_removing_a_member_ends_their_keys_in_both_modes(house: House) -> None:
    secrets = []
    for livemode in (True, False):
        async with house.acts("developer", livemode=livemode) as tx:
            secrets.append((await house.keys.create(tx, NewKey("Sync")))[1])
    async with house.acts("admin") as tx:
        await house.members.remove(tx, house.people["developer"].id)
        assert [change.object for change in tx.recorded.changes] == ["member", "api_key", "api_key"]
    assert [await _proved(house, secret) for secret in secrets] == [None, None]
    async with house.backend.uow.begin(Tenant(house.org.id, True), builders.CALL) as tx:
        member = house.people["developer"]
        await tx[OrgStore].add_member(Member(member.id, house.org.id, member.email, "owner", builders.MOMENT))
    assert [await _proved(house, secret) for secret in secrets] == [None, None], "they come back without their keys"


async def _proved(house: House, secret: str) -> Principal | None:
    try:
        proof = await house.access.find(house.access.compute_digest(secret))
        return house.access.verify(proof, "203.0.113.7", house.backend.now())
    except AuthenticationRequired:
        return None


async def test_a_key_is_made_with_what_its_maker_may(house: House) -> None:
    request = NewKey("  Sync   job ", restricted=True, networks=("203.0.113.7", "2001:db8::1/32"), days=30)
    async with house.acts("developer", livemode=False) as tx:
        key, secret = await house.keys.create(tx, request)
        [recorded] = tx.recorded.changes
    assert secret.startswith("svc_rk_test_") and key.last4 == secret[-4:] and key.name == "Sync job"
    assert key.scopes == ROLES["developer"] and key.networks == ("203.0.113.7/32", "2001:db8::/32")
    assert key.expires_at is not None and secret not in str(recorded) and "digest" not in recorded.after
    principal = await _proved(house, secret)
    assert principal is not None and principal.scopes == ROLES["developer"] and not principal.tenant.livemode
    for wrong, field_ in (
        (NewKey(" "), "name"),
        (NewKey("x", scopes=frozenset({"billing:write"})), "scopes"),
        (NewKey("x", scopes=frozenset({"nonsense"})), "scopes"),
        (NewKey("x", networks=("everywhere",)), "networks"),
        (NewKey("x", days=0), "expires"),
    ):
        async with house.acts("developer") as tx:
            with pytest.raises(InvalidRequest) as caught:
                await house.keys.create(tx, wrong)
        assert caught.value.fields[0].field == field_
    await _refused(house, "viewer", lambda tx: house.keys.create(tx, NewKey("x")), PermissionDenied)
    async with house.acts("developer", livemode=False) as tx:
        with pytest.raises(Conflict):
            await house.keys.create(tx, request)


async def test_keys_are_listed_and_revoked(house: House) -> None:
    made = {}
    for name in ("owner", "developer"):
        async with house.acts(name) as tx:
            made[name] = (await house.keys.create(tx, NewKey(f"Of {name}")))[0]
    await _refused(house, "developer", lambda tx: house.keys.revoke(tx, made["owner"].id), PermissionDenied)
    await _refused(house, "owner", lambda tx: house.keys.revoke(tx, new_id("key")), NotFound)
    async with house.acts("developer") as tx:
        await house.keys.revoke(tx, made["developer"].id)
    await _refused(house, "owner", lambda tx: house.keys.revoke(tx, made["developer"].id), NotFound)
    at = house.backend.now()
    log = builders.request_log(Tenant(house.org.id, True), actor=Actor("api_key", made["owner"].id), created_at=at)
    await house.backend.sink.write([log])
    async with house.acts("viewer") as tx:
        listed = await house.keys.list_keys(tx, PageRequest())
        ended = await house.keys.list_keys(tx, PageRequest(), revoked=True)
    assert [key.id for key in listed.page.items] == [made["owner"].id] and list(listed.last_used_at) == [
        made["owner"].id
    ]
    assert [key.id for key in ended.page.items] == [made["developer"].id]


async def _invite(house: House, by: str, email: str, role: str = "editor") -> Invitation:
    async with house.acts(by) as tx:
        made, secret = await house.invitations.invite(tx, email, role)
        assert secret not in str(tx.recorded.changes)
    await house.invitations.send(made, secret, house.org.name)
    return made


@asynccontextmanager
async def _tx(house: House, user: User) -> AsyncIterator[Tx]:
    async with house.backend.uow.begin(Tenant(house.org.id, True), AuditContext(Actor("user", user.id), "x")) as tx:
        yield tx


async def _set_up(house: House, made: Invitation) -> User:
    user = await house.invitations.build_new_user(made, "Bo")
    assert await house.backend.people.get(user.id) is None
    assert await house.backend.people.add_with_password(user, "$argon2id$one", builders.MOMENT)
    return user


async def test_a_newcomer_accepts_by_the_mailed_link(house: House) -> None:
    email = f"{new_id('usr')}@Oak.example"
    made = await _invite(house, "admin", f"  {email} ")
    secret = await house.secret_mailed_to(email)
    offer = await house.invitations.find_open(secret)
    assert offer is not None and offer.details.invitation == made and offer.details.organisation == house.org
    assert not offer.has_account and offer.inviter_name == house.people["admin"].display_name
    user = await _set_up(house, made)
    assert user.verified_at is None and user.name == "Bo"
    async with _tx(house, user) as tx:
        member = await house.invitations.accept(tx, user, made)
        assert [change.object for change in tx.recorded.changes] == ["invitation", "member"]
    assert (member.user, member.role, member.email) == (user.id, "editor", user.email)
    user = await house.invitations.mark_verified(user)
    assert await house.backend.people.get(user.id) == user and user.verified_at is not None
    assert await house.invitations.find_open(secret) is None
    async with _tx(house, user) as tx:
        with pytest.raises(NotFound):
            await house.invitations.accept(tx, user, made)
    await _refused(house, "owner", lambda tx: house.invitations.invite(tx, email.upper(), "viewer"), Conflict)


async def test_an_invitation_is_for_its_address_alone(house: House) -> None:
    made = await _invite(house, "owner", f"{new_id('usr')}@oak.example", "owner")
    other = await house.backend.people.add(
        User(new_id("usr"), f"{new_id('usr')}@elm.example", "", None, builders.MOMENT)
    )
    async with _tx(house, other) as tx:
        with pytest.raises(PermissionDenied):
            await house.invitations.accept(tx, other, made)
    for wrong in ("", "svc_invite_", "svc_invite_" + "0" * 38):
        assert await house.invitations.find_open(wrong) is None


@pytest.mark.parametrize("verified_at", [None, builders.MOMENT])
async def test_an_existing_account_is_signed_in_to_and_never_set_up_again(
    house: House, verified_at: datetime | None
) -> None:
    """Includes accounts that an operator created and that have never signed in."""
    known = await house.backend.people.add(
        User(new_id("usr"), f"{new_id('usr')}@oak.example", "Ola", verified_at, builders.MOMENT)
    )
    made = await _invite(house, "owner", known.email)
    offer = await house.invitations.find_open(await house.secret_mailed_to(known.email))
    assert offer is not None and offer.has_account
    with pytest.raises(Conflict):
        await house.invitations.build_new_user(made, "Somebody else")
    async with _tx(house, known) as tx:
        assert (await house.invitations.accept(tx, known, made)).user == known.id


async def test_who_may_invite_whom(house: House) -> None:
    invite = house.invitations.invite
    await _refused(house, "developer", lambda tx: invite(tx, "a@oak.example", "viewer"), PermissionDenied)
    await _refused(house, "admin", lambda tx: invite(tx, "a@oak.example", "owner"), PermissionDenied)
    for wrong in (
        "",
        "a",
        "a@b",
        "a@b c.example",
        "a@b.example,c@d.example",
        "a\n@b.example",
        "x" * 300 + "@b.example",
    ):
        await _refused(house, "owner", lambda tx, wrong=wrong: invite(tx, wrong, "viewer"), InvalidRequest)
    await _refused(house, "owner", lambda tx: invite(tx, house.people["viewer"].email, "viewer"), Conflict)


async def test_invitations_end(house: House) -> None:
    first, second = f"{new_id('usr')}@oak.example", f"{new_id('usr')}@oak.example"
    old = await _invite(house, "owner", first)
    secret = await house.secret_mailed_to(first)
    again = await _invite(house, "admin", first, "viewer")
    assert await house.invitations.find_open(secret) is None, "a newer one is there"
    gone = await _invite(house, "owner", second, "owner")
    async with house.acts("owner") as tx:
        listed = (await tx[OrgStore].list_invitations(tx.now, PageRequest())).items
    assert [one.id for one in listed] == [gone.id, again.id] and old.id not in {one.id for one in listed}
    await _refused(house, "admin", lambda tx: house.invitations.revoke(tx, gone.id), PermissionDenied)
    async with house.acts("owner") as tx:
        await house.invitations.revoke(tx, gone.id)
    await _refused(house, "owner", lambda tx: house.invitations.revoke(tx, gone.id), NotFound)
    async with house.acts("owner") as tx:
        await house.members.remove(tx, house.people["admin"].id)
    user = await _set_up(house, again)
    async with _tx(house, user) as tx:
        with pytest.raises(NotFound):
            await house.invitations.accept(tx, user, again)
    assert again.expires_at - again.created_at == INVITATION_LIFETIME
    assert not replace(again, expires_at=again.created_at).is_open(again.created_at + timedelta(seconds=1))


async def test_settings_of_managers_require_their_current_role(house: House) -> None:
    """Applies also to a person who loaded the page with a higher role."""
    settings, apps = OrgSettingsService(("2026-10-04",)), AppService(house.access.compute_digest)
    admin = house.people["admin"].id
    was = Principal(
        Tenant(house.org.id, True),
        Actor("user", admin),
        "console",
        "admin",
        ROLES["admin"],
        house.org,
        is_console_session=True,
    )
    async with house.acts("admin") as tx:
        assert (await settings.change(tx, "Fjord", None)).name == "Fjord"
    async with house.acts("owner") as tx:
        await house.members.change_role(tx, admin, "viewer")
    await _refused(house, "admin", lambda tx: settings.change(tx, "Oak", None), PermissionDenied)
    machine = NewApp("Sync", AppKind.MACHINE)
    await _refused(house, "admin", lambda tx: apps.create_app(tx, was, machine), PermissionDenied)


async def _invited(house: House, email: str) -> tuple[Invitation, str]:
    async with house.acts("owner") as tx:
        return await house.invitations.invite(tx, email, "viewer")


async def test_invitations_have_budgets(house: House) -> None:
    await house.add("owner")
    for _ in range(3):
        await _invited(house, "bo@oak.example")
    with pytest.raises(RateLimited) as limited:
        await _invited(house, "BO@oak.example")
    assert limited.value.retry_after
    for number in range(27):
        await _invited(house, f"b{number}@oak.example")
    with pytest.raises(RateLimited):
        await _invited(house, "cy@oak.example")


async def test_a_letter_has_no_free_text_of_the_inviter(house: House) -> None:
    owner = await house.add("owner")
    hostile = "Security notice: confirm at https://evil.example/x"
    await house.backend.people.save(replace(owner, name=hostile))
    made, secret = await _invited(house, "bo@oak.example")
    await house.invitations.send(made, secret, f"Oak\u202e {hostile}")
    letter = (await house.mail.list_latest())[0]
    assert letter.subject == "You are invited to an organisation on Joinery"
    text = house.mail.decrypt_text(letter)
    assert "evil" not in text and "\u202e" not in text and owner.email in text and INVITATION_PATH + secret in text
