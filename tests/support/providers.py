"""Server that imitates providers of language models according to their public documentation, independently of the service's code.

Every request is checked against the documentation; violations are recorded in `faults` and answered with 400.
"""

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-proj-Ab3dEf6hIjKlMnOp"
STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description",
    "minimum", "maximum", "minItems", "maxItems", "pattern", "$defs", "$ref",
}  # fmt: skip


@dataclass
class Reply:
    """Response of the server."""

    status: int = 200
    body: bytes = b"{}"
    headers: Mapping[str, str] = field(default_factory=dict)
    wait: float = 0.0
    torn: bool = False
    """Whether the connection ends in the middle of the body."""
    chunked: bool = False
    """Whether the body is repeated in chunks, without a length, until the client closes the connection."""


@dataclass
class Provider:
    """A running provider. `answer` creates the reply to a request body; `requests` are the received bodies."""

    api: str
    url: str = ""
    answer: Callable[[Mapping[str, Any]], Reply] = lambda _: Reply()
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)

    def make_reply(self, value: Any, *, read: int = 812, written: int = 57, **more: Any) -> Reply:
        """Return a response in the format of the API."""
        body = _openai(value, read, written) if self.api == "openai" else _anthropic(value, read, written)
        return Reply(body=json.dumps(body | more).encode())

    def make_refusal(self, why: str) -> Reply:
        """Return a refusal of the model."""
        if self.api == "openai":
            body = _openai(None, 812, 57)
            body["choices"][0]["message"] |= {"content": None, "refusal": why}
        else:
            body = _anthropic(None, 812, 57) | {"stop_reason": "refusal", "content": [{"type": "text", "text": why}]}
        return Reply(body=json.dumps(body).encode())

    def make_truncated_reply(self) -> Reply:
        """Return an answer truncated at the token limit."""
        if self.api == "openai":
            body = _openai(None, 812, 4000)
            body["choices"][0] |= {"finish_reason": "length"}
            body["choices"][0]["message"]["content"] = '{"colour": "r'
        else:
            body = _anthropic({}, 812, 4000) | {"stop_reason": "max_tokens"}
        return Reply(body=json.dumps(body).encode())


def _openai(value: Any, read: int, written: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": json.dumps(value), "refusal": None, "annotations": []}
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952, "model": "small-1-2026-08-07",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}], "usage": usage,
    }  # fmt: skip


def _anthropic(value: Any, read: int, written: int) -> dict[str, Any]:
    used = {"type": "tool_use", "id": "toolu_01D7FLrfh4GYq7yT1ULFeyMV", "name": "answer", "input": value}
    usage = {
        "input_tokens": read,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": written,
    }
    return {
        "id": "msg_013Zva2CMHLNnjNJJKqJ2EF", "type": "message", "role": "assistant", "model": "small-1-2026-08-07",
        "content": [used], "stop_reason": "tool_use", "stop_sequence": None, "usage": usage,
    }  # fmt: skip


def strict_faults(schema: Any, at: str = "schema") -> Iterator[str]:
    """Yield the parts of a schema that structured outputs do not support."""
    if not isinstance(schema, dict):
        yield f"{at}: no object"
        return
    yield from (f"{at}: {name} is not permitted" for name in schema.keys() - STRICT_KEYWORDS)
    if not {"type", "anyOf", "$ref"} & schema.keys():
        yield f"{at}: must have a 'type' key"
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            yield f"{at}: 'additionalProperties' is required to be supplied and to be false"
        if set(schema.get("required", ())) != set(schema.get("properties", {})):
            yield f"{at}: 'required' must include every key in properties"
    for name, part in schema.get("properties", {}).items():
        yield from strict_faults(part, f"{at}.{name}")
    if schema.get("type") == "array":
        yield from strict_faults(schema.get("items"), f"{at}.items")


