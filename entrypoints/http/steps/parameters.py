"""Tenth step: parameters and body, each fault as its own errors[] entry."""

from collections.abc import Awaitable
from functools import lru_cache
from typing import Any

from adapters.wire.cursors import Cursors, context_of
from adapters.wire.resource import Body
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from entrypoints.http.json_body import decode
from entrypoints.http.request_state import FIRST_PAGE, RequestState


@lru_cache(maxsize=64)
def is_json(content_type: str) -> bool:
    """Whether the media type is application/json, in UTF-8 if it names an encoding."""
    kind, *parameters = (part.strip().lower() for part in content_type.split(";"))
    return kind == "application/json" and all(part in ("", "charset=utf-8", 'charset="utf-8"') for part in parameters)


def _required() -> FieldError:
    return FieldError("body", "required", "A JSON body is required.")


class ReadParameters:
    """Sets the query, the page asked for, and the body."""

    def __init__(self, cursors: Cursors) -> None:
        self._cursors = cursors

    def __call__(self, state: RequestState) -> Awaitable[None] | None:
        """Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if state.route.reads:
            self._read_query(state, ())
            return None
        return self._read_body(state)

    async def _read_body(self, state: RequestState) -> None:
        raw = await _receive(state)
        validator, body = state.route.body, state.operation.body
        faults: tuple[FieldError, ...] = ()
        if raw:
            if not is_json(state.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            state.body = decode(raw)
        if validator is not None and body is not None and (raw or body.required):
            faults = validator.faults(state.body) if raw else (_required(),)
        elif validator is None and raw:
            faults = _unexpected(state.body)
            state.body = None
        self._read_query(state, faults)
        if body is not None:
            state.command = body.decode(state.body)

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


async def _receive(state: RequestState) -> bytes:
    limit = state.operation.body.limit if state.operation.body is not None else Body.LIMIT
    length = state.request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise PayloadTooLarge(f"The body has more than {limit} bytes.")
    return await state.request.read_body(limit)


def _unexpected(body: Any) -> tuple[FieldError, ...]:
    """What is wrong with a body where none is asked for; an empty object is as good as none."""
    if isinstance(body, dict):
        return tuple(FieldError(name, "unknown_field", "There is no such field.") for name in body)
    return (FieldError("body", "invalid_type", "This operation takes no body."),)


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = f"{faults[0].field}: {faults[0].detail}"
    return first if len(faults) == 1 else f"{first} And {len(faults) - 1} more; see errors."
