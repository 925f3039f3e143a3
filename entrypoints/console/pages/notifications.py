"""Pages of rules about notifications, what they have sent, and the page that stops emails."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from domain.catalogue.categories import category_by_id
from domain.kernel.clock_schedule import list_zones
from domain.kernel.errors import InvalidRequest, NotFound
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from domain.notifications.findings import COMPARED_PRICES
from domain.notifications.model import (
    SOURCE_KINDS,
    Frequency,
    Notification,
    NotificationChannel,
    NotificationKind,
    NotificationRule,
    get_required_scope,
)
from domain.notifications.ports import NotificationTexts
from domain.notifications.usecases.rules import SHARED_SCOPE, NotificationRuleService, RulePreview
from domain.notifications.usecases.sending import ReceiverClient, describe_failure
from domain.outbox.usecases import OutgoingMail
from domain.secrets.keys import ActiveKeys
from domain.webhooks.ports import PostResult
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.notification_texts import (
    NOTIFICATIONS_PATH,
    UNSUBSCRIBE_PATH,
    UNSUBSCRIBE_PURPOSE,
    create_unsubscribe_signer,
    describe_item,
    describe_total,
    format_percent_change,
)
from entrypoints.console.rendering import LABELS, find_label, format_category
from entrypoints.console.request import FormData
from entrypoints.console.translation import N_, get_current_locale, gettext
from entrypoints.http.exchange import Response
from ports.limits import RateLimitBucket
from ports.unit_of_work import UnitOfWork

_PAGE_SIZE = 20
_PREVIEW_ITEMS = 5
_SAMPLE_CHANGES: Final[Mapping[NotificationKind, dict[str, Any]]] = {
    NotificationKind.PRICE_CHANGE: {
        "prices": [
            {
                "name": "price",
                "old": {"amount": 12900, "currency": "usd"},
                "new": {"amount": 9900, "currency": "usd"},
                "percent": "-23.3",
            }
        ]
    },
    NotificationKind.OUT_OF_STOCK: {"old": {"availability": "in_stock"}, "new": {"availability": "out_of_stock"}},
    NotificationKind.BACK_IN_STOCK: {"old": {"availability": "out_of_stock"}, "new": {"availability": "in_stock"}},
    NotificationKind.FEED: {"old": {"status": "active"}, "new": {"status": "degraded"}},
    NotificationKind.PROBLEMS: {"old": {"problems": 3}, "new": {"problems": 40}},
}
"""Changes in test messages."""
_TEXT_FIELDS: Final = (
    "name", "kind", "threshold", "brands", "category", "channel", "url", "frequency", "send_at", "weekday", "time_zone",
    "quiet_from", "quiet_until",
)  # fmt: skip
"""Fields of the form with one value."""

pages = Pages(NOTIFICATIONS_PATH, section="Organisation", scope="products:read")
unsubscribe_pages = Pages(UNSUBSCRIBE_PATH, audience="anybody")


def _get_service(page: PageContext) -> NotificationRuleService:
    return page.dependencies[NotificationRuleService]


async def _load_rule(page: PageContext) -> NotificationRule:
    """Return the rule in the page's path. Raises NotFound."""
    async with page.open_read_transaction() as tx:
        return await _get_service(page).get_visible(tx, page.path_parameters["rule"], page.person.user.id)


def _may_change(page: PageContext, rule: NotificationRule) -> bool:
    return page.may(SHARED_SCOPE) if rule.is_shared else rule.person == page.person.user.id


@pages.register_get(title=N_("Notifications"))
async def list_rules(page: PageContext) -> Response:
    """Show the person's rules and those of the organisation."""
    async with page.open_read_transaction() as tx:
        rules = await _get_service(page).list_visible(tx, page.person.user.id)
        newest = await _get_service(page).list_newest(tx, [rule.id for rule in rules])
    return page.render(
        "notifications/list.html",
        rules=rules,
        newest={notification.rule: notification for notification in newest},
        kinds=[kind for kind in NotificationKind if page.may(get_required_scope(kind))],
        sends_mail=page.dependencies[OutgoingMail].sends_messages,
    )


