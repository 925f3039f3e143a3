"""Signing in: each method, single-use codes, and budgets that block unknown browsers only."""

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
from tests.http.fakes import World, running
from tests.support.authenticator import SoftAuthenticator

pytestmark = pytest.mark.asyncio
PASSWORD, OTHER = "correct horse battery staple", "schrank unter wasser"
HERE, ELSEWHERE = ClientInfo("203.0.113.9", "Firefox"), ClientInfo("198.51.100.7", "curl")


@dataclass
class CountingPasswords:
    """Passwords that cost nothing; `tried` are the hashes that were verified."""

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
class House:
    """Accounts, and Ingrid, who has a password."""

    world: World
    accounts: AuthServices
    passwords: CountingPasswords
    user: User

    async def enter(
        self, password: str = PASSWORD, device: str = "", origin: ClientInfo = HERE, email: str = ""
    ) -> Any:
        return await self.accounts.sign_in.sign_in_with_password(email or self.user.email, password, origin, device)

    async def mail(self) -> list[str]:
        await self.accounts.notices.wait_until_idle()
        outgoing = self.world.dependencies[OutgoingMail]
        return [f"{one.purpose}\n{outgoing.decrypt_text(one)}" for one in await outgoing.list_latest()]

    async def kinds(self) -> list[str]:
        await self.accounts.notices.wait_until_idle()
        return [event.kind for event in await self.world.people.list_events(self.user.id, 99)]

    async def app(self) -> tuple[pyotp.TOTP, list[str]]:
        """Turn one-time codes on: the app and the recovery codes."""
        enrolment = await self.accounts.factors.enrol(self.user)
        app = pyotp.TOTP(enrolment.secret)
        return app, list(await self.accounts.factors.confirm(self.user, app.at(self.world.clock.now()), HERE))

    def later(self, **by: float) -> None:
        self.world.clock.advance(timedelta(**by))


@pytest_asyncio.fixture
async def house() -> AsyncIterator[House]:
    passwords = CountingPasswords()
    async with running(passwords=passwords) as world:
        user = await world.people.add(User(new_id("usr"), "Ingrid@fjord.example", "Ingrid", None, world.clock.now()))
        await world.people.set_password_hash(user.id, await passwords.hash(PASSWORD), world.clock.now())
        yield House(world, world.dependencies[AuthServices], passwords, user)


async def test_a_password_signs_in_and_each_sign_in_is_a_session_of_its_own(house: House) -> None:
    first, second = await house.enter(), await house.enter(email="INGRID@fjord.example ")
    assert isinstance(first, CompletedSignIn) and first.session.methods == (AuthMethod.PASSWORD,)
    assert first.session_cookie != second.session_cookie and first.session.id != second.session.id
    assert (await house.world.sessions.find(first.session_cookie)).user == house.user


async def test_wrong_and_unknown_are_refused_alike_at_the_same_cost(house: House) -> None:
    nobody = await house.world.people.add(User(new_id("usr"), "new@fjord.example", "", None, house.world.clock.now()))
    refusals = []
    for email in (house.user.email, "stranger@fjord.example", nobody.email):
        with pytest.raises(WrongPassword) as refused:
            await house.enter("wrong", email=email)
        refusals.append((refused.value.detail, refused.value.code, refused.value.extra))
    assert len(house.passwords.tried) == 3, "a password is verified each time"
    assert len({str(one) for one in refusals}) == 1


async def test_a_password_is_rehashed_when_the_cost_changes(house: House) -> None:
    house.passwords.cost = "2"
    await house.enter()
    assert await house.world.people.get_password_hash(house.user.id) == f"2${PASSWORD}"
    await house.enter()


async def test_unknown_browsers_have_a_separate_budget(house: House) -> None:
    known = (await house.enter()).device_cookie
    for turn in range(10):
        with pytest.raises((WrongPassword, RateLimited)):
            await house.enter("guess", origin=ClientInfo(f"198.51.100.{turn}"))
    with pytest.raises(RateLimited) as refused:
        await house.enter(origin=ClientInfo("198.51.100.99"))
    assert refused.value.retry_after and "passkey" in refused.value.detail
    assert isinstance(await house.enter(device=known), CompletedSignIn), (
        "the browser that has been here before is not shut out"
    )
    with pytest.raises(RateLimited):
        await house.enter(device=known[:-1] + ("0" if known[-1] != "0" else "1"))
    with pytest.raises(WrongPassword):
        await house.enter("guess", email="another@fjord.example")
    house.later(minutes=7)
    assert isinstance(await house.enter(origin=ClientInfo("198.51.100.99")), CompletedSignIn), (
        "and strangers not for ever"
    )


