"""Sending of notifications: by the outbox for email, or by a POST request to Slack or another receiver."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final
from urllib.parse import urlsplit

from domain.audit.ports import AuditLog
from domain.jobs.model import ClaimedJob, NewJob
from domain.jobs.ports import JobStore
from domain.kernel.json_values import format_time
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.notifications.model import (
    AUDITED,
    Notification,
    NotificationChannel,
    NotificationRule,
    NotificationStatus,
    StopReason,
)
from domain.notifications.ports import NotificationRuleStore, NotificationTexts
from domain.orgs.ports import OrgStore
from domain.outbox.usecases import OutgoingMail
from domain.people.ports import People
from domain.secrets.ports import Vault
from domain.webhooks.model import GONE, TIMEOUT_SECONDS, AttemptVerdict, DeliveryStatus, evaluate_attempt
from domain.webhooks.ports import PostResult, Sender
from domain.webhooks.usecases.secrets import create_signature_header, decode_key
from ports.clock import Clock
from ports.unit_of_work import Tx, UnitOfWork

SENDING_JOB = "notifications.send"
_LANE = "notification_messages"
_MAIL_PURPOSE = "notification"
_FORGOTTEN_RECEIVER: Final = frozenset({403, 404, GONE})
"""Statuses with which Slack responds permanently, because the incoming webhook, its channel or its workspace is gone."""
_INVALID_REQUEST: Final = frozenset({400, 413})
"""Statuses with which Slack refuses a message that it would never accept."""
MAX_REASON_CHARS = 200


def create_sending_job(tenant: Tenant, notification: str) -> NewJob:
    """Return the job that sends a notification."""
    lane = f"{_LANE}:{tenant.mode}"
    return NewJob(SENDING_JOB, lane, tenant, {"notification": notification}, key=notification)


def get_mail_id(notification: str) -> str:
    """Return the ID of the email about a notification, so that a repeated attempt adds no second one."""
    return f"mail_{notification.partition('_')[2]}"


@dataclass(frozen=True, slots=True)
class Receiver:
    """URL of a receiver, and the secret that signs requests; empty for Slack."""

    url: str
    secret: str = ""


def open_receiver(vault: Vault, rule: NotificationRule) -> Receiver | None:
    """Return the receiver of a rule that sends no email; None if its address cannot be decrypted."""
    try:
        stored = vault.decrypt(rule.address or b"", rule.id)
    except ValueError:
        return None
    return Receiver(stored["url"], stored.get("secret", ""))


@dataclass(frozen=True, slots=True)
class ReceiverClient:
    """Client of Slack and of receivers of signed webhooks. Addresses are vetted as those of webhook endpoints.

    Attributes:
        user_agent: User-Agent of the requests.
    """

    sender: Sender
    vault: Vault
    texts: NotificationTexts
    clock: Clock
    user_agent: str

    async def post(self, tenant: Tenant, rule: NotificationRule, notification: Notification) -> PostResult | None:
        """Send one POST request; return its result, or None if the address of the rule cannot be decrypted."""
        receiver = open_receiver(self.vault, rule)
        if receiver is None:
            return None
        headers = {"Content-Type": "application/json", "User-Agent": self.user_agent}
        if rule.channel == NotificationChannel.SLACK:
            body = _encode(self.texts.render_slack(rule, notification, rule.language))
        else:
            body = _encode(_build_payload(tenant, rule, notification, self.texts.build_list_url(rule)))
            timestamp = int(self.clock.now().timestamp())
            signature = create_signature_header([decode_key(receiver.secret)], notification.id, timestamp, body)
            headers |= {"webhook-id": notification.id, "webhook-timestamp": str(timestamp)}
            headers["webhook-signature"] = signature
        return await self.sender.post(receiver.url, body, headers, livemode=tenant.livemode, seconds=TIMEOUT_SECONDS)


def _encode(value: Mapping[str, Any]) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _build_payload(tenant: Tenant, rule: NotificationRule, notification: Notification, list_url: str) -> dict[str, Any]:
    """Return the body of a signed webhook; equal for all attempts."""
    return {
        "id": notification.id,
        "type": f"notification.{notification.kind}",
        "time": format_time(notification.created_at),
        "tenant_id": tenant.org,
        "livemode": tenant.livemode,
        "data": {
            "rule": rule.id,
            "rule_name": rule.name,
            "total": notification.total,
            "is_total_exact": notification.is_total_exact,
            "items": list(notification.items),
            "url": list_url,
        },
    }


def hint_address(url: str) -> str:
    """Return the part of a receiver's URL that is shown: the host and the last four characters."""
    return f"{urlsplit(url).hostname} …{url[-4:]}"


