"""Harness of notifications: a tenant with rules, the jobs of its lanes, a fake receiver, and the outbox."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from adapters.aesgcm import AesGcmVault
from adapters.api_json.codec import JsonCodec
from adapters.postgres.notifications import PostgresNotificationUpkeep
from domain.access.model import SCOPES
from domain.catalogue.model import Offer, Product
from domain.events.model import Event, FieldChange
from domain.events.ports import EventLog
from domain.jobs.model import build_lane_name
from domain.jobs.usecases.lane_processor import LaneProcessor
from domain.kernel.clock import CLOCK
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.notifications.model import Notification, NotificationRule
from domain.notifications.ports import NotificationRuleStore
from domain.notifications.usecases.collection import COLLECTION_JOB, FindingSelector, NotificationCollector
from domain.notifications.usecases.rules import NotificationRuleService
from domain.notifications.usecases.sending import SENDING_JOB, NotificationSender, ReceiverClient
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.outbox.model import OutgoingMessage
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from domain.secrets.keys import ActiveKeys
from domain.sources.ports import SourceStore
from domain.webhooks.ports import PostResult
from entrypoints.console.notification_texts import ConsoleNotificationTexts
from tests.support import builders
from tests.support.backend import Backend
from tests.support.catalogues import add_products

SECRET = "a secret of at least thirty-two characters"
BASE = "https://joinery.test"
SLACK_URL = "https://hooks.slack.example/services/T0/B0/x9Zk"
OK = PostResult(None, 200, {}, b"ok")


@dataclass
class FakeReceiver:
    """Sender that records requests and returns the queued results, then 200."""

    results: list[PostResult] = field(default_factory=list)
    posts: list[tuple[str, Mapping[str, str], Any]] = field(default_factory=list)

    async def post(
        self, url: str, body: bytes, headers: Mapping[str, str], *, livemode: bool, seconds: float
    ) -> PostResult:
        self.posts.append((url, headers, json.loads(body)))
        return self.results.pop(0) if self.results else OK


@dataclass
class NotificationHarness:
    """Tenant with a catalogue, a member, and everything that collects and sends notifications."""

    backend: Backend
    tenant: Tenant
    user: User
    sender: Any = field(default_factory=FakeReceiver)
    allowed_hosts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self.vault = AesGcmVault(SECRET)
        self.texts = ConsoleNotificationTexts(BASE, ActiveKeys([SECRET]))
        self.mail = OutgoingMail(self.backend.outbox, self.vault, CLOCK)
        codec, uow = JsonCodec(), self.backend.uow
        self.collector = NotificationCollector(
            uow,
            self.backend.events,
            FindingSelector(codec),
            PostgresNotificationUpkeep(self.backend.pool),
            CLOCK,
            codec,
        )
        self.service = NotificationRuleService(self.vault, self.backend.events, self.collector, self.allowed_hosts)
        self.set_sender(self.sender)

    def set_sender(self, sender: Any) -> None:
        """Send requests by this sender from now on."""
        client = ReceiverClient(sender, self.vault, self.texts, CLOCK, "Joinery/test")
        self.delivery = NotificationSender(self.backend.uow, self.backend.people, self.mail, self.texts, client, CLOCK)
        self.handlers: dict[str, Any] = {COLLECTION_JOB: self.collector, SENDING_JOB: self.delivery}

    @property
    def context(self) -> AuditContext:
        return AuditContext(Actor("user", self.user.id), "notifications.create")

    async def create_rule(self, url: str = SLACK_URL, **values: Any) -> NotificationRule:
        """Create a rule of the member, which sends at once unless the values state otherwise."""
        values = {"name": "Wohnzimmer", "kind": "price_change", "frequency": "at_once", **values}
        async with self.backend.uow.begin(self.tenant, self.context) as tx:
            return (await self.service.create_for_person(tx, values, url, SCOPES)).rule

    async def add_catalogue(self, source: str | None = None, count: int = 1, **data: Any) -> list[Product]:
        """Add products, each with one variant and one offer."""
        source, made = source or (await self.add_source()).id, []
        for number in range(count):
            data = {"title": f"Oak chair {number}", "brand": "Fjord", **data}
            product = builders.product(source, new_id("cat"), f"P-{new_id('prod')}", data=data)
            builders.offer(builders.variant(product, new_id("var"), data={"sku": f"OAK-{number}"}))
            made.append(product)
        await add_products(self.backend.uow, self.tenant, *made)
        return made

    async def add_source(self, **changes: Any) -> Any:
        """Add a source."""
        source = builders.source(**changes)
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[SourceStore].add(source)
        return source

    async def change_offer(self, product: Product, **changes: tuple[Any, Any]) -> None:
        """Append an event in which an offer's fields change from the old to the new values."""
        await self.append(self.build_change(product, **changes))

    def build_change(self, product: Product, **changes: tuple[Any, Any]) -> Event:
        offer: Offer = product.variants[0].offers[0]
        return Event(
            "offer.changed", offer.id, offer.version + 1, {"id": offer.id, "product": product.id},
            fields=[FieldChange(name, *values) for name, values in changes.items()], source=product.source,
        )  # fmt: skip

    async def append(self, *events: Event) -> None:
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[EventLog].append(events)

    async def run(self, handlers: Mapping[str, Any] | None = None) -> None:
        """Queue due work as the scheduler does, and execute the jobs of both lanes."""
        await self.collector.queue_due()
        processor = LaneProcessor(self.backend.dispatch, handlers or self.handlers, lease=timedelta(seconds=30))
        for lane in ("notifications", "notification_messages"):
            await processor.process_lane(build_lane_name(self.tenant.org, f"{lane}:{self.tenant.mode}"))

    async def list_mail(self) -> list[OutgoingMessage]:
        """Return the emails to the member."""
        return [one for one in await self.mail.list_latest(1000) if one.to == self.user.email]

    async def list_notifications(self, rule: NotificationRule) -> list[Notification]:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            return [*(await self.service.list_notifications(tx, rule.id, PageRequest(50))).items]

    async def load(self, rule: NotificationRule) -> NotificationRule:
        async with self.backend.uow.begin_reading(self.tenant) as tx:
            found = await tx[NotificationRuleStore].get(rule.id)
        assert found is not None
        return found

    async def save(self, rule: NotificationRule) -> None:
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[NotificationRuleStore].save(rule)

    async def set_role(self, role: str) -> None:
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            await tx[OrgStore].change_role(self.user.id, role)


async def create_harness(
    backend: Backend, *, livemode: bool = True, role: str = "owner", language: str = "en", **parts: Any
) -> NotificationHarness:
    """Create a tenant with one member; `parts` are further fields of the harness."""
    tenant = await backend.tenant(livemode=livemode)
    now = backend.now()
    user = User(new_id("usr"), f"{new_id('usr').lower()}@fjord.test", "Ingrid", now, now, language)
    await backend.people.add(user)
    await backend.people.save(user)
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user.id, tenant.org, user.email, role, now))
    return NotificationHarness(backend, tenant, user, **parts)
