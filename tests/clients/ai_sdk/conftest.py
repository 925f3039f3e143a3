"""Services with imitated providers of language models, people who use their assistant, and the AI SDK."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clients.ai_sdk.chat import Assistant
from tests.clients.programs import run
from tests.docs.commands import read_blocks
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ROOT, ServiceProcesses
from tests.postgres.databases import create_database
from tests.support.providers import KEY, Provider, provider

HERE = Path(__file__).parent


@pytest.fixture(scope="session")
def node_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the AI SDK and a Node.js version that supports it; the transport and the component are those of the documentation."""
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed")
    folder = tmp_path_factory.mktemp("ai-sdk")
    for name in ("package.json", "package-lock.json", "chat.mjs"):
        shutil.copy(HERE / name, folder)
    for language, file in (("ts", "transport.ts"), ("tsx", "chat.tsx")):
        [block] = read_blocks(ROOT / "docs/assistant.md", language)
        (folder / file).write_text(block.text, "utf-8")
    run("npm", "ci", "--no-audit", "--no-fund", "--silent", cwd=folder)
    return folder


@pytest.fixture(scope="session", params=["openai", "anthropic"])
def model_provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    """Run a provider of each API."""
    with provider(request.param) as running:
        yield running


@pytest.fixture(scope="session")
def model_services(model_provider: Provider, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcesses]:
    """Run an API process that uses the provider."""
    settings = {
        "JOINERY_MODELS": model_provider.api,
        "JOINERY_MODELS_URL": model_provider.url,
        "JOINERY_MODELS_KEY": KEY,
        "JOINERY_MODEL": "small-1",
        "JOINERY_MODEL_PRICES": "small-1=250000/2000000",
    }
    home = tmp_path_factory.mktemp("assistant")
    processes = ServiceProcesses(asyncio.run(create_database("assistant")), home, settings)
    try:
        processes.start_api()
        yield processes
    finally:
        processes.stop()


@pytest.fixture
def assistant(model_services: ServiceProcesses, model_provider: Provider, node_home: Path) -> Iterator[Assistant]:
    """Create an organisation and a person who uses its assistant; the provider must have received valid requests only."""
    secret = model_services.create_token(model_services.create_organisation())
    model_provider.requests.clear()
    yield Assistant(model_services, model_provider, ApiClient(model_services.port, secret), node_home)
    assert model_provider.faults == []
