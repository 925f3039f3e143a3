"""Pages of prepaid credit: balance, entries, settings and purchases."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, time, timedelta
from typing import Any

from domain.credits.model import MAX_PURCHASE, MIN_PURCHASE, CreditDay
from domain.credits.ports import CreditStore
from domain.kernel.errors import PermissionDenied
from domain.orgs.model import OWNER
from entrypoints.console.charts import build_chart
from entrypoints.console.context import OperationRefused, PageContext, Pages
from entrypoints.console.pages.billing import BASE_PATH, render_card_form
from entrypoints.console.rendering import format_balance, format_dollars, to_utc_datetime
from entrypoints.console.request import parse_dollars, parse_number
from entrypoints.console.translation import gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

CREDIT_PATH = f"{BASE_PATH}/credit"
PLOTTED_DAYS = 30
"""Number of days of the plot of the balance."""
AVERAGED_DAYS = 14
"""Maximum number of days whose average use determines the forecast."""
MIN_AVERAGED_DAYS = 3
"""Minimum number of days for a forecast."""
_PAGE_SIZE = 20
_API_PATH = "/v1/billing/credits"

pages = Pages(CREDIT_PATH, section="Organisation", scope="billing:read")


@pages.register_get()
async def show_credit(page: PageContext) -> Response:
    """Show the balance with its plot and forecast, the lots, purchases, entries and settings."""
    now = page.dependencies[Clock].now().astimezone(UTC)
    start = datetime.combine(now.date() - timedelta(days=PLOTTED_DAYS - 1), time(), UTC)
    balance = await page.api.get(_API_PATH)
    async with page.open_read_transaction() as tx:
        days = await tx[CreditStore].list_days(start)
    settings, averaged_days = balance["settings"], count_averaged_days(days, now)
    form: dict[str, Any] = {
        "low_balance": format_dollars(settings["low_balance_micros"]),
        "auto_spend": settings["auto_spend"],
        "monthly_budget": format_dollars(settings.get("monthly_budget_micros")),
        "top_up_credits": settings.get("top_up_credits", ""),
    }
    if page.is_post:
        form = {name: page.form[name] for name in form}
    return page.render(
        "billing/credit.html",
        balance=balance,
        days=days,
        chart=build_chart(
            {gettext("Balance"): _list_points(days, balance["available_micros"], start, now)},
            start,
            now,
            includes_zero=True,
        ),
        format_value=lambda dollars: format_balance(round(dollars * 1_000_000)),
        averaged_days=averaged_days,
        lasts_until=forecast_end(balance, days, averaged_days, now) if averaged_days >= MIN_AVERAGED_DAYS else None,
        entries=await page.api.get(f"{_API_PATH}/entries", limit=_PAGE_SIZE, starting_after=page.cursor),
        purchases=await page.api.get(f"{_API_PATH}/purchases", limit=_PAGE_SIZE),
        is_sold=(await page.api.get("/v1/billing"))["enabled"],
        is_owner=page.principal.role == OWNER,
        form=form,
        min_credits=MIN_PURCHASE,
        max_credits=MAX_PURCHASE,
    )


def _list_points(
    days: Sequence[CreditDay], available: int, start: datetime, now: datetime
) -> list[tuple[datetime, float | None]]:
    """Return the balance in dollars at the start, and at the end of each day with entries; nothing without any credit."""
    opening = days[0].balance_micros - days[0].change_micros if days else available
    ends = [min(now, datetime.combine(one.day + timedelta(days=1), time(), UTC)) for one in days]
    balances = [opening, *(one.balance_micros for one in days)]
    if not any(balances):
        return []
    return [(at, micros / 1_000_000) for at, micros in zip([start, *ends], balances, strict=True)]


def count_averaged_days(days: Sequence[CreditDay], now: datetime) -> int:
    """Return the number of days, up to and including today, whose use is averaged: at most 14, all with credit.

    Args:
        days: The days with entries.
        now: The current time.
    """
    if not days or days[0].balance_micros != days[0].change_micros:  # the organisation had credit before these days
        return AVERAGED_DAYS
    return min(AVERAGED_DAYS, (now.date() - days[0].day).days + 1)


def forecast_end(
    balance: Mapping[str, Any], days: Sequence[CreditDay], averaged_days: int, now: datetime
) -> datetime | None:
    """Return the time until which credit lasts at the average use of the last days; None if none was used.

    Credit lasts at most until the last lot expires.

    Args:
        balance: The balance, as in the API.
        days: The days with entries.
        averaged_days: The number of days whose use is averaged.
        now: The current time.
    """
    first = now.date() - timedelta(days=averaged_days - 1)
    spent = sum(one.spent_micros for one in days if one.day >= first)
    if spent <= 0 or not balance["available_micros"]:
        return None
    last_expiry = max((to_utc_datetime(lot["expires_at"]) for lot in balance["lots"]), default=now)
    periods: float = min(balance["available_micros"] / spent, 1_000)
    return min(now + timedelta(days=averaged_days) * periods, last_expiry)


@pages.register_post("/settings", error_view=show_credit)
async def change_settings(page: PageContext) -> Response:
    """Change the settings of credit."""
    form = page.form
    body = {
        "low_balance_micros": parse_dollars(form.get("low_balance")),
        "auto_spend": bool(form.get("auto_spend")),
        "monthly_budget_micros": parse_dollars(form.get("monthly_budget")) if form.get("monthly_budget") else None,
        "top_up_credits": parse_number(form.get("top_up_credits")) if form.get("top_up_credits") else None,
    }
    await page.api.send_change("PATCH", f"{_API_PATH}/settings", body)
    return page.redirect(CREDIT_PATH, gettext("Settings saved"))


@pages.register_form("/buy")
async def buy_credit(page: PageContext) -> Response:
    """Show the price of credit; if the form is submitted, buy the credit and continue with the payment."""
    if page.principal.role != OWNER:
        raise PermissionDenied(gettext("Only owners can buy credit."))
    text = (page.form if page.is_post else page.query).get("credits")
    body, preview = {"credits": parse_number(text)}, None
    if page.must_process:
        purchase = await page.api.post(f"{_API_PATH}/purchases", body)
        return page.redirect(f"{CREDIT_PATH}/purchases/{purchase['id']}")
    try:
        preview = await page.api.post(f"{_API_PATH}/purchases/preview", body)
    except OperationRefused as refused:
        if not refused.fields:
            raise
        page.refused = refused
    return page.render(
        "billing/buy.html", preview=preview, number=text, min_credits=MIN_PURCHASE, max_credits=MAX_PURCHASE
    )


@pages.register_get("/purchases/<purchase>")
async def show_purchase(page: PageContext) -> Response:
    """Show a purchase of credit, with the form of its payment if the payment must be confirmed."""
    purchase = await page.api.get(f"{_API_PATH}/purchases/{page.path_parameters['purchase']}")
    is_confirmed = bool(page.query.get("confirmed"))
    if purchase.get("confirmation") and page.principal.role == OWNER and not is_confirmed:
        target = f"{CREDIT_PATH}/purchases/{purchase['id']}"
        return render_card_form(page, purchase["confirmation"], target, purchase)
    return page.render("billing/purchase.html", purchase=purchase, is_confirmed=is_confirmed)
