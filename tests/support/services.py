"""What the processes make of their dependencies, for tests that call it themselves; and fakes of what lies outside."""

from dataclasses import dataclass, field
from datetime import timedelta

from domain.jobs.usecases.draining import Handler
from domain.runs.queueing import EXECUTE
from entrypoints.areas import runs
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import handlers_of
from tests.support.connectors import FakeConnectors
from tests.support.memory.objects import MemoryObjects

MINUTE = timedelta(minutes=1)


def execution_of(container: Dependencies) -> Handler:
    """The handler of `runs.execute` jobs, as a worker makes it."""
    return handlers_of([runs.AREA], container)[EXECUTE]


@dataclass
class Outside:
    """Fakes of what lies outside."""

    connectors: FakeConnectors = field(default_factory=FakeConnectors)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
