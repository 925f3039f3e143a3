"""Other hosts and DNS in memory, with configured responses."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from domain.probes.facts import ProbeResponse
from domain.probes.ports import Unreachable
from domain.sso.ports import DnsRecord, DnsUnavailable, RecordKind


@dataclass
class MemoryWeb:
    """In-memory Web with `pages` by URL. A known host responds 404 to other paths, an unknown host does not respond. `requests` are the requested URLs."""

    pages: dict[str, ProbeResponse | Unreachable] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)

    def serve(
        self, url: str, body: bytes | str = b"", status: int = 200, cookies: tuple[str, ...] = (), **headers: str
    ) -> None:
        """Set the response of the URL; header names have underscores for hyphens."""
        content = body.encode() if isinstance(body, str) else body
        self.pages[url] = ProbeResponse(url, status, _named(headers), cookies, content)

    async def get(self, url: str, *, accept: str, max_bytes: int, seconds: float) -> ProbeResponse:
        self.requests.append(url)
        page = self.pages.get(url)
        if page is None:
            if not any(urlsplit(known).netloc == urlsplit(url).netloc for known in self.pages):
                raise Unreachable("The host's name has no address.")
            return ProbeResponse(url, 404, {"content-type": "text/html"}, body=b"<html><title>Not found</title></html>")
        if isinstance(page, Unreachable):
            raise page
        return replace(page, body=page.body[:max_bytes], is_complete=page.is_complete and len(page.body) <= max_bytes)


def _named(headers: Mapping[str, str]) -> dict[str, str]:
    return {"content-type": "text/html"} | {name.replace("_", "-").lower(): value for name, value in headers.items()}


class MemoryNameRecords:
    """In-memory DnsResolver; names in `down` do not respond."""

    def __init__(self, records: Mapping[tuple[str, RecordKind], tuple[DnsRecord, ...]] | None = None) -> None:
        self._records = dict(records or {})
        self.down: set[str] = set()
        self.queries: list[tuple[str, RecordKind]] = []

    def put(self, name: str, kind: RecordKind, *values: str | bytes) -> None:
        """Replace the records of a kind for the name."""
        made = (DnsRecord(value if isinstance(value, bytes) else value.encode()) for value in values)
        self._records[name.lower(), kind] = tuple(made)

    def look_up(self, name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...]:
        plain = name.rstrip(".").lower()
        self.queries.append((plain, kind))
        if plain in self.down or "*" in self.down:
            raise DnsUnavailable(plain)
        return self._records.get((plain, kind), ())
