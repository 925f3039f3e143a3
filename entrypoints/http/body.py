"""Request bodies: minimum transfer rate, size limits, strict JSON decoding, and validation."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from domain.kernel.concurrency import ConcurrencyLimit
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge
from entrypoints.operations.validation import MAX_FIELD_ERRORS, MAX_FIELD_LENGTH, Validator

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

MAX_DISCARD_SECONDS = 1.0
"""Maximum seconds for which the rest of a rejected body is received, so that the client can read the response."""
MAX_DISCARD_BYTES = 8 << 20
"""Maximum bytes of the rest of a rejected body that are received within MAX_DISCARD_SECONDS."""


@dataclass(frozen=True, slots=True)
class MinimumRate:
    """Minimum rate at which a client must send a body.

    Attributes:
        grace_seconds: Seconds at the beginning in which no rate is required.
        max_pause_seconds: Maximum seconds between two chunks.
        bytes_per_second: The required average rate.
    """

    grace_seconds: float
    max_pause_seconds: float
    bytes_per_second: int

    def compute_remaining_seconds(self, waited_seconds: float, received_bytes: int) -> float:
        """Return the number of seconds within which the next chunk of the body must arrive.

        Args:
            waited_seconds: Seconds spent waiting for the client so far.
            received_bytes: Bytes received so far.
        """
        return min(self.max_pause_seconds, self.grace_seconds + received_bytes / self.bytes_per_second - waited_seconds)


JSON_MINIMUM_RATE = MinimumRate(grace_seconds=10.0, max_pause_seconds=10.0, bytes_per_second=8 * 1024)
"""Minimum rate of JSON bodies, at which 1 MiB takes at most 138 s."""
FILE_MINIMUM_RATE = MinimumRate(grace_seconds=30.0, max_pause_seconds=30.0, bytes_per_second=4 * 1024)
"""Minimum rate of uploaded files; a connection of 32 kbit/s suffices for any size."""


class BodyLimits:
    """Limits of request bodies in a process.

    `incoming_bodies` limits the number of bodies that are being received, `body_bytes` the memory of all bodies.
    """

    def __init__(self) -> None:
        self.incoming_bodies = ConcurrencyLimit(1024, 64, noun="request bodies in progress")
        self.body_bytes = ConcurrencyLimit(256 << 20, 64 << 20, noun="bytes of request bodies")


class BodyTooSlow(Exception):
    """The client sends the body more slowly than the minimum rate."""


class ClientDisconnected(ConnectionError):
    """The client disconnected before the body was complete."""


def describe_size_limit(limit: int) -> str:
    """Return the error detail for a body of more than `limit` bytes."""
    return f"The body has more than {limit} bytes, which is the maximum for this operation. Send the data in parts."


class IncomingBody:
    """Request body of one ASGI connection, which is received only when `iter_chunks` or `read` is called."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._is_complete = asyncio.Event()
        self._is_too_slow = False

    async def iter_chunks(self, minimum_rate: MinimumRate) -> AsyncIterator[bytes]:
        """Yield the chunks of the body as they arrive.

        Only the time spent waiting for the client counts towards the minimum rate. Raises BodyTooSlow or
        ClientDisconnected.
        """
        loop, waited_seconds, received = asyncio.get_running_loop(), 0.0, 0
        while not self._is_complete.is_set():
            started = loop.time()
            try:
                async with asyncio.timeout(max(0.0, minimum_rate.compute_remaining_seconds(waited_seconds, received))):
                    message = await self._receive_body_message()
            except TimeoutError:
                self._is_too_slow = True
                raise BodyTooSlow from None
            waited_seconds += loop.time() - started
            if chunk := message.get("body"):
                received += len(chunk)
                yield chunk

    async def read(self, limit: int) -> bytes:
        """Receive and return the whole body.

        Raises PayloadTooLarge if it has more than `limit` bytes, InvalidRequest if it is too slow or incomplete.
        """
        body = bytearray()
        try:
            async for chunk in self.iter_chunks(JSON_MINIMUM_RATE):
                body += chunk
                if len(body) > limit:
                    raise PayloadTooLarge(describe_size_limit(limit))
        except BodyTooSlow:
            raise InvalidRequest(
                f"The body arrived too slowly. Send at least {JSON_MINIMUM_RATE.bytes_per_second} bytes per second on average, "
                f"without pauses of more than {JSON_MINIMUM_RATE.max_pause_seconds:g} s."
            ) from None
        except ClientDisconnected:
            raise InvalidRequest(
                "The body is incomplete: the connection closed too early. Send the request again."
            ) from None
        return bytes(body)

    async def receive(self) -> Message:
        """Return the next ASGI message, and note the end of the body."""
        message = await self._receive()
        if message["type"] != "http.request" or not message.get("more_body"):
            self._is_complete.set()
        return message

    async def receive_after_body(self) -> Message:
        """Wait until the body has been received; return the next ASGI message.

        This method is the ASGI `receive` of frameworks that must not read the body themselves.
        """
        await self._is_complete.wait()
        return await self._receive()

    def wrap_send(self, send: Send) -> Send:
        """Return a `send` that, at the end of a response, discards a body that has not been received completely."""

        async def send_message(message: Message) -> None:
            if self._is_complete.is_set() or message["type"] != "http.response.body" or message.get("more_body"):
                await send(message)
            else:
                await self._send_last_message(message, send)

        return send_message

    async def _receive_body_message(self) -> Message:
        message = await self.receive()
        if message["type"] != "http.request":
            raise ClientDisconnected("The client disconnected.")
        return message

    async def _send_last_message(self, last_message: Message, send: Send) -> None:
        """Send the last message of a response; discard the rest of the request's body meanwhile."""
        # A client may read the response only after it has sent the body, so the rest is discarded for a moment. Then the rest is
        # discarded until the connection is closed: the server cannot close a connection whose receive queue is full.
        await send({**last_message, "more_body": True})
        if not self._is_too_slow:
            await self._discard_briefly()
        drain_task = asyncio.create_task(self._discard_until_disconnect())
        try:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            drain_task.cancel()
            await asyncio.gather(drain_task, return_exceptions=True)

    async def _discard_briefly(self) -> None:
        discarded = 0
        try:
            async with asyncio.timeout(MAX_DISCARD_SECONDS):
                while not self._is_complete.is_set() and discarded < MAX_DISCARD_BYTES:
                    discarded += len((await self._receive_body_message()).get("body", b""))
        except (TimeoutError, ClientDisconnected):
            return

    async def _discard_until_disconnect(self) -> None:
        while (await self.receive())["type"] == "http.request":
            pass


