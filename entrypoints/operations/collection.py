"""The usual operations on resources of one kind: each answers with the resource that a method of the area's service returns."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from adapters.wire.resource import Resource
from domain.audit.resources import ResourceService
from domain.kernel.ids import prefix_in
from entrypoints.operations.operation import Read, ReadContext, Reply, Undoing, Write, WriteContext

Method = Callable[..., Awaitable[Any]]
"""A use case. It is looked up by its name, so that the service of an area may override it."""


@dataclass(frozen=True)
class Collection:
    """Makes the rows of the operation table for one resource.

    Each method takes a summary, a description, the method of the service that is called (with the transaction, the ids in
    the path, and what the request brings), and what the row has otherwise, such as `errors`, `agent` or another `handler`.

    Attributes:
        area: The area, which the ids of the operations begin with.
        resource: Its JSON.
        scope: Reading takes `<scope>:read`, changing `<scope>:write`.
        path: The path of the list, where the resource does not name that of one.
        noun: The name of one in the ids of the operations, in an area of several resources.
        service: Returns the service among several of the area.
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
        """Return the row of GET on the list; `filter` is made of the query and given to `find`, too."""

        async def handle(call: ReadContext[Any]) -> Reply:
            given = [call.page_request] if filter is None else [filter(**call.query), call.page_request]
            return call.list(self.resource, await self._use(call, find, *given))

        row = {"handler": handle, "reply": self.resource.list, "paging": "both", "path": self._path}
        return Read(**self._row("list", summary, description, "read", {**row, **more}, plural="s"))

    def read(self, summary: str, description: str = "", find: Method = ResourceService.get, **more: Any) -> Read:
        """Return the row of GET on one."""

        async def handle(call: ReadContext[Any]) -> Reply:
            return call.one(self.resource, await self._use(call, find))

        row = {"handler": handle, "reply": self.resource.schema, "path": f"{self._path}/{{id}}"}
        return Read(**self._row("read", summary, description, "read", {**row, **more}))

    def create(self, summary: str, description: str = "", make: Method = ResourceService.create, **more: Any) -> Write:
        """Return the row of POST on the list, which answers the address of what it made."""
        row: dict[str, Any] = {"body": more.get("body") or self.resource.create(), "status": 201, "path": self._path}
        row["undo"] = Undoing(f"The {self._words} is deleted.", ResourceService.undo)
        return self.write("create", summary, description, make, made=True, **{**row, **more})

    def update(self, summary: str, description: str = "Fields that are left out stay.", **more: Any) -> Write:
        """Return the row of PATCH."""
        row: dict[str, Any] = {"body": self.resource.patch(), "if_match": True, "path": f"{self._path}/{{id}}"}
        row["undo"] = Undoing("The fields that were changed are as before.", ResourceService.undo)
        return self.write("update", summary, description, ResourceService.update, method="PATCH", **{**row, **more})

    def delete(self, summary: str, description: str = "", **more: Any) -> Write:
        """Return the row of DELETE."""

        async def handle(call: WriteContext[Any]) -> Reply:
            await self._use(call, ResourceService.delete)
            return Reply()

        row: dict[str, Any] = {"handler": handle, "reply": None, "status": 204, "path": f"{self._path}/{{id}}"}
        row["undo"] = Undoing(f"The {self._words} is created again.", ResourceService.undo)
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
        """Return the row of a change, by default POST on `…/{id}/name`; `made` answers the address of the resource, too.

        `change` is given the decoded body where there is one, and the expected version where If-Match is required.
        """
        if change is None and "handler" not in more:
            raise ValueError(f"{name}: the row has neither a change nor a handler.")
        taken = [attribute for attribute, of in (("command", "body"), ("expected_version", "if_match")) if more.get(of)]

        async def handle(call: WriteContext[Any]) -> Reply:
            assert change is not None
            row = await self._use(call, change, *(getattr(call, attribute) for attribute in taken))
            return call.made(self.resource, row) if made else call.one(self.resource, row)

        path = f"{self._path}/{{id}}/{name.replace('_', '-')}"
        row = {"handler": handle, "reply": self.resource.schema, "method": "POST", "path": path}
        return Write(**self._row(name, summary, description, "write", {**row, **more}))

    async def _use(self, call: ReadContext[Any], method: Method, *given: Any) -> Any:
        return await getattr(self.service(call.service), method.__name__)(call.tx, *call.ids.values(), *given)

    @property
    def _path(self) -> str:
        return self.path or self.resource.path.rpartition("/")[0]

    @property
    def _words(self) -> str:
        return str(self.resource.name).replace("_", " ")

    def _row(
        self, name: str, summary: str, description: str, access: str, row: dict[str, Any], plural: str = ""
    ) -> dict[str, Any]:
        id = f"{self.area}.{name}_{self.noun}{plural}" if self.noun else f"{self.area}.{name}"
        pattern = self.resource.schema["properties"].get("id", {}).get("pattern", "")
        ids = {"id": prefix_in(pattern)} if pattern and row["path"].startswith(f"{self._path}/{{id}}") else {}
        row = {"ids": ids, "scope": f"{self.scope}:{access}", **row}
        return {"id": id, "summary": summary, "description": description, **row}
