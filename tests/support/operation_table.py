"""The complete operation table of the application."""

from entrypoints.areas.registry import AREAS
from entrypoints.operations.table import OperationTable


def load_operation_table() -> OperationTable:
    """Return the rows of all areas."""
    return OperationTable(AREAS)
