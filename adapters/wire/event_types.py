"""Schemas of events by type, as in feed, stream and webhooks (docs/conventions.md#event-types)."""

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
        description="The origin of the new value, and when it was observed.",
    ),
)
_CHANGE = named(
    "field_change",
    record(
        None,
        {
            "path": text("price"),
            "old": {"description": "Null if there was no value. Omitted in thin payloads."},
            "new": {"description": "Null if the value was removed. Omitted in thin payloads."},
            "provenance": _PROVENANCE,
            "omitted": boolean(description="The values are too large for the event. Read the object."),
        },
        optional=("old", "new", "provenance", "omitted"),
        description="One changed field. Thin payloads contain its `path` only.",
    ),
)
_CHANGES: Final[Mapping[str, Schema]] = {
    "fields": array(_CHANGE),
    "fields_omitted": integer(12, least=1, description="Minimum number of further changed fields. Read the object."),
}
_VERSIONS: Final[Mapping[str, Schema]] = {
    "version": integer(7, least=1, description="The subject's version after this change."),
    "previous_version": integer(
        6, least=1, description="The version before this change. If yours differs, you have missed an event."
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
_FACETS = array(named("facet", enum("price", "stock", "availability")), description="The kinds of changed values.")
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
"""Schemas of `data.object` in fat payloads, by the type of the subject."""
_NO_PROPERTIES: Final[Mapping[str, Schema]] = {}
_MERGE: Final[Mapping[str, Schema]] = {"merge": id_of("mrg")}
_PREVIOUS: Final[Mapping[str, Schema]] = {
    "previous_product": id_of("prod", "The product that showed the variant before. Read it again as well.")
}


def _object_data(
    noun: str, ids: Mapping[str, Schema], more: Mapping[str, Schema] = _NO_PROPERTIES, *, changes: bool = True
) -> Schema:
    """Return the schema of the data of an event about a product, variant or offer."""
    optional = ("previous_version", "fields", "fields_omitted", "object")
    object_schema = _OBJECTS[noun] | {"description": f"The {noun} at `version`, in fat payloads only."}
    fields = _CHANGES if changes else {}
    return record(None, {**ids, **_VERSIONS, **more, **fields, "object": object_schema}, optional)


def _source(status: str, *, reason: bool) -> Schema:
    status_reason = {"status_reason": STATUS_REASON} if reason else {}
    properties = {
        "id": id_of("src"),
        "catalogue": id_of("cat"),
        "status": constant(status),
        "run": id_of("run", "The run that caused the change."),
        **status_reason,
        "version": integer(4, least=1),
        **_CHANGES,
    }
    return record(None, properties, ("fields_omitted",))


def _catalogue() -> Schema:
    ids = {"id": id_of("cat"), "profile": id_of("vnd"), "claim": id_of("vcl")}
    return record(None, {**ids, "version": integer(2, least=1)})


def _usage() -> Schema:
    """Return the schema of the usage resource at that time, with the meter that reached the threshold."""
    event_properties = {
        "id": id_of("org"),
        "meter": METER,
        "threshold": integer(80, least=1, description="The threshold in percent of the plan's quota: 80 or 100."),
        "used": integer(412_000, least=0),
        "included": integer(500_000, least=0),
        "version": integer(1, least=1),
    }
    usage = USAGE.schema
    properties = {**usage["properties"], **event_properties}
    return {"type": "object", "properties": properties, "required": [*usage["required"], *event_properties]}


def _export() -> Schema:
    version = {"version": integer(1, least=1, description="Always 1, because an export is completed once.")}
    properties = {**EXPORT.schema["properties"], **version}
    schema = {**EXPORT.schema, "properties": properties, "required": [*EXPORT.schema["required"], *version]}
    return named("export_completed_data", schema)


def _data() -> dict[str, Schema]:
    """Return the data schema of each event type that is sent or has a sample."""
    return {
        "offer.changed": _object_data("offer", _OFFER, {"facets": _FACETS}),
        "offer.created": _object_data("offer", _OFFER),
        "product.created": _object_data("product", _PRODUCT),
        "product.updated": _object_data("product", _PRODUCT),
        "product.discontinued": _object_data("product", _PRODUCT),
        "product.merged": _object_data("product", _PRODUCT, {"merged_into": id_of("prod"), **_MERGE}, changes=False),
        "product.unmerged": _object_data(
            "product", _PRODUCT, {"unmerged_from": id_of("prod", "The product that was shown instead."), **_MERGE}
        ),
        "product.published": _object_data("product", _PRODUCT),
        "product.withdrawn": _object_data("product", _PRODUCT, changes=False),
        "variant.created": _object_data("variant", _VARIANT),
        "variant.updated": _object_data("variant", _VARIANT),
        "variant.merged": _object_data(
            "variant", _VARIANT, {"merged_into": id_of("var"), **_PREVIOUS, **_MERGE}, changes=False
        ),
        "variant.unmerged": _object_data(
            "variant",
            _VARIANT,
            {"unmerged_from": id_of("var", "The variant that was shown instead."), **_PREVIOUS, **_MERGE},
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
    """Return the schema of one type's event, with a title such as `offer_changed_event`."""
    name = type.replace(".", "_")
    titled = data if "title" in data else named(f"{name}_data", data)
    schema = envelope_schema(constant(type), titled, dict(data["properties"]["id"]), TYPES[type].area)
    return named(f"{name}_event", schema)


EVENT_TYPES: Final[Mapping[str, Schema]] = {type: _event(type, data) for type, data in sorted(_data().items())}
"""Event schemas by type, of all types that are sent or have a sample."""
TYPED_EVENT: Final[Schema] = {
    "title": "typed_event",
    "description": "An event of a type in this description. New types are added without a new version of the API.",
    "oneOf": list(EVENT_TYPES.values()),
    "discriminator": {
        "propertyName": "type",
        "mapping": {type: f"#/components/schemas/{event['title']}" for type, event in EVENT_TYPES.items()},
    },
}
"""Union of the event schemas, discriminated by `type`."""