MAX_DEPTH = 32
_MAX_NUMBER_LENGTH = 64
_MAX_EXPONENT = 30
SMALL_BODY_BYTES = 64 * 1024
"""Size up to which any body decodes in a few milliseconds, so that the number of its values need not be checked."""
MAX_KEYS = 10_000
"""Maximum number of keys of one JSON object."""
_MAX_PATH_LENGTH = 300
_UNSTORABLE_ESCAPE = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_TOO_DEEP_START = re.compile(rb'(?:\s*(?:\[|\{\s*"[^"\\]*"\s*:)){%d}' % (MAX_DEPTH + 1))
"""Pattern of a body that begins with too many nested arrays and objects."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class _ObjectWithDuplicate(dict[str, Any]):
    """JSON object that contains a key twice; `key` is the first such key."""

    key = ""


class _DuplicateKey(Exception):
    """A JSON object contains a key twice."""


class _BadNumber(ValueError):
    """A number is NaN, infinite, or outside the range that any field permits."""


def _parse_number(text: str) -> int | Decimal:
    value = Decimal(text) if len(text) <= _MAX_NUMBER_LENGTH else None
    if value is None or abs(value.adjusted()) > _MAX_EXPONENT:
        raise _BadNumber(f"The number {text[:40]} is out of range.")
    return int(value) if value == value.to_integral_value() else value


def _parse_integer(text: str) -> int:
    if len(text) > _MAX_NUMBER_LENGTH:
        raise _BadNumber(f"The number {text[:40]}… is out of range.")
    return int(text)


def _reject_constant(text: str) -> Any:
    raise _BadNumber(f"{text} is not a JSON number. Omit the field or send a number.")


def _build_decoding_error(detail: str, field: str = "body", code: str = "invalid_format") -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError(field, code, detail),))


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary from the keys and values of a JSON object.

    Raises _DuplicateKey if a key occurs twice, InvalidRequest if there are too many keys.
    """
    if len(pairs) > MAX_KEYS:
        raise _build_decoding_error(
            f"An object has more than {MAX_KEYS} fields. Send fewer fields at once.", code="too_many"
        )
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    raise _DuplicateKey


