"""Schemas of events by type, as in feed, stream and webhooks (docs/conventions.md#event-types)."""

from collections.abc import Mapping
from typing import Final

from adapters.api_json.billing import PURCHASE
from adapters.api_json.changes import build_envelope_schema
from adapters.api_json.credits import CREDIT_BALANCE, CREDIT_LOT
from adapters.api_json.exports import EXPORT
from adapters.api_json.products import AVAILABILITY, OFFER_LINE, PRODUCT, VARIANT
from adapters.api_json.proposals import PROPOSAL
from adapters.api_json.usage import METER, USAGE
from adapters.api_json.webhooks import ENDPOINT
from domain.events.model import TYPES
from domain.kernel.schema import (
    Schema,
    array,
    boolean,
    constant,
    enum,
    id_schema,
    integer,
    number,
    response_object,
    text,
    timestamp,
    with_title,
)
from domain.sources.model import STATUS_REASON

_PROVENANCE = with_title(
    "provenance",
    response_object(
        None,
        {
            "source": id_schema("src"),
            "method": text("mapped"),
            "confidence": number(1.0),
            "observed_at": timestamp(),
        },
        description="The origin of the new value, and when it was observed.",
    ),
)
_CHANGE = with_title(
    "field_change",
    response_object(
        None,
        {
            "path": text("price"),
            "old": {"description": "Null if there was no value. Omitted in thin payloads."},
            "new": {"description": "Null if the value was removed. Omitted in thin payloads."},
            "provenance": _PROVENANCE,
            "omitted": boolean(
                description="Whether the values are omitted because they are too large for the event. Read the object for the values."
            ),
        },
        optional=("old", "new", "provenance", "omitted"),
        description="One changed field. Thin payloads contain its `path` only.",
    ),
)
_CHANGES: Final[Mapping[str, Schema]] = {
    "fields": array(_CHANGE),
    "fields_omitted": integer(
        12,
        minimum=1,
        description="Number of changed fields that `fields` omits; approximate if events were combined. Read the object for all fields.",
    ),
}
_VERSIONS: Final[Mapping[str, Schema]] = {
    "version": integer(7, minimum=1, description="The subject's version after this change."),
    "previous_version": integer(
        6,
        minimum=1,
        description="The version before this change. If your copy of the subject has a lower version, you have missed an event.",
    ),
}
_PRODUCT: Final[Mapping[str, Schema]] = {"id": id_schema("prod"), "catalogue": id_schema("cat")}
_VARIANT: Final[Mapping[str, Schema]] = {
    "id": id_schema("var"),
    "product": id_schema("prod"),
    "catalogue": id_schema("cat"),
}
_OFFER: Final[Mapping[str, Schema]] = {
    "id": id_schema("ofr"),
    "variant": id_schema("var"),
    "product": id_schema("prod"),
    "source": id_schema("src"),
    "catalogue": id_schema("cat"),
    "location": text("NJ"),
    "availability": AVAILABILITY,
}
_FACETS = array(
    with_title("facet", enum("price", "stock", "availability")), description="The parts of the offer that changed."
)
_OBJECT_SCHEMAS: Final[Mapping[str, Schema]] = {
    "product": PRODUCT,
    "variant": VARIANT
    | {
        "title": "variant_with_product",
        "properties": VARIANT["properties"] | {"product": id_schema("prod")},
        "required": [*VARIANT["required"], "product"],
    },
    "offer": OFFER_LINE,
}
"""Schemas of the member `object` in fat payloads, by the type of the subject."""
_NO_PROPERTIES: Final[Mapping[str, Schema]] = {}
_MERGE: Final[Mapping[str, Schema]] = {"merge": id_schema("mrg")}
_PREVIOUS: Final[Mapping[str, Schema]] = {
    "previous_product": id_schema(
        "prod", "The product that contained the variant before. Read that product again as well."
    )
}


def _build_object_data_schema(
    subject_type: str,
    ids: Mapping[str, Schema],
    extra_members: Mapping[str, Schema] = _NO_PROPERTIES,
    *,
    has_changed_fields: bool = True,
) -> Schema:
    """Return the schema of the data of an event about a product, variant or offer.

    Args:
        subject_type: Type of the subject: `product`, `variant` or `offer`.
        ids: Members with the IDs of the subject and of its parents.
        extra_members: Further members.
        has_changed_fields: Whether the data lists changed fields.
    """
    optional = ("previous_version", "fields", "fields_omitted", "object")
    object_schema = _OBJECT_SCHEMAS[subject_type] | {
        "description": f"The {subject_type} at `version`, in fat payloads only."
    }
    fields = _CHANGES if has_changed_fields else {}
    return response_object(None, {**ids, **_VERSIONS, **extra_members, **fields, "object": object_schema}, optional)


def _build_source_data_schema(status: str, *, has_reason: bool) -> Schema:
    status_reason = {"status_reason": STATUS_REASON} if has_reason else {}
    properties = {
        "id": id_schema("src"),
        "catalogue": id_schema("cat"),
        "status": constant(status),
        "run": id_schema("run", "The run that caused the change."),
        **status_reason,
        "version": integer(4, minimum=1),
        **_CHANGES,
    }
    return response_object(None, properties, ("fields_omitted",))


def _build_catalogue_data_schema() -> Schema:
    ids = {"id": id_schema("cat"), "profile": id_schema("vnd"), "claim": id_schema("vcl")}
    return response_object(None, {**ids, "version": integer(2, minimum=1)})