@pages.register_post("/presets/<kind>")
async def create_preset(page: PageContext) -> Response:
    """Create a rule of a kind that sends a daily digest by email, and show what it would have found."""
    kind = page.path_parameters["kind"]
    if kind not in list(NotificationKind):
        raise NotFound
    values = {"name": find_label(kind, "notification_kinds"), "kind": NotificationKind(kind)}
    zone = page.form["time_zone"]
    values |= {"time_zone": zone} if zone else {}
    values |= {"language": get_current_locale().language}
    async with page.open_transaction("notifications.create") as tx:
        created = await _get_service(page).create_for_person(tx, values, "", page.principal.scopes)
    return page.redirect(f"{NOTIFICATIONS_PATH}/{created.rule.id}?preview=true", gettext("Rule added"))


async def show_form(page: PageContext) -> Response:
    """Show the form of a new or existing rule, with a preview if the form requests one."""
    rule = await _load_rule(page) if "rule" in page.path_parameters else None
    values = _build_form_values(rule, page.query)
    if page.is_post:
        values |= {name: page.form[name] for name in _TEXT_FIELDS}
        values |= {name: page.form.get_all(name) for name in ("prices", "sources")}
    preview, shows_preview = None, page.is_post and page.form["action"] == "preview" and page.refused is None
    async with page.open_read_transaction() as tx:
        sources = await _get_service(page).list_source_names(tx) if page.may("sources:read") else {}
        if shows_preview:
            fields = _read_form(page) | ({} if rule is None else {"channel": rule.channel})
            preview = await _get_service(page).preview_draft(tx, fields, page.principal.scopes)
    return page.render(
        "notifications/form.html",
        rule=rule,
        values=values,
        preview=_describe_preview(preview),
        sources=sources,
        options=_list_options(page),
        source_kinds=SOURCE_KINDS,
        prices=COMPARED_PRICES,
    )


def _list_options(page: PageContext) -> dict[str, list[tuple[str, ...]]]:
    """Return the options of the form's choices, with their labels."""
    channels = [one for one in NotificationChannel if one == NotificationChannel.EMAIL or page.may(SHARED_SCOPE)]
    kinds = [kind for kind in NotificationKind if page.may(get_required_scope(kind))]
    listed = sorted((format_category(id_), id_) for id_ in category_by_id())
    return {
        "kinds": [(kind, find_label(kind, "notification_kinds")) for kind in kinds],
        "categories": [("", gettext("All categories")), *((id_, path) for path, id_ in listed)],
        "channels": [
            (one, find_label(one, "channels"), page.person.user.email if one == NotificationChannel.EMAIL else "")
            for one in channels
        ],
        "frequencies": [(one, find_label(one, "frequencies")) for one in Frequency],
        "zones": [(zone, zone) for zone in list_zones()],
        "weekdays": [(str(number), find_label(day, "weekdays")) for number, day in enumerate(LABELS["weekdays"])],
    }


@pages.register_get("/new")
@pages.register_get("/<rule>/edit")
async def show_empty_form(page: PageContext) -> Response:
    """Show the form of a rule."""
    if "rule" in page.path_parameters and not _may_change(page, await _load_rule(page)):
        raise NotFound
    return await show_form(page)


@pages.register_post("/new", error_view=show_form)
async def create_rule(page: PageContext) -> Response:
    """Create a rule; show the secret of a signed webhook, once."""
    if page.form["action"] == "preview":
        return await show_form(page)
    values = _read_form(page) | {"language": get_current_locale().language}
    async with page.open_transaction("notifications.create") as tx:
        created = await _get_service(page).create_for_person(
            tx, values, page.form["url"].strip(), page.principal.scopes
        )
    if created.secret:
        return page.render("notifications/secret.html", status=201, rule=created.rule, secret=created.secret)
    return page.redirect(f"{NOTIFICATIONS_PATH}/{created.rule.id}?preview=true", gettext("Rule added"))


