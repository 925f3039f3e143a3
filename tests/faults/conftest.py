"""A stage of its own: an API, and a patient worker with a short lease that takes over from those that die."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.postgres.databases import fresh_database

TRAPS = ("-m", "tests.faults.crash_points")


@dataclass
class Faults:
    """The stage and its patient worker."""

    stage: ServiceProcesses
    patient: "subprocess.Popen[bytes]"

    @contextmanager
    def trapped(self, place: str, number: str = "SIGKILL") -> Iterator["subprocess.Popen[bytes]"]:
        """A worker with a trap, and nobody else at work meanwhile."""
        self.patient.send_signal(signal.SIGSTOP)
        try:
            yield self.stage.start("trapped", (*TRAPS, "worker", place, number))
        finally:
            self.patient.send_signal(signal.SIGCONT)

    def organisation(self) -> Tenancy:
        """A new one."""
        return self.stage.create_organisation()


@pytest.fixture(scope="session")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Faults]:
    """The stage, running."""
    stage = ServiceProcesses(asyncio.run(fresh_database("faults")), tmp_path_factory.mktemp("faults"))
    try:
        patient = stage.start("patient", (*TRAPS, "worker"))
        stage.start_api()
        yield Faults(stage, patient)
    finally:
        stage.stop()
