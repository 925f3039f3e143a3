"""Ports of notifications: storage of rules and findings, due work of all tenants, and texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.kernel.tenancy import Tenant
from domain.notifications.findings import RuleFinding
from domain.notifications.model import Notification, NotificationRule
from ports.unit_of_work import Store


class NotificationRuleStore(Store[NotificationRule], Protocol):
    """Storage of rules and their findings in a tenant's transaction. `remove` also deletes findings and notifications."""

    async def count_by_person(self, person: str) -> int:
        """Return the number of rules that the person created; other transactions add none until this one ends."""
        ...

    async def list_visible(self, person: str) -> Sequence[NotificationRule]:
        """Return the rules of the organisation and the person's own rules, oldest first."""
        ...

    async def list_enabled(self) -> Sequence[NotificationRule]:
        """Return the enabled rules, in order of their IDs."""
        ...

    async def lock_enabled(self) -> Sequence[NotificationRule]:
        """Lock and return the enabled rules, in order of their IDs."""
        ...

    async def lock_by_person(self, person: str) -> Sequence[NotificationRule]:
        """Lock and return the enabled rules that send email to the person."""
        ...

    async def lock_due(self, now: datetime) -> NotificationRule | None:
        """Lock and return an enabled rule whose notification is due, or None."""
        ...

    async def list_newest(self, rules: Sequence[str]) -> Sequence[Notification]:
        """Return the newest notification of each of these rules, if any."""
        ...

    async def count_findings(self) -> Mapping[str, int]:
        """Return the number of findings by rule; rules without findings are omitted."""
        ...

    async def filter_found(self, rule: str, subjects: Sequence[str]) -> frozenset[str]:
        """Return those of the subjects that the rule has findings about."""
        ...

    async def save_findings(self, findings: Sequence[RuleFinding]) -> None:
        """Store findings; a stored one about the same subject is combined with it as `RuleFinding.with_later` does.

        `findings` must not contain two findings of a rule about the same subject.
        """
        ...

    async def list_findings(self, rule: str) -> Sequence[RuleFinding]:
        """Return all findings of the rule."""
        ...

    async def delete_findings(self, rule: str) -> int:
        """Delete all findings of the rule; return their number."""
        ...

    async def filter_products(
        self, products: Sequence[str], brand_keys: Sequence[str], terms: Sequence[str]
    ) -> frozenset[str]:
        """Return the products that have one of the brands and one of the search terms; an empty list permits all."""
        ...

    async def list_problem_counts(self, since: datetime | None) -> Sequence[tuple[str, int]]:
        """Return source and number of problems of successful imports since `since`, oldest first.

        Without `since`, only the newest successful import of each source is returned.
        """
        ...


class NotificationUpkeep(Protocol):
    """Due work of all tenants, for the scheduler."""

    async def list_due(self, now: datetime, checked_before: datetime, limit: int) -> Sequence[Tenant]:
        """Return tenants with unread events for their rules, with due notifications, or with sources to examine.

        Args:
            now: The current time.
            checked_before: Sources that were last examined before this time are due.
            limit: Maximum number of tenants of each database.
        """
        ...

    async def delete_created_before(self, before: datetime) -> None:
        """Delete notifications that were created before `before`."""
        ...


@dataclass(frozen=True, slots=True)
class MailText:
    """Email: subject, plain text, and the URL that stops further ones by a POST (RFC 8058)."""

    subject: str
    body: str
    unsubscribe_url: str


class NotificationTexts(Protocol):
    """Texts of notifications in the languages of the console."""

    def render_mail(
        self, tenant: Tenant, rule: NotificationRule, notification: Notification, organisation: str, language: str
    ) -> MailText:
        """Return the email about a notification; `organisation` is the name of the organisation."""
        ...

    def render_slack(self, rule: NotificationRule, notification: Notification, language: str) -> Mapping[str, Any]:
        """Return the Slack message about a notification (Block Kit)."""
        ...

    def build_list_url(self, rule: NotificationRule) -> str:
        """Return the URL of the page of the console that lists what the rule reports."""
        ...
