"""One declaration of a resource's JSON: its schema and example, how a row is rendered, and what of it may be set."""

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


def part(resource: "Resource[Any]", of: Callable[[Any], Any]) -> Field:
    """What is part of a resource itself."""
    return Field(resource.schema, lambda row, view: resource.render(of(row), view), rendered=True)


def parts(resource: "Resource[Any]", of: Callable[[Any], Iterable[Any]], description: str) -> Field:
    """A list of what is a resource, or a part of one, itself."""

    def render(row: Any, view: View) -> list[dict[str, Any]]:
        return [resource.render(part, view) for part in of(row)]

    return Field(array(resource.schema, description=description), render, rendered=True)


UNREADABLE = (
    "A value of the body is out of range, or cannot be read; compare it with the description of this operation."
)


class Body(Generic[C_co]):
    """A request's body: its closed schema, and the command that a use case is given instead of JSON."""

    LIMIT: Final = 1 << 20
    """Bytes that a body has at most."""
    VALUES: Final = 80_000
    """JSON values that a body of a MiB has at most: what it takes in memory goes by them."""

    def __init__(
        self, schema: Schema, decode: Callable[[Any], C_co], *, required: bool = True, limit: int = LIMIT
    ) -> None:
        self.schema, self._decode, self.required, self.limit = schema, decode, required, limit
        self.values: Final = limit * Body.VALUES >> 20
        self._moments = moments_in(schema.get("properties", {}))

    def decode(self, value: Any) -> C_co:
        """The command, out of a value that fits the schema. Raises InvalidRequest for what the schema cannot tell."""
        given = {} if value is None else value
        if moments := self._moments(given):
            given = given | moments
        try:
            return self._decode(given)
        except msgspec.ValidationError as error:
            raise InvalidRequest(UNREADABLE, fields=(FieldError("body", "invalid_format", UNREADABLE),)) from error


def into(command: type[C]) -> Callable[[Any], C]:
    """Decodes into a typed dictionary or a dataclass of the domain."""
    return lambda value: msgspec.convert(value, command)


class Resource(Generic[R]):
    """`name` is the marker in `object`; without one it is part of another resource. `fields` in the order of the answer.

    A resource whose dataclass declares its properties is made by `of`.

    `path` is where one is read, with `{field}` for fields of the row; `title` names it where `name` would mislead.
    `etag_source` returns what an answer's ETag is computed from, where parts of the answer change with the time alone.
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
        self.fields: Final = {key: field_of(given) for key, given in fields.items()}
        left_out = tuple(key for key, field in self.fields.items() if field.optional)
        shown = {key: field.schema for key, field in self.fields.items()}
        described = record(name, shown, optional=left_out, description=description)
        self.schema: Final = named(title, described) if title else described
        self.list: Final = list_of(self.schema)
        self._shown = [(name, field.of, field.rendered, field.optional) for name, field in self.fields.items()]

    @classmethod
    def of(
        cls, kind: type[R], name: str, computed: Mapping[str, "Field | Schema"] = _NOTHING, **more: Any
    ) -> "Resource[R]":
        """Return the resource that a dataclass declares, with properties that are `computed` of its rows."""
        declared: Any = kind
        resource = cls(name, {**fields_of(declared), **computed}, **more)
        resource.kind = kind
        return resource

    def _command(self, name: str, fields: Iterable[str]) -> Any:
        types = get_type_hints(self.kind)
        return TypedDict(name, {field: types[field] for field in fields}, total=False)  # type: ignore[operator]

    def render(self, row: R, view: View) -> dict[str, Any]:
        """The row as it is answered: what is absent is left out of optional properties, null in others."""
        answer: dict[str, Any] = {"object": self.name} if self.name else {}
        for name, of, rendered, optional in self._shown:
            value = of(row, view) if of else getattr(row, name)
            if not rendered and type(value) not in ATOMS:
                value = plain(value)
            if value is not None or not optional:
                answer[name] = value
        return answer

    def path_of(self, row: R) -> str:
        """Where the row is read."""
        return _PARAMETER.sub(lambda found: str(getattr(row, found[1])), self.path)

    def create(self, command: type[C] | None = None) -> Body[C]:
        """Return the body that creates one, decoded into `command`, or into a dictionary of the dataclass's fields."""
        settable_fields = {name: field.create for name, field in self.fields.items() if field.create is not None}
        required = tuple(name for name, field in self.fields.items() if field.required)
        return Body(
            named(f"{self.name}_create", strict_object(settable_fields, required)),
            into(command or self._command("New", settable_fields)),
        )

    def patch(self, command: type[C] | None = None) -> Body[C]:
        """Return the body that changes one; what is left out stays."""
        changeable_fields = {name: field.patch for name, field in self.fields.items() if field.patch is not None}
        return Body(
            named(f"{self.name}_update", strict_object(changeable_fields)),
            into(command or self._command("Changes", changeable_fields)),
        )