async def test_unknown_addresses_have_a_budget_too(house: House) -> None:
    for turn in range(10):
        with pytest.raises(WrongPassword):
            await house.enter("guess", email="stranger@fjord.example", origin=ClientInfo(f"198.51.100.{turn}"))
    with pytest.raises(RateLimited):
        await house.enter("guess", email="stranger@fjord.example")


async def test_a_known_browser_has_its_own_budget(house: House) -> None:
    other = await house.world.people.add(User(new_id("usr"), "olaf@fjord.example", "", None, house.world.clock.now()))
    await house.world.people.set_password_hash(other.id, await house.passwords.hash(OTHER), house.world.clock.now())
    device = (await house.enter()).device_cookie
    for _ in range(10):
        with pytest.raises(WrongPassword):
            await house.enter("guess", device=device)
    with pytest.raises(RateLimited):
        await house.enter(device=device)
    both = (await house.enter(OTHER, email=other.email, device=device)).device_cookie
    assert len(both.split("~")) == 2 and "fjord" not in both


async def test_one_address_tries_so_often_whatever_the_account(house: House) -> None:
    for turn in range(30):
        with pytest.raises(WrongPassword):
            await house.enter("guess", email=f"{turn}@fjord.example", origin=ClientInfo(f"2001:db8::{turn:x}"))
    with pytest.raises(RateLimited):
        await house.enter(origin=ClientInfo("2001:db8::ffff"))
    await house.enter(origin=ClientInfo("2001:db8:0:1::1"))


async def test_a_code_is_required_and_accepted_once(house: House) -> None:
    app, _ = await house.app()
    house.later(seconds=60)
    step = await house.enter()
    assert isinstance(step, SecondStep)
    code = app.at(house.world.clock.now())
    entered = await house.accounts.sign_in.complete_second_step(step.token, f"{code[:3]} {code[3:]}", HERE, "")
    assert entered.session.methods == (AuthMethod.PASSWORD, AuthMethod.TOTP)
    for again in (code, app.at(house.world.clock.now() - timedelta(seconds=30)), "000000", "", "１２３４５６"):
        with pytest.raises(WrongCode):
            await house.accounts.sign_in.complete_second_step(step.token, again, HERE, "")
    house.later(seconds=30)
    assert await house.accounts.sign_in.complete_second_step(step.token, app.at(house.world.clock.now()), HERE, "")


async def test_codes_cannot_be_guessed(house: House) -> None:
    await house.app()
    step = await house.enter()
    for _ in range(10):
        with pytest.raises(WrongCode):
            await house.accounts.sign_in.complete_second_step(step.token, "123", HERE, "")
    with pytest.raises(RateLimited):
        await house.accounts.sign_in.complete_second_step(step.token, "123", ELSEWHERE, "")


async def test_the_second_step_is_bound_to_the_password_and_in_time(house: House) -> None:
    app, _ = await house.app()
    house.later(seconds=60)
    step = await house.enter()
    for token in ("", "x", step.token + "0", step.token.replace("usr_", "usr_0", 1), f"{house.user.id}.9999999999.00"):
        with pytest.raises(SecondStepExpired):
            await house.accounts.sign_in.complete_second_step(token, app.at(house.world.clock.now()), HERE, "")
    await house.accounts.passwords.change(house.user, OTHER, None, HERE)
    with pytest.raises(SecondStepExpired):
        await house.accounts.sign_in.complete_second_step(step.token, app.at(house.world.clock.now()), HERE, "")
    late = await house.enter(OTHER)
    house.later(minutes=10)
    with pytest.raises(SecondStepExpired):
        await house.accounts.sign_in.complete_second_step(late.token, app.at(house.world.clock.now()), HERE, "")


