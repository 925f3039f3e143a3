"""Transports of the server: the SDK in the same process, and HTTP on a loopback port."""

import asyncio
import json
import random
import threading
from collections.abc import AsyncIterable, Mapping
from dataclasses import asdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import stripe

from tests.stripe_server.errors import ConnectionFault
from tests.stripe_server.server import Answer, Fault, StripeServer


class InProcessClient(stripe.HTTPClient):
    """HTTP client of the SDK that calls a server in the same process."""

    name = "in_process"

    def __init__(self, server: StripeServer) -> None:
        super().__init__()
        self.server = server

    def request(self, method: str, url: str, headers: Any, post_data: Any = None, **_: Any) -> tuple[bytes, int, Any]:
        parts = urlsplit(url)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        body = post_data.encode() if isinstance(post_data, str) else post_data or b""
        try:
            status, sent, answer = self.server.handle(method.upper(), path, dict(headers), body)
        except ConnectionFault as fault:
            raise stripe.APIConnectionError(f"connection failed: {fault.kind}", should_retry=True) from fault
        return answer.decode(), status, {name.lower(): value for name, value in sent.items()}

    async def request_async(
        self, method: str, url: str, headers: Any, post_data: Any = None, **_: Any
    ) -> tuple[bytes, int, Any]:
        return await asyncio.to_thread(self.request, method, url, headers, post_data)

    def _sleep_time_seconds(self, num_retries: int) -> float:
        return 0.0

    async def sleep_async(self, secs: float) -> None:
        await asyncio.sleep(0)

    def close(self) -> None:
        pass

    async def close_async(self) -> None:
        pass

    def request_stream(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError

    async def request_stream_async(self, *_: Any, **__: Any) -> tuple[AsyncIterable[bytes], int, Mapping[str, str]]:
        raise NotImplementedError


class HttpServer:
    """Server on a loopback port; `hold` is how long, in seconds, a timeout keeps the connection open."""

    def __init__(self, server: StripeServer, port: int = 0, hold: float = 60.0) -> None:
        self.server, self.hold = server, hold
        self.closing = threading.Event()
        owner = self

        class Handler(_RequestHandler):
            context = owner

        self._http = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # a client that was killed
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> "HttpServer":
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._http.shutdown()
        self._http.server_close()

    def serve(self) -> None:
        """Serve until the process ends."""
        self._http.serve_forever()

    def control(self, path: str, body: bytes) -> Any:
        """Execute a control request: `/_control/{state,advance,faults,authenticate,settings,deliver}`."""
        server, given = self.server, json.loads(body or b"{}")
        match path.removeprefix("/_control/"):
            case "advance":
                server.advance(given["to"] if "to" in given else server.now + given["seconds"])
            case "faults":
                server.faults += [Fault(**each) for each in given["faults"]]
            case "authenticate":
                server.complete_authentication(given["intent"], is_successful=given.get("is_successful", True))
            case "settings":
                server.tax_rates.update(given.pop("tax_rates", {}))
                for name, value in given.items():
                    assert name in ("account_country", "final_status", "retry_days"), name
                    setattr(server.state, name, value)
            case "deliver":
                statuses: list[int] = []
                url = given.pop("url")
                seed = given.pop("seed", 0)
                server.deliver(lambda sent, headers: statuses.append(post_webhook(url, sent, headers)),
                               rng=random.Random(seed), **given)  # fmt: skip
                return {"statuses": statuses}
            case "state":
                pass
            case other:
                raise KeyError(other)
        with server.lock:
            state = {"now": server.now, "objects": server.state.objects, "pending_events": server.pending_events}
            report = {"violations": server.violations, "requests": server.requests}
            return json.loads(json.dumps(state | report | {"faults": [asdict(each) for each in server.faults]}))


def post_webhook(url: str, body: bytes, headers: dict[str, str]) -> int:
    """Post a webhook, and return the status; 0 if the endpoint does not answer."""
    try:
        with urlopen(Request(url, body, headers, method="POST"), timeout=30) as answer:
            return answer.status
    except OSError as error:
        return getattr(error, "code", 0) or 0


class _RequestHandler(BaseHTTPRequestHandler):
    context: HttpServer
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if self.path.startswith("/_control/"):
                answer: Answer = (200, {}, json.dumps(self.context.control(self.path, body)).encode())
            else:
                answer = self.context.server.handle(self.command, self.path, dict(self.headers.items()), body)
        except ConnectionFault as fault:
            if fault.kind == "timeout":
                self.context.closing.wait(self.context.hold)
            self.close_connection = True
            return
        status, headers, sent = answer
        self.send_response(status)
        for name, value in (headers | {"Content-Length": str(len(sent))}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_DELETE = _serve

    def log_message(self, format: str, *args: Any) -> None:
        pass
