"""The judge's settings: whether a model is asked about pairs, what it may do by itself, and what it may cost."""

from decimal import Decimal, InvalidOperation
from typing import Any, Final

from entrypoints.console.asked import Values
from entrypoints.console.comparing import READ, WRITE
from entrypoints.console.page import Answer, Entry, Page
from entrypoints.console.refusals import Refused
from entrypoints.console.visit import Visit

_MICROS: Final = 1_000_000
_LONGEST_NUMBER: Final = 12


async def settings(visit: Visit) -> Answer:
    """The form."""
    return await _settings(visit)


async def _settings(visit: Visit, given: Values | None = None, refusal: Refused | None = None) -> Answer:
    now = await visit.api.get("/v1/matching/judge-settings")
    values = {
        "enabled": now["enabled"] if given is None else bool(given.get("enabled")),
        "model": now["model"] or "" if given is None else given["model"],
        "auto_merge_at": _percent(now["auto_merge_at"]) if given is None else given["auto_merge_at"],
        "auto_dismiss_at": _percent(now["auto_dismiss_at"]) if given is None else given["auto_dismiss_at"],
        "daily_budget": _dollars(now["daily_budget_micros"]) if given is None else given["daily_budget"],
    }
    models = visit.dependencies.models
    return visit.render(
        "matching/judge.html",
        status=refusal.status if refusal else 200,
        values=values,
        configured=models is not None,
        refused=refusal,
        editable=visit.may(WRITE),
    )


def _percent(share: float) -> str:
    return f"{Decimal(str(share)) * 100:f}".rstrip("0").rstrip(".")


def _dollars(micros: int) -> str:
    return f"{Decimal(micros) / _MICROS:.2f}"


def _number(text: str) -> Any:
    """The number, or the text as it is, for the operation to refuse; a few letters can say a number of megabytes."""
    try:
        found = Decimal(text.replace(",", ".").removesuffix("%").strip().removeprefix("$"))
    except InvalidOperation:
        return text
    return found if found.is_finite() and abs(found.adjusted()) < _LONGEST_NUMBER else text


async def save(visit: Visit) -> Answer:
    """Change them."""
    form = visit.form
    budget = _number(form.get("daily_budget"))
    body: dict[str, Any] = {"enabled": bool(form.get("enabled")), "model": form.get("model") or None}
    for name in ("auto_merge_at", "auto_dismiss_at"):
        share = _number(form.get(name))
        body[name] = float(share / 100) if isinstance(share, Decimal) else share
    body["daily_budget_micros"] = int(budget * _MICROS) if isinstance(budget, Decimal) else budget
    try:
        await visit.api.patch("/v1/matching/judge-settings", body)
    except Refused as refusal:
        return await _settings(visit, form, refusal)
    return visit.redirect("/console/judge", "Saved.")


PAGES: Final = (
    Page("/console/judge", settings, scope=READ, menu=Entry("Matching", "Judge")),
    Page("/console/judge", save, methods=("POST",), scope=WRITE, menu="Matching"),
)