async def test_a_recovery_code_is_accepted_once(house: House) -> None:
    _, codes = await house.app()
    assert len(set(codes)) == 10
    step = await house.enter()
    entered = await house.accounts.sign_in.complete_second_step(
        step.token, codes[0].upper().replace("-", " "), HERE, ""
    )
    assert entered.session.methods == (AuthMethod.PASSWORD, AuthMethod.RECOVERY_CODE)
    with pytest.raises(WrongCode):
        await house.accounts.sign_in.complete_second_step(step.token, codes[0], HERE, "")
    assert await house.accounts.factors.count_unused_codes(house.user.id) == 9
    fresh = await house.accounts.factors.renew_codes(house.user, HERE)
    with pytest.raises(WrongCode):
        await house.accounts.sign_in.complete_second_step(step.token, codes[1], HERE, "")
    assert await house.accounts.sign_in.complete_second_step(step.token, fresh[0], HERE, "")
    assert any(one.startswith("recovery_code_used") for one in await house.mail())


async def test_codes_are_required_once_the_first_was_correct(house: House) -> None:
    enrolment = await house.accounts.factors.enrol(house.user)
    assert isinstance(await house.enter(), CompletedSignIn)
    assert await house.accounts.factors.get_pending_enrolment(house.user) == enrolment and "<svg" in enrolment.qr_code
    with pytest.raises(InvalidRequest):
        await house.accounts.factors.confirm(house.user, "000000", HERE)
    await house.accounts.factors.confirm(house.user, pyotp.TOTP(enrolment.secret).at(house.world.clock.now()), HERE)
    with pytest.raises(Conflict):
        await house.accounts.factors.enrol(house.user)
    await house.accounts.factors.disenrol(house.user, HERE)
    assert isinstance(await house.enter(), CompletedSignIn)


async def test_password_resets_are_answered_alike_and_valid_once(house: House) -> None:
    before = await house.enter()
    await house.accounts.passwords.mail_reset_link("stranger@fjord.example", HERE)
    assert await house.mail() == []
    await house.accounts.passwords.mail_reset_link(house.user.email.upper(), HERE)
    (mail,) = await house.mail()
    secret = mail.partition("/console/set-password/")[2].split()[0]
    assert await house.accounts.passwords.find_user_by_link(secret) == house.user
    with pytest.raises(InvalidRequest):
        await house.accounts.passwords.set_by_link(secret, "password123", HERE)
    changed = await house.accounts.passwords.set_by_link(secret, OTHER, HERE)
    assert changed and changed.verified_at == house.world.clock.now()
    assert await house.accounts.passwords.set_by_link(secret, PASSWORD, HERE) is None
    assert await house.world.sessions.find(before.session_cookie) is None, "whoever was signed in is no more"
    assert isinstance(await house.enter(OTHER), CompletedSignIn)
    assert any(one.startswith("password_changed") for one in await house.mail())


