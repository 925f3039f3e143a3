"""Declarations of resources: JSON schemas with examples, rendering, and bodies that create and change resources."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypedDict, TypeVar, get_type_hints

import msgspec

from domain.kernel.errors import FieldError, InvalidRequest
from domain.kernel.json_values import ATOMS, to_json_value
from domain.kernel.resource import Field, RenderContext, fields_of, to_field
from domain.kernel.schema import (
    Schema,
    array,
    create_time_parser,
    list_response,
    response_object,
    strict_object,
    with_title,
)

R = TypeVar("R")
C = TypeVar("C")
C_co = TypeVar("C_co", covariant=True)
_NOTHING: Final[Mapping[str, Any]] = {}
_PARAMETER = re.compile(r"{(\w+)}")


def create_nested_field(resource: "JsonResource[Any]", select: Callable[[Any], Any]) -> Field:
    """Return a field that contains one nested resource, which `select` returns for a row."""
    return Field(resource.schema, lambda row, view: resource.render(select(row), view), rendered=True)


def create_nested_list_field(
    resource: "JsonResource[Any]", select: Callable[[Any], Iterable[Any]], description: str
) -> Field:
    """Return a field that contains a list of nested resources, whose rows `select` returns."""

    def render(row: Any, view: RenderContext) -> list[dict[str, Any]]:
        return [resource.render(part, view) for part in select(row)]

    return Field(array(resource.schema, description=description), render, rendered=True)


INVALID_BODY_DETAIL = (
    "A value of the body is out of range or has an invalid format. Compare the body with the operation's description."
)


class Body(Generic[C_co]):
    """Request body: its closed JSON schema, and the conversion of the JSON to the command of the use case."""

    DEFAULT_MAX_BYTES: Final = 1 << 20
    """Default of the maximum size in bytes."""
    MAX_VALUES_PER_MIB: Final = 80_000
    """Maximum number of JSON values per MiB of the maximum size; it limits the memory that decoding takes."""

    def __init__(
        self,
        schema: Schema,
        decode: Callable[[Any], C_co],
        *,
        is_required: bool = True,
        max_bytes: int = DEFAULT_MAX_BYTES,
        accepted_schema: Schema | None = None,
    ) -> None:
        """Declare a body.

        Args:
            schema: The documented JSON schema.
            decode: Converts JSON to the command.
            is_required: Whether the operation requires a body.
            max_bytes: The maximum size in bytes.
            accepted_schema: The JSON schema that a body must have, if the operation itself checks some parts of it and
                reports invalid ones in its response; by default `schema`.
        """
        self.accepted_schema: Final = schema if accepted_schema is None else accepted_schema
        self.schema, self._decode, self.is_required, self.max_bytes = schema, decode, is_required, max_bytes
        self.max_values: Final = max_bytes * Body.MAX_VALUES_PER_MIB >> 20
        self._moments = create_time_parser(schema.get("properties", {}))

    def decode(self, value: Any) -> C_co:
        """Convert JSON that conforms to the schema to the command.

        Raises InvalidRequest for errors that a schema cannot detect.
        """
        members = {} if value is None else value
        if moments := self._moments(members):
            members = members | moments
        try:
            return self._decode(members)
        except msgspec.ValidationError as error:
            raise InvalidRequest(
                INVALID_BODY_DETAIL, fields=(FieldError("body", "invalid_format", INVALID_BODY_DETAIL),)
            ) from error


def create_decoder(target_type: type[C]) -> Callable[[Any], C]:
    """Return a function that converts a JSON value to the TypedDict or dataclass `target_type`."""
    return lambda value: msgspec.convert(value, target_type)


class JsonResource(Generic[R]):
    """Declaration of the JSON of a resource: its properties, their schemas, and the rendering of rows.

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
        self.fields: Final = {key: to_field(declared) for key, declared in fields.items()}
        optional = tuple(key for key, field in self.fields.items() if field.optional)
        properties = {key: field.schema for key, field in self.fields.items()}
        schema = response_object(name, properties, optional=optional, description=description)
        self.schema: Final = with_title(title, schema) if title else schema
        self.list_schema: Final = list_response(self.schema)
        self._renderers = [(name, field.compute, field.rendered, field.optional) for name, field in self.fields.items()]

    @classmethod
    def from_dataclass(
        cls, dataclass_type: type[R], name: str, extra_fields: Mapping[str, "Field | Schema"] = _NOTHING, **options: Any
    ) -> "JsonResource[R]":
        """Create a resource whose properties are declared by the fields of a dataclass.

        `extra_fields` are additional properties; `options` are further arguments of the constructor.
        """
        declared: Any = dataclass_type
        resource = cls(name, {**fields_of(declared), **extra_fields}, **options)
        resource.kind = dataclass_type
        return resource

    def _build_command(self, name: str, fields: Iterable[str]) -> Any:
        types = get_type_hints(self.kind)
        return TypedDict(name, {field: types[field] for field in fields}, total=False)  # type: ignore[operator]

    def render(self, row: R, view: RenderContext) -> dict[str, Any]:
        """Render a row as JSON members.

        A value of None is omitted if the property is optional, and rendered as null otherwise.
        """
        members: dict[str, Any] = {"object": self.name} if self.name else {}
        for name, compute, rendered, optional in self._renderers:
            value = compute(row, view) if compute else getattr(row, name)
            if not rendered and type(value) not in ATOMS:
                value = to_json_value(value)
            if value is not None or not optional:
                members[name] = value
        return members

    def build_path(self, row: R) -> str:
        """Return the path of the resource that the row represents."""
        return _PARAMETER.sub(lambda match: str(getattr(row, match[1])), self.path)

    def build_create_body(self, command: type[C] | None = None) -> Body[C]:
        """Return the request body that creates a resource.

        The body is decoded to `command`, by default to a dictionary with the types of the dataclass's fields.
        """
        settable_fields = {name: field.create for name, field in self.fields.items() if field.create is not None}
        required = tuple(name for name, field in self.fields.items() if field.required)
        return Body(
            with_title(f"{self.name}_create", strict_object(settable_fields, required)),
            create_decoder(command or self._build_command("New", settable_fields)),
        )

    def build_patch_body(self, command: type[C] | None = None) -> Body[C]:
        """Return the request body that changes a resource, in which omitted fields remain unchanged.

        The body is decoded to `command`, by default to a dictionary with the types of the dataclass's fields.
        """
        changeable_fields = {name: field.patch for name, field in self.fields.items() if field.patch is not None}
        return Body(
            with_title(f"{self.name}_update", strict_object(changeable_fields)),
            create_decoder(command or self._build_command("Changes", changeable_fields)),
        )
