"""Jobs and ticks of notifications, which have no operations: people manage rules in the console."""

from collections.abc import Sequence

from domain.jobs.usecases.ticks import Tick
from domain.kernel import retention
from domain.notifications.ports import NotificationUpkeep
from domain.notifications.usecases.collection import COLLECTION_JOB, NotificationCollector
from domain.notifications.usecases.rules import NotificationRuleService
from domain.notifications.usecases.sending import SENDING_JOB, NotificationSender
from entrypoints.operations.operation import Area
from ports.clock import Clock

_COLLECTION_SECONDS = 15
"""Interval at which unread events and due notifications are looked for."""


def _create_service(service: NotificationRuleService) -> NotificationRuleService:
    return service


def _create_collector(collector: NotificationCollector) -> NotificationCollector:
    return collector


def _create_sender(sender: NotificationSender) -> NotificationSender:
    return sender


def _create_ticks(collector: NotificationCollector, upkeep: NotificationUpkeep, clock: Clock) -> Sequence[Tick]:

    async def purge_old() -> None:
        await upkeep.delete_created_before(clock.now() - retention.NOTIFICATIONS)

    return [
        Tick("notifications", _COLLECTION_SECONDS, collector.queue_due),
        Tick("old notifications", 3600, purge_old, is_purge=True),
    ]


AREA = Area(
    "notifications",
    "Notifications",
    "Notifications about changes by email, Slack and signed webhooks.",
    create_service=_create_service,
    operations=(),
    handler_factories={COLLECTION_JOB: _create_collector, SENDING_JOB: _create_sender},
    create_ticks=_create_ticks,
)