def _build_marked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build a dictionary from the keys and values of a JSON object; an _ObjectWithDuplicate if a key occurs twice."""
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    duplicate, seen = _ObjectWithDuplicate(result), set[str]()
    for key, _ in pairs:
        if key in seen:
            duplicate.key = key
            break
        seen.add(key)
    return duplicate


def _create_decoder(hook: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=hook, parse_float=_parse_number, parse_int=_parse_integer, parse_constant=_reject_constant
    )


_strict_decoder = _create_decoder(_build_object)
_marking_decoder = _create_decoder(_build_marked_object)


def decode_body(raw: bytes, max_values: int) -> Any:
    """Decode a JSON body (RFC 8259) in UTF-8. Whole numbers become int, other numbers Decimal.

    Args:
        raw: The body as received.
        max_values: Maximum number of values in a body larger than SMALL_BODY_BYTES.

    Raises:
        InvalidRequest: The body is not JSON, has a duplicate key, is nested more than 32 levels deep, has too many
            values, or contains a text that databases cannot store.
    """
    if len(raw) > SMALL_BODY_BYTES:
        if _TOO_DEEP_START.match(raw):
            raise _build_depth_error()
        if has_more_values(raw, max_values):
            raise _build_decoding_error(
                f"The body has more than {max_values} values. Send the values in parts.", code="too_many"
            )
    value = _decode_json(raw)
    if value is _DuplicateKey:
        raise _build_duplicate_key_error(raw)  # decodes again, when the first value is no longer in memory
    if raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check_depth(value)
    if _UNSTORABLE_ESCAPE.search(raw):
        _check_texts(value)
    return value


def _decode_json(raw: bytes) -> Any:
    """Decode JSON in UTF-8; return the value, or the class `_DuplicateKey` itself if an object contains a key twice.

    Raises InvalidRequest for any other defect.
    """
    try:
        return _strict_decoder.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _build_decoding_error(
            f"The body is not UTF-8: byte {error.start} (counted from 0) is invalid. Encode it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise _build_decoding_error(_describe_json_error(error)) from None
    except _BadNumber as error:
        raise _build_decoding_error(str(error), code="invalid_value") from None
    except RecursionError:
        raise _build_depth_error() from None
    except _DuplicateKey:
        return _DuplicateKey


def _describe_json_error(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return "The body is not valid JSON: the text ends too early. Close all brackets and quotation marks, and add missing values."
    return (
        f"The body is not valid JSON: error at line {error.lineno}, column {error.colno}. Look for an extra or missing comma, "
        "single quotation marks, or unquoted text."
    )


def has_more_values(raw: bytes, max_values: int) -> bool:
    """Return whether a JSON text has more than `max_values` values, without decoding it.

    Commas and opening brackets outside strings are counted.
    """
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= max_values:
        return False
    without_escapes = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    values, is_in_string = 0, False
    for start in range(0, len(without_escapes), SMALL_BODY_BYTES):
        texts = without_escapes[start : start + SMALL_BODY_BYTES].split(b'"')
        for text in texts[1 if is_in_string else 0 :: 2]:
            values += text.count(b",") + text.count(b"[") + text.count(b"{")
        is_in_string ^= len(texts) % 2 == 0
        if values > max_values:
            return True
    return False


def _build_depth_error() -> InvalidRequest:
    return _build_decoding_error(
        f"The body is nested more than {MAX_DEPTH} levels deep. Use fewer levels.", code="too_large"
    )


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise _build_depth_error()


def _iterate_children(value: Any) -> Iterator[tuple[str | int, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _iterate_values(value: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Yield the path and value of the root and of each nested value. The path list changes with the next step."""
    yield [], value
    if not isinstance(value, (dict, list)):
        return
    path: list[str | int] = [""]
    iterators = [_iterate_children(value)]
    while iterators:
        for name, inner in iterators[-1]:
            path[-1] = name
            yield path, inner
            if isinstance(inner, (dict, list)) and inner:
                iterators.append(_iterate_children(inner))
                path.append("")
                break
        else:
            iterators.pop()
            path.pop()