@pages.register_post("/<rule>/edit", error_view=show_form)
async def change_rule(page: PageContext) -> Response:
    """Change a rule."""
    if page.form["action"] == "preview":
        return await show_form(page)
    async with page.open_transaction("notifications.change") as tx:
        rule = await _get_service(page).change(
            tx,
            page.path_parameters["rule"],
            _read_form(page),
            page.form["url"].strip(),
            page.principal.scopes,
            page.form.get_number("version"),
        )
    return page.redirect(f"{NOTIFICATIONS_PATH}/{rule.id}", gettext("Rule saved"))


@pages.register_get("/<rule>")
async def show_rule(page: PageContext) -> Response:
    """Show a rule, what it has sent and, on request, what it would have found."""
    rule, preview, service = await _load_rule(page), None, _get_service(page)
    async with page.open_read_transaction() as tx:
        sent = await service.list_notifications(tx, rule.id, PageRequest(_PAGE_SIZE, page.cursor))
        names = await service.list_source_names(tx) if rule.sources else {}
        if page.query["preview"] == "true" and page.may(get_required_scope(rule.kind)):
            preview = await service.preview(tx, rule)
    return page.render(
        "notifications/rule.html",
        rule=rule,
        sent=sent.items,
        totals={one.id: describe_total(one) for one in sent.items},
        failures={one.failure: _describe_message_failure(one.failure) for one in sent.items},
        results={"has_more": sent.has_more, "next_cursor": sent.next_key},
        preview=_describe_preview(preview),
        may_change=_may_change(page, rule),
        source_names=[names.get(id_, id_) for id_ in rule.sources],
        category_names=[format_category(id_) for id_ in rule.categories if id_ in category_by_id()],
        threshold=format_percent_change(str(Decimal(rule.threshold) / 100)).lstrip("+"),
        format_minute=_format_minute,
        sends_mail=page.dependencies[OutgoingMail].sends_messages,
    )


@pages.register_get("/<rule>/messages/<notification>")
async def show_notification(page: PageContext) -> Response:
    """Show what a notification contains."""
    rule = await _load_rule(page)
    page.require_scope(get_required_scope(rule.kind))
    async with page.open_read_transaction() as tx:
        found = await _get_service(page).get_notification(tx, rule.id, page.path_parameters["notification"])
    return page.render(
        "notifications/message.html",
        rule=rule,
        notification=found,
        total=describe_total(found),
        failure=_describe_message_failure(found.failure),
        texts=[describe_item(found.kind, item) for item in found.items],
        list_url=page.dependencies[NotificationTexts].build_list_url(rule),
    )


@pages.register_post("/<rule>/<any(enable, disable):action>")
async def set_enabled(page: PageContext) -> Response:
    """Resume or pause a rule."""
    enables = page.path_parameters["action"] == "enable"
    async with page.open_transaction("notifications.change") as tx:
        rule = await _get_service(page).set_enabled(
            tx, page.path_parameters["rule"], page.principal.scopes, enabled=enables
        )
    return page.redirect(
        f"{NOTIFICATIONS_PATH}/{rule.id}", gettext("Rule resumed") if enables else gettext("Rule paused")
    )


@pages.register_form("/<rule>/delete")
async def delete_rule(page: PageContext) -> Response:
    """Ask for a confirmation; if it is submitted, delete the rule."""
    rule = await _load_rule(page)
    if not _may_change(page, rule):
        raise NotFound
    if page.must_process:
        async with page.open_transaction("notifications.delete") as tx:
            await _get_service(page).delete_own(tx, rule.id, page.principal.scopes)
        return page.redirect(NOTIFICATIONS_PATH, gettext("Rule deleted"))
    return page.render("notifications/delete.html", rule=rule)


