"""Client that acts as a browser: it stores cookies and submits the forms of a page."""

import re
from dataclasses import dataclass
from html import unescape
from typing import Any
from urllib.parse import urlencode

from tests.http.client import exchange_messages

HOST = "api.joinery.test"
COOKIE = "__Host-joinery"


@dataclass
class BrowserPage:
    """Response to a browser."""

    status: int
    headers: list[tuple[str, str]]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key == name), None)

    def field(self, name: str) -> str:
        """Return the value of the first hidden field of that name."""
        found = re.search(rf'name="{name}" value="([^"]*)"', self.text)
        assert found, f"no field {name}"
        return unescape(found[1])


class ConsoleBrowser:
    """Sends requests as a browser does and stores cookies."""

    def __init__(self, app: Any, cookie: str | None = None, user: Any = None) -> None:
        self._app, self.user = app, user
        self.cookies: dict[str, str] = {COOKIE: cookie} if cookie else {}

    async def get(self, target: str, **headers: str) -> BrowserPage:
        return await self.send("GET", target, b"", {"sec-fetch-site": "none"} | headers)

    async def submit(
        self, page: BrowserPage, target: str, _headers: dict[str, str] | None = None, **fields: str
    ) -> BrowserPage:
        """Submit a form of the page with these fields."""
        sent: dict[str, Any] = {"csrf": page.field("csrf"), "submission_id": page.field("submission_id")}
        return await self.post(target, _headers, **sent | fields)

    async def post(
        self, target: str, _headers: dict[str, str] | None = None, *, whole: bool = False, **fields: str
    ) -> BrowserPage:
        """Send any form; `whole` reads a stream to its end."""
        headers = {
            "content-type": "application/x-www-form-urlencoded",
            "origin": f"https://{HOST}",
            "sec-fetch-site": "same-origin",
        }
        return await self.send("POST", target, urlencode(fields).encode(), headers | (_headers or {}), whole=whole)

    async def follow(self, page: BrowserPage) -> BrowserPage:
        """Request the target of a redirect."""
        assert page.status == 303, page.text
        return await self.get(page.header("location") or "")

    async def send(
        self, method: str, target: str, body: bytes, headers: dict[str, str], *, whole: bool = False
    ) -> BrowserPage:
        path, _, query = target.partition("?")
        named = {"host": HOST} | {name.replace("_", "-"): value for name, value in headers.items() if value}
        if self.cookies:
            named["cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if body:
            named["content-length"] = str(len(body))
        scope = {
            "type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", "method": method,
            "scheme": "https", "path": path, "raw_path": path.encode(), "root_path": "", "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in named.items()],
            "client": ("203.0.113.7", 40000), "server": ("testserver", 80),
        }  # fmt: skip
        kept: list[tuple[str, str]] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            async def seen(message: Any) -> None:
                if message["type"] == "http.response.start":
                    kept.extend((name.decode().lower(), value.decode("latin-1")) for name, value in message["headers"])
                await send(message)

            await self._app(scope, receive, seen)

        response = await exchange_messages(app, scope, body, whole=whole)
        for name, value in kept:
            if name == "set-cookie":
                self._store_cookie(value)
        return BrowserPage(response.status, kept, response.body)

    def _store_cookie(self, header: str) -> None:
        pair, *attributes = header.split("; ")
        name, _, value = pair.partition("=")
        if "Max-Age=0" in attributes:
            self.cookies.pop(name, None)
        else:
            self.cookies[name] = value
