"""Checking a body of many values in a parser process: what is refused holds neither the event loop nor the threads beside it.

A decoder in C does not let other threads run before its end, and the search for faults seldom does.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.json_body import SMALL, decode
from entrypoints.http.validation import LONGEST_FIELD, MOST_FAULTS, Validator

MANY: Final = 20_000
"""Values of a body that is checked in a process first; fewer are decoded in some 20 ms, however they are nested."""
_NONE_TAKEN: Final = "This operation takes no fields; leave the body out."

Faults = tuple[FieldError, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with a body: `refusal` is why it cannot be read at all, `faults` what does not fit the schema."""

    refusal: str | None
    faults: Faults


def may_have_many_values(raw: bytes) -> bool:
    """Whether the commas and brackets, those in texts too, may announce more than MANY values."""
    return len(raw) > SMALL and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > MANY


def check(raw: bytes, most: int, schema: Mapping[str, Any] | None) -> Checked:
    """Decode a body of at most `most` values, and search it for faults; without a schema no body is taken."""
    try:
        _, faults = understood(raw, most, None if schema is None else Validator(schema))
    except InvalidRequest as error:
        return Checked(error.detail, error.fields)
    return Checked(None, faults)


def understood(raw: bytes, most: int, validator: Validator | None) -> tuple[Any, Faults]:
    """A body's JSON value, which has at most `most` values, and what is wrong with it. Raises InvalidRequest when it is none."""
    value = decode(raw, most)
    return (None, _unexpected(value)) if validator is None else (value, validator.faults(value))


def _unexpected(body: Any) -> Faults:
    """What is wrong with a body where none is asked for; an empty object is as good as none."""
    if isinstance(body, dict):
        names = islice(body, MOST_FAULTS + 1)
        return tuple(FieldError(name[:LONGEST_FIELD], "unknown_field", _NONE_TAKEN) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body; leave it out."),)
