"""Organisation of a large customer, with many objects on every page of the console."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from domain.access.model import ROLES, Principal
from domain.access.ports import KeyStore
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.billing.model import (
    CreditPurchase,
    Invoice,
    InvoiceLine,
    InvoiceStatus,
    Period,
    PurchaseKind,
    PurchaseStatus,
)
from domain.catalogue.corrections import Correction, CorrectionAction, FeedState
from domain.catalogue.model import Product, Stream
from domain.changes.model import FeedPosition
from domain.corrections.model import BatchAction, BatchProblem, CorrectionBatch
from domain.corrections.ports import CorrectionBatchStore, CorrectionStore
from domain.credits.model import EntryKind
from domain.credits.usecases.ledger import CreditLedger
from domain.events.model import Event
from domain.events.ports import EventLog
from domain.exports.ports import ExportStore
from domain.ingestion.model import Column
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.mail.model import Attachment, Authentication, InboundMessage, MessageStatus
from domain.mappings.model import SourceMapping
from domain.mappings.ports import MappingStore
from domain.matching.model import MatchPair, Merge, PairEvidence
from domain.notifications.findings import COMPARED_PRICES
from domain.notifications.model import (
    MAX_ITEMS,
    Notification,
    NotificationKind,
    NotificationRule,
    NotificationStatus,
    StopReason,
)
from domain.notifications.ports import NotificationRuleStore
from domain.oauth.model import AppKind
from domain.oauth.usecases.apps import AppService, NewApp
from domain.orgs.model import Invitation, Member, Organisation
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.people.ports import People
from domain.probes.model import (
    Effort,
    Estimate,
    Evidence,
    PageSample,
    Platform,
    PlatformFeed,
    Probe,
    ProbeReport,
    ReadingMethod,
    Robots,
    RobotsState,
    SampledPage,
    Sitemap,
)
from domain.request_logs.model import RequestLog
from domain.request_logs.ports import RequestLogSink
from domain.runs.model import MAX_LISTED_COLUMNS, MAX_STORED_PROBLEMS, Run, RunColumn
from domain.runs.ports import RunStore
from domain.sources.ports import SourceStore
from domain.usage.meters import METERS
from domain.webhooks.model import EncryptedSecrets, Endpoint
from domain.webhooks.ports import WebhookStore
from entrypoints.dependencies import Dependencies
from ports.clock import Clock
from ports.objects import ObjectStore
from ports.unit_of_work import UnitOfWork
from tests.support import builders
from tests.support.catalogues import add_products
from tests.support.merged_catalogues import MergedCatalogue

PROSE = "Solid oak\"'><script>evil()</script>{{ 7*7 }} from sustained forests, oiled & sanded <by hand>; delivered flat with tools, screws and a booklet. "
FIELDS = ("sku", "title", "price", "dimensions.width", "dimensions.depth", "quantity", "materials", "colour")
COLUMNS = (45, 200)
VARIANTS = 2_500
OFFERS = 300
LINES = 6_000
TYPES = ("offer.changed", "product.updated", "variant.updated", "product.created")


@dataclass
class LargeOrganisation:
    """Created objects; `owner` is one of the fifty members and has the role owner."""

    tenant: Tenant
    owner: User
    product: Product
    sources: list[str]
    mappings: list[SourceMapping]
    runs: list[Run]
    probe: Probe
    endpoints: list[Endpoint]
    deliveries: list[str]
    notification: Notification
    event: Event
    pairs: list[MatchPair]
    merges: list[Merge]
    requests: list[str]
    members: list[str]
    keys: list[str] = field(default_factory=list)
    apps: list[str] = field(default_factory=list)
    audited: list[str] = field(default_factory=list)
    purchases: list[str] = field(default_factory=list)
    batches: list[str] = field(default_factory=list)


async def create_large_organisation(
    parts: Dependencies, organisation: Organisation, lines: int = LINES
) -> LargeOrganisation:
    """Fill the organisation's live mode on any backend; the file of the first run has the given number of lines."""
    now, tenant = parts[Clock].now(), Tenant(organisation.id, True)
    sources = await _sources(parts, tenant, organisation.get_catalogue_id(True), now)
    product = _product(sources, organisation.get_catalogue_id(True), now)
    await add_products(parts[UnitOfWork], tenant, product, now=now)
    await _further(parts, tenant, sources, organisation.get_catalogue_id(True), now)
    mappings = [_mapping(sources[0], columns) for columns in COLUMNS]
    await parts[ObjectStore].put_stream("snapshots/large", _file(COLUMNS[1], lines))
    runs = _runs(sources[0], now, mappings, lines)
    probe = _probe()
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for run in runs:
            await tx[RunStore].add(run)
        for mapping in mappings:
            await tx[MappingStore].add(mapping)
        for number in range(40):
            await tx.store(InboundMessage).add(_message(sources[0], number, now))
        await tx.store(Probe).add(probe)
        for _ in range(30):
            await tx[ExportStore].add(builders.export(created_at=now))
    pairs, merges = await _pairs(parts, tenant, organisation)
    members = await _members(parts, tenant, now)
    owner = next(user for user, role in members if role == "owner")
    endpoints, deliveries = await _endpoints(parts, tenant, now)
    notification = await _notifications(parts, tenant, owner.id, sources, now)
    event = await _events(parts, tenant, product)
    requests = [_request(tenant, number, now) for number in range(500)]
    await parts[RequestLogSink].write(requests)
    keys, apps, audited = await _access(parts, tenant, organisation, owner)
    purchases = await _billing(parts, tenant, now)
    batches = await _corrections(parts, tenant, product, owner, now)
    return LargeOrganisation(
        tenant, owner, product, sources, mappings, runs, probe, endpoints, deliveries, notification, event, pairs, merges,
        [one.id for one in requests], [user.id for user, _ in members], keys, apps, audited, purchases, batches,
    )  # fmt: skip


