"""Signing in: each way in, what is used once, and budgets that shut out strangers alone."""

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
from domain.people.model import Method, Purpose, User
from domain.people.usecases.accounts import Accounts
from domain.people.usecases.passkeys import PasskeyUnknown
from domain.people.usecases.sessions import LinkService, Visitor
from domain.people.usecases.signing_in import Entered, SecondStep, StepOver, WrongCode, WrongPassword
from tests.http.fakes import World, running
from tests.support.authenticator import SoftAuthenticator

pytestmark = pytest.mark.asyncio
PASSWORD, OTHER = "correct horse battery staple", "schrank unter wasser"
HERE, ELSEWHERE = Visitor("203.0.113.9", "Firefox"), Visitor("198.51.100.7", "curl")


@dataclass
class CountingPasswords:
    """Passwords that cost nothing; `tried` are the hashes that were verified."""

    cost: str = "1"
    tried: list[str | None] = field(default_factory=list)

    async def hash(self, password: str) -> str:
        return f"{self.cost}${password}"

    async def verify(self, encoded: str | None, password: str) -> bool:
        self.tried.append(encoded)
        return encoded is not None and encoded.partition("$")[2] == password

    def is_outdated(self, encoded: str) -> bool:
        return not encoded.startswith(f"{self.cost}$")


@dataclass
class House:
    """Accounts, and Ingrid, who has a password."""

    world: World
    accounts: Accounts
    passwords: CountingPasswords
    user: User

    async def enter(self, password: str = PASSWORD, device: str = "", visitor: Visitor = HERE, email: str = "") -> Any:
        return await self.accounts.sign_in.by_password(email or self.user.email, password, visitor, device)

    async def mail(self) -> list[str]:
        await self.accounts.notices.settled()
        outgoing = self.world.dependencies[OutgoingMail]
        return [f"{one.purpose}\n{outgoing.text(one)}" for one in await outgoing.latest()]

    async def kinds(self) -> list[str]:
        await self.accounts.notices.settled()
        return [event.kind for event in await self.world.people.events(self.user.id, 99)]

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
        await world.people.set_password(user.id, await passwords.hash(PASSWORD), world.clock.now())
        yield House(world, world.dependencies[Accounts], passwords, user)


async def test_a_password_lets_in_and_each_sign_in_is_a_session_of_its_own(house: House) -> None:
    first, second = await house.enter(), await house.enter(email="INGRID@fjord.example ")
    assert isinstance(first, Entered) and first.session.methods == (Method.PASSWORD,)
    assert first.cookie != second.cookie and first.session.id != second.session.id
    assert (await house.world.sessions.find(first.cookie)).user == house.user


async def test_wrong_and_unknown_are_refused_alike_at_the_same_cost(house: House) -> None:
    nobody = await house.world.people.add(User(new_id("usr"), "new@fjord.example", "", None, house.world.clock.now()))
    told = []
    for email in (house.user.email, "stranger@fjord.example", nobody.email):
        with pytest.raises(WrongPassword) as refused:
            await house.enter("wrong", email=email)
        told.append((refused.value.detail, refused.value.code, refused.value.extra))
    assert len(house.passwords.tried) == 3, "a password is verified each time"
    assert len({str(one) for one in told}) == 1


async def test_a_password_is_hashed_anew_when_the_cost_changes(house: House) -> None:
    house.passwords.cost = "2"
    await house.enter()
    assert await house.world.people.password(house.user.id) == f"2${PASSWORD}"
    await house.enter()


async def test_strangers_spend_a_budget_of_their_own(house: House) -> None:
    known = (await house.enter()).device
    for turn in range(10):
        with pytest.raises((WrongPassword, RateLimited)):
            await house.enter("guess", visitor=Visitor(f"198.51.100.{turn}"))
    with pytest.raises(RateLimited) as refused:
        await house.enter(visitor=Visitor("198.51.100.99"))
    assert refused.value.retry_after and "passkey" in refused.value.detail
    assert isinstance(await house.enter(device=known), Entered), "the browser that has been here before is not shut out"
    with pytest.raises(RateLimited):
        await house.enter(device=known[:-1] + ("0" if known[-1] != "0" else "1"))
    with pytest.raises(WrongPassword):
        await house.enter("guess", email="another@fjord.example")
    house.later(minutes=7)
    assert isinstance(await house.enter(visitor=Visitor("198.51.100.99")), Entered), "and strangers not for ever"


