"""What a page knows of the browser before anybody is signed in: its address, what it calls itself, and for whom it is known."""

from functools import cache
from typing import Final

from domain.people.model import LIFETIME
from domain.people.usecases.sessions import Visitor
from domain.people.usecases.signing_in import Entered
from domain.people.usecases.throttling import DEVICE_LASTS
from entrypoints.console.cookies import Header, set_cookie
from entrypoints.console.visit import Visit
from entrypoints.http.addresses import Proxies

_proxies: Final = cache(Proxies)
_LONGEST_DEVICE: Final = 1000
_SECONDS: Final = int(LIFETIME.total_seconds())
_DEVICE_SECONDS: Final = int(DEVICE_LASTS.total_seconds())


def visitor_of(visit: Visit) -> Visitor:
    """Where the request comes from, behind the operator's own proxies."""
    asked, trusted = visit.asked, visit.dependencies.settings.trusted_proxies
    address = _proxies(trusted).client(asked.client, asked.headers)
    return Visitor(address, asked.headers.get("user-agent", ""))


def device_of(visit: Visit) -> str:
    """The cookie that tells for whom this browser has been signed in before."""
    return visit.asked.cookies.get(_name(visit), "")[:_LONGEST_DEVICE]


def entered_cookies(visit: Visit, entered: Entered) -> list[Header]:
    """The cookies of who has just signed in."""
    secure = visit.dependencies.settings.base_url.startswith("https:")
    device = set_cookie(_name(visit), entered.device, seconds=_DEVICE_SECONDS, secure=secure)
    return [session_cookie(visit, entered.cookie), device]


def session_cookie(visit: Visit, cookie: str) -> Header:
    """The cookie of a session."""
    return visit.console.cookies.signed_in(cookie, _SECONDS)


def _name(visit: Visit) -> str:
    return f"{visit.console.cookies.session}-device"
