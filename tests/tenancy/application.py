"""Application on PostgreSQL as the API process serves it, and organisations with one resource of each type."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from domain.access.model import ApiKey
from domain.access.usecases import AccessService, KeyRequest
from domain.agents.model import AgentKind, create_agent
from domain.agents.usecases.changes import compute_mapping_fingerprint
from domain.agreements.ports import AgreementRegistry
from domain.billing.model import CreditPurchase, PurchaseKind
from domain.billing.ports import Payments
from domain.billing.usecases.purchases import build_purchase
from domain.brand.model import ClaimRequest, EvidenceInput, EvidenceKind
from domain.brand.usecases.claims import ClaimService
from domain.brand.usecases.profiles import ProfileService
from domain.catalogue import categories
from domain.catalogue.model import Stream
from domain.changes.model import FeedPosition
from domain.exports.model import ExportStatus
from domain.exports.ports import ExportStore
from domain.kernel import schema
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.mappings.ports import MappingStore
from domain.matching.model import MatchPair, Merge
from domain.matching.usecases.judge import JudgeSettingsService
from domain.orgs.model import Member, Organisation
from domain.orgs.ports import OrgRegistry, OrgStore
from domain.people.ports import People
from domain.people.usecases.sessions import SessionService
from domain.probes.model import Probe
from domain.proposals.model import ProposalKind, Subject
from domain.proposals.ports import ProposalStore
from domain.publishing.ports import PublicationStore
from domain.request_logs.ports import RequestLogSink
from domain.runs.ports import RunStore
from domain.sources.ports import SourceStore
from domain.uploads.model import Upload
from domain.webhooks.model import EncryptedSecrets
from domain.webhooks.ports import WebhookStore
from entrypoints.api.app import create_app
from entrypoints.container import open_dependencies
from entrypoints.dependencies import Dependencies
from entrypoints.http.pressure import NEVER_SHED
from entrypoints.operations.operation import Operation
from entrypoints.provisioning import add_organisation_member
from entrypoints.settings import read_settings
from ports.clock import Clock
from ports.unit_of_work import UnitOfWork
from tests.http.client import Client, Response
from tests.support import builders, catalogues
from tests.support.memory.payments import MemoryPayments
from tests.support.merged_catalogues import MergedCatalogue
from tests.support.operation_table import load_operation_table
from tests.support.postgres import database

CHANGING_SETTINGS = replace(builders.CALL, operation="matching.update_judge_settings", is_reversible=True)
UNKNOWN_BODY = "0" * 22
RECORD = {"product": {"external_id": "A1", "title": "Chair"}, "variants": [{"external_id": "A1-1"}]}
SIGNAL = {
    "id": "one",
    "type": "search_miss",
    "query": "oak",
    "occurred_at": datetime.now(UTC).isoformat(timespec="milliseconds"),
}
AGREEMENT = builders.agreement()
BODIES: dict[str, Any] = {
    "agents.update": {"autonomy": "off"},
    "demand.create": {"signals": [SIGNAL]},
    "agreements.accept": {
        "version": AGREEMENT.version,
        "sha256": AGREEMENT.sha256,
        "signer_name": "Ada Moreau",
        "signer_title": "Managing director",
        "authority_confirmed": True,
    },
    "brand.update": {"name": "Renamed"},
    "runs.push": {"records": [RECORD]},
    "runs.set_categories": {"rules": [{"path": ["Tables"], "category": next(iter(categories.category_by_id()))}]},
    "sources.create": {"name": "Pushed", "kind": "push"},
    "sources.put_credentials": {"credentials": {"token": "a-secret-token"}},
    "sources.update": {"name": "Renamed"},
    "webhooks.create": {"url": "https://receiver.example/hooks", "event_types": ["*"]},
    "webhooks.emit_sample": {"type": "offer.changed"},
    "webhooks.recover": {"since": "2020-01-01T00:00:00Z"},
    "webhooks.update": {"description": "Renamed"},
    "uploads.announce": {"filename": "prices.csv", "content_type": "text/csv", "bytes": 10},
}
"""Valid bodies of operations whose examples are not valid for these resources."""
OPERATIONS: tuple[Operation, ...] = tuple(load_operation_table())
SHARED = {"vendor_directory.list", "vendor_directory.read"}
"""Operations on resources that every organisation of the mode reads."""


@dataclass
class Tenancy:
    """Tenant with one resource of each type: `ids` by prefix, `client` with a key with all scopes, `owner` with a person's token."""

    tenant: Tenant
    client: Client
    owner: Client
    organisation: Organisation
    ids: dict[str, str] = field(default_factory=dict)

    def choose_client(self, operation: Operation) -> Client:
        """Return a client that may call the operation: the key, or the owner if a person is required."""
        return self.client if operation.caller_kind == "any" else self.owner