async def test_what_nobody_has_runs_out_just_the_same(house: House) -> None:
    for turn in range(10):
        with pytest.raises(WrongPassword):
            await house.enter("guess", email="stranger@fjord.example", visitor=Visitor(f"198.51.100.{turn}"))
    with pytest.raises(RateLimited):
        await house.enter("guess", email="stranger@fjord.example")


async def test_a_known_browser_has_a_budget_too_and_is_nobody_elses(house: House) -> None:
    other = await house.world.people.add(User(new_id("usr"), "olaf@fjord.example", "", None, house.world.clock.now()))
    await house.world.people.set_password(other.id, await house.passwords.hash(OTHER), house.world.clock.now())
    device = (await house.enter()).device
    for _ in range(10):
        with pytest.raises(WrongPassword):
            await house.enter("guess", device=device)
    with pytest.raises(RateLimited):
        await house.enter(device=device)
    both = (await house.enter(OTHER, email=other.email, device=device)).device
    assert len(both.split("~")) == 2 and "fjord" not in both


async def test_one_address_tries_so_often_whatever_the_account(house: House) -> None:
    for turn in range(30):
        with pytest.raises(WrongPassword):
            await house.enter("guess", email=f"{turn}@fjord.example", visitor=Visitor(f"2001:db8::{turn:x}"))
    with pytest.raises(RateLimited):
        await house.enter(visitor=Visitor("2001:db8::ffff"))
    await house.enter(visitor=Visitor("2001:db8:0:1::1"))


async def test_a_code_is_asked_for_and_taken_once(house: House) -> None:
    app, _ = await house.app()
    house.later(seconds=60)
    step = await house.enter()
    assert isinstance(step, SecondStep)
    code = app.at(house.world.clock.now())
    entered = await house.accounts.sign_in.by_code(step.token, f"{code[:3]} {code[3:]}", HERE, "")
    assert entered.session.methods == (Method.PASSWORD, Method.TOTP)
    for again in (code, app.at(house.world.clock.now() - timedelta(seconds=30)), "000000", "", "１２３４５６"):
        with pytest.raises(WrongCode):
            await house.accounts.sign_in.by_code(step.token, again, HERE, "")
    house.later(seconds=30)
    assert await house.accounts.sign_in.by_code(step.token, app.at(house.world.clock.now()), HERE, "")


async def test_codes_cannot_be_guessed(house: House) -> None:
    await house.app()
    step = await house.enter()
    for _ in range(10):
        with pytest.raises(WrongCode):
            await house.accounts.sign_in.by_code(step.token, "123", HERE, "")
    with pytest.raises(RateLimited):
        await house.accounts.sign_in.by_code(step.token, "123", ELSEWHERE, "")


async def test_the_second_step_is_bound_to_the_password_and_in_time(house: House) -> None:
    app, _ = await house.app()
    house.later(seconds=60)
    step = await house.enter()
    for token in ("", "x", step.token + "0", step.token.replace("usr_", "usr_0", 1), f"{house.user.id}.9999999999.00"):
        with pytest.raises(StepOver):
            await house.accounts.sign_in.by_code(token, app.at(house.world.clock.now()), HERE, "")
    await house.accounts.passwords.change(house.user, OTHER, None, HERE)
    with pytest.raises(StepOver):
        await house.accounts.sign_in.by_code(step.token, app.at(house.world.clock.now()), HERE, "")
    late = await house.enter(OTHER)
    house.later(minutes=10)
    with pytest.raises(StepOver):
        await house.accounts.sign_in.by_code(late.token, app.at(house.world.clock.now()), HERE, "")


