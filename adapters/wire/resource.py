"""Declarations of resources: JSON schema with examples, rendering of rows, and bodies that create and change them."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypedDict, TypeVar, get_type_hints

import msgspec

from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.plain import ATOMS, plain
from domain.kernel.resource import Field, View, field_of, fields_of
from domain.kernel.schema import Schema, array, list_of, moments_in, named, record, strict_object

R = TypeVar("R")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
_NOTHING: Final[Mapping[str, Any]] = {}
_PARAMETER = re.compile(r"{(\w+)}")


def part(resource: "Resource[Any]", select: Callable[[Any], Any]) -> Field:
    """Return a field that contains a nested resource."""
    return Field(resource.schema, lambda row, view: resource.render(select(row), view), rendered=True)


def parts(resource: "Resource[Any]", select: Callable[[Any], Iterable[Any]], description: str) -> Field:
    """Return a field that contains a list of nested resources."""

    def render(row: Any, view: View) -> list[dict[str, Any]]:
        return [resource.render(part, view) for part in select(row)]

    return Field(array(resource.schema, description=description), render, rendered=True)


UNREADABLE = (
    "A value of the body is out of range or has an invalid format. Compare the body with the operation's description."
)


class Body(Generic[C_co]):
    """Request body: a closed schema, and the decoding to the command that the use case takes."""

    LIMIT: Final = 1 << 20
    """Default maximum size in bytes."""
    VALUES: Final = 80_000
    """Maximum number of JSON values per MiB of the limit, since they determine the memory that decoding takes."""

    def __init__(
        self, schema: Schema, decode: Callable[[Any], C_co], *, required: bool = True, limit: int = LIMIT
    ) -> None:
        self.schema, self._decode, self.required, self.limit = schema, decode, required, limit
        self.values: Final = limit * Body.VALUES >> 20
        self._moments = moments_in(schema.get("properties", {}))

    def decode(self, value: Any) -> C_co:
        """Decode a value that conforms to the schema. Raises InvalidRequest for errors that the schema does not detect."""
        members = {} if value is None else value
        if moments := self._moments(members):
            members = members | moments
        try:
            return self._decode(members)
        except msgspec.ValidationError as error:
            raise InvalidRequest(UNREADABLE, fields=(FieldError("body", "invalid_format", UNREADABLE),)) from error


def into(command: type[C]) -> Callable[[Any], C]:
    """Return a decoder to a typed dictionary or a dataclass."""
    return lambda value: msgspec.convert(value, command)


class Resource(Generic[R]):
    """Declaration of a resource's JSON. `of` builds it from a dataclass that declares its properties.

    Args:
        name: Value of `object`; None for a part of another resource.
        fields: Properties in the order of the response.
        path: Path of one resource, with `{field}` for fields of the row.
        description: Description in OpenAPI.
        title: Component name in OpenAPI, if it differs from `name`.
        etag_source: Function that removes time-dependent values before the ETag is computed.

    """

    def __init__(
        self,
        name: str | None,
        fields: Mapping[str, "Field | Schema"],
        *,
        path: str = "",
        description: str = "",
        title: str = "",
        etag_source: Callable[[dict[str, Any]], Any] | None = None,
    ) -> None:
        self.name: Final = name
        self.kind: Any = None
        self.path: Final = path
        self.etag_source: Final = etag_source
        self.fields: Final = {key: field_of(declared) for key, declared in fields.items()}
        optional = tuple(key for key, field in self.fields.items() if field.optional)
        properties = {key: field.schema for key, field in self.fields.items()}
        schema = record(name, properties, optional=optional, description=description)
        self.schema: Final = named(title, schema) if title else schema
        self.list: Final = list_of(self.schema)
        self._renderers = [(name, field.of, field.rendered, field.optional) for name, field in self.fields.items()]

    @classmethod
    def of(
        cls, kind: type[R], name: str, computed: Mapping[str, "Field | Schema"] = _NOTHING, **more: Any
    ) -> "Resource[R]":
        """Return the resource that the dataclass `kind` declares, with further `computed` properties."""
        declared: Any = kind
        resource = cls(name, {**fields_of(declared), **computed}, **more)
        resource.kind = kind
        return resource

    def _command(self, name: str, fields: Iterable[str]) -> Any:
        types = get_type_hints(self.kind)
        return TypedDict(name, {field: types[field] for field in fields}, total=False)  # type: ignore[operator]

    def render(self, row: R, view: View) -> dict[str, Any]:
        """Render the row; None is omitted for optional properties and null for others."""
        answer: dict[str, Any] = {"object": self.name} if self.name else {}
        for name, compute, rendered, optional in self._renderers:
            value = compute(row, view) if compute else getattr(row, name)
            if not rendered and type(value) not in ATOMS:
                value = plain(value)
            if value is not None or not optional:
                answer[name] = value
        return answer

    def path_of(self, row: R) -> str:
        """Return the path of the row's resource."""
        return _PARAMETER.sub(lambda match: str(getattr(row, match[1])), self.path)

    def create(self, command: type[C] | None = None) -> Body[C]:
        """Return the body that creates a resource, decoded to `command` or to a dictionary of the dataclass's fields."""
        settable_fields = {name: field.create for name, field in self.fields.items() if field.create is not None}
        required = tuple(name for name, field in self.fields.items() if field.required)
        return Body(
            named(f"{self.name}_create", strict_object(settable_fields, required)),
            into(command or self._command("New", settable_fields)),
        )

    def patch(self, command: type[C] | None = None) -> Body[C]:
        """Return the body that changes a resource; omitted fields are kept."""
        changeable_fields = {name: field.patch for name, field in self.fields.items() if field.patch is not None}
        return Body(
            named(f"{self.name}_update", strict_object(changeable_fields)),
            into(command or self._command("Changes", changeable_fields)),
        )
