"""Datasets of an organisation's export: lists of the API, read by calling the handlers of their operations."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, cast

import msgspec

from adapters.api_json.cursors import CursorSigner
from domain.access.model import SCOPES, Principal
from domain.kernel.lines import Lines
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor
from domain.kernel.versions import SUPPORTED
from domain.orgs.ports import OrgStore
from entrypoints.dependencies import Dependencies
from entrypoints.http.execute import encode_json
from entrypoints.operations.operation import Area, Operation, ReadContext, Reply, create_services
from entrypoints.settings import Settings
from ports.unit_of_work import Tx

_PAGE_SIZE = 100
_CREDENTIAL_KIND = "export"


class _EncodedPage(msgspec.Struct):
    """Page of a list in a reply that is already encoded as JSON; the items stay encoded."""

    data: list[msgspec.Raw]
    next_cursor: str | None


_DECODE = msgspec.json.Decoder(_EncodedPage).decode


class _ListContext(ReadContext[Any]):
    """Context in which the handler of a list operation runs without an HTTP request."""

    def sign_cursor(self, key: str | None) -> str | None:
        """Return the key of the next page without a signature, because only this process reads it."""
        return key


@dataclass(frozen=True)
class OperationDatasets:
    """Datasets (domain/exports/ports.py): one for each operation that has a `dataset`.

    Attributes:
        list_areas: Returns the areas whose operations are read.
        dependencies: The dependency container.
    """

    list_areas: Callable[[], Iterable[Area]]
    dependencies: Dependencies

    @property
    def names(self) -> Sequence[str]:
        """Names of the datasets in the order of the operation table."""
        return tuple(self._dataset_operations)

    @property
    def scopes(self) -> frozenset[str]:
        """Scopes that together permit reading all datasets."""
        return frozenset(row.scope for row, _ in self._dataset_operations.values() if row.scope)

    async def stream_lines(self, tx: Tx, dataset: str) -> AsyncGenerator[Lines, None]:
        """Yield the dataset's items as JSON lines, one page of the list at a time."""
        operation, area = self._dataset_operations[dataset]
        service, organisation = self._services[area.name], await tx[OrgStore].get_organisation()
        caller = Principal(tx.tenant, Actor("service", "worker"), _CREDENTIAL_KIND, "owner", SCOPES, organisation)
        async for ids in self._iterate_path_ids(tx, operation):
            key: str | None = None
            while True:
                page = PageRequest(limit=_PAGE_SIZE, key=key)
                context = self._create_context(tx, service, caller, ids, page)
                reply = await operation.handler(context)
                items, key = _split_page(await reply.complete_later() if reply.complete_later else reply)
                if items:
                    yield Lines(len(items), b"".join([item + b"\n" for item in items]))
                if key is None:
                    break

    def _create_context(
        self, tx: Tx, service: Any, caller: Principal, ids: Mapping[str, str], page: PageRequest
    ) -> _ListContext:
        cursors, base_url = cast("CursorSigner", None), self.dependencies[Settings].base_url  # no cursor is signed
        return _ListContext(service, caller, ids, {}, page, SUPPORTED.latest, b"", cursors, base_url, tx.now, tx)

    async def _iterate_path_ids(self, tx: Tx, operation: Operation) -> AsyncIterator[Mapping[str, str]]:
        """Yield the IDs for the path of a list operation, once for each parent object.

        For `/sources/{id}/runs`, these are the IDs of all sources; for a path without IDs, one empty mapping.
        """
        if not operation.ids:
            yield {}
            return
        [(name, prefix)] = operation.ids.items()
        parent_dataset = next(
            dataset
            for dataset, (parent, _) in self._dataset_operations.items()
            if not parent.ids and _find_item_prefix(parent) == prefix
        )
        async for lines in self.stream_lines(tx, parent_dataset):
            for line in lines.data.splitlines():
                yield {name: msgspec.json.decode(line)["id"]}

    @cached_property
    def _dataset_operations(self) -> Mapping[str, tuple[Operation, Area]]:
        rows = {row.dataset: (row, area) for area in self.list_areas() for row in area.operations if row.dataset}
        return cast("Mapping[str, tuple[Operation, Area]]", rows)

    @cached_property
    def _services(self) -> Mapping[str, Any]:
        """Use cases by name of the area."""
        return create_services(self.list_areas(), self.dependencies)


def _find_item_prefix(operation: Operation) -> str | None:
    """Return the ID prefix of a list operation's items, such as `run`; None if the items have no ID."""
    item = (operation.reply or {}).get("properties", {}).get("data", {}).get("items", {})
    pattern = item.get("properties", {}).get("id", {}).get("pattern", "")
    return str(pattern).lstrip("^").partition("_")[0] or None


def _split_page(reply: Reply) -> tuple[list[bytes], str | None]:
    """Return the JSON of each item of a page, and the key of the next page or None. A reply that is not a list is one item."""
    body = reply.body
    if isinstance(body, bytes):
        page = _DECODE(body)
        return [bytes(item) for item in page.data], page.next_cursor
    if body.get("object") != "list":
        return [encode_json(body)], None
    return [encode_json(item) for item in body["data"]], body["next_cursor"]
