"""JSON of audit entries (docs/audit.md)."""

from typing import Final

from adapters.api_json.request_logs import ACTOR
from adapters.api_json.resource import JsonResource, create_nested_field
from domain.audit.usecases import AuditEntryView
from domain.kernel.resource import computed, optional
from domain.kernel.schema import (
    Schema,
    boolean,
    enum,
    id_schema,
    integer,
    map_schema,
    response_object,
    text,
    timestamp,
    with_title,
)

_ANY: Final[Schema] = {"description": "The field's value, in the format of the resource."}
_TARGET = with_title(
    "audit_target",
    response_object(
        None,
        {
            "object": text("source", description="The type of the changed resource."),
            "id": text("src_01J8ZQ5T3V7XK2M9RB4CDW", description="The ID of the changed resource."),
        },
    ),
)
_UNDO = with_title(
    "audit_undo",
    response_object(
        None,
        {
            "available": boolean(
                description="Whether the change can be undone now by a caller who is permitted to make the opposite change."
            ),
            "reason": text(
                "The change was undone by aud_01J8ZQ5T3V7XK2M9RB4CDX. To redo the change, undo aud_01J8ZQ5T3V7XK2M9RB4CDX.",
                max_length=2000,
                description="Why the change cannot be undone.",
            ),
        },
        optional=("reason",),
    ),
)
AUDIT_EVENT = JsonResource[AuditEntryView](
    "audit_event",
    {
        "id": computed(id_schema("aud"), lambda row, _: row.entry.id),
        "actor": create_nested_field(ACTOR, lambda row: row.entry.context.actor),
        "action": computed(
            text("sources.update", description="The operation that made the change."),
            lambda row, _: row.entry.context.operation,
        ),
        "target": computed(_TARGET, lambda row, _: {"object": row.entry.change.object, "id": row.entry.change.id}),
        "change": computed(enum("create", "update", "delete"), lambda row, _: row.entry.change.action),
        "before": computed(
            map_schema(_ANY, {"name": "Lindgren"}, "The changed fields before the change; absent values are omitted."),
            lambda row, _: row.entry.change.before,
        ),
        "after": computed(
            map_schema(
                _ANY, {"name": "Lindgren feed"}, "The changed fields after the change; absent values are omitted."
            ),
            lambda row, _: row.entry.change.after,
        ),
        "act": computed(
            id_schema("aud", "The ID of the first entry of the same request or job; all its entries share it."),
            lambda row, _: row.entry.act,
        ),
        "request_id": optional(
            computed(
                text("req_01J8ZQ5T3V7XK2M9RB4CDW", description="The Request-Id of the request."),
                lambda row, _: row.entry.context.request_id,
            )
        ),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "created_at": computed(timestamp(), lambda row, _: row.entry.created_at),
        "undo": computed(
            _UNDO,
            lambda row, _: {"available": False, "reason": row.refusal} if row.refusal else {"available": True},
        ),
        "undone_by": optional(
            computed(
                id_schema("aud", "The act that undid this change. Undo that act to redo the change."),
                lambda row, _: row.undone_by,
            )
        ),
        "undoes": optional(
            computed(id_schema("aud", "The act that this change undoes."), lambda row, _: row.entry.undoes)
        ),
        "sequence": computed(
            integer(4711, minimum=0, description="The entry's number within your organisation and mode."),
            lambda row, _: row.entry.sequence,
        ),
        "hash": optional(
            computed(
                text(
                    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    description="The hash of the audit chain up to this entry.",
                ),
                lambda row, _: row.entry.hash.hex() if row.entry.hash else None,
            )
        ),
    },
    description="One recorded change: its actor, its target, and the values before and after.",
)
