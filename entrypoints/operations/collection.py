"""Standard operations on the resources of one kind, each of which calls a method of the area's service."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from adapters.wire.resource import Resource
from domain.audit.resources import ResourceService
from domain.kernel.ids import prefix_in
from entrypoints.operations.operation import Read, ReadContext, Reply, Undoing, Write, WriteContext

Method = Callable[..., Awaitable[Any]]
"""A use case; looked up by name, so that an area's service can override it."""


@dataclass(frozen=True)
class Collection:
    """Factory of the operation table's rows for one resource.

    Each method takes a summary, a description, the service's method (called with the transaction, the IDs in the path and
    the request's data), and further attributes of the row, such as `errors`, `agent` or another `handler`.

    Attributes:
        area: The area, which is the prefix of the operation IDs.
        resource: The resource's JSON.
        scope: Reading requires `<scope>:read`, changing `<scope>:write`.
        path: The path of the list, unless the resource's own path implies it.
        noun: The resource's name in the operation IDs of an area with several resources.
        service: Selects the service if the area has several.
    """

    area: str
    resource: Resource[Any]
    scope: str
    path: str = ""
    noun: str = ""
    service: Callable[[Any], Any] = lambda service: service

    def list(
        self,
        summary: str,
        description: str = "",
        find: Method = ResourceService.page,
        *,
        filter: Callable[..., Any] | None = None,
        **more: Any,
    ) -> Read:
        """Return the row of GET on the list; `filter` builds an argument of `find` from the query."""

        async def handle(call: ReadContext[Any]) -> Reply:
            arguments = [call.page_request] if filter is None else [filter(**call.query), call.page_request]
            return call.list(self.resource, await self._call_service(call, find, *arguments))

        row = {"handler": handle, "reply": self.resource.list, "paging": "both", "path": self._path}
        return Read(**self._row("list", summary, description, "read", {**row, **more}, plural="s"))

    def read(self, summary: str, description: str = "", find: Method = ResourceService.get, **more: Any) -> Read:
        """Return the row of GET on one resource."""

        async def handle(call: ReadContext[Any]) -> Reply:
            return call.one(self.resource, await self._call_service(call, find))

        row = {"handler": handle, "reply": self.resource.schema, "path": f"{self._path}/{{id}}"}
        return Read(**self._row("read", summary, description, "read", {**row, **more}))

    def create(self, summary: str, description: str = "", make: Method = ResourceService.create, **more: Any) -> Write:
        """Return the row of POST on the list; the response has the new resource's URL."""
        row: dict[str, Any] = {"body": more.get("body") or self.resource.create(), "status": 201, "path": self._path}
        row["undo"] = Undoing(f"The {self._noun_words} is deleted.", ResourceService.undo)
        return self.write("create", summary, description, make, made=True, **{**row, **more})

    def update(self, summary: str, description: str = "Omitted fields keep their values.", **more: Any) -> Write:
        """Return the row of PATCH."""
        row: dict[str, Any] = {"body": self.resource.patch(), "if_match": True, "path": f"{self._path}/{{id}}"}
        row["undo"] = Undoing("The changed fields get their previous values.", ResourceService.undo)
        return self.write("update", summary, description, ResourceService.update, method="PATCH", **{**row, **more})

    def delete(self, summary: str, description: str = "", **more: Any) -> Write:
        """Return the row of DELETE."""

        async def handle(call: WriteContext[Any]) -> Reply:
            await self._call_service(call, ResourceService.delete)
            return Reply()

        row: dict[str, Any] = {"handler": handle, "reply": None, "status": 204, "path": f"{self._path}/{{id}}"}
        row["undo"] = Undoing(f"The {self._noun_words} is created again.", ResourceService.undo)
        return self.write("delete", summary, description, method="DELETE", **{**row, **more})

    def write(
        self,
        name: str,
        summary: str,
        description: str,
        change: Method | None = None,
        *,
        made: bool = False,
        **more: Any,
    ) -> Write:
        """Return the row of a change, by default POST on `…/{id}/name`; with `made` the response has the resource's URL.

        `change` gets the decoded body if there is one, and the expected version if If-Match is required.
        """
        if change is None and "handler" not in more:
            raise ValueError(f"{name}: the row has neither a change nor a handler.")
        attributes = [
            attribute for attribute, key in (("command", "body"), ("expected_version", "if_match")) if more.get(key)
        ]

        async def handle(call: WriteContext[Any]) -> Reply:
            assert change is not None
            row = await self._call_service(call, change, *(getattr(call, attribute) for attribute in attributes))
            return call.made(self.resource, row) if made else call.one(self.resource, row)

        path = f"{self._path}/{{id}}/{name.replace('_', '-')}"
        row = {"handler": handle, "reply": self.resource.schema, "method": "POST", "path": path}
        return Write(**self._row(name, summary, description, "write", {**row, **more}))

    async def _call_service(self, call: ReadContext[Any], method: Method, *arguments: Any) -> Any:
        return await getattr(self.service(call.service), method.__name__)(call.tx, *call.ids.values(), *arguments)

    @property
    def _path(self) -> str:
        return self.path or self.resource.path.rpartition("/")[0]

    @property
    def _noun_words(self) -> str:
        return str(self.resource.name).replace("_", " ")

    def _row(
        self, name: str, summary: str, description: str, access: str, row: dict[str, Any], plural: str = ""
    ) -> dict[str, Any]:
        id = f"{self.area}.{name}_{self.noun}{plural}" if self.noun else f"{self.area}.{name}"
        pattern = self.resource.schema["properties"].get("id", {}).get("pattern", "")
        ids = {"id": prefix_in(pattern)} if pattern and row["path"].startswith(f"{self._path}/{{id}}") else {}
        row = {"ids": ids, "scope": f"{self.scope}:{access}", **row}
        return {"id": id, "summary": summary, "description": description, **row}
