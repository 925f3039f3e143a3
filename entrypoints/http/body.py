"""Request bodies: taken no slower than their pace and within bounds, read strictly, and validated in a process where they are dense."""

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
"""How long, and how much, is still taken of a body that was refused, so that its sender gets to read the answer."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How slowly a body may come: at least `least` bytes a second on the average.

    It has `grace` seconds to begin with, and is never silent for `silence` seconds.
    """

    grace: float
    silence: float
    least: int

    def patience(self, waited: float, received: int) -> float:
        """Seconds that the next piece may take, after so many seconds of waiting for so many bytes."""
        return min(self.silence, self.grace + received / self.least - waited)


JSON_PACE = Pace(grace=10.0, silence=10.0, least=8 * 1024)
"""Of JSON bodies: 1 MiB takes 138 s at the most."""
FILE_PACE = Pace(grace=30.0, silence=30.0, least=4 * 1024)
"""Of files: a line of 32 kbit/s is enough for any size."""


class HeldBodies:
    """The bodies of the requests in hand: how many are still arriving, and the bytes of all."""

    def __init__(self) -> None:
        self.arriving = ConcurrencyLimit(1024, 64, noun="bodies that are still arriving")
        self.bytes = ConcurrencyLimit(256 << 20, 64 << 20, noun="bytes of bodies in hand")


class TooSlow(Exception):
    """The sender fell behind its pace."""


class Gone(ConnectionError):
    """The sender broke off."""


def too_large(limit: int) -> str:
    """What to say of a body over the limit."""
    return f"The body has more than {limit} bytes, the most that are taken here. Send it in parts."


