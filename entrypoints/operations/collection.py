"""Standard operations on one type of resource: list, read, create, update, delete."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from adapters.api_json.resource import JsonResource
from domain.audit.resources import ResourceService
from domain.kernel.ids import find_pattern_prefix
from entrypoints.operations.operation import Read, ReadContext, Reply, UndoSupport, Write, WriteContext

ServiceMethod = Callable[..., Awaitable[Any]]
"""Method of a service class. An operation calls the method of this name on its own service, which may override it."""


@dataclass(frozen=True)
class Collection:
    """Factory of the operations on one type of resource, such as GET and POST on `/v1/sources`.

    Each method returns one operation. The operation calls the service's method `service_method` with the transaction,
    the IDs in the path and the request's data. `options` are further attributes of the operation, such as `errors`,
    `agent` or another `handler`.

    Attributes:
        area: Name of the area, which is the prefix of the operation IDs.
        resource: JSON schema and rendering of the resource.
        scope_prefix: First part of the scopes, such as `sources` for `sources:read` and `sources:write`.
        list_path: Path of the list. By default, it is derived from the path of a single resource.
        noun: Name of the resource in the operation IDs, for an area with several types of resources.
        select_service: Function that selects the service of this resource, for an area with several services.
    """

    area: str
    resource: JsonResource[Any]
    scope_prefix: str
    list_path: str = ""
    noun: str = ""
    select_service: Callable[[Any], Any] = lambda service: service

    def list(
        self,
        summary: str,
        description: str = "",
        service_method: ServiceMethod = ResourceService.page,
        *,
        create_filter: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Read:
        """Return the operation that lists the resources: GET on the path of the list.

        Args:
            summary: The operation's summary.
            description: The operation's description.
            service_method: The service's method that returns a page.
            create_filter: Converts the query parameters into an argument of `service_method`, which precedes the page request.
            **options: Further attributes of the operation.
        """

        async def handle(context: ReadContext[Any]) -> Reply:
            arguments = (
                [context.page_request]
                if create_filter is None
                else [create_filter(**context.query), context.page_request]
            )
            return context.build_list_reply(
                self.resource, await self._call_service(context, service_method, *arguments)
            )

        row = {"handler": handle, "reply": self.resource.list_schema, "paging": "both", "path": self._list_path}
        return Read(**self._build_attributes("list", summary, description, "read", {**row, **options}, plural="s"))

    def read(
        self, summary: str, description: str = "", service_method: ServiceMethod = ResourceService.get, **options: Any
    ) -> Read:
        """Return the operation that reads one resource: GET on `…/{id}`. It calls `service_method`."""

        async def handle(context: ReadContext[Any]) -> Reply:
            return context.build_resource_reply(self.resource, await self._call_service(context, service_method))

        row = {"handler": handle, "reply": self.resource.schema, "path": f"{self._list_path}/{{id}}"}
        return Read(**self._build_attributes("read", summary, description, "read", {**row, **options}))

    def create(
        self,
        summary: str,
        description: str = "",
        service_method: ServiceMethod = ResourceService.create,
        **options: Any,
    ) -> Write:
        """Return the operation that creates a resource: POST on the path of the list.

        `service_method` is the service's method. The response's Location header is the URL of the new resource.
        """
        row: dict[str, Any] = {
            "body": options.get("body") or self.resource.build_create_body(),
            "status": 201,
            "path": self._list_path,
        }
        row["undo"] = UndoSupport(f"The {self._display_name} is deleted.", ResourceService.undo)
        return self.write("create", summary, description, service_method, is_creation=True, **{**row, **options})

    def update(self, summary: str, description: str = "Omitted fields keep their values.", **options: Any) -> Write:
        """Return the operation that changes a resource: PATCH on `…/{id}`."""
        row: dict[str, Any] = {
            "body": self.resource.build_patch_body(),
            "requires_if_match": True,
            "path": f"{self._list_path}/{{id}}",
        }
        row["undo"] = UndoSupport("The changed fields get their previous values.", ResourceService.undo)
        return self.write("update", summary, description, ResourceService.update, method="PATCH", **{**row, **options})

    def delete(self, summary: str, description: str = "", **options: Any) -> Write:
        """Return the operation that deletes a resource: DELETE on `…/{id}`."""

        async def handle(context: WriteContext[Any]) -> Reply:
            await self._call_service(context, ResourceService.delete)
            return Reply()

        row: dict[str, Any] = {"handler": handle, "reply": None, "status": 204, "path": f"{self._list_path}/{{id}}"}
        row["undo"] = UndoSupport(f"The {self._display_name} is created again.", ResourceService.undo)
        return self.write("delete", summary, description, method="DELETE", **{**row, **options})

    def write(
        self,
        name: str,
        summary: str,
        description: str,
        service_method: ServiceMethod | None = None,
        *,
        is_creation: bool = False,
        **options: Any,
    ) -> Write:
        """Return an operation that changes something, by default POST on `…/{id}/<name>`.

        Args:
            name: The last part of the operation's ID.
            summary: The operation's summary.
            description: The operation's description.
            service_method: The service's method. It receives the decoded body if there is one, and the
                expected version if the header If-Match is required.
            is_creation: Whether the operation creates a resource, whose URL is then in the response's Location header.
            **options: Further attributes of the operation.
        """
        if service_method is None and "handler" not in options:
            raise ValueError(f"{name}: the operation needs a `change` or a `handler`.")
        attributes = [
            attribute
            for attribute, key in (("command", "body"), ("expected_version", "requires_if_match"))
            if options.get(key)
        ]

        async def handle(context: WriteContext[Any]) -> Reply:
            assert service_method is not None
            row = await self._call_service(
                context, service_method, *(getattr(context, attribute) for attribute in attributes)
            )
            return (
                context.build_created_reply(self.resource, row)
                if is_creation
                else context.build_resource_reply(self.resource, row)
            )

        path = f"{self._list_path}/{{id}}/{name.replace('_', '-')}"
        row = {"handler": handle, "reply": self.resource.schema, "method": "POST", "path": path}
        return Write(**self._build_attributes(name, summary, description, "write", {**row, **options}))

    async def _call_service(self, context: ReadContext[Any], method: ServiceMethod, *arguments: Any) -> Any:
        """Call the service's method that has the name of `method`, with the transaction, the IDs in the path and the arguments."""
        return await getattr(self.select_service(context.service), method.__name__)(
            context.tx, *context.ids.values(), *arguments
        )

    @property
    def _list_path(self) -> str:
        return self.list_path or self.resource.path.rpartition("/")[0]

    @property
    def _display_name(self) -> str:
        """Name of the resource in sentences, with spaces instead of underscores."""
        return str(self.resource.name).replace("_", " ")

    def _build_attributes(
        self, name: str, summary: str, description: str, access: str, attributes: dict[str, Any], plural: str = ""
    ) -> dict[str, Any]:
        """Return the attributes of an operation.

        `access` is the suffix of the scope: `read` or `write`. `attributes` are further attributes, which take
        precedence. `plural` is appended to the noun in the operation's ID.
        """
        id = f"{self.area}.{name}_{self.noun}{plural}" if self.noun else f"{self.area}.{name}"
        pattern = self.resource.schema["properties"].get("id", {}).get("pattern", "")
        ids = (
            {"id": find_pattern_prefix(pattern)}
            if pattern and attributes["path"].startswith(f"{self._list_path}/{{id}}")
            else {}
        )
        defaults = {"id": id, "summary": summary, "description": description, "ids": ids}
        return {**defaults, "scope": f"{self.scope_prefix}:{access}", **attributes}
