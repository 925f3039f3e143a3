"""One server for all commands and samples of a test process, and the clients that samples are written for."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.docs.server import Server, started
from tests.support.shipped_clients import unpacked_tarball, unpacked_wheel


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The server, running."""
    made = started(tmp_path_factory.mktemp("stage"))
    yield made
    made.stop()


@pytest.fixture(scope="session")
def clients(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the clients, ready to be imported: `python/joinery_client` and `node_modules/joinery-client`."""
    folder = tmp_path_factory.mktemp("clients")
    unpacked_wheel(folder / "python")
    return unpacked_tarball(folder)
