"""The JSON of a problem (RFC 9457) as every operation answers it."""

from typing import Any, Final

from adapters.wire import words

MEDIA_TYPE: Final = "application/problem+json"

FIELD_ERROR: Final = words.record(
    None,
    {
        "field": words.text("query.limit", description="Dotted path; query.… and header.… for parameters and headers."),
        "code": words.text("too_large"),
        "detail": words.text("101 is more than 100."),
    },
)
PROBLEM: Final = words.record(
    None,
    {
        "type": words.url("https://docs.example/errors/not_found"),
        "title": words.text("Not found"),
        "status": words.integer(404),
        "code": words.text("not_found"),
        "detail": words.text("There is no such resource."),
        "request_id": words.id_of("req"),
        "doc_url": words.url("https://docs.example/errors/not_found"),
        "errors": words.array(FIELD_ERROR, description="Present on invalid_request."),
        "violated-policies": words.array(words.text("standard.read"), description="Present on rate_limited."),
    },
    optional=("errors", "violated-policies"),
)


def to_wire(address: str, title: str, status: int, code: str, detail: str, request_id: str) -> dict[str, Any]:
    """The members every problem has, in their order; `address` is the page that explains the code."""
    return {
        "type": address,
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id,
        "doc_url": address,
    }