@dataclass
class ServedApplication:
    """Running application."""

    app: Any
    dependencies: Dependencies

    async def create_organisation(self, plan: str = "max") -> Organisation:
        """Create an organisation, a vendor because some operations are only for vendors."""
        registry = self.dependencies[OrgRegistry]
        found = await registry.find_plan(plan)
        assert found is not None
        made = builders.organisation(plan=found, kind="vendor")
        await registry.create(made)
        return made

    async def add_member(self, organisation: Organisation, role: str) -> Member:
        """Add a member with that role."""
        async with self.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), builders.CALL) as tx:
            member = Member(new_id("usr"), organisation.id, f"{new_id('usr')}@fjord.example", role, tx.now)
            await tx[OrgStore].add_member(member)
        return member

    async def create_key(self, tenant: Tenant, **options: Any) -> tuple[ApiKey, str]:
        """Create a key and return it with its secret; `options` are fields of KeyRequest."""
        async with self.dependencies[UnitOfWork].begin(tenant, builders.CALL) as tx:
            made: tuple[ApiKey, str] = await self.dependencies[AccessService].create_key(
                tx, KeyRequest("tests", **options)
            )
        return made

    async def create_client(self, tenant: Tenant, **options: Any) -> Client:
        """Return a client with a new key."""
        return Client(self.app, (await self.create_key(tenant, **options))[1])

    async def create_owner(self, organisation: Organisation, livemode: bool) -> Client:
        """Return a client with the token of a new owner."""
        address = f"{new_id('usr')[4:]}@fjord.example"
        member = await add_organisation_member(self.dependencies, organisation, address, "owner")
        user = await self.dependencies[People].get(member.user)
        sessions: SessionService = self.dependencies[SessionService]
        assert user is not None
        session, token = await sessions.create_token(user, organisation.id)
        await sessions.switch_view(session, organisation.id, livemode)
        return Client(self.app, token)

    async def create_tenancy(self, organisation: Organisation, livemode: bool) -> Tenancy:
        """Create a tenant of the organisation with one resource of each type that has an ID."""
        tenant = Tenant(organisation.id, livemode)
        made = Tenancy(
            tenant, await self.create_client(tenant), await self.create_owner(organisation, livemode), organisation
        )
        source = builders.source(
            catalogue=organisation.get_catalogue_id(livemode), kind="push", connector="push", config={}
        )
        run = builders.run(source.id, status="succeeded", finished_at=builders.MOMENT)
        upload = builders.upload(source.id)
        mapping = builders.mapping(source.id, stream=Stream.CATALOGUE)
        product = builders.product(source.id, source.catalogue, "P1")
        offer = builders.offer(builders.variant(product, "P1-1"))
        log, probe, export = (
            builders.request_log(tenant),
            builders.probe(),
            builders.export(status=ExportStatus.EXPIRED),
        )
        publication = builders.publication_run()
        agent = create_agent(tenant, AgentKind.MAPPING).id
        proposal = builders.proposal(
            agent,
            Subject("mapping", mapping.id),
            kind=ProposalKind.MAPPING,
            source=source.id,
            operation="mappings.confirm",
            change={"columns": [{"position": 1, "field": "cost"}]},
            fingerprint=compute_mapping_fingerprint(source, mapping),
        )
        endpoint = builders.endpoint()
        delivery = builders.delivery(endpoint.id, status="failed", next_attempt_at=None, body=b"{}")
        async with self.dependencies[UnitOfWork].begin(tenant, builders.CALL) as tx:
            await tx[SourceStore].add(source)
            await tx[RunStore].add(run)
            await tx[MappingStore].add(mapping)
            await tx.store(Upload).add(upload)
            await tx.store(Probe).add(probe)
            await tx[ProposalStore].add(proposal)
            await tx[ExportStore].add(export)
            await tx[PublicationStore].add(publication)
            await tx[WebhookStore].add(endpoint, EncryptedSecrets(b"sealed"), FeedPosition())
            await tx[WebhookStore].add_delivery(delivery)
        await catalogues.add_products(self.dependencies[UnitOfWork], tenant, product)
        await self.dependencies[RequestLogSink].write([log])
        image = await catalogues.add_image(self.dependencies[UnitOfWork], tenant, product.id)
        async with self.dependencies[UnitOfWork].begin(tenant, CHANGING_SETTINGS) as tx:
            await JudgeSettingsService(None).update(tx, {"auto_merge_at": 0.9})
            entry = tx.recorded.changes[-1].entry
        async with self.dependencies[UnitOfWork].begin(tenant, builders.CALL) as tx:
            profile = await self.dependencies[ProfileService].create_own(tx, organisation, {})
            evidence = (EvidenceInput(EvidenceKind.DOCUMENT, "Trade mark 1"),)
            claim = await self.dependencies[ClaimService].create_claim(tx, ClaimRequest(profile.id, evidence))
            purchase = build_purchase(1000, new_id("req"), PurchaseKind.MANUAL, tx.now)
            await tx.store(CreditPurchase).add(purchase)
        pair, merge = await self._create_matches(
            MergedCatalogue(self.dependencies[UnitOfWork], tenant, [source], [product])
        )
        made.ids = {
            "src": source.id, "run": run.id, "upl": upload.id, "prb": probe.id, "map": mapping.id, "prod": product.id, "var": offer.variant,
            "ofr": offer.id, "req": log.id, "cat": source.catalogue, "org": organisation.id,
            "whe": endpoint.id, "dlv": delivery.id, "img": image.id, "exp": export.id, "mpr": pair.id, "mrg": merge.id, "aud": entry,
            "vnd": profile.id, "vcl": claim.id, "pub": publication.id, "crp": purchase.id,
            "agt": agent, "pro": proposal.id,
        }  # fmt: skip
        await self._create_others(made)
        return made

    async def _create_matches(self, shop: MergedCatalogue) -> tuple[MatchPair, Merge]:
        """Create an open pair of the first product's variant, and a merge of two other items."""
        other = await shop.create_source(kind="push", connector="push", config={})
        mine, theirs = (
            await shop.load_product(shop.sources[0], "P2", "oak"),
            await shop.load_product(other, "P3", "oak"),
        )
        rival = await shop.load_product(other, "P4", "oak")
        merge = await shop.merge_variants(mine.variants[0], theirs.variants[0])
        return await shop.create_pair(shop.products[0].variants[0], rival.variants[0]), merge

    async def _create_others(self, made: Tenancy) -> None:
        """Create the remaining resources through the API."""
        for operation in OPERATIONS:
            if (
                operation.method == "POST"
                and not operation.ids
                and operation.status == 201
                and operation.caller_kind in ("any", "person")
                and operation.area != "agreements"
            ):
                prefix = _id_pattern(operation).lstrip("^").split("_")[0]
                if prefix not in made.ids:
                    answer = await call_operation(made.choose_client(operation), operation, {})
                    assert answer.status == 201, (operation.id, answer.body)
                    made.ids[prefix] = answer.json()["id"]


