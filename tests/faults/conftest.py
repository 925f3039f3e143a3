"""Service processes: an API, and a standby worker with a short lease that takes over from crashed workers."""

import asyncio
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pytest

from tests.flows.service_processes import ServiceProcesses, Tenancy
from tests.postgres.databases import create_database

CRASH_POINTS = ("-m", "tests.faults.crash_points")


@dataclass
class FaultServices:
    """Service processes with a standby worker."""

    services: ServiceProcesses
    standby_worker: "subprocess.Popen[bytes]"

    @contextmanager
    def start_crashing_worker(self, place: str, number: str = "SIGKILL") -> Iterator["subprocess.Popen[bytes]"]:
        """Start a worker that crashes at `place`; the standby worker is paused in the meantime."""
        self.standby_worker.send_signal(signal.SIGSTOP)
        try:
            yield self.services.start("trapped", (*CRASH_POINTS, "worker", place, number))
        finally:
            self.standby_worker.send_signal(signal.SIGCONT)

    def create_organisation(self) -> Tenancy:
        """Create an organisation."""
        return self.services.create_organisation()


@pytest.fixture(scope="session")
def fault_services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultServices]:
    """Run the service processes."""
    services = ServiceProcesses(asyncio.run(create_database("faults")), tmp_path_factory.mktemp("faults"))
    try:
        patient = services.start("patient", (*CRASH_POINTS, "worker"))
        services.start_api()
        yield FaultServices(services, patient)
    finally:
        services.stop()
