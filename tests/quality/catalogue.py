"""Prepared organisation: a retailer of furniture with sources, products, runs, changes, matches and webhooks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any

from adapters.pydantic_ai.generation import PydanticModels
from domain.catalogue.model import Product
from domain.changes.model import FeedPosition
from domain.events.ports import EventLog
from domain.ingestion.model import Column, UnmappedReason
from domain.kernel.ids import new_id
from domain.kernel.problems import Problem, ProblemKind
from domain.kernel.tenancy import Tenant
from domain.mail.model import Attachment, AttachmentNote, InboundMessage, MessageReason, MessageStatus
from domain.mappings.ports import MappingStore
from domain.matching.usecases.judge import JudgeSettingsService
from domain.orgs.model import MeterAllowance
from domain.probes.model import Effort, Estimate, Platform, Probe, ProbeReport, ReadingMethod, Robots, RobotsState
from domain.request_logs.ports import RequestLogSink
from domain.runs.model import RunColumn, RunError, RunErrorCode
from domain.runs.ports import RunStore
from domain.sources.model import Schedule, Source, StatusReason
from domain.sources.ports import SourceStore
from domain.webhooks.model import EncryptedSecrets
from domain.webhooks.ports import WebhookStore
from tests.http.application import OPERATOR
from tests.http.assistant import AssistantHarness, run_assistant
from tests.support import builders, catalogues
from tests.support.connectors import FakeConnectors
from tests.support.memory.hosts import MemoryWeb
from tests.support.memory.objects import MemoryObjects
from tests.support.merged_catalogues import MergedCatalogue

NOW = builders.MOMENT
DINING_TABLES, TABLE_LAMPS, SOFAS, OUTDOOR_CHAIRS = (
    "ctg_21Bpcj4XvyDrGcxuOamjkU",
    "ctg_4H49UolwLL9dxllFKYMe7g",
    "ctg_2hLwJo7k3tGoTzfyRXBpr4",
    "ctg_6zEH0z6qNU7mDWlBg0MsBM",
)
_OUTDOOR_CHAIRS = 500


@dataclass
class PreparedOrganisation:
    """Organisation with `ids` of its objects by name."""

    assistant: AssistantHarness
    ids: dict[str, str] = field(default_factory=dict)
    products: dict[str, Product] = field(default_factory=dict)

    @property
    def tenant(self) -> Tenant:
        return Tenant(self.assistant.application.orgs["Fjord"].id, True)

    async def add_source(self, key: str, **changes: Any) -> Source:
        org = self.assistant.application.orgs["Fjord"]
        made = builders.source(**{"catalogue": org.get_catalogue_id(True), "catalogue_at": NOW} | changes)
        async with self.assistant.application.uow.begin(self.tenant, OPERATOR) as tx:
            await tx[SourceStore].add(made)
        self.ids[key] = made.id
        return made

    async def add_product(self, key: str, source: Source, title: str, offers: dict[str, Any], **data: Any) -> Product:
        """Add a product with one variant and one offer."""
        facts = {name: data.pop(name) for name in ("sku", "gtin", "materials", "dimensions", "colour") if name in data}
        product = builders.product(source.id, source.catalogue, key, data={"title": title, "brand": "Lindgren"} | data)
        offer = builders.offer(
            builders.variant(product, f"{key}-1", data={"sku": key} | facts), data={"currency": "eur"} | offers
        )
        await catalogues.add_products(self.assistant.application.uow, self.tenant, product)
        self.products[key] = product
        self.ids |= {f"{key}": product.id, f"{key}_variant": offer.variant, f"{key}_offer": offer.id}
        return product

    async def add(self, port: Any, *rows: Any) -> None:
        """Add rows to a store."""
        async with self.assistant.application.uow.begin(self.tenant, OPERATOR) as tx:
            for row in rows:
                await tx[port].add(row)


@asynccontextmanager
async def run_prepared_organisation(models: PydanticModels | None) -> AsyncIterator[PreparedOrganisation]:
    """Run an application with the prepared organisation; without models, a test scripts the model."""
    fakes = {"connectors": FakeConnectors(), "objects": MemoryObjects(), "web": MemoryWeb()}
    async with run_assistant(models, **fakes) as assistant:
        application = assistant.application
        plan = replace(application.orgs["Fjord"].plan, meters={"sources": MeterAllowance(100, 1, 500)})
        application.database.save_plan(plan)
        made = PreparedOrganisation(assistant)
        await _add_sources(made)
        await _add_runs(made)
        await _add_events(made)
        await _add_webhooks(made)
        await _add_matches(made)
        yield made


async def _add_sources(made: PreparedOrganisation) -> None:
    reason = StatusReason("fetch_failed", "The server responded with 403 Forbidden.")
    lindgren = await made.add_source("lindgren", name="Lindgren feed", schedule=Schedule(60))
    fermob = await made.add_source("fermob", name="Fermob shop", status="degraded", status_reason=reason, failures=4)
    await made.add_source("nordlys", name="Nordlys price list", catalogue_at=NOW - timedelta(days=34))
    await made.add_source("garden", name="Garden outlet", status="paused")
    push = await made.add_source(
        "stock", name="Own warehouse", kind="push", connector="push", config={"currency": "eur"}
    )
    await made.add_source(
        "lists", name="Price lists by mail", kind="file", connector="csv", config={"inbound": {"senders": ["@halden.example"]}},
        inbound_address="lists.a1b2c3@in.joinery.test",
    )  # fmt: skip
    halden = {
        "title": "Halden oak dining table",
        "category": DINING_TABLES,
        "description": "Solid white-oiled oak, seats eight.",
    }
    size = {"width": {"hundredths_in": 7087, "given": {"value": 180.0, "unit": "cm"}}}
    await made.add_product(
        "HAL-180", lindgren, offers={"price": 49900, "availability": "in_stock", "quantity": 12, "lead_time_days": 14},
        sku="HAL-180", gtin="4006381333931", materials=["oak"], dimensions=size, **halden,
    )  # fmt: skip
    await made.add_product(
        "F-HAL",
        fermob,
        offers={"price": 47900, "availability": "low_stock", "quantity": 2, "lead_time_days": 35},
        **halden,
    )
    lamp = {"category": TABLE_LAMPS, "brand": "Nordlys"}
    low = {
        "availability": "low_stock",
        "quantity": 1,
        "lead_time_days": 21,
        "incoming": [{"quantity": 40, "eta": "2026-12-24"}],
    }
    await made.add_product("VIK-L", push, "Vik table lamp", low | {"price": 8900}, **lamp)
    await made.add_product("ASK-L", push, "Ask table lamp", low | {"price": 12900, "quantity": 3}, **lamp)
    await made.add_product(
        "SOL-L", push, "Sol table lamp", {"availability": "out_of_stock", "quantity": 0, "price": 7900}, **lamp
    )
    await made.add_product(
        "KAL-3",
        lindgren,
        "Kalmar sofa",
        {"availability": "in_stock", "price": 129900, "lead_time_days": 56},
        category=SOFAS,
    )
    outlet = await made.add_source("outlet", name="Outdoor supplier", kind="file", connector="csv", config={})
    chairs = [
        builders.product(
            outlet.id,
            outlet.catalogue,
            f"OC-{number}",
            data={"title": f"Chair {number}", "category_path": ["Outdoor", "Chairs"]},
        )
        for number in range(_OUTDOOR_CHAIRS)
    ]
    await catalogues.add_products(made.assistant.application.uow, made.tenant, *chairs)


async def _add_runs(made: PreparedOrganisation) -> None:
    problems = (
        Problem("price", ProblemKind.UNREADABLE, '"auf Anfrage" is not a price.', line=17, column="Preis", external_id="HAL-200"),
        Problem("gtin", ProblemKind.UNREADABLE, '"4006381" is not a GTIN.', line=23, column="EAN", external_id="HAL-220"),
    )  # fmt: skip
    columns = (RunColumn("Artikelnummer", 0, field="sku"), RunColumn("Zorb", 1, reason=UnmappedReason.UNKNOWN))
    done = builders.run(
        made.ids["lindgren"], status="succeeded", finished_at=NOW, stats={"rows": 1204, "products_changed": 31}, problems=problems,
        columns=columns, snapshot="snapshots/lindgren",
    )  # fmt: skip
    error = RunError(RunErrorCode.FETCH_FAILED, "The server responded with 403 Forbidden.")
    failed = builders.run(made.ids["fermob"], status="failed", finished_at=NOW, error=error)
    refused = RunError(RunErrorCode.SHRINK_REFUSED, "The run would withdraw 412 of 500 products.")
    shrunk = builders.run(
        made.ids["outlet"], status="failed", finished_at=NOW, error=refused, snapshot="snapshots/outlet"
    )
    await made.add(RunStore, done, failed, shrunk)
    mapping = builders.mapping(
        made.ids["outlet"], "Artikel", "Farbe", "UVP", samples=(("OC-1", "anthrazit", "89,00"),),
        columns=(Column(0, "Artikel", "sku", {}), Column(1, "Farbe", "colour", {})),
    )  # fmt: skip
    await made.add(MappingStore, mapping)
    made.ids |= {"run": done.id, "failed_run": failed.id, "shrunk_run": shrunk.id, "mapping": mapping.id}
    report = ProbeReport(
        "https://fermob.example/", Robots(RobotsState.PARSED), Platform.SHOPIFY, 0.98,
        Estimate(Effort.LOW, ReadingMethod.PLATFORM_FEED, ("The shop lists its products in a feed.",)), 7,
    )  # fmt: skip
    probe = builders.probe(url="https://fermob.example/").mark_running(NOW).mark_succeeded(report, None, NOW)
    message = {"source": made.ids["lists"], "received_at": NOW, "sender": "sales@halden.example"}
    mails = (
        InboundMessage(
            new_id("msg"), subject="Price list 2027", status=MessageStatus.ACCEPTED, fingerprint="a",
            attachments=(Attachment("prices-2027.xlsx", 48_213), Attachment("logo.png", 900, note=AttachmentNote.NOT_DATA)), **message,
        ),
        InboundMessage(
            new_id("msg"), subject="New prices", status=MessageStatus.REFUSED, fingerprint="b", reason=MessageReason.DMARC_REJECTED,
            detail="The sender's domain rejects mail that fails DMARC.", **message,
        ),
    )  # fmt: skip
    async with made.assistant.application.uow.begin(made.tenant, OPERATOR) as tx:
        await tx.store(Probe).add(probe)
        for mail in mails:
            await tx.store(InboundMessage).add(mail)
    made.ids["probe"] = probe.id
    log = builders.request_log(
        made.tenant, method="POST", path="/v1/sources", route="/v1/sources", status=422, error_code="invalid_request"
    )
    await made.assistant.application.dependencies[RequestLogSink].write([log])
    made.ids["log"] = log.id


async def _add_events(made: PreparedOrganisation) -> None:
    changes: list[tuple[str, str, str, Any, Any]] = [
        ("offer.changed", "HAL-180_offer", "price", 52900, 49900),
        ("offer.changed", "VIK-L_offer", "quantity", 9, 1),
        ("product.updated", "KAL-3", "data.title", "Kalmar", "Kalmar sofa"),
    ]
    for type, subject, path, old, new in changes:
        data = {
            "id": made.ids[subject],
            "source": made.ids["lindgren"],
            "fields": [{"path": path, "old": old, "new": new}],
        }
        async with made.assistant.application.uow.begin(made.tenant, OPERATOR) as tx:
            await tx[EventLog].append([builders.event(made.ids[subject], id=new_id("evt"), type=type, data=data)])


async def _add_webhooks(made: PreparedOrganisation) -> None:
    shop = builders.endpoint(
        url="https://shop.example/hooks", description="Web shop", failing_since=NOW - timedelta(hours=5)
    )
    till = builders.endpoint(url="https://till.example/hooks", description="Till")
    attempts = (builders.attempt(response_status=401, response_body="signature mismatch", response_headers={}),)
    failed = builders.delivery(shop.id, status="failed", next_attempt_at=None, attempts=attempts, body=b"{}")
    async with made.assistant.application.uow.begin(made.tenant, OPERATOR) as tx:
        for endpoint in (shop, till):
            await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), FeedPosition())
        await tx[WebhookStore].add_delivery(failed)
    made.ids |= {"shop": shop.id, "till": till.id, "delivery": failed.id}


async def _add_matches(made: PreparedOrganisation) -> None:
    application = made.assistant.application
    async with application.uow.begin(made.tenant, OPERATOR) as tx:
        first, second = [await tx[SourceStore].get(made.ids[name]) for name in ("lindgren", "fermob")]
    assert first is not None and second is not None
    shop = MergedCatalogue(application.uow, made.tenant, [first, second], list(made.products.values()))
    variant = {key: product.variants[0] for key, product in made.products.items()}
    pair = await shop.create_pair(variant["HAL-180"], variant["F-HAL"], probability=0.97)
    wrong = await shop.create_pair(variant["VIK-L"], variant["ASK-L"], probability=0.61)
    merged = [await shop.load_product(source, f"Rug {source.name}", "red") for source in shop.sources[:2]]
    merge = await shop.merge_variants(*[product.variants[0] for product in merged])
    made.ids |= {"pair": pair.id, "wrong_pair": wrong.id, "merge": merge.id}
    async with application.uow.begin(
        made.tenant, replace(builders.CALL, operation="matching.update_judge_settings", is_reversible=True)
    ) as tx:
        await JudgeSettingsService(None).update(tx, {"auto_merge_at": 0.99})
