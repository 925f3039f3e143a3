"""A running service for the commands of the docs: an API, a worker, products, a shop for website checks, and a webhook receiver."""

import asyncio
import json
import os
import shutil
import sys
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiohttp import web

from entrypoints.demo.feeds import create_application
from tests.docs.commands import ROOT
from tests.flows.api_client import ApiClient
from tests.flows.service_processes import ServiceProcesses, free_port
from tests.postgres.databases import create_database
from tests.support.oauth_apps import create_apps

CURL = r"""#!/bin/sh
# the installed curl, which also writes the status of each response; a stream is read for two seconds
for given in "$@"; do case "$given" in -N | -sN) set -- --max-time 2 "$@"; stream=1 ;; esac; done
%s -w '%%{stderr}\nANSWER %%{http_code} %%{method} %%{url_effective}\n' "$@" && exit 0
status=$?
[ "$status" = 28 ] && [ -n "$stream" ] && exit 0
exit $status
"""
FEED = "SKU,Product Name,Width (in),Price,Qty\n" + "".join(
    f"BED-{number},Oak bed number {number},{60 + number},{499 + number}.00,{number}\n" for number in range(1, 31)
)
COLUMNS = "Zorb,Quix,Flim,Drub,Grum\nZ-1,Oak chair,19.50,45,x\nZ-2,Oak table,99.50,160,y\n"
"""The file of docs/mapping.md, whose columns are not recognised."""
PROPOSED_SOURCE = {
    "name": "Lindgren prices",
    "kind": "push",
    "config": {"currency": "usd"},
    "licence_basis": "own_data",
}
MODEL_SCRIPT = {
    "answers": [
        {
            "task": "assistant",
            "contains": "Add a source",
            "tools": [{"name": "search_tools", "arguments": {"queries": ["create source"]}}],
        },
        {
            "task": "assistant",
            "contains": "discovered_tools",
            "tools": [{"name": "sources_create", "arguments": {"body": PROPOSED_SOURCE}}],
        },
        {"task": "assistant", "text": "The source is there."},
    ]
}
"""The model of docs/assistant.md."""


class _Receiver(BaseHTTPRequestHandler):
    """Receiver that accepts every webhook."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        """Suppress the log."""


def serve_shop(port: int) -> None:
    """Serve the demo's shop until this process ends."""
    loop = asyncio.new_event_loop()

    async def start() -> None:
        runner = web.AppRunner(create_application(), access_log=None, handle_signals=False)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", port).start()

    loop.run_until_complete(start())
    threading.Thread(target=loop.run_forever, daemon=True).start()


def wait_for_run(api: ApiClient, run: str) -> str:
    """Wait until the run has ended and return its status."""
    for _ in range(600):
        status = str(api.get(f"/v1/runs/{run}")["status"])
        if status not in ("queued", "running", "waiting"):
            return status
        time.sleep(0.03)
    raise AssertionError(status)


@dataclass
class Server:
    """A running service. `env` is the environment of commands, with the variables `VARIANT`, `SRC`, `MAP` and `SITE` of the pages."""

    stage: ServiceProcesses
    env: dict[str, str]
    receiver_port: int
    unused_port: int
    """Port on which no program listens, and to which webhooks may be sent."""
    receiver: ThreadingHTTPServer

    def stop(self) -> None:
        """Stop the receiver and the service."""
        self.receiver.shutdown()
        self.stage.stop()


def start_server(home: Path) -> Server:
    """Start the shop, the receiver and the service."""
    receiver = ThreadingHTTPServer(("127.0.0.1", 0), _Receiver)
    threading.Thread(target=receiver.serve_forever, daemon=True).start()
    receiver_port, shop, unused = int(receiver.server_address[1]), free_port(), free_port()
    serve_shop(shop)
    allowed = {"JOINERY_ALLOW_PRIVATE_HOSTS": ",".join(f"127.0.0.1:{port}" for port in (receiver_port, shop, unused))}
    script = home / "models.json"
    script.write_text(json.dumps(MODEL_SCRIPT), "utf-8")
    settings = {"JOINERY_MODELS": f"scripted://{script}"}
    stage = ServiceProcesses(asyncio.run(create_database("docs")), home, settings)
    stage.env |= allowed
    stage.start("worker")
    stage.start_api()
    (home / "bin").mkdir()
    (home / "bin" / "curl").write_text(CURL % shutil.which("curl"))
    (home / "bin" / "curl").chmod(0o755)
    env = {name: value for name, value in os.environ.items() if not name.startswith("JOINERY_")} | allowed
    env |= {
        "PATH": f"{home / 'bin'}:{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "JOINERY_URL": f"http://127.0.0.1:{stage.port}",
        "SITE": f"http://127.0.0.1:{shop}",
    }
    return Server(stage, env | _create_sample_data(stage), receiver_port, unused, receiver)


def _create_sample_data(stage: ServiceProcesses) -> dict[str, str]:
    tenancy = stage.create_organisation()
    api, organisation = tenancy.api, tenancy.organisation
    apps, _ = stage.run_with_dependencies(lambda parts: create_apps(parts, organisation))
    own = {"config": {"currency": "usd"}, "licence_basis": "own_data"}
    assert wait_for_run(api, api.upload_file(api.create_source("file", **own), FEED.encode())) == "succeeded"
    unknown = api.create_source("file", **own)
    assert wait_for_run(api, api.upload_file(unknown, COLUMNS.encode(), "unknown.csv")) == "needs_mapping"
    return {
        "JOINERY_KEY": str(api.secret),
        "JOINERY_TOKEN": stage.create_token(tenancy),
        "JOINERY_TEST_KEY": str(stage.create_organisation(livemode=False).api.secret),
        "CLIENT_ID": apps["machine"]["client_id"],
        "CLIENT_SECRET": apps["machine"]["client_secret"],
        "NATIVE_ID": apps["native"]["client_id"],
        "VARIANT": api.get("/v1/products", limit=1)["data"][0]["variants"][0]["id"],
        "SRC": unknown,
        "MAP": api.get(f"/v1/sources/{unknown}/mappings")["data"][0]["id"],
    }
