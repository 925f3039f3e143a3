"""JSON of request logs."""

from adapters.api_json.resource import JsonResource, create_nested_field
from domain.kernel import schema
from domain.kernel.resource import computed, optional
from domain.kernel.tenancy import Actor
from domain.request_logs.model import RequestLog

_WORD = {"type": "string"}
ACTOR = JsonResource[Actor](
    None,
    {
        "kind": schema.enum("user", "api_key", "app", "agent", "service"),
        "id": schema.text("key_01J8ZQ5T3V7XK2M9RB4CDW"),
        "on_behalf_of": schema.nullable(schema.id_schema("usr")),
    },
)
REQUEST_LOG = JsonResource[RequestLog](
    "request_log",
    {
        "id": schema.id_schema("req", "The Request-Id of the request."),
        "method": schema.text("GET"),
        "path": _WORD | {"examples": ["/v1/sources/src_01J8ZQ5T3V7XK2M9RB4CDW"]},
        "route": optional(
            _WORD
            | {"examples": ["/v1/sources/{id}"], "description": "The operation's path; omitted for unknown paths."}
        ),
        "query": optional(_WORD | {"examples": ["limit=20"], "description": "The query string as sent."}),
        "status": schema.integer(200, minimum=100, maximum=599),
        "error_code": optional(
            _WORD
            | {
                "examples": ["not_found"],
                "description": "The error code of the response; omitted if the request succeeded.",
            }
        ),
        "duration_ms": schema.integer(12, minimum=0),
        "actor": create_nested_field(ACTOR, lambda log: log.actor),
        "via": schema.enum("api", "oauth", "mcp", "console", "assistant", "agent"),
        "livemode": computed(schema.boolean(), lambda log, _: log.tenant.livemode),
        "api_version": schema.text("2026-10-04"),
        "idempotency_key": optional(_WORD | {"examples": ["import-2026-11-20"]}),
        "ip": optional(_WORD | {"examples": ["203.0.113.7"]}),
        "user_agent": optional(_WORD | {"examples": ["acme-sync/1.4"]}),
        "created_at": schema.timestamp(),
    },
    description="A request that the organisation made to the service.",
)
FILTERS = {
    "status": {
        "type": "string",
        "pattern": "^[1-5](xx|[0-9]{2})$",
        "x-words": "a status or a class of statuses",
        "examples": ["4xx"],
        "description": "Only requests with this status (`404`) or class of statuses (`4xx`).",
    },
    "method": schema.enum("GET", "HEAD", "POST", "PATCH", "PUT", "DELETE"),
    "route": schema.text(
        "/v1/sources/{id}", max_length=200, description="Only requests to the operation with this path."
    ),
    "actor": schema.text(
        "key_01J8ZQ5T3V7XK2M9RB4CDW", max_length=100, description="Only requests of the actor with this ID."
    ),
    "error_code": schema.text(
        "not_found", max_length=100, description="Only requests that failed with this error code."
    ),
    "since": schema.timestamp("Only requests at or after this time."),
    "until": schema.timestamp("Only requests before this time."),
}
