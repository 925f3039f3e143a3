"""`joinery models check`, and processes that import the library of models only when they call one."""

import json
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from entrypoints.cli.main import main
from tests.support.providers import KEY, Provider, Reply, ToolCall, provider

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["openai", "anthropic"])
def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a provider that the environment configures."""
    with provider(request.param) as running:
        for name, text in _build_environment(running).items():
            monkeypatch.setenv(name, text)
        yield running


def _build_environment(running: Provider) -> Mapping[str, str]:
    return {
        "JOINERY_DATABASE_URL": "postgresql://127.0.0.1:9/none",
        "JOINERY_SECRET": "s" * 32,
        "JOINERY_MODELS": running.api,
        "JOINERY_MODELS_URL": running.url,
        "JOINERY_MODELS_KEY": KEY,
        "JOINERY_MODEL": "small-1",
        "JOINERY_MODEL_PRICES": "small-1=250000/2000000,large-1=3000000/15000000",
    }


def _answer(running: Provider, stream: Callable[[], Reply]) -> None:
    running.answer = lambda body: stream() if body.get("stream") else running.make_reply({"colour": "red"})


def test_the_model_is_checked(server: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    _answer(server, lambda: server.make_stream(ToolCall("get_stock", {"sku": "HALDEN-180"}), read=100, written=10))
    assert main(["models", "check"]) == 0
    answer, stream = capsys.readouterr().out.splitlines()
    assert answer.startswith("structured answer") and answer.endswith("812 tokens in, 57 out, $0.000317")
    assert stream.startswith("stream with a tool") and stream.endswith("100 tokens in, 10 out, $0.000045")
    assert server.faults == [] and [body["model"] for body in server.requests] == ["small-1", "small-1"]
    assert main(["models", "check", "--model", "large-1", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["model"] == "large-1" == server.requests[-1]["model"]
    assert result["checks"]["stream with a tool"]["cost_micros"] == 450


@pytest.mark.parametrize(
    ("status", "hint"), [(401, "JOINERY_MODELS_KEY"), (400, "Change JOINERY_MODEL"), (503, "Check JOINERY_MODELS_URL")]
)
def test_a_failure_names_the_setting_to_change(
    server: Provider, status: int, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    _answer(server, lambda: Reply(status, json.dumps({"error": {"message": f"no {KEY}"}}).encode()))
    assert main(["models", "check"]) == 1
    error = capsys.readouterr().err
    assert str(status) in error and hint in error and KEY not in error and len(server.requests) == 2


def test_a_model_without_tools_fails(server: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    _answer(server, lambda: server.make_stream("There are no tools."))
    assert main(["models", "check"]) == 1
    assert "did not call the tool" in capsys.readouterr().err


def test_a_model_without_a_price_is_not_called(server: Provider, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "check", "--model", "dear-1"]) == 1
    assert "JOINERY_MODEL_PRICES" in capsys.readouterr().err and server.requests == []


_IMPORTED = """
import asyncio, importlib, os, sys
for name in ("entrypoints.api.server", "entrypoints.worker.service", "entrypoints.scheduler.service", "entrypoints.cli.doctor"):
    importlib.import_module(name)
from adapters.pydantic_ai.generation import PydanticModels
from entrypoints.container import create_dependencies
from entrypoints.settings import read_settings
from ports.language_models import LanguageModels, ModelPrompt
dependencies = create_dependencies(read_settings(os.environ))
models = dependencies.find_optional(LanguageModels)
assert models is dependencies.find_optional(PydanticModels)
prompt = ModelPrompt("colours", "Which?", {}, {"type": "object", "properties": {}})
assert models.is_configured(None) and models.estimate_max_usage(prompt).cost_micros
print(*sorted({"pydantic_ai", "openai", "anthropic", "genai_prices"} & sys.modules.keys()))
asyncio.run(models.generate(prompt))
print(*sorted({"pydantic_ai", "openai", "anthropic"} & sys.modules.keys()))
"""


def test_the_library_is_imported_with_the_first_call(server: Provider) -> None:
    server.answer = lambda _: server.make_reply({})
    environment = {**_build_environment(server), "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTED], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["", " ".join(sorted((server.api, "pydantic_ai")))]
