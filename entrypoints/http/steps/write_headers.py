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
        raise _refuse("invalid_format", "An Idempotency-Key has printable ASCII characters only.")
    return text


def read_idempotency_key(state: RequestState) -> None:
    """Set the key where one is required; elsewhere the header means nothing."""
    if not state.operation.idempotent:
        return
    text = state.request.headers.get("idempotency-key")
    if text is None:
        raise _refuse("required", "This operation needs an Idempotency-Key header.")
    if "idempotency-key" in state.request.repeated:
        raise _refuse("duplicate", "Send one Idempotency-Key header.")
    key = unquoted(text.strip())
    if not key:
        raise _refuse("too_short", "The Idempotency-Key is empty.")
    if len(key) > LONGEST:
        raise _refuse("too_long", f"An Idempotency-Key has at most {LONGEST} characters.")
    state.idempotency_key = key


def read_dry_run(state: RequestState) -> None:
    """Service-Dry-Run on writes is `true` or `explain`; reads change nothing anyway."""
    given = state.request.headers.get("service-dry-run")
    if given is None or state.route.reads:
        return
    if given not in ("true", "explain"):
        detail = "Service-Dry-Run is `true` or `explain`."
        raise InvalidRequest(detail, fields=(FieldError("header.Service-Dry-Run", "invalid_value", detail),))
    state.dry_run = given
