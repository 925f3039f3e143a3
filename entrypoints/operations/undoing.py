"""How the operations of all areas are taken back: what their rows declare, by their areas' services, as the caller may."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from domain.access.model import Principal
from domain.audit.model import Act
from entrypoints.operations.operation import Operation, Undoing, permit
from ports.unit_of_work import Tx

BY_NOBODY: Final = "The service did it by itself, or its operator did; make the opposite change yourself."


class Undoings:
    """The rows of the operation table, and the services of their areas."""

    def __init__(self, operations: Iterable[Operation], services: Mapping[str, Any]) -> None:
        self._operations = {operation.id: operation for operation in operations}
        self._services = services

    def of(self, action: str) -> Undoing | str:
        """How that operation is undone, or why not."""
        operation = self._operations.get(action)
        return BY_NOBODY if operation is None or operation.undo is None else operation.undo

    def may(self, caller: Principal, action: str) -> None:
        """Raises PermissionDenied, FeatureUnavailable."""
        permit(self._operations[action], caller)

    async def take_back(self, tx: Tx, act: Act) -> None:
        """Have the act's area take it back."""
        operation = self._operations[act.first.context.operation]
        assert isinstance(operation.undo, Undoing), "asked before"
        await operation.undo.back(self._services[operation.area], tx, act)


@dataclass(frozen=True, slots=True)
class CallersReversals:
    """domain.audit.usecases.Reversals, as one caller may carry them out."""

    undoings: Undoings
    caller: Principal

    def refusal(self, action: str) -> str | None:
        """Why what such an operation did is never undone."""
        undoing = self.undoings.of(action)
        return undoing if isinstance(undoing, str) else None

    def permit(self, action: str) -> None:
        """What the operation itself takes, taking it back takes."""
        if self.refusal(action) is None:
            self.undoings.may(self.caller, action)

    async def take_back(self, tx: Tx, act: Act) -> None:
        """By the act's area."""
        await self.undoings.take_back(tx, act)
