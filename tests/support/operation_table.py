"""The whole operation table, as the application serves it."""

from entrypoints.areas.registry import AREAS
from entrypoints.operations.table import OperationTable


def load_operation_table() -> OperationTable:
    """Every area's rows."""
    return OperationTable(AREAS)
