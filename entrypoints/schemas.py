"""Checks values against JSON Schemas that connectors bring along, by the same validator as request bodies."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.kernel.errors import FieldError
from entrypoints.http.validation import Validator


class SchemaFaults:
    """ports.schemas.Schemas. A schema is compiled each time: settings are seldom changed."""

    def faults(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """What is wrong with the value, each fault under its dotted path below `path`."""

        def below(parts: Sequence[str | int]) -> str:
            return ".".join((path, *map(str, parts)))

        return Validator(schema, below).faults(value)
