"""Builders of valid values, so that a test states only the relevant fields."""

from datetime import UTC, datetime
from typing import Any

from domain.access.model import SCOPES, ApiKey
from domain.agreements.model import Agreement, AgreementAcceptance, AgreementKind, Signer, compute_text_hash
from domain.catalogue.model import CATALOGUE_STREAM, Offer, Product, Variant
from domain.events.model import Event
from domain.exports.model import Export, ExportKind, ExportStatus
from domain.exports.schedules import ExportTarget, ScheduledExport, TargetKind
from domain.ingestion.mapping.learned import compute_header_digest
from domain.ingestion.model import Column, UnmappedColumn, UnmappedReason
from domain.kernel.clock_schedule import ClockSchedule
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mappings.model import MappingStatus, SourceMapping
from domain.orgs.model import MeterAllowance, Organisation, Plan
from domain.probes.model import Probe
from domain.proposals.model import Proof, Proposal, ProposalKind, Subject
from domain.publishing.model import PublicationKind, PublicationRun, PublicationStatus
from domain.request_logs.model import RequestLog
from domain.runs.model import Run
from domain.sources.model import Schedule, Source
from domain.uploads.model import Upload
from domain.webhooks.model import Delivery, DeliveryAttempt, Endpoint, Filters

MOMENT = datetime(2026, 11, 20, 13, 8, tzinfo=UTC)
CALL = AuditContext(Actor("api_key", "key_0123456789abcdefghijkl"), "tests.call", "req_0123456789abcdefghijkl")


def plan(code: str = "standard", **changes: Any) -> Plan:
    """A plan of the standard tier."""
    fields: dict[str, Any] = {
        "code": code,
        "name": code.title(),
        "tier": "standard",
        "currency": "usd",
        "monthly": 9900,
        "features": frozenset({"bulk_exports"}),
        "meters": {"sources": MeterAllowance(10, 1, 900)},
    }
    return Plan(**fields | changes)


def organisation(**changes: Any) -> Organisation:
    """A retailer on the standard plan."""
    fields: dict[str, Any] = {
        "id": new_id("org"),
        "name": "Fjord Living",
        "kind": "retailer",
        "plan": plan(),
        "api_version": None,
        "catalogues": (new_id("cat"), new_id("cat")),
        "created_at": MOMENT,
    }
    return Organisation(**fields | changes)


def agreement(text: str = "# Data agreement\n\nYou permit us to publish your data.\n", **changes: Any) -> Agreement:
    """Version 1 of the agreement about vendors' data, with 30 days of grace."""
    fields: dict[str, Any] = {
        "id": new_id("agr"),
        "kind": AgreementKind.VENDOR_DATA,
        "version": 1,
        "title": "Data agreement",
        "text": text,
        "sha256": compute_text_hash(text),
        "published_at": MOMENT,
        "grace_days": 30,
    }
    return Agreement(**fields | changes)


def acceptance(version: Agreement, **changes: Any) -> AgreementAcceptance:
    """An acceptance of the version."""
    fields: dict[str, Any] = {
        "id": new_id("acc"),
        "agreement": version.id,
        "kind": version.kind,
        "version": version.version,
        "sha256": version.sha256,
        "signer": Signer(new_id("usr"), "Ada Moreau", "Managing director"),
        "authority_confirmed": True,
        "ip": "203.0.113.7",
        "user_agent": "Mozilla/5.0",
        "accepted_at": MOMENT,
    }
    return AgreementAcceptance(**fields | changes)