async def _billing(parts: Dependencies, tenant: Tenant, now: datetime) -> list[str]:
    """Create invoices with a line for each meter, purchases, and lots of credit; return the IDs of the purchases."""
    period, ledger, purchases = Period(now - timedelta(days=30), now), parts[CreditLedger], []
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for number in range(40):
            purchase = CreditPurchase(
                id=new_id("crp"), kind=PurchaseKind.AUTOMATIC, status=PurchaseStatus.SUCCEEDED, credits=1000 + number,
                request_key=f"large:{number}", amount=1000, total=1000, created_at=now,
            )  # fmt: skip
            await tx.store(CreditPurchase).add(purchase)
            await ledger.add_lot(
                tx, EntryKind.PURCHASE, purchase.credit_micros, purchase.id, now + timedelta(days=number + 1)
            )
            purchases.append(purchase.id)
            lines = tuple(InvoiceLine(PROSE, 900, period, 41_000, meter) for meter in METERS * 4)
            await tx.store(Invoice).add(
                Invoice(
                    id=new_id("inv"), provider_id=f"in_{number}", number=f"F-{number:04}", status=InvoiceStatus.OPEN, currency="usd",
                    total=99_900, tax=0, amount_due=99_900, lines=lines, created_at=now, hosted_invoice_url="https://invoice.example/" + "i" * 150,
                )
            )  # fmt: skip
    return purchases


async def _sources(parts: Dependencies, tenant: Tenant, catalogue: str, now: datetime) -> list[str]:
    made = []
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for number in range(100):
            source = builders.source(
                name=f"Vendor {number} of oak tables & walnut chairs, spring price list", catalogue=catalogue, kind="file" if number == 0 else "url",
                config={"currency": "usd"} if number == 0 else {"url": f"https://vendor-{number}.example/feed.csv"},
                created_at=now, updated_at=now, status="active" if number % 4 else "degraded",
            )  # fmt: skip
            await tx[SourceStore].add(source)
            made.append(source.id)
    return made


