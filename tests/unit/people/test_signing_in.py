"""Signing in: each method, single-use codes, and limits that block unknown browsers only."""

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pyotp
import pytest
import pytest_asyncio

from domain.kernel.errors import Conflict, InvalidRequest, RateLimited
from domain.kernel.ids import new_id
from domain.outbox.usecases import OutgoingMail
from domain.people.model import AuthMethod, LinkPurpose, User
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.passkeys import PasskeyNotAccepted
from domain.people.usecases.sessions import ClientInfo, LinkService
from domain.people.usecases.sign_in import CompletedSignIn, SecondStep, SecondStepExpired, WrongCode, WrongPassword
from tests.http.application import ApplicationHarness, run_application
from tests.support.authenticator import SoftAuthenticator

pytestmark = pytest.mark.asyncio
PASSWORD, OTHER = "correct horse battery staple", "schrank unter wasser"
HERE, ELSEWHERE = ClientInfo("203.0.113.9", "Firefox"), ClientInfo("198.51.100.7", "curl")


@dataclass
class CountingPasswords:
    """Hasher without cost; `tried` lists the verified hashes."""

    cost: str = "1"
    tried: list[str | None] = field(default_factory=list)

    async def hash(self, password: str) -> str:
        return f"{self.cost}${password}"

    async def verify(self, password_hash: str | None, password: str) -> bool:
        self.tried.append(password_hash)
        return password_hash is not None and password_hash.partition("$")[2] == password

    def is_outdated(self, password_hash: str) -> bool:
        return not password_hash.startswith(f"{self.cost}$")


@dataclass
class SignInContext:
    """Authentication services, and a user with a password."""

    service: ApplicationHarness
    auth: AuthServices
    passwords: CountingPasswords
    user: User

    async def sign_in_by_password(
        self, password: str = PASSWORD, device: str = "", origin: ClientInfo = HERE, email: str = ""
    ) -> Any:
        return await self.auth.sign_in.sign_in_with_password(email or self.user.email, password, origin, device)

    async def list_mail(self) -> list[str]:
        await self.auth.notices.wait_until_idle()
        outgoing = self.service.dependencies[OutgoingMail]
        return [f"{one.purpose}\n{outgoing.decrypt_text(one)}" for one in await outgoing.list_latest()]

    async def list_event_kinds(self) -> list[str]:
        await self.auth.notices.wait_until_idle()
        return [event.kind for event in await self.service.people.list_events(self.user.id, 99)]

    async def enable_codes(self) -> tuple[pyotp.TOTP, list[str]]:
        """Enable one-time codes; return the authenticator app and the recovery codes."""
        enrolment = await self.auth.factors.enrol(self.user)
        app = pyotp.TOTP(enrolment.secret)
        return app, list(await self.auth.factors.confirm(self.user, app.at(self.service.clock.now()), HERE))

    def advance_clock(self, **by: float) -> None:
        self.service.clock.advance(timedelta(**by))


@pytest_asyncio.fixture
async def context() -> AsyncIterator[SignInContext]:
    passwords = CountingPasswords()
    async with run_application(passwords=passwords) as service:
        user = await service.people.add(
            User(new_id("usr"), "Ingrid@fjord.example", "Ingrid", None, service.clock.now())
        )
        await service.people.set_password_hash(user.id, await passwords.hash(PASSWORD), service.clock.now())
        yield SignInContext(service, service.dependencies[AuthServices], passwords, user)


async def test_each_sign_in_by_password_creates_a_session(context: SignInContext) -> None:
    first, second = (
        await context.sign_in_by_password(),
        await context.sign_in_by_password(email="INGRID@fjord.example "),
    )
    assert isinstance(first, CompletedSignIn) and first.session.methods == (AuthMethod.PASSWORD,)
    assert first.session_cookie != second.session_cookie and first.session.id != second.session.id
    assert (await context.service.sessions.find(first.session_cookie)).user == context.user


