"""Declaration of resources: dataclasses whose fields define how each property is returned, set, changed and audited.

A field with a schema is a property of the resource's JSON::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Note:
        id: Annotated[str, id_schema("agt")]
        title: Annotated[str, settable(text("Oak prices"), required=True)]
        pinned: Annotated[bool, settable(boolean(False))] = False
        version: Annotated[int, VERSION] = 1

A field without a schema is stored but never returned. Tables, request bodies, audit entries and undo use the same
declaration.
"""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import msgspec

from domain.kernel.errors import NotFound, PreconditionFailed
from domain.kernel.schema import Schema, integer, nullable
from domain.kernel.tenancy import Tenant

R = TypeVar("R")
VERSION = integer(3, minimum=1, description="The object's version, which the service compares with If-Match.")


@dataclass(frozen=True, slots=True)
class RenderContext:
    """Context in which a resource is rendered: the tenant that reads it, and the current time."""

    tenant: Tenant
    now: datetime


@dataclass(frozen=True, slots=True)
class Field:
    """Declaration of one property of a resource.

    Attributes:
        schema: The schema in responses.
        compute: Computes the value, if it is not a field of the dataclass.
        optional: Whether responses omit the property if it has no value.
        create: The schema in bodies that create the resource; None if they cannot set it.
        patch: The schema in bodies that change the resource; None if they cannot change it.
        required: Whether bodies that create the resource must set it.
        rendered: Whether the result of `compute` is JSON already.
        audited: Whether the audit log records it; None means yes if a body can set it.
    """

    schema: Schema
    compute: Callable[[Any, RenderContext], Any] | None = None
    optional: bool = False
    create: Schema | None = None
    patch: Schema | None = None
    required: bool = False
    rendered: bool = False
    audited: bool | None = None

    @property
    def is_settable(self) -> bool:
        """True if a body can set the property, at creation or later."""
        return (self.create or self.patch) is not None

    @property
    def is_in_audit_log(self) -> bool:
        """True if the audit log records the property."""
        return self.is_settable if self.audited is None else self.audited


def to_field(declaration: Field | Schema) -> Field:
    """Return a declaration, a Field or a schema, as a Field; a schema declares a read-only property."""
    return declaration if isinstance(declaration, Field) else Field(declaration)


def optional(declaration: Field | Schema) -> Field:
    """Declare that responses omit the property if it has no value."""
    return replace(to_field(declaration), optional=True)


def audited(declaration: Field | Schema) -> Field:
    """Declare that the audit log records the property, although no body can set it."""
    return replace(to_field(declaration), audited=True)


def computed(schema: Schema, compute: Callable[[Any, RenderContext], Any]) -> Field:
    """Declare a property whose value the function `compute` computes when a response is rendered."""
    return Field(schema, compute)


def settable(
    schema: Schema, *, required: bool = False, patch: Schema | None = None, response_schema: Schema | None = None
) -> Field:
    """Declare that bodies can set the property, at creation and later.

    Args:
        schema: The schema in request bodies.
        required: Whether bodies that create the resource must set the property.
        patch: Keywords that are added to `schema`, or replaced, in bodies that change the resource.
        response_schema: The schema in responses, if it differs from `schema`.
    """
    return Field(response_schema or schema, create=schema, patch=schema | (patch or {}), required=required)


def set_at_creation(schema: Schema, *, required: bool = False, response_schema: Schema | None = None) -> Field:
    """Declare that bodies can set the property only at creation.

    `response_schema` is the schema in responses, if it differs from `schema`.
    """
    return Field(response_schema or schema, create=schema, required=required)


def changeable(schema: Schema, patch: Schema | None = None) -> Field:
    """Declare that bodies can set the property only after creation; `patch` is their schema (default: `schema`)."""
    return Field(schema, patch=patch or schema)


def clearable(schema: Schema, description: str) -> Field:
    """Declare that bodies can set the property, and remove it with null; responses omit it if it has no value."""
    return Field(schema, optional=True, create=schema, patch=nullable(schema) | {"description": description})


@cache
def fields_of(kind: Hashable) -> Mapping[str, Field]:
    """Return the fields of a dataclass that are properties of the resource, by name and in order of declaration."""
    found = {}
    declared: Any = kind
    for name, hint in get_type_hints(declared, include_extras=True).items():
        for note in get_args(hint)[1:] if hasattr(hint, "__metadata__") else ():
            if isinstance(note, (Field, dict)):
                found[name] = to_field(note)
    return found


@cache
def _types_of(kind: Hashable) -> Mapping[str, Any]:
    declared: Any = kind
    return get_type_hints(declared)


def convert_json_values(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert recorded values of fields from plain JSON types to the types that a dataclass declares.

    Args:
        kind: The dataclass.
        values: The values by field name, as JSON values.
    """
    types = _types_of(kind)
    return {name: msgspec.convert(value, types[name]) for name, value in values.items()}


def select_differing(row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that differ from the row's fields with the same names."""
    return {name: value for name, value in values.items() if getattr(row, name) != value}


def with_changes(row: R, now: datetime, **changes: Any) -> R:
    """Return a copy of the row with the changes, `now` as `updated_at` and, if it has a version, the next version."""
    one: Any = row
    version = {"version": one.version + 1} if hasattr(one, "version") else {}
    after: R = replace(one, updated_at=now, **version, **changes)
    return after


def require_found(row: R | None) -> R:
    """Return the row; raise NotFound if it is None."""
    if row is None:
        raise NotFound
    return row


def require_version(row: Any, expected: int | None) -> None:
    """Raise PreconditionFailed if the row's version is not the expected one; None accepts any version."""
    if expected not in (None, row.version):
        raise PreconditionFailed(
            f"The object now has version {row.version}, not the version in If-Match. Read the object again and use its new ETag."
        )
