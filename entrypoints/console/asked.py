"""What a browser asks of the console, as plain values: the headers that pages need, cookies, and the body unread."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl

from entrypoints.http.body import IncomingBody

LONGEST_COOKIES: Final = 8192
"""Characters of a Cookie header that is looked at."""
LONGEST_COOKIE: Final = 4096
"""Characters of one name and value: the least that browsers must store (RFC 6265 §6.1)."""


@dataclass(slots=True)
class Asked:
    """One request. `path` is decoded, `query` the raw query string, `headers` under lower-case names, the last of each."""

    method: str
    path: str
    query: str
    headers: Mapping[str, str]
    client: str
    body: IncomingBody
    cookies: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Path and query, to come back to."""
        return f"{self.path}?{self.query}" if self.query else self.path

    @property
    def partial(self) -> str | None:
        """The id of the element that htmx wants new contents for; None when a whole page is asked for."""
        headers = self.headers
        if headers.get("hx-request") != "true" or headers.get("hx-history-restore-request") == "true":
            return None
        return headers.get("hx-target") or None

    @property
    def by_script(self) -> bool:
        """Whether htmx asks, and not the browser itself."""
        return self.headers.get("hx-request") == "true"


class Values:
    """Names and values of a query or form; a name may have several. Missing names are empty texts."""

    def __init__(self, pairs: list[tuple[str, str]]) -> None:
        self.pairs = pairs

    @cached_property
    def _last(self) -> dict[str, str]:
        return dict(self.pairs)

    def __getitem__(self, name: str) -> str:
        """The last value of that name; empty when there is none."""
        return self._last.get(name, "")

    def __contains__(self, name: object) -> bool:
        """Whether the name was sent."""
        return name in self._last

    def get(self, name: str, otherwise: str = "") -> str:
        """The last value without blanks around it, or `otherwise` when that leaves nothing."""
        return self._last.get(name, "").strip() or otherwise

    def number(self, name: str) -> int | None:
        """The whole number of that name, of at most nine digits; None for anything else."""
        return whole_number(self.get(name))

    def all(self, name: str) -> list[str]:
        """Every value of that name, in order."""
        return [value for key, value in self.pairs if key == name]

    def given(self, *names: str) -> dict[str, str]:
        """Those of the names that have a value, as an operation takes them."""
        return {name: value for name in names if (value := self.get(name))}


def whole_number(text: str) -> int | None:
    """The number that up to nine digits say; None for any other text, which could be a number of megabytes."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def storable(text: str) -> str:
    """The text with U+FFFD for every NUL (WHATWG HTML, 13.2.5)."""
    return text.replace("\0", "\ufffd")


def values_of(text: str, errors: str = "replace") -> Values:
    """A query string's values; one of too many fields has none. NUL, which nothing can store, is read as browsers read it.

    With `errors` "strict", raises UnicodeDecodeError for what is no UTF-8.
    """
    try:
        pairs = parse_qsl(text, keep_blank_values=True, max_num_fields=500, errors=errors)
    except UnicodeDecodeError:
        raise
    except ValueError:
        return Values([])
    return Values([(storable(name), storable(value)) for name, value in pairs])


def asked_of(scope: Any, body: IncomingBody) -> Asked:
    """The request that an ASGI HTTP scope describes."""
    headers: dict[str, str] = {}
    for key, value in scope["headers"]:
        name = key.decode("latin-1")
        text = value.decode("latin-1")
        headers[name] = f"{headers[name]}; {text}" if name == "cookie" and name in headers else text
    client = scope.get("client")
    return Asked(
        method=scope["method"],
        path=scope["path"],
        query=scope["query_string"].decode("latin-1"),
        headers=headers,
        client=client[0] if client else "",
        body=body,
        cookies=parse_cookies(headers.get("cookie", "")),
    )


def parse_cookies(header: str) -> dict[str, str]:
    """Split a Cookie header (RFC 6265 §4.2.1) into names and values, of which the last of a name counts.

    Values are not unquoted: the service sets none that would need it, and unquoting is where parsers take quadratic time.
    """
    if len(header) > LONGEST_COOKIES:
        return {}
    pairs = (pair.partition("=") for pair in header.split(";") if len(pair) <= LONGEST_COOKIE)
    return {name.strip(): value.strip() for name, separator, value in pairs if separator}