async def test_wrong_passwords_and_unknown_users_are_refused_alike(context: SignInContext) -> None:
    nobody = await context.service.people.add(
        User(new_id("usr"), "new@fjord.example", "", None, context.service.clock.now())
    )
    refusals = []
    for email in (context.user.email, "stranger@fjord.example", nobody.email):
        with pytest.raises(WrongPassword) as refused:
            await context.sign_in_by_password("wrong", email=email)
        refusals.append((refused.value.detail, refused.value.code, refused.value.extra))
    assert len(context.passwords.tried) == 3, "a password is verified each time"
    assert len({str(one) for one in refusals}) == 1


async def test_a_password_is_rehashed_when_the_cost_changes(context: SignInContext) -> None:
    context.passwords.cost = "2"
    await context.sign_in_by_password()
    assert await context.service.people.get_password_hash(context.user.id) == f"2${PASSWORD}"
    await context.sign_in_by_password()


async def test_unknown_browsers_have_a_separate_budget(context: SignInContext) -> None:
    known = (await context.sign_in_by_password()).device_cookie
    for turn in range(10):
        with pytest.raises((WrongPassword, RateLimited)):
            await context.sign_in_by_password("guess", origin=ClientInfo(f"198.51.100.{turn}"))
    with pytest.raises(RateLimited) as refused:
        await context.sign_in_by_password(origin=ClientInfo("198.51.100.99"))
    assert refused.value.retry_after and "passkey" in refused.value.detail
    assert isinstance(await context.sign_in_by_password(device=known), CompletedSignIn), (
        "a known browser is not blocked"
    )
    with pytest.raises(RateLimited):
        await context.sign_in_by_password(device=known[:-1] + ("0" if known[-1] != "0" else "1"))
    with pytest.raises(WrongPassword):
        await context.sign_in_by_password("guess", email="another@fjord.example")
    context.advance_clock(minutes=7)
    assert isinstance(await context.sign_in_by_password(origin=ClientInfo("198.51.100.99")), CompletedSignIn), (
        "unknown browsers are blocked only temporarily"
    )


async def test_unknown_addresses_also_have_a_budget(context: SignInContext) -> None:
    for turn in range(10):
        with pytest.raises(WrongPassword):
            await context.sign_in_by_password(
                "guess", email="stranger@fjord.example", origin=ClientInfo(f"198.51.100.{turn}")
            )
    with pytest.raises(RateLimited):
        await context.sign_in_by_password("guess", email="stranger@fjord.example")


async def test_a_known_browser_has_its_own_budget(context: SignInContext) -> None:
    other = await context.service.people.add(
        User(new_id("usr"), "olaf@fjord.example", "", None, context.service.clock.now())
    )
    await context.service.people.set_password_hash(
        other.id, await context.passwords.hash(OTHER), context.service.clock.now()
    )
    device = (await context.sign_in_by_password()).device_cookie
    for _ in range(10):
        with pytest.raises(WrongPassword):
            await context.sign_in_by_password("guess", device=device)
    with pytest.raises(RateLimited):
        await context.sign_in_by_password(device=device)
    both = (await context.sign_in_by_password(OTHER, email=other.email, device=device)).device_cookie
    assert len(both.split("~")) == 2 and "fjord" not in both


async def test_attempts_of_one_network_address_are_limited_across_accounts(context: SignInContext) -> None:
    for turn in range(30):
        with pytest.raises(WrongPassword):
            await context.sign_in_by_password(
                "guess", email=f"{turn}@fjord.example", origin=ClientInfo(f"2001:db8::{turn:x}")
            )
    with pytest.raises(RateLimited):
        await context.sign_in_by_password(origin=ClientInfo("2001:db8::ffff"))
    await context.sign_in_by_password(origin=ClientInfo("2001:db8:0:1::1"))