def _product(sources: Sequence[str], catalogue: str, now: datetime) -> Product:
    data = {
        "title": "Oak dining table, made to measure", "brand": "Lindgren", "description": PROSE * 40, "tags": [f"tag {n}" for n in range(60)],
        "category_path": ["Furniture", "Tables", "Dining tables"], "attributes": {f"attribute {n}": PROSE[:80] for n in range(80)},
        "media": [{"id": f"img_{n:022}", "url": f"https://cdn.example/{n}.jpg", "role": "hero" if n == 0 else "detail", "alt": PROSE[:60]} for n in range(60)],
    }  # fmt: skip
    product = builders.product(sources[0], catalogue, "large", data=data)
    for number in range(VARIANTS):
        facts = {
            "sku": f"OAK-{number:05}", "title": f"Oak dining table, {number} cm, oiled, with drawer and two leaves", "materials": ["oak", "steel"],
            "dimensions": {side: {"hundredths_in": 3150 + number, "given": {"value": 80.0, "unit": "cm"}} for side in ("width", "depth", "height")},
        }  # fmt: skip
        variant = builders.variant(product, f"large-{number}", data=facts)
        for place in range(OFFERS if number == 0 else 1):
            builders.offer(
                variant, source=sources[place % len(sources)], location=f"warehouse {place} at the harbour", observed_at=now - timedelta(minutes=place),
                data={"currency": "usd", "price": 49900 + place, "msrp": 59900, "cost": 19900, "quantity": 4, "availability": "low_stock", "incoming": [{"quantity": 2, "eta": "2026-12-24"}] * 20},
            )  # fmt: skip
    return product


async def _further(parts: Dependencies, tenant: Tenant, sources: Sequence[str], catalogue: str, now: datetime) -> None:
    """Create products of many brands and categories, for lists and filters."""
    made = []
    for number in range(400):
        data = {
            "title": f"{PROSE[:60]} {number}",
            "brand": f"Brand number {number} of the North & South",
            "category_path": ["Furniture", f"Range {number % 40}", f"{PROSE[:70]} {number}"],
            "media": [{"url": f"https://cdn-{number}.example/{'a' * 120}.jpg", "role": "hero"}],
        }
        product = builders.product(sources[0], catalogue, f"further-{number}", data=data)
        for copy in range(3):
            builders.offer(builders.variant(product, f"further-{number}-{copy}"), source=sources[0])
        made.append(product)
    await add_products(parts[UnitOfWork], tenant, *made, now=now)


def _headers(count: int) -> tuple[str, ...]:
    return ("Item No.", *(f"Column {number}: {PROSE[:70]}" for number in range(1, count)))


def _mapping(source: str, count: int) -> SourceMapping:
    headers = _headers(count)
    columns = tuple(
        Column(at, header, "sku" if at == 0 else f"attributes.column_{at}", {}, confidence=0.7 if at % 3 else 0.95)
        for at, header in enumerate(headers)
    )
    samples = tuple(tuple(f"{row}/{at} {PROSE * 3}" for at in range(count)) for row in range(5))
    return builders.mapping(source, *headers, columns=columns, unmapped=(), samples=samples, stream=Stream.CATALOGUE)


async def _file(columns: int, lines: int) -> AsyncIterator[bytes]:
    yield (",".join(f'"{header}"' for header in _headers(columns)) + "\n").encode()
    cells = ",".join(f'"{PROSE[: 90 if at < COLUMNS[0] else 5]} {at}"' for at in range(1, columns))
    for number in range(lines):
        yield f"OAK-{number:05},{cells}\n".encode()