def source(**changes: Any) -> Source:
    """An active source that is pulled from a URL, without schedule."""
    fields: dict[str, Any] = {
        "id": new_id("src"),
        "catalogue": new_id("cat"),
        "name": "Lindgren feed",
        "kind": "url",
        "connector": "csv",
        "config": {"url": "https://vendor.example/feed.csv"},
        "schedule": Schedule(),
        "status": "active",
        "licence_basis": "unknown",
        "first_party": False,
        "has_credentials": False,
        "version": 1,
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return Source(**fields | changes)


def run(source: str, **changes: Any) -> Run:
    """A queued manual run of the catalogue stream."""
    fields: dict[str, Any] = {
        "id": new_id("run"),
        "source": source,
        "trigger": "manual",
        "stream": "catalogue",
        "status": "queued",
        "created_at": MOMENT,
    }
    return Run(**fields | changes)


def mapping(source: str, *headers: str, **changes: Any) -> SourceMapping:
    """The proposed mapping of a header set whose first column is the SKU and whose other columns are unknown."""
    named = headers or ("Item No.", "Zorb")
    fields: dict[str, Any] = {
        "id": new_id("map"),
        "source": source,
        "digest": compute_header_digest(named),
        "stream": "catalogue",
        "status": MappingStatus.PROPOSED,
        "headers": named,
        "samples": (tuple(f"{header} 1" for header in named),),
        "columns": (Column(0, named[0], "sku", {}),),
        "unmapped": tuple(UnmappedColumn(n, h, UnmappedReason.UNKNOWN) for n, h in enumerate(named) if n),
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return SourceMapping(**fields | changes)


def proposal(agent: str, subject: Subject, **changes: Any) -> Proposal:
    """A waiting note."""
    fields: dict[str, Any] = {
        "id": new_id("pro"),
        "agent": agent,
        "kind": ProposalKind.TRIAGE_NOTE,
        "subject": subject,
        "summary": "The run failed.",
        "change": {},
        "proof": Proof(),
        "expires_at": datetime(2999, 1, 1, tzinfo=UTC),
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return Proposal(**fields | changes)


def upload(source: str, **changes: Any) -> Upload:
    """A pending upload of ten bytes."""
    id = new_id("upl")
    fields: dict[str, Any] = {
        "id": id,
        "source": source,
        "filename": "prices.csv",
        "content_type": "text/csv",
        "bytes": 10,
        "status": "pending",
        "key": f"uploads/{id}",
        "expires_at": MOMENT,
        "created_at": MOMENT,
    }
    return Upload(**fields | changes)


def probe(**changes: Any) -> Probe:
    """A queued probe."""
    fields: dict[str, Any] = {
        "id": new_id("prb"),
        "url": "https://vendor.example/",
        "status": "queued",
        "created_at": MOMENT,
    }
    return Probe(**fields | changes)


def export(**changes: Any) -> Export:
    """A queued export of products."""
    fields: dict[str, Any] = {
        "id": new_id("exp"),
        "kind": ExportKind.PRODUCTS,
        "status": ExportStatus.PENDING,
        "created_at": MOMENT,
    }
    return Export(**fields | changes)


def scheduled_export(**changes: Any) -> ScheduledExport:
    """A scheduled export to a bucket."""
    fields: dict[str, Any] = {
        "id": new_id("sxp"),
        "name": "Daily",
        "owner": new_id("usr"),
        "clock": ClockSchedule(7, 30),
        "target": ExportTarget(TargetKind.BUCKET, bucket="blobs"),
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return ScheduledExport(**fields | changes)


def publication_run(**changes: Any) -> PublicationRun:
    """A publication run that has succeeded."""
    fields: dict[str, Any] = {
        "id": new_id("pub"),
        "kind": PublicationKind.PUBLISH,
        "status": PublicationStatus.SUCCEEDED,
        "created_at": MOMENT,
        "updated_at": MOMENT,
        "completed_at": MOMENT,
    }
    return PublicationRun(**fields | changes)


def api_key(tenant: Tenant, **changes: Any) -> ApiKey:
    """A key with every scope, created by an operator."""
    id = new_id("key")
    fields: dict[str, Any] = {
        "id": id,
        "tenant": tenant,
        "name": "Sync job",
        "digest": id.encode(),
        "last4": "9xYz",
        "restricted": False,
        "scopes": SCOPES,
        "role": "owner",
        "networks": (),
        "expires_at": None,
        "revoked_at": None,
        "created_at": MOMENT,
    }
    return ApiKey(**fields | changes)


def request_log(tenant: Tenant, **changes: Any) -> RequestLog:
    """A successful read request."""
    fields: dict[str, Any] = {
        "id": new_id("req"),
        "tenant": tenant,
        "method": "GET",
        "path": "/v1/sources",
        "route": "/v1/sources",
        "query": None,
        "status": 200,
        "error_code": None,
        "duration_ms": 4,
        "actor": CALL.actor,
        "via": "api",
        "api_version": "2026-10-04",
        "idempotency_key": None,
        "ip": "203.0.113.7",
        "user_agent": "tests/1",
        "created_at": MOMENT,
    }
    return RequestLog(**fields | changes)


def event(subject: str, **changes: Any) -> Event:
    """The event of a degraded source."""
    fields: dict[str, Any] = {"type": "source.degraded", "subject": subject, "version": 2, "data": {"id": subject}}
    return Event(**fields | changes)


def offer(variant: Variant, **changes: Any) -> Offer:
    """An offer of the variant at its main location, stated by the catalogue stream."""
    fields: dict[str, Any] = {
        "id": new_id("ofr"),
        "variant": variant.id,
        "product": variant.product,
        "source": variant.source,
        "location": "main",
        "data": {"currency": "usd", "price": 49900, "availability": "in_stock"},
        "version": 1,
        "stated_streams": CATALOGUE_STREAM,
        "observed_at": MOMENT,
        "updated_at": MOMENT,
    }
    built_offer = Offer(**fields | changes)
    variant.offers.append(built_offer)
    return built_offer


def variant(product: Product, key: str, **changes: Any) -> Variant:
    """A variant of the product with the given key, without offers."""
    fields: dict[str, Any] = {
        "id": new_id("var"),
        "product": product.id,
        "source": product.source,
        "key": key,
        "status": "active",
        "version": 1,
        "data": {"sku": key},
        "updated_at": MOMENT,
    }
    built_variant = Variant(**fields | changes)
    product.variants.append(built_variant)
    return built_variant


def product(source: str, catalogue: str, key: str, **changes: Any) -> Product:
    """An active product of the source with the given key, without variants."""
    fields: dict[str, Any] = {
        "id": new_id("prod"),
        "catalogue": catalogue,
        "source": source,
        "key": key,
        "status": "active",
        "version": 1,
        "visibility": "unlisted",
        "data": {"title": "Oak dining table", "brand": "Lindgren"},
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return Product(**fields | changes)


def endpoint(**changes: Any) -> Endpoint:
    """An enabled endpoint for all events, with thin payloads and without a window."""
    fields: dict[str, Any] = {
        "id": new_id("whe"),
        "url": "https://receiver.example/hooks",
        "event_types": ("*",),
        "filters": Filters(),
        "payload": "thin",
        "coalesce_seconds": 0,
        "api_version": "2026-10-04",
        "description": None,
        "status": "enabled",
        "disabled_for": None,
        "secret_last4": "x4T=",
        "rotation": None,
        "version": 1,
        "created_at": MOMENT,
        "updated_at": MOMENT,
    }
    return Endpoint(**fields | changes)


def delivery(endpoint: str, **changes: Any) -> Delivery:
    """A pending delivery of a changed offer without attempts."""
    fields: dict[str, Any] = {
        "id": new_id("dlv"),
        "endpoint": endpoint,
        "event": new_id("evt"),
        "type": "offer.changed",
        "subject": new_id("ofr"),
        "positions": (17,),
        "status": "pending",
        "created_at": MOMENT,
        "next_attempt_at": MOMENT,
    }
    return Delivery(**fields | changes)


def attempt(**changes: Any) -> DeliveryAttempt:
    """An attempt with the response status 503."""
    fields: dict[str, Any] = {
        "at": MOMENT,
        "status": "failed",
        "duration_ms": 41,
        "failure": "http_status",
        "response_status": 503,
        "response_body": "upstream busy",
        "response_headers": {"retry-after": "30"},
    }
    return DeliveryAttempt(**fields | changes)