async def test_a_code_is_required_and_accepted_once(context: SignInContext) -> None:
    app, _ = await context.enable_codes()
    context.advance_clock(seconds=60)
    step = await context.sign_in_by_password()
    assert isinstance(step, SecondStep)
    code = app.at(context.service.clock.now())
    entered = await context.auth.sign_in.complete_second_step(step.token, f"{code[:3]} {code[3:]}", HERE, "")
    assert entered.session.methods == (AuthMethod.PASSWORD, AuthMethod.TOTP)
    for again in (code, app.at(context.service.clock.now() - timedelta(seconds=30)), "000000", "", "１２３４５６"):
        with pytest.raises(WrongCode):
            await context.auth.sign_in.complete_second_step(step.token, again, HERE, "")
    context.advance_clock(seconds=30)
    assert await context.auth.sign_in.complete_second_step(step.token, app.at(context.service.clock.now()), HERE, "")


async def test_attempts_of_codes_are_limited(context: SignInContext) -> None:
    await context.enable_codes()
    step = await context.sign_in_by_password()
    for _ in range(10):
        with pytest.raises(WrongCode):
            await context.auth.sign_in.complete_second_step(step.token, "123", HERE, "")
    with pytest.raises(RateLimited):
        await context.auth.sign_in.complete_second_step(step.token, "123", ELSEWHERE, "")


async def test_the_second_step_expires_and_is_bound_to_the_password(context: SignInContext) -> None:
    app, _ = await context.enable_codes()
    context.advance_clock(seconds=60)
    step = await context.sign_in_by_password()
    for token in (
        "",
        "x",
        step.token + "0",
        step.token.replace("usr_", "usr_0", 1),
        f"{context.user.id}.9999999999.00",
    ):
        with pytest.raises(SecondStepExpired):
            await context.auth.sign_in.complete_second_step(token, app.at(context.service.clock.now()), HERE, "")
    await context.auth.passwords.change(context.user, OTHER, None, HERE)
    with pytest.raises(SecondStepExpired):
        await context.auth.sign_in.complete_second_step(step.token, app.at(context.service.clock.now()), HERE, "")
    late = await context.sign_in_by_password(OTHER)
    context.advance_clock(minutes=10)
    with pytest.raises(SecondStepExpired):
        await context.auth.sign_in.complete_second_step(late.token, app.at(context.service.clock.now()), HERE, "")


async def test_a_recovery_code_is_accepted_once(context: SignInContext) -> None:
    _, codes = await context.enable_codes()
    assert len(set(codes)) == 10
    step = await context.sign_in_by_password()
    entered = await context.auth.sign_in.complete_second_step(step.token, codes[0].upper().replace("-", " "), HERE, "")
    assert entered.session.methods == (AuthMethod.PASSWORD, AuthMethod.RECOVERY_CODE)
    with pytest.raises(WrongCode):
        await context.auth.sign_in.complete_second_step(step.token, codes[0], HERE, "")
    assert await context.auth.factors.count_unused_codes(context.user.id) == 9
    fresh = await context.auth.factors.renew_codes(context.user, HERE)
    with pytest.raises(WrongCode):
        await context.auth.sign_in.complete_second_step(step.token, codes[1], HERE, "")
    assert await context.auth.sign_in.complete_second_step(step.token, fresh[0], HERE, "")
    assert any(one.startswith("recovery_code_used") for one in await context.list_mail())


async def test_codes_are_required_after_the_enrolment_is_confirmed(context: SignInContext) -> None:
    enrolment = await context.auth.factors.enrol(context.user)
    assert isinstance(await context.sign_in_by_password(), CompletedSignIn)
    assert await context.auth.factors.get_pending_enrolment(context.user) == enrolment and "<svg" in enrolment.qr_code
    with pytest.raises(InvalidRequest):
        await context.auth.factors.confirm(context.user, "000000", HERE)
    await context.auth.factors.confirm(context.user, pyotp.TOTP(enrolment.secret).at(context.service.clock.now()), HERE)
    with pytest.raises(Conflict):
        await context.auth.factors.enrol(context.user)
    await context.auth.factors.disenrol(context.user, HERE)
    assert isinstance(await context.sign_in_by_password(), CompletedSignIn)


