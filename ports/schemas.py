"""Checking values against JSON Schemas that are only known at run time, such as a connector's settings."""

from collections.abc import Mapping
from typing import Any, Protocol

from domain.kernel.errors import FieldError


class Schemas(Protocol):
    """JSON Schema, Draft 2020-12."""

    def faults(self, schema: Mapping[str, Any], value: Any, path: str) -> tuple[FieldError, ...]:
        """What is wrong with the value, each fault under its dotted path below `path`; empty when nothing is."""
        ...
