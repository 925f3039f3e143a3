"""Request bodies: minimum transfer rate, size limits, strict JSON decoding, and validation of dense bodies in a subprocess."""

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
from entrypoints.operations.validation import LONGEST_FIELD, MOST_FAULTS, Validator

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LINGER_SECONDS = 1.0
LINGER_BYTES = 8 << 20
"""Seconds and bytes for which the rest of a rejected body is still received, so that the client can read the response."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Minimum transfer rate of a body: an average of `least` bytes a second.

    The first `grace` seconds are exempt; no pause may be longer than `silence` seconds.
    """

    grace: float
    silence: float
    least: int

    def patience(self, waited: float, received: int) -> float:
        """Return how many seconds the next chunk may take, after `waited` seconds of waiting for `received` bytes."""
        return min(self.silence, self.grace + received / self.least - waited)


JSON_PACE = Pace(grace=10.0, silence=10.0, least=8 * 1024)
"""For JSON bodies: 1 MiB takes at most 138 s."""
FILE_PACE = Pace(grace=30.0, silence=30.0, least=4 * 1024)
"""For files: a line of 32 kbit/s is enough for any size."""


class HeldBodies:
    """Limits of the request bodies in memory: the number still arriving, and the bytes of all."""

    def __init__(self) -> None:
        self.arriving = ConcurrencyLimit(1024, 64, noun="bodies that are still arriving")
        self.bytes = ConcurrencyLimit(256 << 20, 64 << 20, noun="bytes of bodies in hand")


class TooSlow(Exception):
    """Body received more slowly than its minimum rate."""


class Gone(ConnectionError):
    """Client disconnected before the body was complete."""


def too_large(limit: int) -> str:
    """Return the error detail for a body over the limit."""
    return f"The body has more than {limit} bytes, the maximum here. Send it in parts."


class IncomingBody:
    """Request body of one ASGI connection, received only as `chunks` is consumed."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = asyncio.Event()
        self._hopeless = False

    async def chunks(self, pace: Pace) -> AsyncIterator[bytes]:
        """Yield the body's chunks; the consumer's own time does not count. Raises TooSlow or Gone."""
        loop, waited, received = asyncio.get_running_loop(), 0.0, 0
        while not self._ended.is_set():
            started = loop.time()
            try:
                async with asyncio.timeout(max(0.0, pace.patience(waited, received))):
                    message = await self._next()
            except TimeoutError:
                self._hopeless = True
                raise TooSlow from None
            waited += loop.time() - started
            if piece := message.get("body"):
                received += len(piece)
                yield piece

    async def read(self, limit: int) -> bytes:
        """Return the whole body. Raises PayloadTooLarge, or InvalidRequest if the body is too slow or incomplete."""
        received = bytearray()
        try:
            async for piece in self.chunks(JSON_PACE):
                received += piece
                if len(received) > limit:
                    raise PayloadTooLarge(too_large(limit))
        except TooSlow:
            raise InvalidRequest(
                f"The body arrived too slowly: it may pause for {JSON_PACE.silence:g} s and must arrive at  "
                f"{JSON_PACE.least} bytes a second or more. Send the request again."
            ) from None
        except Gone:
            raise InvalidRequest(
                "The body is incomplete: the connection closed too early. Send the request again."
            ) from None
        return bytes(received)

    async def receive(self) -> Message:
        """Return the next message after the body, for a framework that must not read the body itself."""
        await self._ended.wait()
        return await self._receive()

    def answering(self, send: Send) -> Send:
        """Wrap `send` for a response that may be complete before the body is."""

        async def answer(message: Message) -> None:
            if self._ended.is_set() or message["type"] != "http.response.body" or message.get("more_body"):
                await send(message)
            else:
                await self._finish(message, send)

        return answer

    async def _next(self) -> Message:
        message = await self._receive()
        if message["type"] != "http.request":
            self._ended.set()
            raise Gone("The client disconnected.")
        if not message.get("more_body"):
            self._ended.set()
        return message

    async def _finish(self, last: Message, send: Send) -> None:
        """Complete the response to a request whose body was not read to its end.

        The client may still be sending and reads the response only afterwards, so incoming data is discarded for a moment.
        A server with a full receive queue could not close the connection, so the queue is drained until it is closed.
        """
        await send({**last, "more_body": True})
        if not self._hopeless:
            await self._linger()
        draining = asyncio.create_task(self._drain())
        try:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            draining.cancel()
            await asyncio.gather(draining, return_exceptions=True)

    async def _linger(self) -> None:
        discarded = 0
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended.is_set() and discarded < LINGER_BYTES:
                    discarded += len((await self._next()).get("body", b""))
        except (TimeoutError, Gone):
            return

    async def _drain(self) -> None:
        while (message := await self._receive())["type"] == "http.request":
            if not message.get("more_body"):
                self._ended.set()
        self._ended.set()


DEPTH = 32
_LONGEST_NUMBER = 64
_LARGEST_EXPONENT = 30
SMALL = 64 * 1024
"""Size in bytes up to which any body decodes in a few milliseconds, so that its values need not be counted."""
MOST_KEYS = 10_000
"""Maximum keys of one object: more than any schema has, and few enough to check at once."""
_LONGEST_PATH = 300
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_DEEP = re.compile(rb'(?:\s*(?:\[|\{\s*"[^"\\]*"\s*:)){%d}' % (DEPTH + 1))
"""The beginning of a body whose nesting is too deep from its start."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class _ObjectWithDuplicate(dict[str, Any]):
    """Object with a duplicate key; `key` is the first one."""

    key = ""


