"""The example of the docs: tested with the SDK's distribution alone, then built, installed, listed and run by Joinery."""

import asyncio
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Mapping
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.api_json.codec import JsonCodec
from adapters.http.client import GuardedClient
from adapters.pluggy.host import PluggyConnectors, load_connectors
from connectors.sdk.testing import FakeHttp, StubResponse
from connectors.sdk.version import VERSION
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import ConnectorTask, FetchFailed, ParseFailed, ReadRequest
from entrypoints.cli.main import main
from entrypoints.factories import create_feed_readers
from entrypoints.settings import read_settings

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "docs" / "examples" / "acme-connector"
SDK = ROOT / "connectors" / "sdk"
LIST = """
[[plugin]]
module = "connectors.csv"

[[plugin]]
distribution = "acme-connector"
version = ">=1.0,<2"
hosts = ["api.acme.example"]
"""
JOB = ConnectorTask({"account": "demo"}, {"token": "not-a-real-token"}, "catalogue")
ITEMS = (
    b'{"items": [{"item": "A-1", "family": "A", "name": "Stool", "colour": "Oak", "list_price": 49.90, "on_hand": 3}]}'
)


def run_pip(*words: object) -> None:
    """Run pip without an index."""
    command = [sys.executable, "-m", "pip", words[0], "--quiet", "--no-deps", "--no-index", "--disable-pip-version-check"]  # fmt: skip
    ended = subprocess.run([*command, *map(str, words[1:])], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr[-2000:]


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Build the distributions of SDK and example as wheels, by name."""
    folder = tmp_path_factory.mktemp("wheels")
    for name, project in (("joinery_sdk", SDK), ("acme_connector", EXAMPLE)):
        shutil.copytree(project, folder / name, ignore=shutil.ignore_patterns("__pycache__", "build", "*.egg-info"))
    run_pip("wheel", "--no-build-isolation", "--wheel-dir", folder, folder / "joinery_sdk", folder / "acme_connector")
    return {path.name.partition("-")[0]: path for path in folder.glob("*.whl")}


@pytest.fixture(scope="module")
def installed_folder(wheels: Mapping[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install both into a folder with pip."""
    target = tmp_path_factory.mktemp("site")
    run_pip("install", "--target", target, *wheels.values())
    return target


@pytest.fixture
def plugins(installed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write a plugins.toml with the example, and add both distributions to the path."""
    monkeypatch.syspath_prepend(str(installed_folder))
    path = tmp_path / "plugins.toml"
    path.write_text(LIST)
    monkeypatch.setenv("JOINERY_PLUGINS", str(path))
    return path


def read_metadata(wheel: Path) -> Message:
    """Return the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        [name] = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(archive.read(name).decode())


def run_without_joinery(installed: Path, folder: Path, *words: str) -> str:
    """Return Python's output in a folder with the SDK and installed packages but without Joinery. Fails unless it exits with 0."""
    paths = [str(installed), sysconfig.get_path("purelib")]
    surroundings = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PYTHONDONTWRITEBYTECODE": "1"}
    ended = subprocess.run(
        [sys.executable, "-S", "-P", *words], cwd=folder, env=surroundings, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout[-3000:] + ended.stderr[-3000:]
    return ended.stdout


def test_the_sdk_is_a_small_separate_distribution(wheels: Mapping[str, Path]) -> None:
    about = read_metadata(wheels["joinery_sdk"])
    assert (about["Name"], about["Version"]) == ("joinery-sdk", VERSION)
    always = [needed for needed in about.get_all("Requires-Dist", []) if "extra" not in needed]
    assert always == ["pluggy<2,>=1.5", "protego<1,>=0.5"]
    with zipfile.ZipFile(wheels["joinery_sdk"]) as archive:
        shipped = {name.removeprefix("joinery_sdk/") for name in archive.namelist() if ".dist-info/" not in name}
    modules = {path.relative_to(SDK).as_posix() for path in SDK.rglob("*.py")}
    assert shipped == modules | {"py.typed"}


def test_the_example_requires_only_the_sdk(wheels: Mapping[str, Path]) -> None:
    needed = read_metadata(wheels["acme_connector"]).get_all("Requires-Dist", [])
    assert needed == ["joinery-sdk<3,>=2", 'joinery-sdk[testing]; extra == "test"']


def test_its_contract_tests_pass_without_joinery(installed_folder: Path, tmp_path: Path) -> None:
    shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    program = """
import importlib.util, pkgutil, sys, joinery_sdk, pytest
for module in pkgutil.walk_packages(joinery_sdk.__path__, "joinery_sdk."):
    importlib.import_module(module.name)
assert not any(importlib.util.find_spec(name) for name in ("connectors", "adapters", "domain"))
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "tests"]))
"""
    assert "9 passed" in run_without_joinery(installed_folder, tmp_path, "-c", program)


def test_its_types_are_checked_without_joinery(installed_folder: Path, tmp_path: Path) -> None:
    for name in ("acme_connector.py", "tests/test_acme.py"):
        shutil.copy(EXAMPLE / name, tmp_path)
    (tmp_path / "wrong.py").write_text(
        "from joinery_sdk import Table\n\nreveal_type(Table('a', (), iter(())).fields)\n"
    )
    strict = ["-m", "mypy", "--strict", "--config-file=", "--cache-dir=/dev/null"]
    output = run_without_joinery(installed_folder, tmp_path, *strict, "acme_connector.py", "test_acme.py", "wrong.py")
    assert 'Revealed type is "tuple[str | None, ...] | None"' in output
    assert "Success: no issues found in 3 source files" in output


def test_it_is_listed_and_checked(plugins: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plugins", "check"]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["loaded", "connectors.csv", "csv"],
        ["loaded", "acme-connector", "acme"],
    ]


def fetch_snapshot(connectors: PluggyConnectors) -> bytes:
    """Return the fetched bytes."""

    async def run() -> bytes:
        async with connectors.fetch("acme", JOB) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def test_it_loads_fetches_and_reads(plugins: Path, tmp_path: Path) -> None:
    connectors = load_connectors(plugins, FakeHttp(always=StubResponse(ITEMS)), release_version="1")
    info = connectors.find_connector("acme")
    assert info is not None
    assert (info.distribution, info.version) == ("acme-connector", "1.0.0")
    path = tmp_path / "items.json"
    path.write_bytes(fetch_snapshot(connectors))
    (table,) = connectors.parse_tables("acme", JOB, path, len, [].append)
    assert table.declared_fields == ("variant_key", "product_key", "title", "axes.Colour", "price", "quantity")
    [(line, cells)] = table.rows
    assert (line, [str(cell) for cell in cells]) == (1, ["A-1", "A", "Stool", "Oak", "49.90", "3"])


def test_what_it_fetched_becomes_a_product(plugins: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "items.json"
    path.write_bytes(
        fetch_snapshot(load_connectors(plugins, FakeHttp(always=StubResponse(ITEMS)), release_version="1"))
    )
    assert main(["read", str(path), "--connector", "acme", "--currency", "eur", "--json"]) == 0
    read = json.loads(capsys.readouterr().out)
    assert (read["rows"], read["problems"], read["failure"]) == (1, [], None)
    [product] = read["products"]
    [variant] = product["variants"]
    [offer] = variant["offers"]
    assert (product["key"], product["data"]["title"], variant["key"]) == ("A", "Stool", "A-1")
    assert (offer["price"], offer["currency"], offer["quantity"]) == (4990, "eur", 3)


def test_it_reads_in_a_process_of_its_own(
    plugins: Path, installed_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in runs, in a reader process that loads the plugins. Its errors are attributed to the plugin."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join((str(ROOT), str(installed_folder))))
    surroundings = {"JOINERY_DATABASE_URL": "postgresql:///none", "JOINERY_SECRET": "s" * 32}
    settings = read_settings({**surroundings, "JOINERY_PLUGINS": str(plugins)})

    async def run() -> tuple[list[Any], str]:
        readers = create_feed_readers(settings, JsonCodec())
        try:
            async with readers.open(build_request(tmp_path, ITEMS)) as reader:
                sample = await reader.read_sample(2)
            with pytest.raises(ParseFailed) as failed:
                async with readers.open(build_request(tmp_path, b'{"items": [{"item"')) as reader:
                    await reader.spool(ignore_progress)
        finally:
            await readers.close()
        return [record["item"] for record in sample.records], str(failed.value)

    items, failure = asyncio.run(run())
    assert items == ["A-1"]
    assert "could not parse the feed" not in failure, "errors of the SDK keep their message"


def build_request(folder: Path, content: bytes) -> ReadRequest:
    """Return a request to read the content as Acme's."""
    path = folder / "snapshot"
    path.write_bytes(content)
    config = {"account": "demo"}
    return ReadRequest(str(path), str(folder), "acme", config, "catalogue", FeedSettings("eur"), buckets=4)


async def ignore_progress(_: int) -> None:
    """Ignore the progress."""


def test_its_errors_are_classes_of_the_sdk(plugins: Path) -> None:
    """It imports the SDK as joinery_sdk, of which a copy is also installed; still, the classes are the host's."""
    busy = StubResponse(status=429, headers={"Retry-After": "120"})
    with pytest.raises(FetchFailed) as waits:
        fetch_snapshot(load_connectors(plugins, FakeHttp(always=busy), release_version="1"))
    assert waits.value.wait_reason == "rate_limited"
    assert waits.value.retry_at is not None
    with pytest.raises(FetchFailed) as refused:
        fetch_snapshot(load_connectors(plugins, FakeHttp(always=StubResponse(status=401)), release_version="1"))
    assert refused.value.code == "credentials_refused"


def test_it_fetches_through_the_guarded_client(plugins: Path) -> None:
    """Its host has a forbidden address, which the client refuses: the plugin has no other network access."""

    async def lookup(host: str, port: int, family: Any) -> list[Any]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    with pytest.raises(FetchFailed) as caught:
        fetch_snapshot(load_connectors(plugins, GuardedClient(lookup=lookup), release_version="1"))
    assert caught.value.code == "fetch_refused"


def test_a_file_over_a_real_connection(tmp_path: Path) -> None:
    async def run() -> list[Any]:
        async def feed(request: web.Request) -> web.Response:
            return web.Response(body=b"SKU,Qty\nA,1\n", content_type="text/csv", headers={"ETag": '"1"'})

        app = web.Application()
        app.router.add_get("/feed.csv", feed)
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        name = f"127.0.0.1:{runner.addresses[0][1]}"
        async with GuardedClient(allowed_hosts=frozenset({name})) as client:
            connectors = load_connectors(tmp_path / "none.toml", client, release_version="1")
            job = ConnectorTask({"url": f"http://{name}/feed.csv"}, None, "catalogue")
            async with connectors.fetch("csv", job) as answer:
                path = tmp_path / "feed.csv"
                path.write_bytes(b"".join([chunk async for chunk in answer.chunks]))
        await runner.cleanup()
        table = next(connectors.parse_tables("csv", job, path, len, [].append))
        return list(table.rows)

    assert asyncio.run(run()) == [(2, ["A", "1"])]
