"""Tenth step: parameters and body, each fault as its own errors[] entry."""

from collections.abc import Awaitable, Callable, Mapping
from functools import lru_cache
from typing import Any, Final, TypeVar

from adapters.wire.cursors import Cursors, context_of
from adapters.wire.resource import Body
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge, Unavailable, UnsupportedMediaType
from entrypoints.http.body_check import check, is_dense, understood
from entrypoints.http.body_threads import BodyThreads
from entrypoints.http.incoming_body import HeldBodies, too_large
from entrypoints.http.json_body import SMALL, decode
from entrypoints.http.pressure import Pressure
from entrypoints.http.request_state import FIRST_PAGE, RequestState
from entrypoints.http.validation import MOST_FAULTS, Validator
from ports.parsing import ParserEnded, ParserFailed, ParserRunner

T = TypeVar("T")
_DIGITS: Final = 20
"""Digits of a length that are looked at; h11 lets no longer ones through."""


@lru_cache(maxsize=64)
def is_json(content_type: str) -> bool:
    """Whether the media type is application/json, in UTF-8 if it names an encoding."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return kind == "application/json" and all(part in ("", "charset=utf-8", 'charset="utf-8"') for part in parameters)


def _required() -> FieldError:
    return FieldError(
        "body", "required", "This operation needs a body: a JSON object, sent with Content-Type: application/json."
    )


class ReadParameters:
    """Sets the query, the page asked for, and the body."""

    def __init__(self, cursors: Cursors, bodies: HeldBodies, pressure: Pressure, parsers: ParserRunner) -> None:
        self._cursors, self._bodies, self._pressure, self._parsers = cursors, bodies, pressure, parsers
        self._threads = BodyThreads()

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if state.route.reads:
            self._read_query(state, ())
            return None
        return self._read_body(state)

    async def _read_body(self, state: RequestState) -> None:
        body = state.operation.body
        raw = await self.received(state, body.limit if body is not None else Body.LIMIT)
        faults: tuple[FieldError, ...] = ()
        if raw:
            if not is_json(state.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            most = body.values if body is not None else Body.VALUES
            state.body, faults = await self.parsed(state, raw, most, state.route.body)
        elif body is not None and body.required:
            faults = (_required(),)
        self._read_query(state, faults)
        if body is not None:
            state.command = body.decode(state.body)

    async def parsed(
        self, state: RequestState, raw: bytes, most: int, validator: Validator | None
    ) -> tuple[Any, tuple[FieldError, ...]]:
        """A body's JSON value and what is wrong with it; a dense one is validated in a process first.

        Raises InvalidRequest when it is no JSON, and Unavailable when the process failed.
        """
        if not is_dense(raw):
            return await self.read(state, raw, lambda: understood(raw, most, validator))
        faults: tuple[FieldError, ...] = ()

        async def search() -> None:
            nonlocal faults
            faults = await self._checked(raw, most, validator.schema if validator else None)

        value = await self.read(state, raw, lambda: None if faults else decode(raw, most), search)
        return value, faults

    async def _checked(self, raw: bytes, most: int, schema: Mapping[str, Any] | None) -> tuple[FieldError, ...]:
        try:
            checked = await self._parsers(check, raw, most, schema)
        except ParserEnded as error:
            raise InvalidRequest("The body takes too much time or memory to read; send it in parts.") from error
        except ParserFailed as error:
            raise Unavailable("The body could not be read; nothing was done.", retry_after=5) from error
        if checked.refusal is not None:
            raise InvalidRequest(checked.refusal, fields=checked.faults)
        return checked.faults

    async def read(
        self,
        state: RequestState,
        raw: bytes,
        reading: Callable[[], T],
        before: Callable[[], Awaitable[None]] | None = None,
    ) -> T:
        """Return the result of `reading`, after `before`; a large body is read off the event loop."""
        if len(raw) > SMALL:
            return await self._threads.run(state.caller.tenant.org, reading, before)
        return reading()

    async def received(self, state: RequestState, limit: int) -> bytes:
        """The body, of at most so many bytes. While it comes the request presses nobody: only its bytes are held."""
        request, org = state.request, state.caller.tenant.org
        if not request.has_body:
            return await request.read_body(limit)
        length = request.headers.get("content-length", "")
        announced = int(length[:_DIGITS]) if length.isdigit() else limit
        if announced > limit:
            raise PayloadTooLarge(too_large(limit))
        self._bodies.bytes.take(org, announced)
        state.held = announced
        with self._bodies.arriving.holding(org), self._pressure.idle():
            raw = await request.read_body(limit)
        self._bodies.bytes.release(org, announced - len(raw))
        state.held = len(raw)
        return raw

    def _read_query(self, state: RequestState, of_body: tuple[FieldError, ...]) -> None:
        reader = state.route.query
        values, faults = reader.read(state.request.query)
        if faults or of_body:
            raise InvalidRequest(_summary(faults + of_body), fields=faults + of_body)
        operation = state.operation
        if values:
            state.query = reader.filters(values)
        if operation.paging in ("both", "forward"):
            state.cursor_context = context_of(operation.id, state.caller.tenant, state.match.ids, state.query)
            state.page_request = self._cursors.page_request(state.cursor_context, values) if values else FIRST_PAGE


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = f"{faults[0].field}: {faults[0].detail}"
    if len(faults) == 1:
        return first
    others = f"{len(faults) - 1}" if len(faults) <= MOST_FAULTS else f"at least {MOST_FAULTS}"
    return f"{first} And {others} more; errors[] names each."