def _build_usage_data_schema() -> Schema:
    """Return the schema of the data of a usage event: the usage, and the meter that has reached a threshold."""
    event_properties = {
        "id": id_schema("org"),
        "meter": METER,
        "threshold": integer(80, minimum=1, description="The threshold in percent of the plan's quota: 80 or 100."),
        "used": integer(412_000, minimum=0),
        "included": integer(500_000, minimum=0),
        "version": integer(1, minimum=1),
    }
    usage = USAGE.schema
    properties = {**usage["properties"], **event_properties}
    return {"type": "object", "properties": properties, "required": [*usage["required"], *event_properties]}


def _build_resource_data_schema(resource: Schema, **extra_members: Schema) -> Schema:
    """Return the schema of the data of an event with a resource: the resource, further members, and the version."""
    properties = {**resource["properties"], **extra_members, "version": integer(1, minimum=1)}
    required = [*resource["required"], *extra_members, "version"]
    return {"type": "object", "properties": properties, "required": required}


def _build_export_data_schema() -> Schema:
    version = {"version": integer(1, minimum=1, description="Always 1, because an export is completed once.")}
    properties = {**EXPORT.schema["properties"], **version}
    schema = {**EXPORT.schema, "properties": properties, "required": [*EXPORT.schema["required"], *version]}
    return with_title("export_completed_data", schema)


def _build_data_schemas() -> dict[str, Schema]:
    """Return the data schema of each event type, by type; types that are not sent and have no sample are omitted."""
    return {
        "offer.changed": _build_object_data_schema("offer", _OFFER, {"facets": _FACETS}),
        "offer.created": _build_object_data_schema("offer", _OFFER),
        "product.created": _build_object_data_schema("product", _PRODUCT),
        "product.updated": _build_object_data_schema("product", _PRODUCT),
        "product.discontinued": _build_object_data_schema("product", _PRODUCT),
        "product.merged": _build_object_data_schema(
            "product", _PRODUCT, {"merged_into": id_schema("prod"), **_MERGE}, has_changed_fields=False
        ),
        "product.unmerged": _build_object_data_schema(
            "product",
            _PRODUCT,
            {"unmerged_from": id_schema("prod", "The product that was shown in place of this one."), **_MERGE},
        ),
        "product.published": _build_object_data_schema("product", _PRODUCT),
        "product.withdrawn": _build_object_data_schema("product", _PRODUCT, has_changed_fields=False),
        "variant.created": _build_object_data_schema("variant", _VARIANT),
        "variant.updated": _build_object_data_schema("variant", _VARIANT),
        "variant.merged": _build_object_data_schema(
            "variant", _VARIANT, {"merged_into": id_schema("var"), **_PREVIOUS, **_MERGE}, has_changed_fields=False
        ),
        "variant.unmerged": _build_object_data_schema(
            "variant",
            _VARIANT,
            {
                "unmerged_from": id_schema("var", "The variant that was shown in place of this one."),
                **_PREVIOUS,
                **_MERGE,
            },
        ),
        "source.degraded": _build_source_data_schema("degraded", has_reason=True),
        "source.blocked": _build_source_data_schema("blocked", has_reason=True),
        "source.recovered": _build_source_data_schema("active", has_reason=False),
        "catalogue.verified": _build_catalogue_data_schema(),
        "catalogue.unverified": _build_catalogue_data_schema(),
        "delivery.disabled": ENDPOINT.schema,
        "credits.low": _build_resource_data_schema(CREDIT_BALANCE.schema, id=id_schema("org")),
        "credits.exhausted": _build_resource_data_schema(CREDIT_BALANCE.schema, id=id_schema("org")),
        "credits.expiring": _build_resource_data_schema(CREDIT_LOT.schema),
        "credits.purchased": _build_resource_data_schema(PURCHASE.schema),
        "proposal.applied": _build_resource_data_schema(PROPOSAL.schema),
        "proposal.created": _build_resource_data_schema(PROPOSAL.schema),
        "usage.threshold_reached": _build_usage_data_schema(),
        "export.completed": _build_export_data_schema(),
        "webhook.test": response_object(
            None, {"id": id_schema("whe"), "url": text("https://shop.example/hooks"), "version": integer(1, minimum=1)}
        ),
    }


def _build_event_schema(type: str, data: Schema) -> Schema:
    """Return the schema of the events of one type, with a title such as `offer_changed_event`."""
    name = type.replace(".", "_")
    titled = data if "title" in data else with_title(f"{name}_data", data)
    schema = build_envelope_schema(constant(type), titled, dict(data["properties"]["id"]), TYPES[type].area)
    return with_title(f"{name}_event", schema)


EVENT_SCHEMAS: Final[Mapping[str, Schema]] = {
    type: _build_event_schema(type, data) for type, data in sorted(_build_data_schemas().items())
}
"""Schemas of all event types that are sent or have a sample, by type."""
EVENT_UNION_SCHEMA: Final[Schema] = {
    "title": "typed_event",
    "description": "An event of one of the types in this API description. New types are added without a new API version.",
    "oneOf": list(EVENT_SCHEMAS.values()),
    "discriminator": {
        "propertyName": "type",
        "mapping": {type: f"#/components/schemas/{event['title']}" for type, event in EVENT_SCHEMAS.items()},
    },
}
"""Union of the schemas of all event types, distinguished by `type`."""
