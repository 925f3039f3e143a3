"""The usual operations on resources of one kind, which a `ResourceService` carries out."""

from dataclasses import dataclass
from typing import Any

from adapters.wire.resource import Resource
from domain.audit.resources import ResourceService
from entrypoints.operations.operation import Read, ReadContext, Reply, Undoing, Write, WriteContext


@dataclass(frozen=True, slots=True)
class Collection:
    """Makes the rows that list, create, read, update and delete a resource.

    Each method takes a summary, a description and what its row has otherwise (`handler`, `errors`, `agent` …).

    Attributes:
        area: what the ids of the operations begin with.
        resource: its JSON.
        path: of the list.
        prefix: of its ids.
        scope: reading takes `<scope>:read`, changing `<scope>:write`.
    """

    area: str
    resource: Resource[Any]
    path: str
    prefix: str
    scope: str

    def list(self, summary: str, description: str = "", **more: Any) -> Read:
        """Return the row of GET on the list."""

        async def handle(call: ReadContext[ResourceService[Any]]) -> Reply:
            return call.list(self.resource, await call.service.page(call.tx, call.page_request))

        row: dict[str, Any] = {"handler": handle, "reply": self.resource.list, "paging": "both"}
        return Read(**self._row("list", summary, description, "read"), **{**row, **more})

    def create(self, summary: str, description: str = "", **more: Any) -> Write:
        """Return the row of POST."""

        async def handle(call: WriteContext[ResourceService[Any]]) -> Reply:
            return call.made(self.resource, await call.service.create(call.tx, call.command))

        row: dict[str, Any] = {"handler": handle, "body": self.resource.create(), "reply": self.resource.schema}
        row |= {"undo": Undoing(f"The {self._noun} is deleted.", ResourceService.undo), "status": 201}
        return Write(method="POST", **self._row("create", summary, description, "write"), **{**row, **more})

    def read(self, summary: str, description: str = "", **more: Any) -> Read:
        """Return the row of GET on one."""

        async def handle(call: ReadContext[ResourceService[Any]]) -> Reply:
            return call.one(self.resource, await call.service.get(call.tx, call.ids["id"]))

        row: dict[str, Any] = {"handler": handle, "reply": self.resource.schema}
        return Read(**self._row("read", summary, description, "read", one=True), **{**row, **more})

    def update(self, summary: str, description: str = "Fields that are left out stay.", **more: Any) -> Write:
        """Return the row of PATCH."""

        async def handle(call: WriteContext[ResourceService[Any]]) -> Reply:
            row = await call.service.update(call.tx, call.ids["id"], call.command, call.expected_version)
            return call.one(self.resource, row)

        row: dict[str, Any] = {"handler": handle, "body": self.resource.patch(), "reply": self.resource.schema}
        row |= {"undo": Undoing("The fields that were changed are as before.", ResourceService.undo), "if_match": True}
        common = self._row("update", summary, description, "write", one=True)
        return Write(method="PATCH", **common, **{**row, **more})

    def delete(self, summary: str, description: str = "", **more: Any) -> Write:
        """Return the row of DELETE."""

        async def handle(call: WriteContext[ResourceService[Any]]) -> Reply:
            await call.service.delete(call.tx, call.ids["id"])
            return Reply()

        row: dict[str, Any] = {"handler": handle, "reply": None, "status": 204}
        row |= {"undo": Undoing(f"The {self._noun} is created again.", ResourceService.undo)}
        common = self._row("delete", summary, description, "write", one=True)
        return Write(method="DELETE", **common, **{**row, **more})

    @property
    def _noun(self) -> str:
        return str(self.resource.name).replace("_", " ")

    def _row(self, name: str, summary: str, description: str, access: str, *, one: bool = False) -> dict[str, Any]:
        return {
            "id": f"{self.area}.{name}",
            "path": f"{self.path}/{{id}}" if one else self.path,
            "ids": {"id": self.prefix} if one else {},
            "summary": summary,
            "description": description,
            "scope": f"{self.scope}:{access}",
        }