def _runs(source: str, now: datetime, mappings: Sequence[SourceMapping], lines: int) -> list[Run]:
    kinds, headers = list(ProblemKind), _headers(COLUMNS[1])
    problems = tuple(
        Problem(
            f"attributes.column_{at % 37}", kinds[at % 10], f"{PROSE * 2} is no length.", line=lines - at * (lines // MAX_STORED_PROBLEMS), column=headers[1 + at % 44],
            external_id=f"OAK-{at:05}",
        ) for at in range(MAX_STORED_PROBLEMS)
    )  # fmt: skip
    columns = tuple(
        RunColumn(f"{PROSE[:70]} {at}", at, "Prices", f"attributes.column_{at}") for at in range(MAX_LISTED_COLUMNS)
    )
    first = builders.run(
        source, status="succeeded", problems=problems, columns=columns, stats={"problems": 40_000, "rows": lines, "columns": 900, "bytes": 18_000_000},
        snapshot="snapshots/large", stream=Stream.CATALOGUE, created_at=now, finished_at=now, mappings=tuple(one.id for one in mappings),
    )  # fmt: skip
    few = replace(
        first, id=new_id("run"), problems=tuple(replace(one, field="title", problem=kinds[0]) for one in problems)
    )
    others = [
        builders.run(source, status="failed" if n % 3 else "succeeded", created_at=now - timedelta(hours=n + 1), stats={"rows": 9, "problems": 3})
        for n in range(60)
    ]  # fmt: skip
    return [first, few, *others]


def _message(source: str, number: int, now: datetime) -> InboundMessage:
    files = tuple(Attachment(f"{PROSE[:80]}{at}.csv", 10_000, new_id("run")) for at in range(20))
    return InboundMessage(
        new_id("inm"), source, "orders@vendor.example", f"{PROSE * 4}"[:500], now, MessageStatus.ACCEPTED, f"f{number}", files, Authentication(),
    )  # fmt: skip


def _probe() -> Probe:
    report = ProbeReport(
        "https://vendor.example/", Robots(RobotsState.PARSED, 1.0, tuple(f"https://vendor.example/sitemap-{n}.xml" for n in range(200))), Platform.SHOPIFY, 0.9,
        Estimate(Effort.LOW, ReadingMethod.PLATFORM_FEED, (PROSE,) * 10), 40, tuple(Evidence(Platform.SHOPIFY, f"{PROSE[:60]} {n}", 0.5) for n in range(60)), None,
        PlatformFeed(Platform.SHOPIFY, "https://vendor.example/products.json", 200, 30, 4000, tuple(f"field_{n}" for n in range(200))),
        Sitemap(tuple(f"https://vendor.example/sitemap-{n}.xml" for n in range(200)), 90_000, truncated=True),
        PageSample(tuple(SampledPage(f"https://vendor.example/{n}", 200, 1) for n in range(60)), 3, {f"field_{n}": 0.5 for n in range(60)}),
        tuple(f"https://vendor.example/private/{n}" for n in range(200)), (PROSE,) * 30,
    )  # fmt: skip
    return builders.probe(status="succeeded", report=report)


async def _pairs(
    parts: Dependencies, tenant: Tenant, organisation: Organisation
) -> tuple[list[MatchPair], list[Merge]]:
    shop, pairs, merges = MergedCatalogue(parts[UnitOfWork], tenant), [], []
    first = await shop.create_source(catalogue=organisation.get_catalogue_id(True))
    second = await shop.create_source()
    for number in range(60):
        media = [{"url": f"https://cdn.example/{n}.jpg", "role": "detail", "position": n} for n in range(40)]
        more: dict[str, Any] = {"description": PROSE * 30, "media": media, "tags": [f"tag {n}" for n in range(60)]}
        ours = await shop.load_product(first, f"A{number}", "red", title=f"Halden oak bench {number}", **more)
        theirs = await shop.load_product(second, f"B{number}", "red", title=f"Bench HALDEN oak {number}", **more)
        if number >= 40:
            merges.append(await shop.merge_variants(ours.variants[0], theirs.variants[0]))
            continue
        evidence = tuple(PairEvidence(f"attribute {n}", 3, 1.5, "alike", PROSE * 3, PROSE * 3) for n in range(30))
        pairs.append(
            await shop.create_pair(ours.variants[0], theirs.variants[0], evidence=evidence, conflicts=("colour",))
        )
    return pairs, merges


async def _corrections(parts: Dependencies, tenant: Tenant, product: Product, owner: User, now: datetime) -> list[str]:
    """Store corrections of the product, its first variant and many offers, and a bulk correction with problems."""
    objects = [
        *((product.id, name, PROSE * 4) for name in ("title", "brand", "description")),
        (product.variants[0].id, "colour", PROSE * 4),
        *((offer.id, "price", {"amount": 49900, "currency": "eur"}) for offer in product.variants[0].offers),
    ]
    corrections = [
        Correction(
            id=new_id("cor"), source=new_id("src"), product=product.id, object=object, field=name, value=value,
            action=CorrectionAction.OVERRIDE, stated_value=value, feed_value=value, feed_state=FeedState.CHANGED,
            made_by=owner.id, made_at=now, created_at=now, updated_at=now,
        )
        for object, name, value in objects
    ]  # fmt: skip
    problems = tuple(BatchProblem(offer.id, PROSE) for offer in product.variants[0].offers[:200])
    batches = [
        CorrectionBatch(
            id=new_id("cob"), level="offer", field="price", action=BatchAction.ADJUST, value=None,
            products=tuple(new_id("prod") for _ in range(5_000)), problems=problems, made_by=owner.id, created_at=now, updated_at=now,
        )
        for _ in range(6)
    ]  # fmt: skip
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        await tx[CorrectionStore].add_all(corrections)
        await tx[CorrectionBatchStore].add_all(batches)
    return [batch.id for batch in batches]


async def _members(parts: Dependencies, tenant: Tenant, now: datetime) -> list[tuple[User, str]]:
    roles, found = ("owner", "admin", "editor", "developer", "viewer"), []
    for number in range(50):
        email = f"{new_id('usr')[4:].lower()}@a-company-with-a-long-name.example"
        user = await parts[People].add(User(new_id("usr"), email, f"Ada Moreau the {number}th", now, now))
        found.append((user, roles[number % 5]))
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for user, role in found:
            await tx[OrgStore].add_member(Member(user.id, tenant.org, user.email, role, now))
        for number in range(100):
            email, id = f"guest-{number}@a-company-with-a-long-name.example", new_id("mbi")
            await tx[OrgStore].add_invitation(
                Invitation(id, tenant.org, email, "viewer", found[0][0].id, id.encode(), now, now + timedelta(days=6))
            )
    return found


async def _endpoints(parts: Dependencies, tenant: Tenant, now: datetime) -> tuple[list[Endpoint], list[str]]:
    made = [
        builders.endpoint(url=f"https://receiver-{n}.example/{'hooks' * 30}", description=PROSE * 4, event_types=TYPES, created_at=now)
        for n in range(20)
    ]  # fmt: skip
    attempt = builders.attempt(
        response_body=PROSE * 30, response_headers={f"x-header-{n}": PROSE for n in range(30)}, at=now
    )
    deliveries = [
        builders.delivery(made[0].id, status="failed", next_attempt_at=None, attempts=(attempt,) * 12, body=(PROSE * 300).encode(), created_at=now)
        for _ in range(100)
    ]  # fmt: skip
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for endpoint in made:
            await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), FeedPosition())
        for delivery in deliveries:
            await tx[WebhookStore].add_delivery(delivery)
    return made, [delivery.id for delivery in deliveries]


