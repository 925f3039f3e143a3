"""The schema of each type's event: one envelope, and `data` as feed, stream and webhooks give it (docs/conventions.md#event-types)."""

from collections.abc import Mapping
from typing import Final

from adapters.wire.changes import envelope_schema
from adapters.wire.exports import EXPORT
from adapters.wire.products import AVAILABILITY, OFFER_LINE, PRODUCT, VARIANT
from adapters.wire.usage import METER, USAGE
from adapters.wire.webhooks import ENDPOINT
from domain.events.model import TYPES
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    constant,
    enum,
    id_of,
    integer,
    named,
    number,
    record,
    text,
    timestamp,
)
from domain.sources.model import STATUS_REASON

_PROVENANCE = named(
    "provenance",
    record(
        None,
        {
            "source": id_of("src"),
            "method": text("mapped"),
            "confidence": number(1.0),
            "observed_at": timestamp(),
        },
        description="Where the new value comes from, and when it was seen.",
    ),
)
_CHANGE = named(
    "field_change",
    record(
        None,
        {
            "path": text("price"),
            "old": {"description": "null where there was none. Left out of thin payloads."},
            "new": {"description": "null where there is none any more. Left out of thin payloads."},
            "provenance": _PROVENANCE,
            "omitted": boolean(description="The values are too large to be told: read the object."),
        },
        optional=("old", "new", "provenance", "omitted"),
        description="One changed field. Thin payloads have its `path` alone.",
    ),
)
_CHANGES: Final[Mapping[str, Schema]] = {
    "fields": array(_CHANGE),
    "fields_omitted": integer(12, least=1, description="How many further fields changed, at least: read the object."),
}
_VERSIONS: Final[Mapping[str, Schema]] = {
    "version": integer(7, least=1, description="The subject's version with this change."),
    "previous_version": integer(
        6, least=1, description="The version before; another one than you hold means that an event is missing."
    ),
}
_PRODUCT: Final[Mapping[str, Schema]] = {"id": id_of("prod"), "catalogue": id_of("cat")}
_VARIANT: Final[Mapping[str, Schema]] = {"id": id_of("var"), "product": id_of("prod"), "catalogue": id_of("cat")}
_OFFER: Final[Mapping[str, Schema]] = {
    "id": id_of("ofr"),
    "variant": id_of("var"),
    "product": id_of("prod"),
    "source": id_of("src"),
    "catalogue": id_of("cat"),
    "location": text("NJ"),
    "availability": AVAILABILITY,
}
_FACETS = array(named("facet", enum("price", "stock", "availability")), description="What kinds of facts changed.")
_OBJECTS: Final[Mapping[str, Schema]] = {
    "product": PRODUCT,
    "variant": VARIANT
    | {
        "title": "variant_with_product",
        "properties": VARIANT["properties"] | {"product": id_of("prod")},
        "required": [*VARIANT["required"], "product"],
    },
    "offer": OFFER_LINE,
}
"""What fat payloads carry as `data.object`, by what the event is about."""
_NO_MORE: Final[Mapping[str, Schema]] = {}
_MERGE: Final[Mapping[str, Schema]] = {"merge": id_of("mrg")}
_PREVIOUS: Final[Mapping[str, Schema]] = {
    "previous_product": id_of("prod", "The product that it was shown in before: read that again as well.")
}


def _about(
    noun: str, ids: Mapping[str, Schema], more: Mapping[str, Schema] = _NO_MORE, *, changes: bool = True
) -> Schema:
    """The data of an event about a product, variant or offer."""
    optional = ("previous_version", "fields", "fields_omitted", "object")
    whole = _OBJECTS[noun] | {"description": f"In fat payloads the {noun}, as of `version`."}
    told = _CHANGES if changes else {}
    return record(None, {**ids, **_VERSIONS, **more, **told, "object": whole}, optional)


def _source(status: str, *, reason: bool) -> Schema:
    told = {"status_reason": STATUS_REASON} if reason else {}
    properties = {
        "id": id_of("src"),
        "catalogue": id_of("cat"),
        "status": constant(status),
        "run": id_of("run", "The run whose outcome it was."),
        **told,
        "version": integer(4, least=1),
        **_CHANGES,
    }
    return record(None, properties, ("fields_omitted",))