async def test_password_resets_do_not_reveal_users_and_are_valid_once(context: SignInContext) -> None:
    before = await context.sign_in_by_password()
    await context.auth.passwords.mail_reset_link("stranger@fjord.example", HERE)
    assert await context.list_mail() == []
    await context.auth.passwords.mail_reset_link(context.user.email.upper(), HERE)
    (mail,) = await context.list_mail()
    secret = mail.partition("/console/set-password/")[2].split()[0]
    assert await context.auth.passwords.find_user_by_link(secret) == context.user
    with pytest.raises(InvalidRequest):
        await context.auth.passwords.set_by_link(secret, "password123", HERE)
    changed = await context.auth.passwords.set_by_link(secret, OTHER, HERE)
    assert changed and changed.verified_at == context.service.clock.now()
    assert await context.auth.passwords.set_by_link(secret, PASSWORD, HERE) is None
    assert await context.service.sessions.find(before.session_cookie) is None, "all other sessions have ended"
    assert isinstance(await context.sign_in_by_password(OTHER), CompletedSignIn)
    assert any(one.startswith("password_changed") for one in await context.list_mail())


async def test_the_number_of_mailed_links_is_limited(context: SignInContext) -> None:
    for _ in range(5):
        await context.auth.passwords.mail_reset_link(context.user.email, HERE)
    assert len(await context.list_mail()) == 3
    for turn in range(5):
        await context.auth.passwords.mail_reset_link(f"{turn}@fjord.example", HERE)
    with pytest.raises(RateLimited):
        await context.auth.passwords.mail_reset_link("x@fjord.example", HERE)


async def test_changing_the_password_ends_all_other_sessions(context: SignInContext) -> None:
    here, there = await context.sign_in_by_password(), await context.sign_in_by_password(origin=ELSEWHERE)
    assert await context.auth.passwords.change(context.user, OTHER, here.session, HERE) == 1
    assert (
        await context.service.sessions.find(here.session_cookie)
        and await context.service.sessions.find(there.session_cookie) is None
    )


async def test_an_operators_link_signs_in_once(context: SignInContext) -> None:
    _, secret = await context.service.dependencies[LinkService].create(context.user, LinkPurpose.SIGN_IN)
    entered = await context.auth.sign_in.sign_in_with_link(secret, HERE, "")
    assert entered and entered.session.methods == (AuthMethod.LINK,)
    assert await context.auth.sign_in.sign_in_with_link(secret, HERE, "") is None


async def test_a_sign_in_from_an_unknown_browser_is_notified(context: SignInContext) -> None:
    first = await context.sign_in_by_password()
    assert await context.list_mail() == [], "the first sign-in is not notified"
    await context.sign_in_by_password(device=first.device_cookie)
    assert await context.list_mail() == []
    await context.sign_in_by_password(origin=ELSEWHERE)
    (mail,) = await context.list_mail()
    assert "198.51.100.7" in mail and "curl" in mail
    assert (await context.list_event_kinds()).count("signed_in") == 3


async def test_sudo_requires_authentication_again(context: SignInContext) -> None:
    session = (await context.sign_in_by_password()).session
    context.advance_clock(minutes=16)
    assert not session.is_sudo(context.service.clock.now())
    with pytest.raises(WrongPassword):
        await context.auth.passwords.reauthenticate(context.user, session, "wrong", "", HERE)
    assert (await context.auth.passwords.reauthenticate(context.user, session, PASSWORD, "", HERE)).is_sudo(
        context.service.clock.now()
    )
    for _ in range(8):
        with pytest.raises(WrongPassword):
            await context.auth.passwords.reauthenticate(context.user, session, "", "000000", HERE)
    with pytest.raises(RateLimited):
        await context.auth.passwords.reauthenticate(context.user, session, PASSWORD, "", HERE)