async def _notifications(
    parts: Dependencies, tenant: Tenant, person: str, sources: list[str], now: datetime
) -> Notification:
    rules = [
        NotificationRule(
            id=new_id("ntr"), person=person, name=PROSE[:100], kind=NotificationKind.PRICE_CHANGE, sources=tuple(sources[:100]),
            brands=(PROSE[:100],) * 100, checked_at=now, created_at=now, updated_at=now, stopped_for=StopReason.FAILING,
        )
        for _ in range(20)
    ]  # fmt: skip
    amount = {"amount": 12900, "currency": "usd"}
    prices = [{"name": name, "old": amount, "new": amount, "percent": "1.0"} for name in COMPARED_PRICES]
    item = {
        "subject": "ofr_1",
        "product": "prod_1",
        "title": PROSE,
        "brand": PROSE,
        "source_name": PROSE,
        "prices": prices,
    }
    made = [
        Notification(
            id=new_id("ntf"), rule=rules[0].id, kind=rules[0].kind, status=NotificationStatus.FAILED, total=90_000,
            items=(item,) * MAX_ITEMS, failure=PROSE[:200], created_at=now,
        )
        for _ in range(50)
    ]  # fmt: skip
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        await tx[NotificationRuleStore].add_all(rules)
        await tx.store(Notification).add_all(made)
    return made[0]


