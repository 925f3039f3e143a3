"""Eleventh step: what headers say of a write: whether it is only tried out; the Idempotency-Key of a POST, bare or as a structured-field string (RFC 9651 §3.3.3)."""

import re
from typing import Final

from domain.kernel.errors import FieldError, InvalidRequest
from entrypoints.http.request_state import RequestState

LONGEST: Final = 257
_QUOTED: Final = re.compile(r'"((?:[\x20\x21\x23-\x5b\x5d-\x7e]|\\["\\])*)"')
_BARE: Final = re.compile(r"[\x20-\x7e]*")


def _refuse(code: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError("header.Idempotency-Key", code, detail),))


def unquoted(text: str) -> str:
    """The key that the header's text means: `"k"` is `k`. Raises InvalidRequest for other characters than ASCII."""
    if (quoted := _QUOTED.fullmatch(text)) is not None:
        return re.sub(r"\\(.)", r"\1", quoted[1])
    if not _BARE.fullmatch(text):
        raise _refuse("invalid_format", "Must have printable ASCII characters only; a UUID will do.")
    return text


def read_idempotency_key(state: RequestState) -> None:
    """Set the key where one is required; elsewhere the header means nothing."""
    if not state.operation.idempotent:
        return
    text = state.request.headers.get("idempotency-key")
    if text is None:
        raise _refuse(
            "required",
            "Send an Idempotency-Key header: any text of your own, new for each new request (a UUID, say), the same when you repeat one.",
        )
    if "idempotency-key" in state.request.repeated:
        raise _refuse("duplicate", "The header stands twice; send one Idempotency-Key.")
    key = unquoted(text.strip())
    if not key:
        raise _refuse("too_short", "Must not be empty; give 1 to 257 characters.")
    if len(key) > LONGEST:
        raise _refuse("too_long", f"Must have at most {LONGEST} characters; this has {len(key)}.")
    state.idempotency_key = key


def read_dry_run(state: RequestState) -> None:
    """Service-Dry-Run on writes is `true` or `explain`; reads change nothing anyway."""
    given = state.request.headers.get("service-dry-run")
    if given is None or state.route.reads:
        return
    if given not in ("true", "explain"):
        detail = "Must be exactly true (answer as if, change nothing) or explain (a preview of the changes); or leave the header out."
        raise InvalidRequest(detail, fields=(FieldError("header.Service-Dry-Run", "invalid_value", detail),))
    state.dry_run = given