def _format_path(path: list[str | int]) -> str:
    return ".".join(map(str, path))[:_MAX_PATH_LENGTH] or "body"


def _build_duplicate_key_error(raw: bytes) -> InvalidRequest:
    """Return the error for a body in which an object contains a key twice, with the path of the first such key."""
    try:
        for path, value in _iterate_values(_marking_decoder.decode(raw.decode("utf-8"))):
            if isinstance(value, _ObjectWithDuplicate):
                return _build_decoding_error(
                    "This field occurs twice in one object. Keep one of them.",
                    _format_path([*path, value.key]),
                    "duplicate",
                )
    except (ValueError, RecursionError):
        pass  # the rest is invalid as well: the duplicate key is still reported
    return _build_decoding_error("A field occurs twice in one object. Keep one of them.", code="duplicate")


def _check_texts(value: Any) -> None:
    """Raise InvalidRequest if a text or field name contains a lone surrogate or a NUL character."""
    for path, inner in _iterate_values(value):
        if isinstance(inner, str) and _UNSTORABLE.search(inner):
            raise _build_decoding_error(
                "The text contains a lone surrogate or a NUL character. Remove the character.",
                _format_path(path),
                "invalid_value",
            )
        if isinstance(inner, dict) and any(map(_UNSTORABLE.search, inner)):
            raise _build_decoding_error(
                "The name of a field contains a lone surrogate or a NUL character. Remove the character.",
                _format_path(path),
                "invalid_value",
            )


MAX_QUICK_VALUES = 20_000
"""Number of values that decode in about 20 ms, whatever their nesting."""
MIN_BYTES_PER_VALUE = 9
"""Average bytes per JSON value below which a large body is validated in a parser process; pushed records have about 15."""
_NO_FIELDS = "This operation takes no fields. Omit the body."

FieldErrors = tuple[FieldError, ...]


def has_many_values(raw: bytes) -> bool:
    """Return whether the body has so many values that decoding it may block the event loop for more than 20 ms."""
    return len(raw) > SMALL_BODY_BYTES and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > max(
        MAX_QUICK_VALUES, len(raw) // MIN_BYTES_PER_VALUE
    )


def validate_body(raw: bytes, max_values: int, schema: Mapping[str, Any] | None) -> tuple[str | None, FieldErrors]:
    """Decode and validate a body; return the error detail if it cannot be decoded, else None, and the field errors.

    Args:
        raw: The body as received.
        max_values: Maximum number of values in a large body.
        schema: The JSON Schema of the body; None if the operation takes no body.
    """
    try:
        _, field_errors = decode_and_validate(raw, max_values, None if schema is None else Validator(schema))
    except InvalidRequest as error:
        return error.detail, error.fields
    return None, field_errors


def decode_and_validate(raw: bytes, max_values: int, validator: Validator | None) -> tuple[Any, FieldErrors]:
    """Decode and validate a body; return its value and the field errors.

    If `validator` is None, the operation takes no body: the value is None, and anything but an empty object is an
    error. Raises InvalidRequest if the body cannot be decoded.
    """
    value = decode_body(raw, max_values)
    return (None, _find_unexpected_fields(value)) if validator is None else (value, validator.find_field_errors(value))


def _find_unexpected_fields(body: Any) -> FieldErrors:
    """Return the field errors of the body of an operation that takes no body; an empty object is permitted."""
    if isinstance(body, dict):
        names = islice(body, MAX_FIELD_ERRORS + 1)
        return tuple(FieldError(name[:MAX_FIELD_LENGTH], "unknown_field", _NO_FIELDS) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body. Omit it."),)


T = TypeVar("T")

MAX_BODY_THREADS = 2
"""Maximum number of threads that process large bodies."""


class OrganisationThreadPool:
    """Thread pool that runs at most one task of each organisation at a time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MAX_BODY_THREADS, thread_name_prefix="bodies")
        self._lock_by_org: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, org: str, work: Callable[[], T], prepare: Callable[[], Awaitable[None]] | None = None) -> T:
        """Run `work` in a thread after the organisation's earlier tasks; return its result.

        `prepare` is awaited immediately before `work`.
        """
        lock = self._lock_by_org.get(org)
        if lock is None:
            lock = self._lock_by_org[org] = asyncio.Lock()
        async with lock:
            if prepare is not None:
                await prepare()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
