"""Validation against JSON Schemas that are known only at run time, such as a connector's settings."""

from collections.abc import Mapping
from typing import Any, Protocol

from domain.kernel.errors import FieldError


class Schemas(Protocol):
    """Validator for JSON Schema, Draft 2020-12."""

    def faults(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """Return the value's violations of the schema, each with its dotted path below `path`."""
        ...
