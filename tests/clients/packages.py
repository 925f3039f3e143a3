"""Our clients as the running server gives them, installed where programs find them, and a receiver of webhooks."""

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
    """A folder with the Python package, installed from the running server; httpx is the environment's."""
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
    """A folder with the TypeScript package, installed from the running server, beside a compiler and a verifier."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    home = tmp_path_factory.mktemp("node")
    url = f"http://127.0.0.1:{services.port}/docs/clients/{TARBALL}"
    npm_install(home, "typescript", "@types/node", "standardwebhooks", url)
    return home
