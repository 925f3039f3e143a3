"""What the processes make of their dependencies, for tests that call it themselves; and fakes of what lies outside."""

from dataclasses import dataclass, field
from datetime import timedelta

from domain.jobs.usecases.draining import Handler
from domain.runs.queueing import EXECUTE
from entrypoints.areas import runs
from entrypoints.container import Container
from tests.support.connectors import FakeConnectors
from tests.support.memory.objects import MemoryObjects

MINUTE = timedelta(minutes=1)


def execution_of(container: Container) -> Handler:
    """The handler of `runs.execute` jobs, as a worker makes it."""
    return runs.AREA.jobs(container.assembled())[EXECUTE]


@dataclass
class Outside:
    """Fakes of what lies outside."""

    connectors: FakeConnectors = field(default_factory=FakeConnectors)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
