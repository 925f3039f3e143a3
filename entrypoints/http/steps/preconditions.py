"""Thirteenth step: If-Match (RFC 9110 §13.1.1). Versions are compared where the resource is locked, by the use case."""

import re
from typing import Final

from domain.kernel.errors import FieldError, InvalidRequest, PreconditionRequired
from entrypoints.http.request_state import RequestState

MOST_TAGS: Final = 8
NONE_MATCHES: Final = (0,)
"""Versions start at 1: no resource has this one."""
_TAG: Final = re.compile(r'\s*(W/)?"([\x21\x23-\x7e\x80-\xff]*)"\s*(?:,|$)')


def _refuse(code: str, detail: str) -> InvalidRequest:
    return InvalidRequest(detail, fields=(FieldError("header.If-Match", code, detail),))


def tags_of(header: str) -> list[tuple[bool, str]]:
    """The entity tags of a list as (weak, text). Raises ValueError when it is not one."""
    tags, at = [], 0
    while at < len(header):
        found = _TAG.match(header, at)
        if found is None:
            raise ValueError(header)
        tags.append((found[1] is not None, found[2]))
        at = found.end()
    return tags


def versions_of(header: str) -> tuple[int, ...] | None:
    """The versions that an If-Match names, the newest first; None for `*`. Weak tags never match, nor do foreign ones.

    Raises InvalidRequest when it is no list of entity tags, or a list of more than MOST_TAGS.
    """
    if header.strip() == "*":
        return None
    try:
        tags = tags_of(header)
    except ValueError:
        raise _refuse(
            "invalid_format",
            'Must be `*`, or the ETag as it was answered, with its quotation marks, such as "7-1f0c…".',
        ) from None
    if len(tags) > MOST_TAGS:
        raise _refuse("too_many", f"Must name at most {MOST_TAGS} ETags; this names {len(tags)}.")
    numbers = {text.partition("-")[0] for weak, text in tags if not weak}
    versions = {int(number) for number in numbers if number.isascii() and number.isdigit() and len(number) < 19}
    return tuple(sorted(versions, reverse=True)) or NONE_MATCHES


def read_preconditions(state: RequestState) -> None:
    """Set the versions asked for. Raises PreconditionRequired when If-Match is missing where it must be."""
    header = state.request.headers.get("if-match")
    if not state.operation.if_match:
        return
    if header is None:
        raise PreconditionRequired
    state.expected_versions = versions_of(header)
