"""Validating dense bodies in a parser process, because decoding one blocks every thread of the process that does it.

A body is dense if it has more values than records of its size have: brackets and numbers with hardly a name. Other bodies cost at
most what valid ones of their size cost, and are decoded once.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.json_body import SMALL, decode
from entrypoints.http.validation import LONGEST_FIELD, MOST_FAULTS, Validator

MANY: Final = 20_000
"""Values that are decoded in some 20 ms, however they are nested."""
SPARSE: Final = 9
"""Bytes for each value in the densest records; those that shops push have some 15."""
_NONE_TAKEN: Final = "This operation takes no fields; leave the body out."

Faults = tuple[FieldError, ...]


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check: `refusal` explains why a body cannot be decoded, `faults` are its violations of the schema."""

    refusal: str | None
    faults: Faults


def is_dense(raw: bytes) -> bool:
    """Return whether the commas and brackets, those in strings too, are more than MANY and than records have."""
    return len(raw) > SMALL and raw.count(b",") + raw.count(b"[") + raw.count(b"{") > max(MANY, len(raw) // SPARSE)


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
    """Return the faults of a body for an operation that takes none; an empty object has none."""
    if isinstance(body, dict):
        names = islice(body, MOST_FAULTS + 1)
        return tuple(FieldError(name[:LONGEST_FIELD], "unknown_field", _NONE_TAKEN) for name in names)
    return (FieldError("body", "invalid_type", "This operation takes no body; leave it out."),)
