"""Concurrent set-ups of one account or authenticator on a real API: one succeeds, the others get an error."""

import re
import threading
from collections.abc import Callable
from typing import TypeVar

import pyotp
import pytest

from domain.access.usecases import AccessService
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext
from domain.orgs.model import Member
from domain.orgs.ports import Memberships, OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from domain.people.ports import People
from domain.people.usecases.attempt_limits import AttemptLimiter, DeviceCookies
from domain.people.usecases.auth_services import AuthServices
from domain.people.usecases.invitations import INVITATION_PATH, InvitationService
from domain.people.usecases.sessions import SessionService
from entrypoints.dependencies import Dependencies
from ports.clock import Clock
from ports.limits import RateLimits
from ports.unit_of_work import UnitOfWork
from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.support import builders
from tests.support.console_browser import Tab, TabResponse, create_session

T = TypeVar("T")
PASSWORDS = ("four walnut drawers and a lamp", "seven oak shelves and a chair", "two ash stools and a mirror")
CODES = "/console/account/codes"


def run_concurrently(*actions: Callable[[], T]) -> list[T]:
    """Run the actions at the same time; return their results."""
    start, found = threading.Barrier(len(actions)), dict[int, T]()

    def do(number: int) -> None:
        start.wait()
        found[number] = actions[number]()

    threads = [threading.Thread(target=do, args=(number,)) for number in range(len(actions))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [found[number] for number in range(len(actions))]


async def _create_invitation(container: Dependencies, tenancy: Tenancy, email: str) -> str:
    """Create an invitation by a new owner; return the path of its page."""
    clock = container[Clock]
    owner = await container[People].add(
        User(new_id("usr"), f"{new_id('usr').lower()}@fjord.test", "Ada", clock.now(), clock.now())
    )
    async with container[UnitOfWork].begin(tenancy.tenant, builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(owner.id, tenancy.tenant.org, owner.email, "owner", clock.now()))
    service = InvitationService(
        container[Memberships],
        container[People],
        container[AccessService],
        container[OutgoingMail],
        AttemptLimiter(container[RateLimits], DeviceCookies(container[AccessService])),
        clock,
        "http://x",
    )
    async with container[UnitOfWork].begin(tenancy.tenant, AuditContext(Actor("user", owner.id), "invite")) as tx:
        _, secret = await service.invite(tx, email, "editor")
    return INVITATION_PATH + secret


@pytest.mark.parametrize("round_", range(3))
def test_one_of_two_concurrent_acceptances_of_an_invitation_succeeds(
    services: ServiceProcesses, fjord: Tenancy, round_: int
) -> None:
    email = f"{new_id('usr').lower()}@oak.test"
    place = services.run_with_dependencies(lambda container: _create_invitation(container, fjord, email))
    tabs = [Tab(services.port) for _ in PASSWORDS]
    forms = [tab.get(place) for tab in tabs]
    deeds = [
        lambda tab=tab, form=form, password=password: tab.submit(form, place, name="Bo", password=password)
        for tab, form, password in zip(tabs, forms, PASSWORDS, strict=True)
    ]
    answers = run_concurrently(*deeds)
    [won] = [number for number, answer in enumerate(answers) if answer.status == 303]
    for number, answer in enumerate(answers):
        if number != won:
            assert answer.status in (404, 409) and "Bo</" not in answer.text, answer.text
            assert any(
                text in answer.text
                for text in ("An account with this address exists", "is over", "has expired", "not valid", "no longer")
            ), answer.text
            assert tabs[number].get("/console").status == 303, "no session exists in that tab"
    assert tabs[won].get("/console").status == 200, "the session of the first is valid"
    (user,) = services.fetch_rows("SELECT id FROM users WHERE email = %(email)s", email=email)
    assert (
        services.fetch_value('SELECT count(*) FROM sessions WHERE "user" = %(id)s AND revoked_at IS NULL', id=user[0])
        == 1
    )
    for number, password in enumerate(PASSWORDS):
        tab = Tab(services.port)
        entered = tab.submit(tab.get("/console/sign-in"), "/console/sign-in", email=email, password=password)
        assert (entered.status == 303) is (number == won), "only the password of the first is valid"


def _extract_codes(answer: TabResponse) -> list[str]:
    """Return the recovery codes on the page."""
    found = re.search(r"<pre[^>]*>([^<]*)</pre>", answer.text)
    return found[1].split() if found else []


@pytest.mark.parametrize("round_", range(3))
def test_one_of_several_concurrent_authenticator_setups_succeeds(
    services: ServiceProcesses, fjord: Tenancy, round_: int
) -> None:
    cookie = services.run_with_dependencies(lambda container: create_session(container, fjord.tenant))
    tabs = [Tab(services.port, cookie) for _ in range(4)]
    forms = run_concurrently(*(lambda tab=tab: tab.get(CODES) for tab in tabs))
    keys = [re.findall(r'data-copy="([A-Z2-7]{16,})"', form.text)[0] for form in forms]
    assert len(set(keys)) == 1, "all tabs show one key"
    code = pyotp.TOTP(keys[0]).now()
    answers = run_concurrently(
        *(lambda tab=tab, form=form: tab.submit(form, CODES, code=code) for tab, form in zip(tabs, forms, strict=True))
    )
    [shown] = [codes for answer in answers if (codes := _extract_codes(answer))]
    assert len(shown) == 10 and sorted(answer.status for answer in answers) == [200, 409, 409, 409]
    assert all("in another tab or browser" in answer.text for answer in answers if answer.status == 409)
    (user,) = services.fetch_rows(
        'SELECT DISTINCT "user" FROM recovery_codes WHERE "user" = (%(user)s)', user=_find_user(services, cookie)
    )
    held = services.run_with_dependencies(lambda container: _verify_codes(container, user[0], shown))
    assert held == [True] * 10 + [0]


def _find_user(services: ServiceProcesses, cookie: str) -> str:
    async def found(container: Dependencies) -> str:
        signed = await container[SessionService].find(cookie)
        assert signed is not None
        return signed.user.id

    return str(services.run_with_dependencies(found))


async def _verify_codes(container: Dependencies, user: str, codes: list[str]) -> list[object]:
    """Return which of the codes are accepted, and the number of other unused codes."""
    person, factors = await container[People].get(user), container[AuthServices].factors
    assert person is not None
    used: list[object] = [await factors.verify_code(person, code) is not None for code in codes]
    return [*used, await factors.count_unused_codes(user)]


def test_concurrent_renewals_leave_one_set_of_recovery_codes(services: ServiceProcesses, fjord: Tenancy) -> None:
    cookie = services.run_with_dependencies(lambda container: create_session(container, fjord.tenant))
    tab = Tab(services.port, cookie)
    form = tab.get(CODES)
    [key] = re.findall(r'data-copy="([A-Z2-7]{16,})"', form.text)
    assert _extract_codes(tab.submit(form, CODES, code=pyotp.TOTP(key).now()))
    form, user = tab.get(CODES), _find_user(services, cookie)
    for _ in range(5):
        answers = run_concurrently(
            *(lambda: Tab(services.port, cookie).submit(form, f"{CODES}/recovery") for _ in range(4))
        )
        shown = [set(_extract_codes(answer)) for answer in answers]
        assert all(len(codes) == 10 for codes in shown)
        left = services.fetch_value('SELECT count(*) FROM recovery_codes WHERE "user" = %(user)s', user=user)
        assert left == 10, "those that were made last count, and no others"
