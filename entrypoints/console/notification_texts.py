"""Texts of notifications: items as words, emails, and messages for Slack."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final
from urllib.parse import urlencode

from babel.numbers import format_decimal

from domain.kernel.tenancy import Tenant
from domain.notifications.model import SOURCE_KINDS, Notification, NotificationKind, NotificationRule
from domain.notifications.ports import MailText
from domain.secrets.keys import ActiveKeys
from entrypoints.console.rendering import find_label, format_money, format_number
from entrypoints.console.security import ValueSigner
from entrypoints.console.translation import get_current_locale, gettext, ngettext, using_language

NOTIFICATIONS_PATH = "/console/organisation/notifications"
UNSUBSCRIBE_PATH = "/console/unsubscribe"
UNSUBSCRIBE_PURPOSE = "unsubscribe"
"""Purpose of the signature in links that stop emails."""
MAX_TEXT_CHARS = 120
"""Maximum number of characters of a title, brand or code in a message; longer ones are shortened."""
MAX_SLACK_CHARS = 2_800
"""Maximum number of characters of a section; Slack permits 3,000."""
_LINK_LIKE = re.compile(r"://|@|(?<=[^\W_])\.(?=[^\W\d_])")
_LIST_QUERIES: Final[Mapping[NotificationKind, Mapping[str, str]]] = {
    NotificationKind.OUT_OF_STOCK: {"availability": "out_of_stock"},
    NotificationKind.BACK_IN_STOCK: {"availability": "in_stock"},
}


def clean_text(text: Any) -> str:
    """Return a vendor's text as one short line without control, bidirectional or invisible characters."""
    plain = "".join(char if char.isprintable() else " " for char in str(text or ""))
    line = " ".join(plain.split())
    return line if len(line) <= MAX_TEXT_CHARS else f"{line[: MAX_TEXT_CHARS - 1]}…"


def break_links(text: str) -> str:
    """Return the text with zero-width spaces in addresses, so that mail programs do not turn a vendor's text into links."""
    return _LINK_LIKE.sub(lambda match: f"{match[0][0]}\u200b{match[0][1:]}", text)


def create_unsubscribe_signer(keys: ActiveKeys) -> ValueSigner:
    """Return the signer of links that stop emails; its signatures stay valid for 30 days after a change of the secret."""
    return ValueSigner(keys.cursor_keys)


@dataclass(frozen=True, slots=True)
class ItemText:
    """Words of one item: title, further names, what has changed, and the path of its page."""

    title: str
    names: str
    changes: tuple[str, ...]
    path: str


def describe_total(notification: Notification) -> str:
    """Return what a notification is about, such as `12 price changes`."""
    total = notification.total
    count = format_number(total) if notification.is_total_exact else f"{format_number(total)}+"
    match notification.kind:
        case NotificationKind.PRICE_CHANGE:
            return ngettext("%(count)s price change", "%(count)s price changes", total, count=count)
        case NotificationKind.OUT_OF_STOCK:
            return ngettext("%(count)s item out of stock", "%(count)s items out of stock", total, count=count)
        case NotificationKind.BACK_IN_STOCK:
            return ngettext("%(count)s item back in stock", "%(count)s items back in stock", total, count=count)
        case NotificationKind.NEW_PRODUCTS:
            return ngettext("%(count)s new product", "%(count)s new products", total, count=count)
        case NotificationKind.DISCONTINUED:
            return ngettext("%(count)s discontinued product", "%(count)s discontinued products", total, count=count)
        case NotificationKind.FEED:
            return ngettext("%(count)s source failed or late", "%(count)s sources failed or late", total, count=count)
    return ngettext("%(count)s source with new problems", "%(count)s sources with new problems", total, count=count)


def describe_item(kind: NotificationKind, item: Mapping[str, Any]) -> ItemText:
    """Return the words of an item of a notification."""
    source = clean_text(item.get("source_name"))
    if "product" not in item:
        path = f"/console/sources/{item['subject']}"
        return ItemText(source or item["subject"], "", (_describe_source_change(kind, item),), path)
    names = [clean_text(item.get("brand")), clean_text(item.get("sku")), source]
    changes = tuple(_list_product_changes(kind, item))
    title = clean_text(item.get("title")) or item["product"]
    return ItemText(title, " · ".join(filter(None, names)), changes, f"/console/catalogue/{item['product']}")


def _describe_source_change(kind: NotificationKind, item: Mapping[str, Any]) -> str:
    old, new = item["old"], item["new"]
    if kind == NotificationKind.PROBLEMS:
        return gettext(
            "Problems: %(old)s → %(new)s", old=format_number(old["problems"]), new=format_number(new["problems"])
        )
    if "status" in new and new["status"] != old.get("status"):
        return f"{find_label(old.get('status'), 'statuses')} → {find_label(new['status'], 'statuses')}"
    return find_label(new.get("late"), "overdue")


def _list_product_changes(kind: NotificationKind, item: Mapping[str, Any]) -> Iterator[str]:
    for change in item.get("prices", ()):
        share = change["percent"]
        label = find_label(change["name"], "amounts")
        text = f"{label}: {format_price(change['old'])} → {format_price(change['new'])}"
        if share is not None:
            text += f" ({format_percent_change(share)})"
        elif change["old"]["currency"] != change["new"]["currency"]:
            text += " (" + gettext("other currency") + ")"
        yield text
    if kind in (NotificationKind.OUT_OF_STOCK, NotificationKind.BACK_IN_STOCK):
        old, new = (find_label(item[side].get("availability"), "availability") for side in ("old", "new"))
        yield f"{old} → {new}"