async def test_a_recovery_code_stands_in_once(house: House) -> None:
    _, codes = await house.app()
    assert len(set(codes)) == 10
    step = await house.enter()
    entered = await house.accounts.sign_in.by_code(step.token, codes[0].upper().replace("-", " "), HERE, "")
    assert entered.session.methods == (Method.PASSWORD, Method.RECOVERY_CODE)
    with pytest.raises(WrongCode):
        await house.accounts.sign_in.by_code(step.token, codes[0], HERE, "")
    assert await house.accounts.factors.codes_left(house.user.id) == 9
    fresh = await house.accounts.factors.renew_codes(house.user, HERE)
    with pytest.raises(WrongCode):
        await house.accounts.sign_in.by_code(step.token, codes[1], HERE, "")
    assert await house.accounts.sign_in.by_code(step.token, fresh[0], HERE, "")
    assert any(one.startswith("recovery_code_used") for one in await house.mail())


async def test_codes_count_once_a_first_one_was_right(house: House) -> None:
    enrolment = await house.accounts.factors.enrol(house.user)
    assert isinstance(await house.enter(), Entered)
    assert await house.accounts.factors.enrolling(house.user) == enrolment and "<svg" in enrolment.picture
    with pytest.raises(InvalidRequest):
        await house.accounts.factors.confirm(house.user, "000000", HERE)
    await house.accounts.factors.confirm(house.user, pyotp.TOTP(enrolment.secret).at(house.world.clock.now()), HERE)
    with pytest.raises(Conflict):
        await house.accounts.factors.enrol(house.user)
    await house.accounts.factors.disenrol(house.user, HERE)
    assert isinstance(await house.enter(), Entered)


async def test_forgetting_a_password_is_answered_alike_and_helps_once(house: House) -> None:
    before = await house.enter()
    await house.accounts.passwords.forgot("stranger@fjord.example", HERE)
    assert await house.mail() == []
    await house.accounts.passwords.forgot(house.user.email.upper(), HERE)
    (mail,) = await house.mail()
    secret = mail.partition("/console/set-password/")[2].split()[0]
    assert await house.accounts.passwords.of_link(secret) == house.user
    with pytest.raises(InvalidRequest):
        await house.accounts.passwords.set_by_link(secret, "password123", HERE)
    changed = await house.accounts.passwords.set_by_link(secret, OTHER, HERE)
    assert changed and changed.verified_at == house.world.clock.now()
    assert await house.accounts.passwords.set_by_link(secret, PASSWORD, HERE) is None
    assert await house.world.sessions.find(before.cookie) is None, "whoever was signed in is no more"
    assert isinstance(await house.enter(OTHER), Entered)
    assert any(one.startswith("password_changed") for one in await house.mail())


