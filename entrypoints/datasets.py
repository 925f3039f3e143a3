"""Datasets of an organisation's export: the lists of the operation table, read through their own handlers."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgspec

from adapters.wire.cursors import Cursors
from domain.access.model import SCOPES, Principal
from domain.kernel.lines import Lines
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor
from domain.kernel.versions import SUPPORTED
from domain.orgs.ports import OrgStore
from entrypoints.dependencies import Dependencies
from entrypoints.http.execute import encode
from entrypoints.operations.operation import Area, Operation, ReadContext, Reply, services_of
from entrypoints.settings import Settings
from ports.unit_of_work import Tx

_PAGE = 100
_VIA = "export"


class _List(msgspec.Struct):
    """A page that a handler returns as bytes; its items stay encoded."""

    data: list[msgspec.Raw]
    next_cursor: str | None


_DECODE = msgspec.json.Decoder(_List).decode


class _PageContext(ReadContext[Any]):
    """Context of a list's handler without a request."""

    def cursor(self, key: str | None) -> str | None:
        """Return a page's next key without signature, because it stays internal."""
        return key


@dataclass(frozen=True)
class ListDatasets:
    """Implementation of domain.exports.ports.Datasets: every operation with a `dataset`."""

    areas: Callable[[], Iterable[Area]]
    dependencies: Dependencies

    @property
    def names(self) -> Sequence[str]:
        """Names of the datasets in the order of the operation table."""
        return tuple(self._rows)

    @property
    def scopes(self) -> frozenset[str]:
        """Scopes required to read all datasets."""
        return frozenset(row.scope for row, _ in self._rows.values() if row.scope)

    async def lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """Yield the lines of a dataset page by page."""
        row, area = self._rows[dataset]
        service, organisation = self._services[area.name], await tx[OrgStore].own()
        caller = Principal(tx.tenant, Actor("service", "worker"), _VIA, "owner", SCOPES, organisation)
        async for ids in self._owners(tx, row):
            key: str | None = None
            while True:
                page = PageRequest(limit=_PAGE, key=key)
                context = self._context(tx, service, caller, ids, page)
                reply = await row.handler(context)
                items, key = _items(await reply.later() if reply.later else reply)
                if items:
                    yield Lines(len(items), b"".join([item + b"\n" for item in items]))
                if key is None:
                    break

    def _context(
        self, tx: Tx, service: Any, caller: Principal, ids: Mapping[str, str], page: PageRequest
    ) -> _PageContext:
        cursors, base_url = cast("Cursors", None), self.dependencies[Settings].base_url  # no cursor is signed
        return _PageContext(service, caller, ids, {}, page, SUPPORTED.latest, b"", cursors, base_url, tx.now, tx)

    async def _owners(self, tx: Tx, row: Operation) -> AsyncIterator[Mapping[str, str]]:
        """Yield the path IDs for which the list is read: all resources that the path can name."""
        if not row.ids:
            yield {}
            return
        [(name, prefix)] = row.ids.items()
        owner = next(
            dataset for dataset, (other, _) in self._rows.items() if not other.ids and _prefix(other) == prefix
        )
        async for lines in self.lines(tx, owner):
            for line in lines.data.splitlines():
                yield {name: msgspec.json.decode(line)["id"]}

    @cached_property
    def _rows(self) -> Mapping[str, tuple[Operation, Area]]:
        rows = {row.dataset: (row, area) for area in self.areas() for row in area.operations if row.dataset}
        return cast("Mapping[str, tuple[Operation, Area]]", rows)

    @cached_property
    def _services(self) -> Mapping[str, Any]:
        return services_of(self.areas(), self.dependencies)


def _prefix(row: Operation) -> str | None:
    """Return the ID prefix of the list's items."""
    item = (row.reply or {}).get("properties", {}).get("data", {}).get("items", {})
    pattern = item.get("properties", {}).get("id", {}).get("pattern", "")
    return str(pattern).lstrip("^").partition("_")[0] or None


def _items(reply: Reply) -> tuple[list[bytes], str | None]:
    """Return a page's items as the API returns them, and the next key; a reply that is not a list is one item."""
    body = reply.body
    if isinstance(body, bytes):
        page = _DECODE(body)
        return [bytes(item) for item in page.data], page.next_cursor
    if body.get("object") != "list":
        return [encode(body)], None
    return [encode(item) for item in body["data"]], body["next_cursor"]
