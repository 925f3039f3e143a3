"""Client packages downloaded from the running server and installed, and a receiver of webhooks."""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.receiver_client import ReceiverClient
from entrypoints.clients.distribution import TARBALL, WHEEL
from tests.clients.programs import npm_install, run
from tests.flows.service_processes import ServiceProcesses
from tests.support.webhook_endpoints import run_receiver


@pytest.fixture(scope="session")
def at(services: ServiceProcesses) -> Iterator[ReceiverClient]:
    """A receiver of webhooks."""
    with run_receiver(services) as client:
        yield client


@pytest.fixture(scope="session")
def python_home(services: ServiceProcesses, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the Python package from the running server; httpx comes from the environment."""
    home = tmp_path_factory.mktemp("python")
    url = f"http://127.0.0.1:{services.port}/docs/clients/{WHEEL}"
    run(
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-cache-dir",
        "--target",
        str(home),
        url,
        cwd=home,
    )
    return home


@pytest.fixture(scope="session")
def node_home(services: ServiceProcesses, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the TypeScript package from the running server, with a compiler and a verifier."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    home = tmp_path_factory.mktemp("node")
    url = f"http://127.0.0.1:{services.port}/docs/clients/{TARBALL}"
    npm_install(home, "typescript", "@types/node", "standardwebhooks", url)
    return home