class IncomingBody:
    """One request's end of the ASGI connection. Nothing is taken from it before `chunks` is."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._ended = asyncio.Event()
        self._hopeless = False

    async def chunks(self, pace: Pace) -> AsyncIterator[bytes]:
        """Its pieces. The time that the caller takes is not the sender's. Raises TooSlow or Gone."""
        loop, waited, received = asyncio.get_running_loop(), 0.0, 0
        while not self._ended.is_set():
            asked = loop.time()
            try:
                async with asyncio.timeout(max(0.0, pace.patience(waited, received))):
                    message = await self._next()
            except TimeoutError:
                self._hopeless = True
                raise TooSlow from None
            waited += loop.time() - asked
            if piece := message.get("body"):
                received += len(piece)
                yield piece

    async def read(self, limit: int) -> bytes:
        """The whole body. Raises PayloadTooLarge, and InvalidRequest when it comes too slowly."""
        received = bytearray()
        try:
            async for piece in self.chunks(JSON_PACE):
                received += piece
                if len(received) > limit:
                    raise PayloadTooLarge(too_large(limit))
        except TooSlow:
            raise InvalidRequest(
                f"The body came too slowly: it may pause for {JSON_PACE.silence:g} s, and must come with at least "
                f"{JSON_PACE.least} bytes a second. Send the request again."
            ) from None
        except Gone:
            raise InvalidRequest("The body broke off before its end; send the request again.") from None
        return bytes(received)

    async def receive(self) -> Message:
        """What a framework is told that may not take the body itself: only that the client is gone, behind the body."""
        await self._ended.wait()
        return await self._receive()

    def answering(self, send: Send) -> Send:
        """`send` for an answer that may be complete before the body is."""

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
            raise Gone("The sender broke off.")
        if not message.get("more_body"):
            self._ended.set()
        return message

    async def _finish(self, last: Message, send: Send) -> None:
        """End the answer to a request whose body nobody took.

        The sender may still be at it, and reads the answer only afterwards: so what comes is thrown away for a moment.
        A server that holds a full queue of it could not end the connection either, so somebody takes until it has.
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
        thrown = 0
        try:
            async with asyncio.timeout(LINGER_SECONDS):
                while not self._ended.is_set() and thrown < LINGER_BYTES:
                    thrown += len((await self._next()).get("body", b""))
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
"""Bytes of a body that is decoded in a few milliseconds, whatever is in it: its values need not be counted."""
MOST_KEYS = 10_000
"""Keys of one object: far more than anything here has, and few enough to be looked through at once."""
_LONGEST_PATH = 300
_SUSPECT = re.compile(rb"\\u(?:0000|[dD][89a-fA-F])")
_DEEP = re.compile(rb'(?:\s*(?:\[|\{\s*"[^"\\]*"\s*:)){%d}' % (DEPTH + 1))
"""The beginning of a body that is nested too deeply from there on."""
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class _Doubled(dict[str, Any]):
    """An object in which a key stood twice; `key` is the first such."""

    key = ""


class _DoubledKey(Exception):
    """An object has a key twice."""


class _BadNumber(ValueError):
    """NaN, Infinity, or a number that no field of ours could hold."""


def _number(text: str) -> int | Decimal:
    value = Decimal(text) if len(text) <= _LONGEST_NUMBER else None
    if value is None or abs(value.adjusted()) > _LARGEST_EXPONENT:
        raise _BadNumber(f"The number {text[:40]} is out of range.")
    return int(value) if value == value.to_integral_value() else value


def _integer(text: str) -> int:
    if len(text) > _LONGEST_NUMBER:
        raise _BadNumber(f"The number {text[:40]}… is out of range.")
    return int(text)


def _constant(text: str) -> Any:
    raise _BadNumber(f"{text} is no number in JSON; leave the field out, or give a number.")


def _unreadable(detail: str, field: str = "body", code: str = "invalid_format") -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError(field, code, detail),))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise _unreadable(f"An object has more than {MOST_KEYS} fields; send less at once.", code="too_many")
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    raise _DoubledKey


def _marked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """As `_object`, with the first key that stands twice, so that it can be named by its path."""
    made = dict(pairs)
    if len(made) == len(pairs):
        return made
    doubled, seen = _Doubled(made), set[str]()
    for key, _ in pairs:
        if key in seen:
            doubled.key = key
            break
        seen.add(key)
    return doubled


def _decoder(hook: Callable[[list[tuple[str, Any]]], dict[str, Any]]) -> json.JSONDecoder:
    return json.JSONDecoder(object_pairs_hook=hook, parse_float=_number, parse_int=_integer, parse_constant=_constant)


_strict = _decoder(_object)
_marking = _decoder(_marked)


def decode(raw: bytes, most: int) -> Any:
    """The JSON value of a body: RFC 8259 in UTF-8, no doubled keys, at most 32 levels deep, texts storable.

    Of a body over SMALL bytes there are at most `most` values. Whole numbers come as int, others as Decimal.
    Raises InvalidRequest.
    """
    if len(raw) > SMALL:
        if _DEEP.match(raw):
            raise _too_deep()
        if has_more_values(raw, most):
            raise _unreadable(f"The body holds more than {most} values; send them in parts.", code="too_many")
    value = _parsed(raw)
    if value is _DoubledKey:
        raise _doubled(raw)  # what was decoded before is let go by now
    if raw.count(b"[") + raw.count(b"{") > DEPTH:
        _check_depth(value)
    if _SUSPECT.search(raw):
        _check_texts(value)
    return value


def _parsed(raw: bytes) -> Any:
    """The value, or _DoubledKey itself. Raises InvalidRequest."""
    try:
        return _strict.decode(raw.decode("utf-8"))
    except UnicodeDecodeError as error:
        raise _unreadable(
            f"The body is not UTF-8: byte {error.start} (counted from 0) is wrong. Encode it as UTF-8."
        ) from None
    except json.JSONDecodeError as error:
        raise _unreadable(_not_json(error)) from None
    except _BadNumber as error:
        raise _unreadable(str(error), code="invalid_value") from None
    except RecursionError:
        raise _too_deep() from None
    except _DoubledKey:
        return _DoubledKey


def _not_json(error: json.JSONDecodeError) -> str:
    if error.pos >= len(error.doc.rstrip()):
        return (
            "The body is not JSON: it ends too early; a bracket or quotation mark is left open, or a value is missing."
        )
    return (
        f"The body is not JSON from line {error.lineno}, column {error.colno} on. Look for a comma too many or too few, "
        "single quotation marks, or text without quotation marks."
    )


def has_more_values(raw: bytes, most: int) -> bool:
    """Whether more values are announced by the commas and brackets outside of texts."""
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


def _too_deep() -> InvalidRequest:
    return _unreadable(f"The body is nested more than {DEPTH} levels deep.", code="too_large")


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
    raise _too_deep()


def _children(value: Any) -> Iterator[tuple[str | int, Any]]:
    return iter(value.items()) if isinstance(value, dict) else enumerate(value)


def _walk(value: Any) -> Iterator[tuple[list[str | int], Any]]:
    """Every value with the path to it, which is only good until the next one."""
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


def _named(path: list[str | int]) -> str:
    return ".".join(map(str, path))[:_LONGEST_PATH] or "body"


def _doubled(raw: bytes) -> InvalidRequest:
    """The refusal of a body with a doubled key, which it names by its path."""
    try:
        for path, value in _walk(_marking.decode(raw.decode("utf-8"))):
            if isinstance(value, _Doubled):
                return _unreadable(
                    "This field stands twice in one object; keep one of them.", _named([*path, value.key]), "duplicate"
                )
    except (ValueError, RecursionError):
        pass  # it is wrong further on as well: the key is refused all the same
    return _unreadable("A field stands twice in one object; keep one of them.", code="duplicate")


def _check_texts(value: Any) -> None:
    """Refuse escapes that stand for no character, or for NUL."""
    for path, inner in _walk(value):
        if isinstance(inner, str) and _UNSTORABLE.search(inner):
            raise _unreadable(
                "The text holds half a character (a lone surrogate) or a NUL character; take it out.",
                _named(path),
                "invalid_value",
            )
        if isinstance(inner, dict) and any(map(_UNSTORABLE.search, inner)):
            raise _unreadable(
                "A field's name holds half a character (a lone surrogate) or a NUL character; take it out.",
                _named(path),
                "invalid_value",
            )


MANY = 20_000
"""Values that are decoded in some 20 ms, however they are nested."""
SPARSE = 9
"""Bytes for each value in the densest records; those that shops push have some 15."""
_NONE_TAKEN = "This operation takes no fields; leave the body out."

Faults = tuple[FieldError, ...]


def is_dense(raw: bytes) -> bool:
    """Return whether the commas and brackets, those in strings too, are more than MANY and than records have."""
    return len(raw) > SMALL and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > max(MANY, len(raw) // SPARSE)


def check(raw: bytes, most: int, schema: Mapping[str, Any] | None) -> tuple[str | None, Faults]:
    """Return why a body of at most `most` values cannot be decoded, or None, and its faults; without a schema no body is taken."""
    try:
        _, faults = understood(raw, most, None if schema is None else Validator(schema))
    except InvalidRequest as error:
        return error.detail, error.fields
    return None, faults


def understood(raw: bytes, most: int, validator: Validator | None) -> tuple[Any, Faults]:
    """A body's JSON value, which has at most `most` values, and what is wrong with it. Raises InvalidRequest when it is none."""
    value = decode(raw, most)
    return (None, _unexpected(value)) if validator is None else (value, validator.faults(value))


def _unexpected(body: Any) -> Faults:
    """Return the faults of a body for an operation that takes none; an empty object has none."""
    if isinstance(body, dict):
        names = islice(body, MOST_FAULTS + 1)
        return tuple(FieldError(name[:LONGEST_FIELD], "unknown_field", _NONE_TAKEN) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body; leave it out."),)


T = TypeVar("T")

MOST_THREADS = 2


class BodyThreads:
    """Threads that are only started when they are needed."""

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