def _id_pattern(operation: Operation) -> str:
    return str((operation.reply or {})["properties"]["id"]["pattern"])


@asynccontextmanager
async def serve_application(
    folder: Path, prepare: Callable[[Dependencies], None] = lambda _: None, **env: str
) -> AsyncIterator[ServedApplication]:
    """Serve the application as `joinery api` does, without the network; `prepare` may override dependencies."""
    script = folder / "models.json"
    script.write_text(json.dumps({"answers": [{"task": "assistant", "text": "Hello."}]}))
    settings = read_settings(
        {
            "JOINERY_DATABASE_URL": await database(),
            "JOINERY_SECRET": "a secret of at least thirty-two characters",
            "JOINERY_OBJECTS_URL": (folder / "objects").as_uri(),
            "JOINERY_MAIL_DOMAIN": "in.joinery.example",
            "JOINERY_MODELS": f"scripted://{script}",
            **env,
        }
    )
    async with open_dependencies(settings) as container:
        container[Payments | None] = MemoryPayments(container[Clock].now())
        prepare(container)
        await container[AgreementRegistry].publish(AGREEMENT)
        app = create_app(container, thresholds=NEVER_SHED)
        async with app.test_app():
            yield ServedApplication(app, container)


def build_body(operation: Operation) -> Any:
    """Return a valid body if the operation requires one, from BODIES or from the documented example."""
    if operation.id in BODIES or operation.body is None or not operation.body.is_required:
        return BODIES.get(operation.id)
    return schema.build_example(operation.body.schema)


def list_path_values(operation: Operation, ids: Mapping[str, str]) -> dict[str, str]:
    """Return the values of the path parameters by name: these IDs by prefix, else the example of the schema."""
    return {
        name: ids[operation.ids[name]]
        if name in operation.ids
        else schema.build_example(dict(operation.build_path_schema(name)))
        for name in operation.path_parameters
    }


def build_path(operation: Operation, ids: Mapping[str, str]) -> str:
    """Return the operation's path with these IDs by prefix."""
    return operation.path.format_map(list_path_values(operation, ids))


def create_unknown_ids() -> dict[str, str]:
    """Return a well-formed, unused ID of each prefix."""
    return {prefix: new_id(prefix) for operation in OPERATIONS for prefix in operation.ids.values()}


async def call_operation(
    client: Client, operation: Operation, ids: Mapping[str, str], query: str = "", **headers: str
) -> Response:
    """Call the operation with a valid body and all required headers."""
    if operation.requires_if_match:
        headers = {"if_match": "*"} | headers
    if operation.requires_idempotency_key:
        headers = {"idempotency_key": new_id("req")} | headers
    return await client.send_json(
        operation.method, build_path(operation, ids) + query, build_body(operation), **headers
    )