def _chat_faults(body: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
    if body.keys() != {"model", "messages", "response_format", "max_completion_tokens"}:
        yield f"parameters: {sorted(body)}"
        return
    messages = body["messages"]
    if [m.keys() for m in messages] != [{"role", "content"}] * 2 or [m["role"] for m in messages] != ["system", "user"]:
        yield "messages"
    format = body["response_format"]
    if format.keys() != {"type", "json_schema"} or format["type"] != "json_schema":
        yield "response_format"
    named = format["json_schema"]
    if named.keys() != {"name", "strict", "schema"} or named["strict"] is not True:
        yield "json_schema"
    if not 1 <= len(named["name"]) <= 64 or not all(c.isascii() and (c.isalnum() or c in "_-") for c in named["name"]):
        yield "json_schema.name"
    if named["schema"].get("type") != "object":
        yield "json_schema.schema must be an object"
    yield from strict_faults(named["schema"])
    if type(body["max_completion_tokens"]) is not int:
        yield "max_completion_tokens"


def _messages_faults(body: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
    if headers.get("anthropic-version") != "2023-06-01":
        yield "anthropic-version: header is required"
    if body.keys() != {"model", "max_tokens", "system", "messages", "tools", "tool_choice"}:
        yield f"parameters: {sorted(body)}"
        return
    if [m.keys() for m in body["messages"]] != [{"role", "content"}] or body["messages"][0]["role"] != "user":
        yield "messages"
    [tool] = body["tools"]
    if tool.keys() != {"name", "description", "input_schema"} or tool["input_schema"].get("type") != "object":
        yield "tools.0"
    choice = body["tool_choice"]
    if (choice.get("type"), choice.get("name")) != ("tool", tool["name"]):
        yield "tool_choice"
    if not choice.keys() <= {"type", "name", "disable_parallel_tool_use"}:
        yield "tool_choice: extra inputs are not permitted"


def _handler(provider: Provider, ended: threading.Event) -> type[BaseHTTPRequestHandler]:
    is_chat = provider.api == "openai"
    path = "/v1/chat/completions" if is_chat else "/v1/messages"

    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            provider.headers.append(headers)
            key = headers.get("authorization") == f"Bearer {KEY}" if is_chat else headers.get("x-api-key") == KEY
            faults = [] if self.path == path else [f"path {self.path}"]
            faults += [] if headers.get("content-type") == "application/json" else ["content-type"]
            body = json.loads(raw.decode("utf-8"))
            faults += (_chat_faults if is_chat else _messages_faults)(body, headers)
            provider.requests.append(body)
            provider.faults += faults
            if not key:
                message = f"Incorrect API key provided: {headers.get('authorization') or headers.get('x-api-key')}."
                return self._send(_error(401, "authentication_error", message))
            if faults:
                return self._send(_error(400, "invalid_request_error", "; ".join(faults)))
            return self._send(provider.answer(body))

        def _send(self, reply: Reply) -> None:
            until = time.monotonic() + reply.wait
            while time.monotonic() < until and not ended.is_set():
                time.sleep(0.02)
            try:
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                if reply.chunked:
                    return self._endless(reply.body)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.torn else reply.body)
                self.close_connection = reply.torn or self.close_connection
            except OSError:
                self.close_connection = True

        def _endless(self, piece: bytes) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while not ended.is_set():
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))

        def log_message(self, format: str, *args: object) -> None:
            """Ignore the message."""

    return Handler


class _Server(ThreadingHTTPServer):
    request_queue_size = 128
    daemon_threads = True


def _error(status: int, kind: str, message: str) -> Reply:
    return Reply(status, json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode())


@contextmanager
def provider(api: str) -> Iterator[Provider]:
    """Run a provider, `openai` or `anthropic`; operators would configure its `url`."""
    running_provider, ended = Provider(api), threading.Event()
    server = _Server(("127.0.0.1", 0), _handler(running_provider, ended))
    running_provider.url = f"http://127.0.0.1:{server.server_address[1]}" + ("/v1" if api == "openai" else "")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield running_provider
    finally:
        ended.set()
        server.shutdown()
        server.server_close()
        thread.join(5)