@pages.register_post("/<rule>/test")
async def send_test(page: PageContext) -> Response:
    """Send a test message at once, and show the result."""
    rule = await _load_rule(page)
    if not _may_change(page, rule):
        raise NotFound
    await page.take_token(RateLimitBucket(f"notification-test:{page.principal.tenant.org}", 10, 1 / 6))
    sample = _create_sample(rule)
    if rule.is_shared:
        result = await page.dependencies[ReceiverClient].post(page.principal.tenant, rule, sample)
        notice, is_good = _describe_result(result)
    else:
        user, organisation = page.person.user, page.principal.organisation
        text = page.dependencies[NotificationTexts].render_mail(
            page.principal.tenant, rule, sample, organisation.name, user.language or rule.language
        )
        subject = gettext("Test: %(subject)s", subject=text.subject)
        await page.dependencies[OutgoingMail].add_message(
            user.email, subject, text.body, "notification_test", unsubscribe_url=text.unsubscribe_url
        )
        notice, is_good = gettext("Test message sent to %(email)s", email=user.email), True
    return page.redirect(f"{NOTIFICATIONS_PATH}/{rule.id}", notice, tone="good" if is_good else "bad")


def _describe_message_failure(failure: str | None) -> str:
    """Return a sentence about the failure of a message: why its rule was stopped, or what the receiver answered."""
    for table in ("stop_reasons", "delivery_failures"):
        if failure in LABELS[table]:
            return find_label(failure, table)
    return gettext("The receiver answered %(answer)s.", answer=failure) if failure else ""


def _describe_result(result: PostResult | None) -> tuple[str, bool]:
    """Return a sentence about the result of a test, and whether the receiver accepted the message."""
    if result is None:
        return find_label("undecryptable", "stop_reasons"), False
    if result.status is not None and 200 <= result.status < 300:
        return gettext("Test message sent. The receiver answered %(answer)s.", answer=describe_failure(result)), True
    answer = describe_failure(result) if result.status is not None else find_label(result.failure, "delivery_failures")
    return gettext("The test message was not accepted: %(answer)s", answer=answer), False


def _create_sample(rule: NotificationRule) -> Notification:
    """Return a notification about a fictitious product or source."""
    item: dict[str, Any] = {"subject": "src_sample", "source": "src_sample", "source_name": gettext("Sample source")}
    if rule.kind not in SOURCE_KINDS:
        item |= {"product": "prod_sample", "title": gettext("Sample product"), "brand": "", "sku": "SAMPLE-1"}
    return Notification(
        id=new_id("ntf"),
        rule=rule.id,
        kind=rule.kind,
        total=1,
        items=(item | _SAMPLE_CHANGES.get(rule.kind, {}),),
        created_at=rule.created_at,
    )


def _describe_preview(preview: RulePreview | None) -> dict[str, Any] | None:
    """Return the numbers and texts of a preview for the templates."""
    if preview is None:
        return None
    return {
        "total": preview.total,
        "is_complete": preview.is_complete,
        "texts": [describe_item(preview.kind, item) for item in preview.items[:_PREVIEW_ITEMS]],
    }


def _format_minute(minute: int | None) -> str:
    """Format a minute of the day as the value of a time field: `08:00`; empty for None."""
    return "" if minute is None else f"{minute // 60:02}:{minute % 60:02}"


