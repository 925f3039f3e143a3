"""Console clients with a signed-in person, for running processes."""

import http.client
import re
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urlencode

from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import AuthMethod, User
from domain.people.ports import People
from domain.people.usecases.sessions import ClientInfo, SessionService
from entrypoints.dependencies import Dependencies
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.support import builders

COOKIE = "joinery"
"""The name of the session cookie without TLS."""


async def create_session(container: Dependencies, tenant: Tenant, role: str = "owner") -> str:
    """Sign in a new member and return the session cookie."""
    now = container[Clock].now()
    email = f"{new_id('usr')[4:].lower()}@fjord.test"
    user = await container[People].add(User(new_id("usr"), email, "Ada Moreau", now, now))
    async with container[UnitOfWork].begin(Tenant(tenant.org, True), builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, tenant.org, email, role, now))
    return (await container[SessionService].start(user, [AuthMethod.PASSWORD], ClientInfo("127.0.0.1")))[1]


@dataclass
class ConsoleBrowser:
    """Client that requests console pages like a browser without scripts, with one connection per page."""

    port: int
    cookie: str

    def get(self, path: str) -> str:
        """Return the text of a page, after redirects."""
        return self._request("GET", path, b"", {})

    def submit(self, page: str, path: str, **fields: Any) -> str:
        """Submit a form of the page and go where it leads; a field that is (name, bytes) is a file."""
        known = {
            name: unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1]) for name in ("csrf", "submission_id")
        }  # type: ignore[index]
        files = {name: value for name, value in fields.items() if isinstance(value, tuple)}
        plain = known | {name: value for name, value in fields.items() if name not in files}
        if not files:
            return self._request(
                "POST", path, urlencode(plain).encode(), {"Content-Type": "application/x-www-form-urlencoded"}
            )
        parts = [
            f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}'.encode() for name, value in plain.items()
        ]
        parts += [
            f'Content-Disposition: form-data; name="{name}"; filename="{file}"\r\nContent-Type: text/csv\r\n\r\n'.encode()
            + content
            for name, (file, content) in files.items()
        ]
        body = b"".join(b"--edge\r\n" + part + b"\r\n" for part in parts) + b"--edge--\r\n"
        return self._request("POST", path, body, {"Content-Type": "multipart/form-data; boundary=edge"})

    def _request(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> str:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        own = {"Cookie": f"{COOKIE}={self.cookie}", "Sec-Fetch-Site": "same-origin"}
        connection.request(method, path, body or None, own | headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        self.place = path
        if answer.status == 303:
            return self._request("GET", answer.headers["Location"], b"", {})
        assert answer.status == 200, (answer.status, text)
        return text


@dataclass
class TabResponse:
    """Response without following redirects."""

    status: int
    text: str
    location: str = ""


class Tab:
    """Browser tab that stores cookies and follows no redirects, with one connection per page."""

    def __init__(self, port: int, cookie: str | None = None) -> None:
        self._port = port
        self.cookies: dict[str, str] = {COOKIE: cookie} if cookie else {}

    def get(self, path: str) -> TabResponse:
        """Request a page."""
        return self._request("GET", path, b"")

    def submit(self, form: TabResponse, path: str, **fields: str) -> TabResponse:
        """Submit a form of the page."""
        known = {
            name: unescape(re.search(rf'name="{name}" value="([^"]*)"', form.text)[1])
            for name in ("csrf", "submission_id")
        }  # type: ignore[index]
        return self._request("POST", path, urlencode(known | fields).encode())

    def _request(self, method: str, path: str, body: bytes) -> TabResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"Sec-Fetch-Site": "same-origin"}
        if self.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        text = answer.read().decode()
        connection.close()
        for header in answer.headers.get_all("Set-Cookie") or ():
            name, _, value = header.partition(";")[0].partition("=")
            self.cookies[name] = value
        return TabResponse(answer.status, text, answer.headers.get("Location", ""))