class _DuplicateKey(Exception):
    """Object with a duplicate key."""


class _BadNumber(ValueError):
    """NaN, Infinity, or a number outside the range of all fields."""


def _parse_number(text: str) -> int | Decimal:
    value = Decimal(text) if len(text) <= _LONGEST_NUMBER else None
    if value is None or abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise _BadNumber(f"The number {text[:40]} is out of range.")
    return int(value) if value == value.to_integral_value() else value


def _parse_integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _BadNumber(f"The number {text[:40]}… is out of range.")
    return int(text)


def _reject_constant(text: str) -> Any:
    raise _BadNumber(f"{text} is not a JSON number. Omit the field or send a number.")


def _decoding_error(detail: str, field: str = "body", code: str = "invalid_format") -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError(field, code, detail),))


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise _decoding_error(f"An object has more than {MOST_KEYS} fields. Send fewer at once.", code="too_many")
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    raise _DuplicateKey


def _build_marked_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object like `_build_object`, and note the first duplicate key so that the error can name its path."""
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


def decode(raw: bytes, most: int) -> Any:
    """Decode a JSON body (RFC 8259) in UTF-8: no duplicate keys, at most 32 levels deep, storable texts only.

    A body over SMALL bytes has at most `most` values. Whole numbers become int, others Decimal.
    Raises InvalidRequest.
    """
    if len(raw) > SMALL:
        if _DEEP.match(raw):
            raise _depth_error()
        if has_more_values(raw, most):
            raise _decoding_error(f"The body has more than {most} values. Send them in parts.", code="too_many")
    value = _parse(raw)
    if value is _DuplicateKey:
        raise _duplicate_key_error(raw)  # the value decoded before is released by now
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _check_depth(value)
    if _SUSPECT.search(raw):
        _check_texts(value)
    return value


def _parse(raw: bytes) -> Any:
    """Return the value, or _DuplicateKey itself. Raises InvalidRequest."""
    try:
        return _strict_decoder.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _decoding_error(
            f"The body is not UTF-8: byte {error.start} (counted from 0) is wrong. Encode it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise _decoding_error(_describe_json_error(error)) from None
    except _BadNumber as error:
        raise _decoding_error(str(error), code="invalid_value") from None
    except RecursionError:
        raise _depth_error() from None
    except _DuplicateKey:
        return _DuplicateKey


def _describe_json_error(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return (
            "The body is not JSON: it ends too early. A bracket or quotation mark is not closed, or a value is missing."
        )
    return (
        f"The body is not JSON from line {error.lineno}, column {error.colno} on. Look for an extra or missing comma, "
        "single quotation marks, or unquoted text."
    )


def has_more_values(raw: bytes, most: int) -> bool:
    """Return whether the commas and brackets outside strings imply more than `most` values."""
    if raw.count(b",") + raw.count(b"[") + raw.count(b"{") <= most:
        return False
    bare = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    values, inside = 0, False
    for start in range(0, len(bare), SMALL):
        parts = bare[start : start + SMALL].split(b'"')
        for part in parts[1 if inside else 0 :: 2]:
            values += part.count(b",") + part.count(b"[") + part.count(b"{")
        inside ^= len(parts) % 2 == 0
        if values > most:
            return True
    return False


def _depth_error() -> InvalidRequest:
    return _decoding_error(f"The body is nested more than {DEPTH} levels deep. Flatten it.", code="too_large")


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(DEPTH):
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
        if not level:
            return
    raise _depth_error()


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _walk(value: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Yield every value with its path; the path list is reused and valid only until the next value."""
    yield [], value
    if not isinstance(value, (dict, list)):
        return
    path: list[str | int] = [""]
    open_ = [_children(value)]
    while open_:
        for name, inner in open_[-1]:
            path[-1] = name
            yield path, inner
            if isinstance(inner, (dict, list)) and inner:
                open_.append(_children(inner))
                path.append("")
                break
        else:
            open_.pop()
            path.pop()


