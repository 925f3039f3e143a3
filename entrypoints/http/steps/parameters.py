"""Tenth step: parameters and body, each fault told by its own errors[] entry."""

from collections.abc import Awaitable
from functools import lru_cache
from typing import Any

from adapters.wire.cursors import Cursors, context_of
from domain.kernel.errors import FieldError, InvalidRequest, PayloadTooLarge, UnsupportedMediaType
from entrypoints.http.json_body import decode
from entrypoints.http.visit import FIRST_PAGE, Visit


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

    def __call__(self, visit: Visit) -> Awaitable[None] | None:
        """Raises InvalidRequest, UnsupportedMediaType or PayloadTooLarge."""
        if visit.route.reads:
            self._read_query(visit, ())
            return None
        return self._read_body(visit)

    async def _read_body(self, visit: Visit) -> None:
        raw = await _receive(visit)
        validator = visit.route.body
        faults: tuple[FieldError, ...] = ()
        if raw:
            if not is_json(visit.request.headers.get("content-type", "")):
                raise UnsupportedMediaType
            visit.body = decode(raw)
        if validator is not None and (raw or visit.operation.body_required):
            faults = validator.faults(visit.body) if raw else (_required(),)
        elif validator is None and raw:
            faults = _unexpected(visit.body)
            visit.body = None
        self._read_query(visit, faults)

    def _read_query(self, visit: Visit, of_body: tuple[FieldError, ...]) -> None:
        reader = visit.route.query
        values, faults = reader.read(visit.request.query)
        if faults or of_body:
            raise InvalidRequest(_summary(faults + of_body), fields=faults + of_body)
        operation = visit.operation
        if values:
            visit.query = reader.filters(values)
        if operation.paging in ("both", "forward"):
            visit.cursor_context = context_of(operation.id, visit.caller.tenant, visit.match.ids, visit.query)
            visit.cut = self._cursors.cut(visit.cursor_context, values) if values else FIRST_PAGE


async def _receive(visit: Visit) -> bytes:
    limit = visit.operation.body_limit
    length = visit.request.headers.get("content-length", "")
    if length.isdigit() and int(length) > limit:
        raise PayloadTooLarge(f"The body has more than {limit} bytes.")
    return await visit.request.read_body(limit)


def _unexpected(body: Any) -> tuple[FieldError, ...]:
    """What is wrong with a body where none is asked for; an empty object is as good as none."""
    if isinstance(body, dict):
        return tuple(FieldError(name, "unknown_field", "There is no such field.") for name in body)
    return (FieldError("body", "invalid_type", "This operation takes no body."),)


def _summary(faults: tuple[FieldError, ...]) -> str:
    first = f"{faults[0].field}: {faults[0].detail}"
    return first if len(faults) == 1 else f"{first} And {len(faults) - 1} more; see errors."
