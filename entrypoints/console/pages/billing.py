"""Pages of billing: plan and subscription, card and billing details, and invoices."""

from collections.abc import Mapping, Sequence
from typing import Any

from domain.billing.model import TaxIdType
from domain.billing.ports import Payments
from domain.billing.prices import price_plans
from domain.billing.usecases.accounts import load_prices
from domain.kernel.errors import NotFound
from domain.kernel.json_values import to_json_value
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.translation import N_, get_current_locale, gettext
from entrypoints.http.exchange import Response

BASE_PATH = "/console/billing"
CARD_PATH = f"{BASE_PATH}/card"
WRITE_SCOPE = "billing:write"
_ADDRESS_FIELDS = ("line1", "line2", "postal_code", "city", "state", "country")
_OTHER_TERRITORIES = frozenset("AC CP CQ DG EA EU EZ IC QO TA UN XA XB ZZ".split())
"""Codes of the locale data that ISO 3166-1 does not assign."""

pages = Pages(BASE_PATH, section="Organisation", scope="billing:read")


@pages.register_get(title=N_("Billing"))
async def show_plan(page: PageContext) -> Response:
    """Show the plan, the state of the subscription, and the comparison of the plans with what the organisation uses.

    Until the first payment determines the currency, the query parameter `currency` selects the currency of the prices.
    """
    account, usage = await page.api.get("/v1/billing"), await page.api.get("/v1/usage")
    details = {plan["code"]: plan for plan in (await page.api.get("/v1/plans"))["data"]}
    currencies, priced = await _list_priced_plans(page, account, page.query.get("currency"))
    plans = [{**details[plan["code"]], **plan} for plan in priced if plan["code"] in details]
    return page.render(
        "billing/plan.html",
        account=account,
        plans=plans,
        currencies=currencies,
        names={code: plan["name"] for code, plan in details.items()},
        excesses={plan["code"]: _find_excesses(usage["meters"], plan["meters"]) for plan in plans},
        has_payments=page.dependencies.find_optional(Payments) is not None,
    )


async def _list_priced_plans(
    page: PageContext, account: Mapping[str, Any], currency: str | None
) -> tuple[Sequence[str], Sequence[Mapping[str, Any]]]:
    """Return the currencies that the organisation can choose, and the plans with their prices.

    Args:
        page: The context of the request.
        account: The billing account, as in the API.
        currency: The currency of the prices; None, or one in which nothing is sold, for each plan's own.

    Returns:
        The currencies; none if the account has a currency. The plans that are sold in the currency or free of charge, as in the API.
    """
    if "currency" in account:
        return [], account["plans"]
    async with page.open_read_transaction() as tx:
        (plans, prices), now = await load_prices(tx), tx.now
    current = [one for one in prices if one.effective_at is None or one.effective_at <= now]
    currencies = sorted(
        {plan.currency for plan in plans if plan.monthly} | {price.currency for price in current if price.monthly}
    )
    if currency not in currencies:
        return currencies, account["plans"]
    sold = {
        one.code: {**to_json_value(one), "announced": to_json_value(one.next_price)}
        for one in price_plans(plans, prices, currency, now)
    }
    return currencies, [
        sold.get(plan["code"], plan) for plan in account["plans"] if plan["code"] in sold or not plan["monthly"]
    ]


