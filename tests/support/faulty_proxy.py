"""Proxy in front of the API that closes connections and refuses requests as configured."""

import http.client
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

HOP = {"connection", "transfer-encoding", "keep-alive"}


@dataclass(frozen=True)
class Fault:
    """Fault of the next request.

    Attributes:
        status: Status that the proxy returns instead of the API; without it, the proxy closes the connection.
        headers: Headers of the response.
        code: Error code of the response.
        late: Whether the connection is closed after the API has processed the request, not before.
    """

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    code: str = "overloaded"
    late: bool = False


@dataclass
class FaultyProxy:
    """Proxy that applies one of `faults` to each request; `seen` are the requests (method, path, headers)."""

    to: int
    faults: list[Fault] = field(default_factory=list)
    seen: list[tuple[str, str, dict[str, str]]] = field(default_factory=list)
    port: int = 0
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def next(self, method: str, path: str, headers: dict[str, str]) -> Fault | None:
        with self.lock:
            self.seen.append((method, path, headers))
            return self.faults.pop(0) if self.faults else None


@contextmanager
def faulty_proxy(to: int) -> Iterator[FaultyProxy]:
    """Run a proxy of the API on the port."""
    proxy = FaultyProxy(to)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def handle_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            fault = proxy.next(self.command, self.path, {name.lower(): value for name, value in self.headers.items()})
            if fault is None:
                return self.answer(*self.forwarded(body))
            if fault.status:
                problem = {"code": fault.code, "detail": "Configured to refuse.", "status": fault.status}
                kind = {"content-type": "application/problem+json"}
                return self.answer(fault.status, kind | fault.headers, json.dumps(problem).encode())
            if fault.late:
                self.forwarded(body)
            self.close_connection = True
            self.connection.shutdown(2)
            return None

        def forwarded(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
            connection = http.client.HTTPConnection("127.0.0.1", proxy.to, timeout=60)
            kept = {name: value for name, value in self.headers.items() if name.lower() not in HOP}
            connection.request(self.command, self.path, body or None, kept)
            answer = connection.getresponse()
            content = answer.read()
            connection.close()
            return answer.status, {n: v for n, v in answer.getheaders() if n.lower() not in HOP}, content

        def answer(self, status: int, headers: dict[str, str], content: bytes) -> None:
            self.send_response_only(status)
            for name, value in headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            if status not in (204, 304):
                self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if status not in (204, 304):
                self.wfile.write(content)

        do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = handle_any

        def log_message(self, *_: Any) -> None:
            pass

        def handle(self) -> None:
            with suppress(OSError):
                super().handle()

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    proxy.port = server.server_address[1]
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield proxy
    finally:
        server.shutdown()
        server.server_close()
