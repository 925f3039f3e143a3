"""JSON of problem details (RFC 9457)."""

from typing import Any

from domain.kernel import schema

MEDIA_TYPE = "application/problem+json"

FIELD_ERROR = schema.with_title(
    "field_error",
    schema.response_object(
        None,
        {
            "field": schema.text(
                "query.limit",
                description="Path of the value, separated by dots. The path of a parameter starts with `query.`, of a header with `header.`.",
            ),
            "code": schema.text("too_large"),
            "detail": schema.text("Must be between 1 and 100."),
        },
    ),
)
PROBLEM = schema.response_object(
    None,
    {
        "type": schema.url("https://docs.example/errors/not_found"),
        "title": schema.text("Not found"),
        "status": schema.integer(404),
        "code": schema.text("not_found"),
        "detail": schema.text("There is no source with this ID that you can read."),
        "request_id": schema.id_schema("req"),
        "doc_url": schema.url("https://docs.example/errors/not_found"),
        "errors": schema.array(
            FIELD_ERROR, description="Present on invalid_request, and on other errors that a field causes."
        ),
        "violated-policies": schema.array(schema.text("standard.read"), description="Present on rate_limited."),
    },
    optional=("errors", "violated-policies"),
)


def render_problem(doc_url: str, title: str, status: int, code: str, detail: str, request_id: str) -> dict[str, Any]:
    """Render the members that every problem response has, in their order.

    `doc_url` is the URL of the error code's documentation. It is also the value of `type`.
    """
    return {
        "type": doc_url,
        "title": title,
        "status": status,
        "code": code,
        "detail": detail,
        "request_id": request_id,
        "doc_url": doc_url,
    }