async def test_links_are_mailed_a_few_times(house: House) -> None:
    for _ in range(5):
        await house.accounts.passwords.forgot(house.user.email, HERE)
    assert len(await house.mail()) == 3
    for turn in range(5):
        await house.accounts.passwords.forgot(f"{turn}@fjord.example", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passwords.forgot("x@fjord.example", HERE)


async def test_changing_the_password_ends_all_other_sessions(house: House) -> None:
    here, there = await house.enter(), await house.enter(visitor=ELSEWHERE)
    assert await house.accounts.passwords.change(house.user, OTHER, here.session, HERE) == 1
    assert await house.world.sessions.find(here.cookie) and await house.world.sessions.find(there.cookie) is None


async def test_an_operators_link_lets_in_once(house: House) -> None:
    _, secret = await house.world.dependencies[LinkService].make(house.user, Purpose.SIGN_IN)
    entered = await house.accounts.sign_in.by_link(secret, HERE, "")
    assert entered and entered.session.methods == (Method.LINK,)
    assert await house.accounts.sign_in.by_link(secret, HERE, "") is None


async def test_a_browser_that_is_not_known_is_told_of(house: House) -> None:
    first = await house.enter()
    assert await house.mail() == [], "the first sign-in ever is nothing new"
    await house.enter(device=first.device)
    assert await house.mail() == []
    await house.enter(visitor=ELSEWHERE)
    (mail,) = await house.mail()
    assert "198.51.100.7" in mail and "curl" in mail
    assert (await house.kinds()).count("signed_in") == 3


async def test_sudo_is_proved_again(house: House) -> None:
    session = (await house.enter()).session
    house.later(minutes=16)
    assert not session.is_sudo(house.world.clock.now())
    with pytest.raises(WrongPassword):
        await house.accounts.passwords.prove(house.user, session, "wrong", "", HERE)
    assert (await house.accounts.passwords.prove(house.user, session, PASSWORD, "", HERE)).is_sudo(
        house.world.clock.now()
    )
    for _ in range(8):
        with pytest.raises(WrongPassword):
            await house.accounts.passwords.prove(house.user, session, "", "000000", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passwords.prove(house.user, session, PASSWORD, "", HERE)


async def _registered(house: House, device: SoftAuthenticator, name: str = "Laptop") -> Any:
    asked = await house.accounts.passkeys.registration(house.user)
    return await house.accounts.passkeys.register(house.user, device.create(asked.options), asked.challenge, name, HERE)


async def test_a_passkey_lets_in_by_itself(house: House) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    await house.app()
    asked = await house.accounts.passkeys.sign_in(ELSEWHERE)
    answer = device.get(asked.options)
    entered = await house.accounts.passkeys.signed_in(answer, asked.challenge, ELSEWHERE, "")
    assert entered.session.methods == (Method.PASSKEY,) and entered.session.user == house.user.id
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(answer, asked.challenge, ELSEWHERE, "")
    proof = await house.accounts.passkeys.proof(house.user)
    proved = await house.accounts.passkeys.prove(
        house.user, entered.session, device.get(proof.options), proof.challenge
    )
    assert Method.PASSKEY in proved.methods


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
        asked = await house.accounts.passkeys.sign_in(HERE)
        await house.accounts.passkeys.signed_in(device.get(asked.options), asked.challenge, HERE, "")
    asked = await house.accounts.passkeys.sign_in(HERE)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(device.get(asked.options, **tampered), asked.challenge, HERE, "")


@pytest.mark.parametrize("answer", ["", "[]", "{}", "x" * 70_000, json.dumps({"rawId": "§", "response": {}})])
async def test_nonsense_is_no_passkey(house: House, answer: str) -> None:
    asked = await house.accounts.passkeys.sign_in(HERE)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(answer, asked.challenge, HERE, "")
    asked = await house.accounts.passkeys.registration(house.user)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.register(house.user, answer, asked.challenge, "", HERE)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(answer, "§", HERE, "")


async def test_a_challenge_is_answered_in_time_and_by_whom_it_is_for(house: House) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    proof = await house.accounts.passkeys.proof(house.user)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(device.get(proof.options), proof.challenge, HERE, "")
    asked = await house.accounts.passkeys.sign_in(HERE)
    house.later(minutes=5)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(device.get(asked.options), asked.challenge, HERE, "")


async def test_registrations_of_passkeys_have_a_budget(house: House) -> None:
    for _ in range(10):
        asked = await house.accounts.passkeys.registration(house.user)
        with pytest.raises(PasskeyUnknown):
            await house.accounts.passkeys.register(house.user, "{}", asked.challenge, "Key", HERE)
    with pytest.raises(RateLimited):
        await house.accounts.passkeys.register(house.user, "{}", "", "Key", HERE)


async def test_a_passkey_of_nobody_is_not_looked_into(house: House, monkeypatch: pytest.MonkeyPatch) -> None:
    device = SoftAuthenticator("https://api.joinery.test")
    await _registered(house, device)
    asked = await house.accounts.passkeys.sign_in(ELSEWHERE)
    answer = device.get(asked.options)
    reached: list[str] = []
    monkeypatch.setattr(house.accounts.passkeys.ceremonies, "signed", lambda *_: reached.append("signed"))
    house.world.database.execute("DELETE FROM users WHERE id = %s", house.user.id)
    with pytest.raises(PasskeyUnknown):
        await house.accounts.passkeys.signed_in(answer, asked.challenge, ELSEWHERE, "")
    assert reached == []
