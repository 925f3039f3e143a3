"""The whole operation table, as the application serves it."""

from entrypoints.areas.registry import AREAS
from entrypoints.operations.table import Table


def whole() -> Table:
    """Every area's rows."""
    return Table(AREAS)
