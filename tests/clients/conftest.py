"""Running service for the clients, and npm packages."""

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.packages import at, node_home, python_home
from tests.clients.programs import npm_install, run
from tests.flows.conftest import fjord, services
from tests.flows.service_processes import ServiceProcesses

__all__ = ["at", "fjord", "node_home", "python_home", "services"]


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the packages that build, check and run clients."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("npm")
    npm_install(folder, "openapi-typescript", "openapi-fetch", "typescript", "@types/node", "esbuild")
    return folder


@pytest.fixture(scope="session")
def description(tmp_path_factory: pytest.TempPathFactory, services: ServiceProcesses) -> Path:
    """Download the description from the running service."""
    path = tmp_path_factory.mktemp("description") / "openapi.json"
    run("curl", "-sf", "--compressed", f"http://127.0.0.1:{services.port}/openapi.json", "-o", path, cwd=path.parent)
    return path


@pytest.fixture
def environment(services: ServiceProcesses) -> Iterator[dict[str, str]]:
    """Return environment variables: address of the service, a key with all scopes, and records to push."""
    product = {"external_id": "A", "title": "Halden oak table", "brand": "Lindgren"}
    offer = {"price": {"amount": "10.50", "currency": "usd"}, "quantity": 4, "location": "main"} | {
        "availability": "in_stock"
    }
    variant = {
        "external_id": "A-1",
        "sku": "A-1",
        "dimensions": {"width": {"value": 31.5, "unit": "in"}},
        "offers": [offer],
    }
    yield {
        **{name: os.environ[name] for name in ("PATH", "HOME") if name in os.environ},
        "JOINERY_URL": f"http://127.0.0.1:{services.port}",
        "JOINERY_KEY": services.create_organisation().api.secret,
        "JOINERY_RECORDS": json.dumps([{"product": product, "variants": [variant]}]),
    }