@dataclass(frozen=True, slots=True)
class NotificationSender:
    """Handler of the jobs that send notifications. A failed attempt is repeated by the same job.

    Email is sent once: its ID in the outbox is derived from the notification. Other receivers get a notification at least once,
    always with the same ID.
    """

    uow: UnitOfWork
    people: People
    mail: OutgoingMail
    texts: NotificationTexts
    client: ReceiverClient
    clock: Clock

    async def __call__(self, job: ClaimedJob, lost: asyncio.Event) -> None:
        """Make one attempt to send the notification of the job."""
        async with self.uow.begin_reading(job.tenant) as tx:
            notification = await tx.store(Notification).get(job.args["notification"])
            rule = await tx[NotificationRuleStore].get(notification.rule) if notification is not None else None
            organisation = await tx[OrgStore].get_organisation()
        if notification is None or rule is None or notification.status != NotificationStatus.PENDING:
            return await self._finish(job)
        if not rule.enabled:
            return await self._record(job, notification, NotificationStatus.FAILED, rule.stopped_for or "disabled")
        if rule.channel != NotificationChannel.EMAIL:
            return await self._post(job, rule, notification)
        person = await self.people.get(rule.person)
        if person is None:
            return await self._record(job, notification, NotificationStatus.FAILED, StopReason.NO_ACCESS)
        language = person.language or rule.language
        text = self.texts.render_mail(job.tenant, rule, notification, organisation.name, language)
        await self.mail.add_message(
            person.email, text.subject, text.body, _MAIL_PURPOSE,
            id=get_mail_id(notification.id), unsubscribe_url=text.unsubscribe_url,
        )  # fmt: skip
        return await self._record(job, notification, NotificationStatus.SENT)

    async def _post(self, job: ClaimedJob, rule: NotificationRule, notification: Notification) -> None:
        result = await self.client.post(job.tenant, rule, notification)
        if result is None:
            await self._record(job, notification, NotificationStatus.FAILED, "undecryptable")
            return
        verdict = judge_result(rule, result, notification.attempts + 1, self.clock.now())
        failure = describe_failure(result)
        match verdict.status:
            case DeliveryStatus.SUCCEEDED:
                await self._record(job, notification, NotificationStatus.SENT)
            case DeliveryStatus.PENDING:
                await self._record(job, notification, NotificationStatus.PENDING, failure, verdict.next_attempt_at)
            case _:
                is_only_message_refused = (
                    rule.channel == NotificationChannel.SLACK and result.status in _INVALID_REQUEST
                )
                reason = StopReason.REFUSED if verdict.is_gone else StopReason.FAILING
                await self._record(
                    job,
                    notification,
                    NotificationStatus.FAILED,
                    failure,
                    stops_for=None if is_only_message_refused else reason,
                )

    async def _record(
        self,
        job: ClaimedJob,
        notification: Notification,
        status: NotificationStatus,
        failure: str | None = None,
        next_attempt_at: datetime | None = None,
        *,
        stops_for: StopReason | None = None,
    ) -> None:
        """Store the result of an attempt, and finish or reschedule the job, in one transaction."""
        async with self.uow.begin(job.tenant, job.create_context("notifications")) as tx:
            after = replace(
                notification,
                status=status,
                attempts=notification.attempts + 1,
                failure=failure,
                next_attempt_at=next_attempt_at,
                sent_at=tx.now if status == NotificationStatus.SENT else None,
            )
            await tx.store(Notification).save(after)
            if stops_for is not None:
                await self._stop(tx, notification.rule, stops_for)
            if next_attempt_at is None:
                await tx[JobStore].finish(job)
            else:
                await tx[JobStore].reschedule(job, next_attempt_at)

    async def _stop(self, tx: Tx, id: str, reason: StopReason) -> None:
        rule = await tx[NotificationRuleStore].get(id, lock=True)
        if rule is not None and rule.enabled:
            await stop_rule(tx, rule, reason)

    async def _finish(self, job: ClaimedJob) -> None:
        async with self.uow.begin(job.tenant, job.create_context("notifications")) as tx:
            await tx[JobStore].finish(job)


async def stop_rule(tx: Tx, rule: NotificationRule, reason: StopReason) -> None:
    """Disable a rule for a reason, with an audit entry; what was found and not sent is discarded."""
    after = with_changes(rule, tx.now, enabled=False, stopped_for=reason, due_at=None)
    await tx[NotificationRuleStore].save(after)
    await tx[NotificationRuleStore].delete_findings(rule.id)
    await tx[AuditLog].add(AUDITED.describe_update(rule, after))


def judge_result(rule: NotificationRule, result: PostResult, attempt: int, now: datetime) -> AttemptVerdict:
    """Return the verdict on an attempt, by the rules of webhook deliveries and those of Slack."""
    if rule.channel == NotificationChannel.SLACK and result.status in _FORGOTTEN_RECEIVER:
        return AttemptVerdict(DeliveryStatus.FAILED, is_gone=True)
    if rule.channel == NotificationChannel.SLACK and result.status in _INVALID_REQUEST:
        return AttemptVerdict(DeliveryStatus.FAILED)
    return evaluate_attempt(result.failure, result.status, result.headers, attempt, now)


def describe_failure(result: PostResult) -> str:
    """Return the failure of a request as one line: its code, or the status with the beginning of the response."""
    if result.status is None:
        return str(result.failure)
    text = " ".join(result.body.decode("utf-8", "replace").replace("\0", "").split())
    return f"{result.status} {text}".strip()[:MAX_REASON_CHARS]