def _build_form_values(rule: NotificationRule | None, query: FormData) -> dict[str, Any]:
    """Return the values of the form of a rule, or those of a new rule with the kind and the filters in the query."""
    if rule is None:
        kind = query["kind"]
        kind = kind if kind in list(NotificationKind) else NotificationKind.PRICE_CHANGE
        return {
            "name": find_label(kind, "notification_kinds"), "kind": kind, "threshold": "5", "prices": list(COMPARED_PRICES),
            "sources": query.get_all("source"), "brands": query["brand"], "category": query["category"], "channel": NotificationChannel.EMAIL, "url": "", "frequency": "daily",
            "send_at": "08:00", "weekday": "0", "time_zone": "UTC", "quiet_from": "", "quiet_until": "",
        }  # fmt: skip
    return {
        "name": rule.name, "kind": rule.kind, "threshold": f"{Decimal(rule.threshold) / 100:f}", "prices": list(rule.prices),
        "sources": list(rule.sources), "brands": "\n".join(rule.brands), "category": next(iter(rule.categories), ""),
        "channel": rule.channel, "url": "", "frequency": rule.frequency, "send_at": _format_minute(rule.send_at),
        "weekday": str(rule.weekday), "time_zone": rule.time_zone, "quiet_from": _format_minute(rule.quiet_from),
        "quiet_until": _format_minute(rule.quiet_until),
    }  # fmt: skip


def _read_form(page: PageContext) -> dict[str, Any]:
    """Return the fields of the rule in the form. Raises InvalidRequest for texts that are no numbers or times."""
    form, kind = page.form, NotificationKind(page.form["kind"])
    values: dict[str, Any] = {
        "name": form["name"],
        "kind": kind,
        "frequency": form["frequency"],
        "send_at": 8 * 60 if (minute := form.get_minute("send_at")) is None else minute,
        "weekday": form.get_number("weekday") or 0,
        "time_zone": form["time_zone"].strip() or "UTC",
        "quiet_from": form.get_minute("quiet_from"),
        "quiet_until": form.get_minute("quiet_until"),
        "sources": tuple(form.get_all("sources")),
        "brands": (),
        "categories": (),
    }
    if form["channel"]:
        values["channel"] = form["channel"]
    if kind not in SOURCE_KINDS:
        values["brands"] = tuple(line.strip() for line in form["brands"].splitlines() if line.strip())
        values["categories"] = (form["category"],) if form["category"] else ()
    if kind == NotificationKind.PRICE_CHANGE:
        values |= {"threshold": _parse_threshold(form["threshold"]), "prices": tuple(form.get_all("prices"))}
    return values


def _parse_threshold(text: str) -> int:
    """Parse a percentage with at most two decimal places into hundredths of a percent. Raises InvalidRequest."""
    try:
        hundredths = Decimal(text.strip()[:20].replace(",", ".").removesuffix("%").strip()) * 100
        if hundredths == hundredths.to_integral_value() and 0 < hundredths < 10**9:
            return int(hundredths)
    except ArithmeticError:  # not a number, or too large
        pass
    raise InvalidRequest.for_field(
        "threshold", "invalid_value", gettext("Enter a percentage with at most two decimal places, such as 5 or 2.5.")
    )


@unsubscribe_pages.register_get("/<token>")
async def confirm_unsubscription(page: PageContext) -> Response:
    """Ask whether emails should stop. Opening the link changes nothing, because mail scanners open links."""
    return page.render("notifications/unsubscribe.html", is_valid=_read_token(page) is not None, is_done=False)


@unsubscribe_pages.register_post("/<token>", has_signed_path=True)
async def unsubscribe(page: PageContext) -> Response:
    """Stop all notifications by email to the person in the link, in both modes (RFC 8058)."""
    found = _read_token(page)
    if found is None:
        return page.render("notifications/unsubscribe.html", status=404, is_valid=False, is_done=False)
    org, person = found
    context = AuditContext(Actor("user", person), "notifications.unsubscribe", page.request_id)
    for livemode in (True, False):
        async with page.dependencies[UnitOfWork].begin(Tenant(org, livemode), context) as tx:
            await _get_service(page).unsubscribe(tx, person)
    return page.render("notifications/unsubscribe.html", is_valid=True, is_done=True)


def _read_token(page: PageContext) -> tuple[str, str] | None:
    """Return the organisation and the person in the link; None if the signature is invalid."""
    signer = create_unsubscribe_signer(page.dependencies[ActiveKeys])
    found = signer.read_signed_value(UNSUBSCRIBE_PURPOSE, page.path_parameters["token"])
    return None if found is None else (found[0], found[1])