def _find_excesses(used: Sequence[Mapping[str, Any]], included: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the meters of which the organisation now uses more than a plan includes, with the allowance of the plan."""
    return [
        {**included[one["meter"]], "meter": one["meter"], "used": one["used"]}
        for one in used
        if one["meter"] in included and one["used"] > included[one["meter"]]["included"]
    ]


@pages.register_form("/plans/<plan>", scope=WRITE_SCOPE)
async def change_plan(page: PageContext) -> Response:
    """Show what a change to the plan costs; if the form is submitted, change the plan.

    A new subscription without a card continues with the payment.
    """
    code, account = page.path_parameters["plan"], await page.api.get("/v1/billing")
    body = {"plan": code, **(page.form if page.is_post else page.query).select("currency")}
    plans = (await _list_priced_plans(page, account, body.get("currency")))[1]
    plan = next((plan for plan in plans if plan["code"] == code), None)
    if plan is None:
        raise NotFound(gettext("There is no such plan."))
    if page.must_process:
        changed = await page.api.post("/v1/billing/subscription", body | page.form.select("promotion_code"))
        subscription = changed["subscription"]
        if subscription["status"] == "incomplete":
            return await confirm_card(page)
        is_scheduled = "scheduled_change" in subscription
        return page.redirect(
            BASE_PATH, gettext("Change of plan scheduled") if is_scheduled else gettext("Plan changed")
        )
    preview = await page.api.post("/v1/billing/preview", body)
    return page.render("billing/preview.html", preview=preview, account=account, plan=plan)


@pages.register_form("/cancel", scope=WRITE_SCOPE)
async def cancel_subscription(page: PageContext) -> Response:
    """Show what the cancellation of the subscription changes; if the form is submitted, cancel it."""
    if page.must_process:
        await page.api.post("/v1/billing/subscription/cancel")
        return page.redirect(BASE_PATH, gettext("Subscription cancelled"))
    account = await page.api.get("/v1/billing")
    if not account.get("subscription"):
        return page.redirect(BASE_PATH, gettext("There is no subscription to cancel."), tone="info")
    return page.render("billing/cancel.html", account=account)


@pages.register_post("/resume", scope=WRITE_SCOPE, error_view=show_plan)
async def resume_subscription(page: PageContext) -> Response:
    """Undo the cancellation of the subscription."""
    await page.api.post("/v1/billing/subscription/resume")
    return page.redirect(BASE_PATH, gettext("Subscription resumed"))


@pages.register_post("/keep-plan", scope=WRITE_SCOPE, error_view=show_plan)
async def keep_plan(page: PageContext) -> Response:
    """Cancel the scheduled change of plan."""
    await page.api.post("/v1/billing/subscription/scheduled-change/cancel")
    return page.redirect(BASE_PATH, gettext("Scheduled change cancelled"))


@pages.register_form("/card")
async def change_details(page: PageContext) -> Response:
    """Show the card and the form with the billing details; if the form is submitted, change the details."""
    if page.must_process:
        page.require_scope(WRITE_SCOPE)
        await page.api.send_change("PATCH", "/v1/billing/details", _read_details(page))
        return page.redirect(CARD_PATH, gettext("Billing details saved"))
    account = await page.api.get("/v1/billing")
    details, address, tax_id = account["details"], account.get("address") or {}, account.get("tax_id") or {}
    form = page.form.select("name", "email", "tax_type", "tax_id", *_ADDRESS_FIELDS)
    if "name" not in page.form:  # the page is shown at first, or after an error of the other form
        form = {
            "name": "" if details["name_follows_org"] else details["name"],
            "email": details.get("email", ""),
            "tax_type": tax_id.get("type", ""),
            "tax_id": tax_id.get("value", ""),
            **address,
        }
    return page.render(
        "billing/card.html", account=account, form=form, countries=list_countries(), tax_types=[*TaxIdType]
    )


def _read_details(page: PageContext) -> dict[str, Any]:
    """Return the body of the request that changes the billing details to those in the form; empty fields are removed."""
    form, address = page.form, page.form.select(*_ADDRESS_FIELDS)
    tax_id = {"type": form.get("tax_type"), "value": form.get("tax_id")} if form.get("tax_id") else None
    return {
        "name": form.get("name") or None,
        "email": form.get("email") or None,
        "address": address or None,
        "tax_id": tax_id,
    }


def list_countries() -> list[tuple[str, str]]:
    """Return the codes of all countries (ISO 3166-1) with their names in the current language, by name."""
    names = get_current_locale().territories
    countries = [(code, str(name)) for code, name in names.items() if len(code) == 2 and code not in _OTHER_TERRITORIES]
    return sorted(countries, key=lambda country: country[1].casefold())


@pages.register_post("/card/confirm", scope=WRITE_SCOPE, error_view=change_details)
async def confirm_card(page: PageContext) -> Response:
    """Show the form in which a card is stored, or the first payment of a subscription is made."""
    confirmation = await page.api.post("/v1/billing/card")
    target = BASE_PATH if confirmation["kind"] == "payment" else CARD_PATH
    return render_card_form(page, confirmation, target)


def render_card_form(
    page: PageContext, confirmation: Mapping[str, Any], target: str, purchase: Mapping[str, Any] | None = None
) -> Response:
    """Render the payment provider's form for a card.

    Args:
        page: The context of the request.
        confirmation: The secret for the form, as in the API.
        target: The page to show after the confirmation.
        purchase: The purchase of credit that is paid, or None.
    """
    payments = page.dependencies.find_optional(Payments)
    return page.render(
        "billing/card_form.html",
        has_card_form=True,
        confirmation=confirmation,
        publishable_key=payments.publishable_key if payments else "",
        target=target,
        purchase=purchase,
    )


pages.register_template(
    "/invoices", "billing/invoices.html", page_size=10, operation_paths={"results": "/v1/billing/invoices"}
)
