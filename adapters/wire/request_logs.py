"""The JSON of request logs."""

from typing import Any, Final

from adapters.wire import schema
from domain.request_logs.model import RequestLog

_WORD: Final = {"type": "string"}
ACTOR: Final = schema.record(
    None,
    {
        "kind": schema.word("user", "api_key", "app", "agent", "service"),
        "id": schema.text("key_01J8ZQ5T3V7XK2M9RB4CDW"),
        "on_behalf_of": schema.nullable(schema.id_of("usr")),
    },
)
REQUEST_LOG: Final = schema.record(
    "request_log",
    {
        "id": schema.id_of("req", "The Request-Id."),
        "method": schema.text("GET"),
        "path": _WORD | {"examples": ["/v1/sources/src_01J8ZQ5T3V7XK2M9RB4CDW"]},
        "route": _WORD
        | {"examples": ["/v1/sources/{id}"], "description": "The operation's path; absent for unknown ones."},
        "query": _WORD | {"examples": ["limit=20"], "description": "The query string as sent."},
        "status": schema.integer(200, least=100, most=599),
        "error_code": _WORD | {"examples": ["not_found"], "description": "The problem's code, when it was one."},
        "duration_ms": schema.integer(12, least=0),
        "actor": ACTOR,
        "via": schema.word("api", "oauth", "mcp", "console", "assistant", "agent"),
        "livemode": schema.flag(),
        "api_version": schema.text("2026-10-04"),
        "idempotency_key": _WORD | {"examples": ["import-2026-11-20"]},
        "ip": _WORD | {"examples": ["203.0.113.7"]},
        "user_agent": _WORD | {"examples": ["acme-sync/1.4"]},
        "created_at": schema.timestamp(),
    },
    optional=("route", "query", "error_code", "idempotency_key", "ip", "user_agent"),
    description="One request of the organisation.",
)
REQUEST_LOGS: Final = schema.list_of(REQUEST_LOG)


def to_wire(log: RequestLog) -> dict[str, Any]:
    """A request log; `on_behalf_of` is null when nobody stands behind the actor."""
    actor = {"kind": log.actor.kind, "id": log.actor.id, "on_behalf_of": log.actor.on_behalf_of}
    return schema.present(
        object="request_log",
        id=log.id,
        method=log.method,
        path=log.path,
        route=log.route,
        query=log.query,
        status=log.status,
        error_code=log.error_code,
        duration_ms=log.duration_ms,
        actor=actor,
        via=log.via,
        livemode=log.tenant.livemode,
        api_version=log.api_version,
        idempotency_key=log.idempotency_key,
        ip=log.ip,
        user_agent=log.user_agent,
        created_at=schema.instant(log.created_at),
    )
