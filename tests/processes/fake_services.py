"""`joinery up` over fakes of the service's processes: python fake_services.py DATA PORT KIND."""

import asyncio
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from entrypoints.up.supervisor import UpOptions, run_up

API = """
import http.server, os, signal
class Answers(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()
http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ["JOINERY_PORT"])), Answers).serve_forever()
"""
WORKER = """
import os, pathlib, signal, sys, time, urllib.parse
data = pathlib.Path(os.environ["JOINERY_DATA_DIR"])
(data / "worker.pid").write_text(str(os.getpid()))
def stop(number, frame):
    host = urllib.parse.parse_qs(urllib.parse.urlsplit(os.environ["JOINERY_DATABASE_URL"]).query)["host"][0]
    there = os.path.exists(host + "/.s.PGSQL.5432") and os.path.exists(os.environ["JOINERY_REDIS_URL"][7:])
    (data / "stopped").write_text("servers there" if there else "servers gone")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
while True:
    time.sleep(10)
"""
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(1000)"
BROKEN = "import sys; print('JOINERY_X is wrong: set it right.'); sys.exit(3)"
KINDS = {"usual": (API, WORKER), "stubborn": (API, STUBBORN), "broken": (BROKEN,)}


def create_children(kind: str) -> Mapping[str, Sequence[str]]:
    """Create the fake processes with the names of the services."""
    names = ("api", "worker")
    return {name: (sys.executable, "-S", "-E", "-c", text) for name, text in zip(names, KINDS[kind], strict=False)}


async def notify_ready(env: Mapping[str, str]) -> None:
    """Tell the test that the service is ready."""
    print(f"READY {env['JOINERY_PORT']} {env['JOINERY_DATABASE_URL']} {env['JOINERY_REDIS_URL']}", flush=True)


if __name__ == "__main__":
    data, port, kind = sys.argv[1:]
    options = UpOptions(
        Path(data), int(port), on_ready=notify_ready, build_command_lines=lambda _: create_children(kind)
    )
    sys.exit(asyncio.run(run_up(options)))
