"""Server that imitates providers of language models according to their public documentation, independently of the service's code.

Every request is checked against the documentation; violations are recorded in `faults` and answered with 400.
"""

import json
import re
import select
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-proj-Ab3dEf6hIjKlMnOp"
STRICT_KEYWORDS = {
    "type", "properties", "required", "additionalProperties", "items", "enum", "const", "anyOf", "description",
    "minimum", "maximum", "minItems", "maxItems", "pattern", "$defs", "$ref",
}  # fmt: skip


@dataclass(frozen=True)
class Reasoning:
    """Reasoning in a stream."""

    text: str


@dataclass(frozen=True)
class ToolCall:
    """Call of a tool in a stream, whose arguments arrive in two parts."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    id: str = "call_1"


@dataclass(frozen=True)
class StreamError:
    """Error within a stream, which ends it."""

    type: str = "overloaded_error"
    message: str = f"no more for {KEY}"


@dataclass(frozen=True)
class Pause:
    """Time in which a stream sends nothing; the default is longer than any test."""

    seconds: float = 600.0


StreamPart = str | Reasoning | ToolCall | StreamError | Pause
"""Part of a stream; a text arrives in words."""


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
    events: Sequence[bytes | Pause] | None = None
    """Server-sent events, which are sent instead of a body."""


@dataclass
class Provider:
    """A running provider. `answer` creates the reply to a request body; `requests` are the received bodies."""

    api: str
    url: str = ""
    answer: Callable[[Mapping[str, Any]], Reply] = lambda _: Reply()
    requests: list[Mapping[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    aborts: int = 0
    """The number of streams that clients aborted."""

    def read_instructions(self, body: Mapping[str, Any]) -> str:
        """Return the instructions in the body of a request."""
        return _join_texts(body["messages"][0]["content"] if self.api == "openai" else body["system"])

    def read_data(self, body: Mapping[str, Any]) -> Any:
        """Return the data in the newest message of a request."""
        message = body["messages"][-1]
        assert message["role"] == "user"
        return json.loads(_join_texts(message["content"]))

    def make_stream(self, *parts: StreamPart, read: int = 812, written: int = 57) -> Reply:
        """Return a response as a stream of events in the format of the API."""
        events = (_stream_chat if self.api == "openai" else _stream_messages)(parts, read, written)
        return Reply(headers={"Content-Type": "text/event-stream"}, events=list(events))

    def make_reply(self, value: Any, *, read: int = 812, written: int = 57, **more: Any) -> Reply:
        """Return a response in the format of the API."""
        is_native = bool(self.requests) and "output_config" in self.requests[-1]
        body = _openai(value, read, written) if self.api == "openai" else _anthropic(value, read, written, is_native)
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


def _join_texts(content: str | Sequence[Mapping[str, Any]]) -> str:
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _openai(value: Any, read: int, written: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": json.dumps(value), "refusal": None, "annotations": []}
    usage = {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}
    return {
        "id": "chatcmpl-B9MBs8CjcvOU2jLn4n570S5qMJKcT", "object": "chat.completion", "created": 1741569952, "model": "small-1-2026-08-07",
        "choices": [{"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}], "usage": usage,
    }  # fmt: skip


def _anthropic(value: Any, read: int, written: int, is_native: bool = False) -> dict[str, Any]:
    used = {"type": "tool_use", "id": "toolu_01D7FLrfh4GYq7yT1ULFeyMV", "name": "answer", "input": value}
    if is_native:
        used = {"type": "text", "text": json.dumps(value)}
    usage = {
        "input_tokens": read,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
        "output_tokens": written,
    }
    return {
        "id": "msg_013Zva2CMHLNnjNJJKqJ2EF", "type": "message", "role": "assistant", "model": "small-1-2026-08-07",
        "content": [used], "stop_reason": "end_turn" if is_native else "tool_use", "stop_sequence": None, "usage": usage,
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


def _stream_chat(parts: Sequence[StreamPart], read: int, written: int) -> Iterator[bytes | Pause]:
    """Yield the events of a chat completion."""

    def event(delta: Mapping[str, Any] | None, reason: str | None = None, **more: Any) -> bytes:
        choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": reason}]
        chunk = {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1741569952,
            "model": "small-1-2026-08-07",
        }
        return f"data: {json.dumps(chunk | {'choices': choices} | more)}\n\n".encode()

    yield event({"role": "assistant", "content": ""})
    calls = 0
    for part in parts:
        match part:
            case str():
                yield from (event({"content": word}) for word in _split(part))
            case Reasoning(text):
                yield event({"reasoning_content": text})
            case ToolCall(name, arguments, id):
                first, second = _halve(json.dumps(arguments))
                function = {"name": name, "arguments": first}
                yield event({"tool_calls": [{"index": calls, "id": id, "type": "function", "function": function}]})
                yield event({"tool_calls": [{"index": calls, "function": {"arguments": second}}]})
                calls += 1
            case StreamError(type, message):
                yield f"data: {json.dumps({'error': {'type': type, 'message': message}})}\n\n".encode()
                return
            case Pause():
                yield part
    yield event({}, "tool_calls" if calls else "stop")
    yield event(None, usage={"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written})
    yield b"data: [DONE]\n\n"


def _stream_messages(parts: Sequence[StreamPart], read: int, written: int) -> Iterator[bytes | Pause]:
    """Yield the events of a message of Anthropic's API."""

    def event(type: str, **more: Any) -> bytes:
        return f"event: {type}\ndata: {json.dumps({'type': type, **more})}\n\n".encode()

    def block(index: int, start: Mapping[str, Any], *deltas: Mapping[str, Any]) -> Iterator[bytes]:
        yield event("content_block_start", index=index, content_block=start)
        yield from (event("content_block_delta", index=index, delta=delta) for delta in deltas)
        yield event("content_block_stop", index=index)

    message = _anthropic(None, read, 1) | {"content": [], "stop_reason": None}
    yield event("message_start", message=message)
    yield event("ping")
    for index, part in enumerate(parts):
        match part:
            case str():
                words = [{"type": "text_delta", "text": word} for word in _split(part)]
                yield from block(index, {"type": "text", "text": ""}, *words)
            case Reasoning(text):
                deltas = {"type": "thinking_delta", "thinking": text}, {"type": "signature_delta", "signature": "c2ln"}
                yield from block(index, {"type": "thinking", "thinking": "", "signature": ""}, *deltas)
            case ToolCall(name, arguments, id):
                halves = [{"type": "input_json_delta", "partial_json": half} for half in _halve(json.dumps(arguments))]
                yield from block(index, {"type": "tool_use", "id": id, "name": name, "input": {}}, *halves)
            case StreamError(type, text):
                yield event("error", error={"type": type, "message": text})
                return
            case Pause():
                yield part
    reason = "tool_use" if any(isinstance(part, ToolCall) for part in parts) else "end_turn"
    delta = {"stop_reason": reason, "stop_sequence": None}
    yield event("message_delta", delta=delta, usage={"output_tokens": written})
    yield event("message_stop")


