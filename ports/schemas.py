"""Validation against JSON Schemas that are known only at run time, such as a connector's settings."""

from collections.abc import Mapping
from typing import Any, Protocol

from domain.kernel.errors import FieldError


class SchemaValidator(Protocol):
    """Validator of values against JSON Schemas (Draft 2020-12)."""

    def find_field_errors(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """Return the field errors of a value that does not match the schema; the dotted path of each begins with `path`."""
        ...