def _path_name(path: list[str | int]) -> str:
    return ".".join(map(str, path))[:_LONGEST_PATH] or "body"


def _duplicate_key_error(raw: bytes) -> InvalidRequest:
    """Return the error for a body with a duplicate key, naming the key by its path."""
    try:
        for path, value in _walk(_marking_decoder.decode(raw.decode("utf-8"))):
            if isinstance(value, _ObjectWithDuplicate):
                return _decoding_error(
                    "This field occurs twice in one object. Keep one of them.",
                    _path_name([*path, value.key]),
                    "duplicate",
                )
    except (ValueError, RecursionError):
        pass  # the rest is invalid as well: the duplicate key is still reported
    return _decoding_error("A field occurs twice in one object. Keep one of them.", code="duplicate")


def _check_texts(value: Any) -> None:
    """Reject lone surrogates and NUL characters."""
    for path, inner in _walk(value):
        if isinstance(inner, str) and _UNSTORABLE.search(inner):
            raise _decoding_error(
                "The text contains a lone surrogate or a NUL character. Remove it.",
                _path_name(path),
                "invalid_value",
            )
        if isinstance(inner, dict) and any(map(_UNSTORABLE.search, inner)):
            raise _decoding_error(
                "The field name contains a lone surrogate or a NUL character. Remove it.",
                _path_name(path),
                "invalid_value",
            )


MANY = 20_000
"""Number of values that decode in about 20 ms, however they are nested."""
SPARSE = 9
"""Bytes per value in the densest records; records pushed by shops have about 15."""
_NO_FIELDS = "This operation takes no fields. Omit the body."

Faults = tuple[FieldError, ...]


def is_dense(raw: bytes) -> bool:
    """Return whether the body has more commas and brackets, in strings too, than MANY and than the densest records."""
    return len(raw) > SMALL and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > max(MANY, len(raw) // SPARSE)


def check(raw: bytes, most: int, schema: Mapping[str, Any] | None) -> tuple[str | None, Faults]:
    """Return why a body of at most `most` values cannot be decoded, or None, and its faults. No schema means no body."""
    try:
        _, faults = understood(raw, most, None if schema is None else Validator(schema))
    except InvalidRequest as error:
        return error.detail, error.fields
    return None, faults


def understood(raw: bytes, most: int, validator: Validator | None) -> tuple[Any, Faults]:
    """Decode a body of at most `most` values; return its value and its faults. Raises InvalidRequest if it is not JSON."""
    value = decode(raw, most)
    return (None, _unexpected(value)) if validator is None else (value, validator.faults(value))


def _unexpected(body: Any) -> Faults:
    """Return the faults of a body for an operation that takes none; an empty object has none."""
    if isinstance(body, dict):
        names = islice(body, MOST_FAULTS + 1)
        return tuple(FieldError(name[:LONGEST_FIELD], "unknown_field", _NO_FIELDS) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body. Omit it."),)


T = TypeVar("T")

MOST_THREADS = 2


class BodyThreads:
    """Thread pool for large bodies: one task per organisation at a time."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="bodies")
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def run(self, org: str, work: Callable[[], T], before: Callable[[], Awaitable[None]] | None = None) -> T:
        """Return the result of `work` when it is the organisation's turn; `before` is awaited first, in the same turn."""
        turn = self._turns.get(org)
        if turn is None:
            turn = self._turns[org] = asyncio.Lock()
        async with turn:
            if before is not None:
                await before()
            return await asyncio.get_running_loop().run_in_executor(self._threads, work)
