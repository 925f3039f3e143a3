"""Tenth step: parameters and body, each fault as its own errors[] entry."""

from collections.abc import Awaitable, Callable
from functools import lru_cache
from itertools import islice
from typing import Any, Final, TypeVar

from adapters.wire.cursors import Cursors, context_of
from adapters.wire.resource import Body
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from entrypoints.http.body_threads import BodyThreads
from entrypoints.http.held_bodies import HeldBodies
from entrypoints.http.incoming_body import too_large
from entrypoints.http.json_body import SMALL, decode
from entrypoints.http.pressure import Pressure
from entrypoints.http.request_state import FIRST_PAGE, RequestState
from entrypoints.http.route import Route
from entrypoints.http.validation import LONGEST_FIELD, MOST_FAULTS

T = TypeVar("T")
_DIGITS: Final = 20
"""Digits of a length that are looked at; h11 lets no longer ones through."""
_NONE_TAKEN: Final = "This operation takes no fields; leave the body out."


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

    def __init__(self, cursors: Cursors, bodies: HeldBodies, pressure: Pressure) -> None:
        self._cursors, self._bodies, self._pressure = cursors, bodies, pressure
        self._threads = BodyThreads()

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if state.route.reads:
            self._read_query(state, ())
            return None
        return self._read_body(state)

    async def _read_body(self, state: RequestState) -> None:
        body, route = state.operation.body, state.route
        raw = await self.received(state, body.limit if body is not None else Body.LIMIT)
        faults: tuple[FieldError, ...] = ()
        if raw:
            if not is_json(state.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            state.body, faults = await self.read(state, raw, lambda: understood(route, raw))
        elif body is not None and body.required:
            faults = (_required(),)
        self._read_query(state, faults)
        if body is not None:
            state.command = body.decode(state.body)

    async def read(self, state: RequestState, raw: bytes, reading: Callable[[], T]) -> T:
        """What `reading` makes of the body: beside the event loop when it is large."""
        if len(raw) > SMALL:
            return await self._threads.run(state.caller.tenant.org, reading)
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
        self._bodies.hold(org, announced)
        state.held = announced
        with self._bodies.arriving(org), self._pressure.idle():
            raw = await request.read_body(limit)
        self._bodies.release(org, announced - len(raw))
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


def understood(route: Route, raw: bytes) -> tuple[Any, tuple[FieldError, ...]]:
    """A body's JSON value and what is wrong with it. Raises InvalidRequest when it is none."""
    body = route.operation.body
    value = decode(raw, body.values if body is not None else Body.VALUES)
    if route.body is None:
        return None, _unexpected(value)
    return value, route.body.faults(value)


def _unexpected(body: Any) -> tuple[FieldError, ...]:
    """What is wrong with a body where none is asked for; an empty object is as good as none."""
    if isinstance(body, dict):
        names = islice(body, MOST_FAULTS + 1)
        return tuple(FieldError(name[:LONGEST_FIELD], "unknown_field", _NONE_TAKEN) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body; leave it out."),)


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = f"{faults[0].field}: {faults[0].detail}"
    if len(faults) == 1:
        return first
    others = f"{len(faults) - 1}" if len(faults) <= MOST_FAULTS else f"at least {MOST_FAULTS}"
    return f"{first} And {others} more; errors[] names each."
