"""Job handlers of the processes for direct calls in tests, and fakes of external services."""

from dataclasses import dataclass, field
from datetime import timedelta

from domain.jobs.usecases.lane_processor import Handler
from domain.runs.run_queue import EXECUTE_RUN
from entrypoints.areas import runs
from entrypoints.dependencies import Dependencies
from entrypoints.operations.operation import create_handlers
from tests.support.connectors import FakeConnectors
from tests.support.memory.objects import MemoryObjects

MINUTE = timedelta(minutes=1)


def create_run_handler(container: Dependencies) -> Handler:
    """Return the handler of `runs.execute` jobs, as created by a worker."""
    return create_handlers([runs.AREA], container)[EXECUTE_RUN]


@dataclass
class ExternalFakes:
    """Fakes of external services."""

    connectors: FakeConnectors = field(default_factory=FakeConnectors)
    objects: MemoryObjects = field(default_factory=MemoryObjects)