def format_price(amount: Mapping[str, Any]) -> str:
    """Format an amount in minor units; without a known currency, as a plain number of minor units."""
    return format_money(amount) if amount["currency"] != "xxx" else format_number(amount["amount"])


def format_percent_change(percent: str) -> str:
    """Format a change in percent with its sign: `+4.5%`."""
    return format_decimal(Decimal(percent), "+#,##0.#;-#,##0.#", locale=get_current_locale()) + "%"


def escape_slack(text: str) -> str:
    """Escape the three control characters of Slack, so that a text can be neither a link nor a mention."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class ConsoleNotificationTexts:
    """Texts of notifications (port NotificationTexts in domain/notifications/ports.py).

    Args:
        base_url: The start of URLs of the console.
        keys: The keys that sign the links in emails.
    """

    def __init__(self, base_url: str, keys: ActiveKeys) -> None:
        self._base, self._signer = base_url.rstrip("/"), create_unsubscribe_signer(keys)

    def build_list_url(self, rule: NotificationRule) -> str:
        """Return the URL of the page that lists what the rule reports."""
        if rule.kind not in SOURCE_KINDS:
            filters = {"brand": rule.brands, "category": rule.categories, "source": rule.sources}
            query = {name: values[0] for name, values in filters.items() if len(values) == 1}
            query |= _LIST_QUERIES.get(rule.kind, {})
            return f"{self._base}/console/catalogue{'?' if query else ''}{urlencode(query)}"
        return f"{self._base}/console/sources"

    def render_mail(
        self, tenant: Tenant, rule: NotificationRule, notification: Notification, organisation: str, language: str
    ) -> MailText:
        """Return the email about a notification."""
        unsubscribe = self._signer.sign_value(UNSUBSCRIBE_PURPOSE, [tenant.org, rule.person])
        url = f"{self._base}{UNSUBSCRIBE_PATH}/{unsubscribe}"
        with using_language(language):
            total, name = describe_total(notification), break_links(clean_text(rule.name))
            subject = f"{total}: {name}" if tenant.livemode else gettext("Test mode") + f": {total}: {name}"
            lines = [total, ""]
            for item in notification.items:
                text = describe_item(notification.kind, item)
                lines.append(f"- {break_links(text.title)}")
                lines += [f"  {break_links(line)}" for line in (text.names, *text.changes) if line]
                lines += [f"  {self._base}{text.path}", ""]
            if more := _describe_omitted(notification):
                lines += [more, self.build_list_url(rule), ""]
            lines += [
                "--",
                gettext(
                    "You receive this email because of your rule “%(rule)s” in %(organisation)s.",
                    rule=name,
                    organisation=break_links(clean_text(organisation)),
                ),
                gettext("Change your rules: %(url)s", url=self._base + NOTIFICATIONS_PATH),
                gettext("Stop all notifications by email: %(url)s", url=url),
            ]
        return MailText(subject, "\n".join(lines) + "\n", url)

    def render_slack(self, rule: NotificationRule, notification: Notification, language: str) -> Mapping[str, Any]:
        """Return the Slack message about a notification (Block Kit)."""
        with using_language(language):
            total, name = describe_total(notification), clean_text(rule.name)
            lines = [self._build_slack_line(notification.kind, item) for item in notification.items]
            link = escape_slack(gettext("Open in Joinery"))
            foot = [f"<{self.build_list_url(rule)}|{link}>", escape_slack(name)]
            if more := _describe_omitted(notification):
                foot.insert(0, escape_slack(more))
        sections = [
            {"type": "section", "text": {"type": "mrkdwn", "text": text, "verbatim": True}}
            for text in _join_sections(lines)
        ]
        return {
            "text": escape_slack(f"{total}: {name}"),
            "blocks": [
                {"type": "header", "text": {"type": "plain_text", "text": total[:150], "emoji": False}},
                *sections,
                {"type": "context", "elements": [{"type": "mrkdwn", "text": " · ".join(foot), "verbatim": True}]},
            ],
        }

    def _build_slack_line(self, kind: NotificationKind, item: Mapping[str, Any]) -> str:
        text = describe_item(kind, item)
        parts = [f"<{self._base}{text.path}|{escape_slack(text.title)}>"]
        parts += [escape_slack(part) for part in (text.names, *text.changes) if part]
        return f"• {parts[0]}" + "".join(f"\n    {part}" for part in parts[1:])


def _describe_omitted(notification: Notification) -> str:
    """Return how many items a notification does not list; empty if it lists all."""
    if not notification.omitted_count and notification.is_total_exact:
        return ""
    return gettext("and %(count)s more", count=format_number(notification.omitted_count))


def _join_sections(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines joined to texts of at most MAX_SLACK_CHARS characters."""
    text = ""
    for line in lines:
        if text and len(text) + len(line) >= MAX_SLACK_CHARS:
            yield text
            text = ""
        text = f"{text}\n{line}" if text else line
    if text:
        yield text
