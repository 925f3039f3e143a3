"""The worked example of the docs: installed by pip, listed, loaded, fetched through the guarded client and read."""

import asyncio
import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from adapters.http.client import GuardedClient
from adapters.pluggy.host import PluggyConnectors, connect
from connectors.sdk.testing import FakeHttp
from ports.connectors import FetchFailed, Job

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "acme-connector"
LIST = """
[[plugin]]
module = "connectors.csv"

[[plugin]]
distribution = "acme-connector"
version = ">=1.0,<2"
hosts = ["api.acme.example"]
"""
JOB = Job({"account": "demo"}, {"token": "not-a-real-token"}, "catalogue")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which pip installed the example's wheel."""
    target = tmp_path_factory.mktemp("site")
    wheel = built(tmp_path_factory.mktemp("wheel"))
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--disable-pip-version-check",
    ]
    subprocess.run([*command, "--target", str(target), str(wheel)], check=True)
    return target


def built(folder: Path) -> Path:
    """The example as a wheel, put together here because building one by its backend would need the index."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    ((group, points),) = project["entry-points"].items()
    name, version = project["name"].replace("-", "_"), project["version"]
    info = f"{name}-{version}.dist-info"
    parts = {
        "acme_connector.py": (EXAMPLE / "acme_connector.py").read_text(),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[{group}]\n" + "".join(f"{key} = {value}\n" for key, value in points.items()),
    }
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for part, text in parts.items():
            wheel.writestr(part, text)
        wheel.writestr(f"{info}/RECORD", "".join(f"{part},,\n" for part in [*parts, f"{info}/RECORD"]))
    return path


@pytest.fixture
def plugins(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A plugins.toml that lists it, with the distribution on the path."""
    monkeypatch.syspath_prepend(str(installed))
    path = tmp_path / "plugins.toml"
    path.write_text(LIST)
    return path


def snapshot(connectors: PluggyConnectors) -> bytes:
    """What the connector fetches."""

    async def run() -> bytes:
        async with connectors.fetch("acme", JOB) as answer:
            return b"".join([chunk async for chunk in answer.chunks])

    return asyncio.run(run())


def test_it_loads_and_reads(plugins: Path, tmp_path: Path) -> None:
    connectors = connect(plugins, FakeHttp(), product_version="1")
    assert [(report.plugin, report.state) for report in connectors.report()] == [
        ("connectors.csv", "loaded"), ("acme-connector", "loaded"),
    ]  # fmt: skip
    info = connectors.info("acme")
    assert info is not None
    assert (info.distribution, info.version) == ("acme-connector", "1.0.0")
    path = tmp_path / "items.json"
    path.write_text(json.dumps({"items": [{"item": "A-1", "family": "A", "colour": "Oak"}]}))
    (table,) = connectors.tables("acme", JOB, path, len)
    assert table.given == ("variant_key", "product_key", "title", "axes.Colour", "price", "quantity")
    assert list(table.rows) == [(1, ["A-1", "A", None, "Oak", None, None])]


def test_it_fetches_through_the_guarded_client(plugins: Path) -> None:
    """Its host has a closed address here, so the client refuses it: the plugin has no other way out."""

    async def lookup(host: str, port: int, family: Any) -> list[Any]:
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 0, "flags": 0}]

    with pytest.raises(FetchFailed) as caught:
        snapshot(connect(plugins, GuardedClient(lookup=lookup), product_version="1"))
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
            connectors = connect(tmp_path / "none.toml", client, product_version="1")
            job = Job({"url": f"http://{name}/feed.csv"}, None, "catalogue")
            async with connectors.fetch("csv", job) as answer:
                path = tmp_path / "feed.csv"
                path.write_bytes(b"".join([chunk async for chunk in answer.chunks]))
        await runner.cleanup()
        (table,) = connectors.tables("csv", job, path, len)
        return list(table.rows)

    assert asyncio.run(run()) == [(2, ["A", "1"])]