def _split(text: str) -> list[str]:
    """Return the words of a text with the spaces after them."""
    return re.findall(r"\S+\s*", text)


def _halve(text: str) -> tuple[str, str]:
    return text[: len(text) // 2], text[len(text) // 2 :]


_CHAT_PARAMETERS = {
    "model", "messages", "response_format", "max_completion_tokens", "stream", "stream_options", "tools", "tool_choice",
    "parallel_tool_calls", "reasoning_effort",
}  # fmt: skip
_MESSAGES_PARAMETERS = {
    "model", "max_tokens", "system", "messages", "tools", "tool_choice", "output_config", "stream", "thinking",
    "cache_control",
}  # fmt: skip
_HEADERS = {
    "host", "content-type", "content-length", "accept", "accept-encoding", "user-agent", "authorization", "x-api-key",
    "anthropic-version", "anthropic-beta",
}  # fmt: skip


def _chat_faults(body: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
    if not {"model", "messages", "max_completion_tokens"} <= body.keys() <= _CHAT_PARAMETERS:
        yield f"parameters: {sorted(body)}"
        return
    if not all(m["role"] in ("system", "user", "assistant", "tool") for m in body["messages"]):
        yield "messages"
    if body.get("stream") and body.get("stream_options") != {"include_usage": True}:
        yield "stream_options"
    if type(body["max_completion_tokens"]) is not int:
        yield "max_completion_tokens"
    for tool in body.get("tools", ()):
        if tool["type"] != "function" or tool["function"]["parameters"].get("type") != "object":
            yield "tools"
    if "response_format" in body:
        yield from _structured_faults(body)


def _structured_faults(body: Mapping[str, Any]) -> Iterator[str]:
    messages, format = body["messages"], body["response_format"]
    if [m.keys() for m in messages] != [{"role", "content"}] * 2 or [m["role"] for m in messages] != ["system", "user"]:
        yield "messages"
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


def _messages_faults(body: Mapping[str, Any], headers: Mapping[str, str]) -> Iterator[str]:
    if headers.get("anthropic-version") != "2026-10-21":
        yield "anthropic-version: header is required"
    if not {"model", "max_tokens", "messages"} <= body.keys() <= _MESSAGES_PARAMETERS:
        yield f"parameters: {sorted(body)}"
        return
    if body["messages"][0]["role"] != "user" or not all(m["role"] in ("user", "assistant") for m in body["messages"]):
        yield "messages"
    for tool in body.get("tools", ()):
        if not tool.keys() <= {"name", "description", "input_schema"} or tool["input_schema"].get("type") != "object":
            yield "tools"
    if body.get("tool_choice", {}).get("type", "auto") not in ("auto", "any", "tool", "none"):
        yield "tool_choice"
    if "output_config" in body:
        format = body["output_config"]["format"]
        if format.keys() != {"type", "schema"} or format["type"] != "json_schema":
            yield "output_config.format"
        yield from (f"{fault} (native)" for fault in strict_faults(format["schema"]) if "not permitted" in fault)


def _handler(provider: Provider, ended: threading.Event) -> type[BaseHTTPRequestHandler]:
    is_chat = provider.api == "openai"
    paths = ("/v1/chat/completions",) if is_chat else ("/v1/messages", "/v1/messages?beta=true")

    class Handler(BaseHTTPRequestHandler):
        """One connection."""

        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            provider.headers.append(headers)
            key = headers.get("authorization") == f"Bearer {KEY}" if is_chat else headers.get("x-api-key") == KEY
            faults = [] if self.path in paths else [f"path {self.path}"]
            faults += [f"header {name}" for name in headers.keys() - _HEADERS]
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
            try:
                self._wait(reply.wait)
                self.send_response(reply.status)
                for name, value in {"Content-Type": "application/json", **reply.headers}.items():
                    self.send_header(name, value)
                if reply.chunked:
                    return self._endless(reply.body)
                if reply.events is not None:
                    return self._stream(reply.events)
                self.send_header("Content-Length", str(len(reply.body)))
                self.end_headers()
                self.wfile.write(reply.body[: len(reply.body) // 2] if reply.torn else reply.body)
                self.close_connection = reply.torn or self.close_connection
            except OSError:
                self.close_connection = True

        def _stream(self, events: Sequence[bytes | Pause]) -> None:
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            try:
                for event in events:
                    if isinstance(event, Pause):
                        self._wait(event.seconds)
                    else:
                        self.wfile.write(b"%x\r\n%b\r\n" % (len(event), event))
                self.wfile.write(b"0\r\n\r\n")
            except OSError:
                provider.aborts += 1
                raise

        def _wait(self, seconds: float) -> None:
            """Wait; raise OSError when the client closes the connection."""
            until = time.monotonic() + seconds
            while time.monotonic() < until and not ended.is_set():
                if select.select([self.connection], [], [], 0.02)[0] and not self.connection.recv(1, socket.MSG_PEEK):
                    raise ConnectionAbortedError

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

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of connections that clients closed."""


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