def _catalogue() -> Schema:
    ids = {"id": id_of("cat"), "profile": id_of("vnd"), "claim": id_of("vcl")}
    return record(None, {**ids, "version": integer(2, least=1)})


def _usage() -> Schema:
    """The resource as of then, and which of its meters it is about."""
    about = {
        "id": id_of("org"),
        "meter": METER,
        "threshold": integer(80, least=1, description="Per cent of what the plan includes: 80 or 100."),
        "used": integer(412_000, least=0),
        "included": integer(500_000, least=0),
        "version": integer(1, least=1),
    }
    usage = USAGE.schema
    properties = {**usage["properties"], **about}
    return {"type": "object", "properties": properties, "required": [*usage["required"], *about]}


def _export() -> Schema:
    version = {"version": integer(1, least=1, description="Always 1: an export is completed once.")}
    properties = {**EXPORT.schema["properties"], **version}
    whole = {**EXPORT.schema, "properties": properties, "required": [*EXPORT.schema["required"], *version]}
    return named("export_completed_data", whole)


def _data() -> dict[str, Schema]:
    """The data of each type that is sent, or that a sample can be had of."""
    return {
        "offer.changed": _about("offer", _OFFER, {"facets": _FACETS}),
        "offer.created": _about("offer", _OFFER),
        "product.created": _about("product", _PRODUCT),
        "product.updated": _about("product", _PRODUCT),
        "product.discontinued": _about("product", _PRODUCT),
        "product.merged": _about("product", _PRODUCT, {"merged_into": id_of("prod"), **_MERGE}, changes=False),
        "product.unmerged": _about(
            "product", _PRODUCT, {"unmerged_from": id_of("prod", "What it was shown as."), **_MERGE}
        ),
        "product.published": _about("product", _PRODUCT),
        "product.withdrawn": _about("product", _PRODUCT, changes=False),
        "variant.created": _about("variant", _VARIANT),
        "variant.updated": _about("variant", _VARIANT),
        "variant.merged": _about(
            "variant", _VARIANT, {"merged_into": id_of("var"), **_PREVIOUS, **_MERGE}, changes=False
        ),
        "variant.unmerged": _about(
            "variant", _VARIANT, {"unmerged_from": id_of("var", "What it was shown as."), **_PREVIOUS, **_MERGE}
        ),
        "source.degraded": _source("degraded", reason=True),
        "source.blocked": _source("blocked", reason=True),
        "source.recovered": _source("active", reason=False),
        "catalogue.verified": _catalogue(),
        "catalogue.unverified": _catalogue(),
        "delivery.disabled": ENDPOINT.schema,
        "usage.threshold_reached": _usage(),
        "export.completed": _export(),
        "webhook.test": record(
            None, {"id": id_of("whe"), "url": text("https://shop.example/hooks"), "version": integer(1, least=1)}
        ),
    }


def _event(type: str, data: Schema) -> Schema:
    """The schema of one type's event, titled after it: `offer.changed` is `offer_changed_event`."""
    name = type.replace(".", "_")
    titled = data if "title" in data else named(f"{name}_data", data)
    whole = envelope_schema(constant(type), titled, dict(data["properties"]["id"]), TYPES[type].area)
    return named(f"{name}_event", whole)


EVENT_TYPES: Final[Mapping[str, Schema]] = {type: _event(type, data) for type, data in sorted(_data().items())}
"""The schema of each type that is sent, or that a sample can be had of: the whole event."""
TYPED_EVENT: Final[Schema] = {
    "title": "typed_event",
    "description": "An event of a type that this description knows. New types come without a new version of the API.",
    "oneOf": list(EVENT_TYPES.values()),
    "discriminator": {
        "propertyName": "type",
        "mapping": {type: f"#/components/schemas/{event['title']}" for type, event in EVENT_TYPES.items()},
    },
}
"""One of these events, told apart by `type`."""