async def _register_passkey(context: SignInContext, device: SoftAuthenticator, name: str = "Laptop") -> Any:
    ceremony = await context.auth.passkeys.begin_registration(context.user)
    return await context.auth.passkeys.register(
        context.user, device.create(ceremony.options), ceremony.challenge, name, HERE
    )


async def test_a_passkey_signs_in_without_a_password(context: SignInContext) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _register_passkey(context, device)
    await context.enable_codes()
    ceremony = await context.auth.passkeys.begin_sign_in(ELSEWHERE)
    answer = device.get(ceremony.options)
    entered = await context.auth.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    assert entered.session.methods == (AuthMethod.PASSKEY,) and entered.session.user == context.user.id
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    proof = await context.auth.passkeys.begin_reauthentication(context.user)
    proved = await context.auth.passkeys.complete_reauthentication(
        context.user, entered.session, device.get(proof.options), proof.challenge
    )
    assert AuthMethod.PASSKEY in proved.methods


@pytest.mark.parametrize(
    "tampered",
    [
        {"origin": "https://evil.test"}, {"party": "evil.test"}, {"verified": False}, {"present": False},
        {"count": 0}, {"type_": "webauthn.create"}, {"challenge": b"another"}, {"handle": b"usr_another"}, {"signature": b"0"},
    ],
)  # fmt: skip
async def test_a_tampered_passkey_response_is_refused(context: SignInContext, tampered: dict[str, Any]) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _register_passkey(context, device)
    for _ in range(2):
        ceremony = await context.auth.passkeys.begin_sign_in(HERE)
        await context.auth.passkeys.complete_sign_in(device.get(ceremony.options), ceremony.challenge, HERE, "")
    ceremony = await context.auth.passkeys.begin_sign_in(HERE)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(
            device.get(ceremony.options, **tampered), ceremony.challenge, HERE, ""
        )


@pytest.mark.parametrize("answer", ["", "[]", "{}", "x" * 70_000, json.dumps({"rawId": "§", "response": {}})])
async def test_an_invalid_passkey_response_is_refused(context: SignInContext, answer: str) -> None:
    ceremony = await context.auth.passkeys.begin_sign_in(HERE)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(answer, ceremony.challenge, HERE, "")
    ceremony = await context.auth.passkeys.begin_registration(context.user)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.register(context.user, answer, ceremony.challenge, "", HERE)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(answer, "§", HERE, "")


async def test_a_challenge_expires_and_is_bound_to_its_user(context: SignInContext) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _register_passkey(context, device)
    proof = await context.auth.passkeys.begin_reauthentication(context.user)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(device.get(proof.options), proof.challenge, HERE, "")
    ceremony = await context.auth.passkeys.begin_sign_in(HERE)
    context.advance_clock(minutes=5)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(device.get(ceremony.options), ceremony.challenge, HERE, "")


async def test_registrations_of_passkeys_have_a_budget(context: SignInContext) -> None:
    for _ in range(10):
        ceremony = await context.auth.passkeys.begin_registration(context.user)
        with pytest.raises(PasskeyNotAccepted):
            await context.auth.passkeys.register(context.user, "{}", ceremony.challenge, "Key", HERE)
    with pytest.raises(RateLimited):
        await context.auth.passkeys.register(context.user, "{}", "", "Key", HERE)


async def test_a_passkey_of_an_unknown_user_is_not_verified(
    context: SignInContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _register_passkey(context, device)
    ceremony = await context.auth.passkeys.begin_sign_in(ELSEWHERE)
    answer = device.get(ceremony.options)
    reached: list[str] = []
    monkeypatch.setattr(context.auth.passkeys.ceremonies, "verify_signature", lambda *_: reached.append("signed"))
    context.service.database.execute("DELETE FROM users WHERE id = %s", context.user.id)
    with pytest.raises(PasskeyNotAccepted):
        await context.auth.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    assert reached == []