async def _events(parts: Dependencies, tenant: Tenant, product: Product) -> Event:
    """Append events of the product with large payloads; return the last one."""
    offers = product.variants[0].offers
    events = []
    for number in range(300):
        offer = offers[number % len(offers)]
        fields: list[dict[str, Any]] = [
            {"path": f"attributes.field_{n}", "old": PROSE, "new": PROSE[::-1]} for n in range(40)
        ]
        fields.append({"path": "price", "old": 50_000 + number, "new": 50_001 + number})
        data = {"id": offer.id, "variant": offer.variant, "product": product.id, "source": offer.source, "fields": fields, "facets": ["price"]}  # fmt: skip
        events.append(Event(type="offer.changed", subject=offer.id, version=2 + number, data=data))
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        await tx[EventLog].append(events)
    return events[-1]


def _request(tenant: Tenant, number: int, now: datetime) -> RequestLog:
    return builders.request_log(
        tenant, path=f"/v1/products/{new_id('prod')}", query=f"q={'oak' * 300}", user_agent=PROSE * 3, created_at=now - timedelta(seconds=number),
        status=404 if number % 5 == 0 else 200, error_code="not_found" if number % 5 == 0 else None,
    )  # fmt: skip


async def _access(
    parts: Dependencies, tenant: Tenant, organisation: Organisation, owner: User
) -> tuple[list[str], list[str], list[str]]:
    """Create keys, apps and audit entries with large differences."""
    principal = Principal(
        tenant,
        Actor("user", owner.id),
        "console",
        "owner",
        ROLES["owner"],
        organisation,
        is_personal_token=True,
        is_console_session=True,
    )
    keys, apps, service = [], [], parts[AppService]
    async with parts[UnitOfWork].begin(tenant, builders.CALL) as tx:
        for number in range(50):
            key = builders.api_key(
                tenant, name=f"Key {number} {PROSE[:60]}", networks=tuple(f"203.0.{n}.0/24" for n in range(20))
            )
            await tx[KeyStore].add(key)
            keys.append(key.id)
        for number in range(40):
            uris = tuple(f"https://app-{number}.example/callback/{n}" for n in range(10))
            app, _ = await service.create_app(tx, principal, NewApp(f"App {number}", AppKind.WEB, uris, owner_scopes()))
            apps.append(app.id)
    audited = []
    for number in range(60):
        before = {f"field_{n}": f"{PROSE * 5} {n}" for n in range(40)}
        after = {name: f"{text} and more" for name, text in before.items()}
        async with parts[UnitOfWork].begin(
            tenant, AuditContext(Actor("user", owner.id), "sources.update", new_id("req"))
        ) as tx:
            audited.append(await tx[AuditLog].add(Change("source", f"src_{number:022}", "update", before, after)))
    return keys, apps, audited


def owner_scopes() -> frozenset[str]:
    """Return the scopes that an owner's app can request."""
    return frozenset({"products:read", "sources:read"})
