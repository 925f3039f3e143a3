"""One server for all commands and samples of a test process, and the clients that the samples use."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.server import Server, start_server
from tests.support.shipped_clients import unpack_tarball, unpack_wheel


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Start the server and stop it after the last test."""
    running_server = start_server(tmp_path_factory.mktemp("stage"))
    yield running_server
    running_server.stop()


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the importable clients: `python/joinery_client` and `node_modules/joinery-client`."""
    folder = tmp_path_factory.mktemp("clients")
    unpack_wheel(folder / "python")
    return unpack_tarball(folder)