async def test_links_are_mailed_a_few_times(house: House) -> None:
    for _ in range(5):
        await house.accounts.passwords.mail_reset_link(house.user.email, HERE)
    assert len(await house.mail()) == 3
    for turn in range(5):
        await house.accounts.passwords.mail_reset_link(f"{turn}@fjord.example", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passwords.mail_reset_link("x@fjord.example", HERE)


async def test_changing_the_password_ends_all_other_sessions(house: House) -> None:
    here, there = await house.enter(), await house.enter(origin=ELSEWHERE)
    assert await house.accounts.passwords.change(house.user, OTHER, here.session, HERE) == 1
    assert (
        await house.world.sessions.find(here.session_cookie)
        and await house.world.sessions.find(there.session_cookie) is None
    )


async def test_an_operators_link_signs_in_once(house: House) -> None:
    _, secret = await house.world.dependencies[LinkService].create(house.user, LinkPurpose.SIGN_IN)
    entered = await house.accounts.sign_in.sign_in_with_link(secret, HERE, "")
    assert entered and entered.session.methods == (AuthMethod.LINK,)
    assert await house.accounts.sign_in.sign_in_with_link(secret, HERE, "") is None


async def test_a_sign_in_from_an_unknown_browser_is_notified(house: House) -> None:
    first = await house.enter()
    assert await house.mail() == [], "the first sign-in ever is nothing new"
    await house.enter(device=first.device_cookie)
    assert await house.mail() == []
    await house.enter(origin=ELSEWHERE)
    (mail,) = await house.mail()
    assert "198.51.100.7" in mail and "curl" in mail
    assert (await house.kinds()).count("signed_in") == 3


async def test_sudo_requires_authentication_again(house: House) -> None:
    session = (await house.enter()).session
    house.later(minutes=16)
    assert not session.is_sudo(house.world.clock.now())
    with pytest.raises(WrongPassword):
        await house.accounts.passwords.reauthenticate(house.user, session, "wrong", "", HERE)
    assert (await house.accounts.passwords.reauthenticate(house.user, session, PASSWORD, "", HERE)).is_sudo(
        house.world.clock.now()
    )
    for _ in range(8):
        with pytest.raises(WrongPassword):
            await house.accounts.passwords.reauthenticate(house.user, session, "", "000000", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passwords.reauthenticate(house.user, session, PASSWORD, "", HERE)


async def _registered(house: House, device: SoftAuthenticator, name: str = "Laptop") -> Any:
    ceremony = await house.accounts.passkeys.begin_registration(house.user)
    return await house.accounts.passkeys.register(
        house.user, device.create(ceremony.options), ceremony.challenge, name, HERE
    )


async def test_a_passkey_signs_in_without_a_password(house: House) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    await house.app()
    ceremony = await house.accounts.passkeys.begin_sign_in(ELSEWHERE)
    answer = device.get(ceremony.options)
    entered = await house.accounts.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    assert entered.session.methods == (AuthMethod.PASSKEY,) and entered.session.user == house.user.id
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    proof = await house.accounts.passkeys.begin_reauthentication(house.user)
    proved = await house.accounts.passkeys.complete_reauthentication(
        house.user, entered.session, device.get(proof.options), proof.challenge
    )
    assert AuthMethod.PASSKEY in proved.methods


@pytest.mark.parametrize(
    "tampered",
    [
        {"origin": "https://evil.test"}, {"party": "evil.test"}, {"verified": False}, {"present": False},
        {"count": 0}, {"type_": "webauthn.create"}, {"challenge": b"another"}, {"handle": b"usr_another"}, {"signature": b"0"},
    ],
)  # fmt: skip
async def test_a_passkeys_answer_is_checked(house: House, tampered: dict[str, Any]) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    for _ in range(2):
        ceremony = await house.accounts.passkeys.begin_sign_in(HERE)
        await house.accounts.passkeys.complete_sign_in(device.get(ceremony.options), ceremony.challenge, HERE, "")
    ceremony = await house.accounts.passkeys.begin_sign_in(HERE)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(
            device.get(ceremony.options, **tampered), ceremony.challenge, HERE, ""
        )


@pytest.mark.parametrize("answer", ["", "[]", "{}", "x" * 70_000, json.dumps({"rawId": "§", "response": {}})])
async def test_nonsense_is_no_passkey(house: House, answer: str) -> None:
    ceremony = await house.accounts.passkeys.begin_sign_in(HERE)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(answer, ceremony.challenge, HERE, "")
    ceremony = await house.accounts.passkeys.begin_registration(house.user)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.register(house.user, answer, ceremony.challenge, "", HERE)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(answer, "§", HERE, "")


async def test_a_challenge_is_answered_in_time_and_by_whom_it_is_for(house: House) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    proof = await house.accounts.passkeys.begin_reauthentication(house.user)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(device.get(proof.options), proof.challenge, HERE, "")
    ceremony = await house.accounts.passkeys.begin_sign_in(HERE)
    house.later(minutes=5)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(device.get(ceremony.options), ceremony.challenge, HERE, "")


async def test_registrations_of_passkeys_have_a_budget(house: House) -> None:
    for _ in range(10):
        ceremony = await house.accounts.passkeys.begin_registration(house.user)
        with pytest.raises(PasskeyNotAccepted):
            await house.accounts.passkeys.register(house.user, "{}", ceremony.challenge, "Key", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passkeys.register(house.user, "{}", "", "Key", HERE)


async def test_a_passkey_of_an_unknown_user_is_not_verified(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    ceremony = await house.accounts.passkeys.begin_sign_in(ELSEWHERE)
    answer = device.get(ceremony.options)
    reached: list[str] = []
    monkeypatch.setattr(house.accounts.passkeys.ceremonies, "verify_signature", lambda *_: reached.append("signed"))
    house.world.database.execute("DELETE FROM users WHERE id = %s", house.user.id)
    with pytest.raises(PasskeyNotAccepted):
        await house.accounts.passkeys.complete_sign_in(answer, ceremony.challenge, ELSEWHERE, "")
    assert reached == []
