"""Declaring a resource once: a dataclass whose fields say how each is answered, set, changed and audited.

A field with a schema is a property of the resource's JSON::

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Note:
        id: Annotated[str, id_of("agt")]
        title: Annotated[str, settable(text("Oak prices"), required=True)]
        pinned: Annotated[bool, settable(boolean(False))] = False
        version: Annotated[int, VERSION] = 1

A field without one is stored and never answered. Tables, request bodies, audit entries and undo read the same declaration.
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
VERSION = integer(3, least=1, description="What If-Match compares.")


@dataclass(frozen=True, slots=True)
class View:
    """As whom and when a row is looked at."""

    tenant: Tenant
    now: datetime


@dataclass(frozen=True, slots=True)
class Field:
    """One property of a resource.

    Attributes:
        schema: how it is answered.
        of: computes the value where it is no field of the row.
        optional: whether it is left out where there is no value.
        create: what a body that creates the resource may set it to; None if it may not.
        patch: what a body that changes the resource may set it to; None if it may not.
        required: whether a body that creates the resource must set it.
        rendered: whether `of` returns JSON already.
        audited: whether the audit log has it; by default what a body may set.
    """

    schema: Schema
    of: Callable[[Any, View], Any] | None = None
    optional: bool = False
    create: Schema | None = None
    patch: Schema | None = None
    required: bool = False
    rendered: bool = False
    audited: bool | None = None

    @property
    def is_settable(self) -> bool:
        """True if a body may set it, at creation or later."""
        return (self.create or self.patch) is not None

    @property
    def in_audit_log(self) -> bool:
        """True if the audit log has it."""
        return self.is_settable if self.audited is None else self.audited


def field_of(given: Field | Schema) -> Field:
    """Return what is given as a Field; a schema alone is only answered."""
    return given if isinstance(given, Field) else Field(given)


def optional(given: Field | Schema) -> Field:
    """Leave the property out where there is no value."""
    return replace(field_of(given), optional=True)


def audited(given: Field | Schema) -> Field:
    """Have the audit log record the property, although no body sets it."""
    return replace(field_of(given), audited=True)


def computed(schema: Schema, of: Callable[[Any, View], Any]) -> Field:
    """Compute the property as the row is looked at."""
    return Field(schema, of)


def settable(
    schema: Schema, *, required: bool = False, patch: Schema | None = None, answered: Schema | None = None
) -> Field:
    """Let bodies set the property at creation and later.

    Args:
        schema: what a body may set it to.
        required: whether creation must set it.
        patch: added to the schema for changes.
        answered: how it is answered, if not by `schema`.
    """
    return Field(answered or schema, create=schema, patch=schema | (patch or {}), required=required)


def fixed(schema: Schema, *, required: bool = False, answered: Schema | None = None) -> Field:
    """Let bodies set the property at creation only."""
    return Field(answered or schema, create=schema, required=required)


def changeable(schema: Schema, patch: Schema | None = None) -> Field:
    """Let bodies change the property, to what `patch` allows, and the service set it at creation."""
    return Field(schema, patch=patch or schema)


def clearable(schema: Schema, description: str) -> Field:
    """Let bodies set the property and remove it by null; it is left out where there is no value."""
    return Field(schema, optional=True, create=schema, patch=nullable(schema) | {"description": description})


@cache
def fields_of(kind: Hashable) -> Mapping[str, Field]:
    """Return the properties that the fields of a dataclass declare, in their order."""
    found = {}
    declared: Any = kind
    for name, hint in get_type_hints(declared, include_extras=True).items():
        for note in get_args(hint)[1:] if hasattr(hint, "__metadata__") else ():
            if isinstance(note, (Field, dict)):
                found[name] = field_of(note)
    return found


@cache
def _types_of(kind: Hashable) -> Mapping[str, Any]:
    declared: Any = kind
    return get_type_hints(declared)


def load(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the plain values of fields (`domain.kernel.plain`) to the fields' types."""
    types = _types_of(kind)
    return {name: msgspec.convert(value, types[name]) for name, value in values.items()}


def differing(row: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of the values that the row's fields do not have yet."""
    return {name: value for name, value in values.items() if getattr(row, name) != value}


def changed(row: R, now: datetime, **changes: Any) -> R:
    """Return the row with those fields and `updated_at` changed, one version on if it has versions."""
    one: Any = row
    version = {"version": one.version + 1} if hasattr(one, "version") else {}
    after: R = replace(one, updated_at=now, **version, **changes)
    return after


def existing(row: R | None) -> R:
    """Return the row. Raises NotFound where there is none."""
    if row is None:
        raise NotFound
    return row


def refuse_stale(row: Any, expected: int | None) -> None:
    """Raise PreconditionFailed for a row at another version than expected; None expects any."""
    if expected not in (None, row.version):
        raise PreconditionFailed(
            f"It is at version {row.version} now, not at the one in If-Match; read it again and use its new ETag."
        )
