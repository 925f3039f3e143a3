"""The JSON of audit entries (docs/audit.md)."""

from typing import Final

from adapters.wire.request_logs import ACTOR
from adapters.wire.resource import Resource, part
from domain.audit.usecases import ToldEntry
from domain.kernel.resource import computed, optional
from domain.kernel.schema import Schema, boolean, enum, id_of, integer, map_of, named, record, text, timestamp

_ANY: Final[Schema] = {"description": "As the resource's own description has it."}
_TARGET = named(
    "audit_target",
    record(
        None,
        {
            "object": text("source", description="What kind of thing was changed."),
            "id": text("src_01J8ZQ5T3V7XK2M9RB4CDW", description="Its id."),
        },
    ),
)
_UNDO = named(
    "audit_undo",
    record(
        None,
        {
            "available": boolean(description="Whether it can be undone now, by somebody who may do the opposite."),
            "reason": text("It was undone by aud_01J8ZQ5T3V7XK2M9RB4CDX.", longest=2000, description="Why not."),
        },
        optional=("reason",),
    ),
)
AUDIT_EVENT = Resource[ToldEntry](
    "audit_event",
    {
        "id": computed(id_of("aud"), lambda told, _: told.entry.id),
        "actor": part(ACTOR, lambda told: told.entry.context.actor),
        "action": computed(
            text("sources.update", description="The operation."), lambda told, _: told.entry.context.operation
        ),
        "target": computed(_TARGET, lambda told, _: {"object": told.entry.change.object, "id": told.entry.change.id}),
        "change": computed(enum("create", "update", "delete"), lambda told, _: told.entry.change.action),
        "before": computed(
            map_of(_ANY, {"name": "Lindgren"}, "The fields that changed, as they were; what was absent is left out."),
            lambda told, _: told.entry.change.before,
        ),
        "after": computed(
            map_of(_ANY, {"name": "Lindgren feed"}, "The same fields, as they are since; what is absent is left out."),
            lambda told, _: told.entry.change.after,
        ),
        "act": computed(
            id_of("aud", "What one request or job changed has the same: the id of its first entry."),
            lambda told, _: told.entry.act,
        ),
        "request_id": optional(
            computed(
                text("req_01J8ZQ5T3V7XK2M9RB4CDW", description="The Request-Id."),
                lambda told, _: told.entry.context.request_id,
            )
        ),
        "livemode": computed(boolean(), lambda _, view: view.tenant.livemode),
        "created_at": computed(timestamp(), lambda told, _: told.entry.created_at),
        "undo": computed(
            _UNDO,
            lambda told, _: {"available": False, "reason": told.refusal} if told.refusal else {"available": True},
        ),
        "undone_by": optional(
            computed(
                id_of("aud", "The act that has undone it; undo that to have it done again."),
                lambda told, _: told.undone_by,
            )
        ),
        "undoes": optional(
            computed(id_of("aud", "The act that this one has undone."), lambda told, _: told.entry.undoes)
        ),
        "sequence": computed(
            integer(4711, least=0, description="Its number among the entries of your organisation and mode."),
            lambda told, _: told.entry.sequence,
        ),
        "hash": optional(
            computed(
                text(
                    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
                    description="The chain up to and with it.",
                ),
                lambda told, _: told.entry.hash.hex() if told.entry.hash else None,
            )
        ),
    },
    description="One change: by whom, of what, from what to what.",
)
