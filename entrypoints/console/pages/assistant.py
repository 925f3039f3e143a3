"""Pages of the assistant: the person's preferences, memories, the organisation's settings, and the spend of the month."""

from datetime import date, timedelta
from typing import Any

from domain.access.model import ROLES
from domain.assistant.model import MAX_MEMORIES
from entrypoints.console.context import PageContext, Pages
from entrypoints.console.rendering import format_balance, format_dollars
from entrypoints.console.request import parse_dollars
from entrypoints.console.translation import N_, gettext
from entrypoints.http.exchange import Response
from ports.clock import Clock

ASSISTANT_PATH = "/console/assistant"
MEMORIES_PATH = f"{ASSISTANT_PATH}/memories"
SETTINGS_PATH = f"{ASSISTANT_PATH}/settings"

pages = Pages(ASSISTANT_PATH, section="Organisation")


def _parse_budget(text: str) -> Any:
    """Parse an optional amount in US dollars as millionths of a dollar; None if it is empty."""
    return parse_dollars(text) if text else None


@pages.register_form(title=N_("Assistant"))
async def change_preferences(page: PageContext) -> Response:
    """Show the person's preferences; if the form is submitted, change them."""
    form = page.form
    if page.must_process:
        body = {
            "enabled": bool(form["enabled"]),
            "memory_enabled": bool(form["memory_enabled"]),
            "personal_budget_micros": _parse_budget(form.get("budget")),
        }
        await page.api.send_change("PATCH", "/v1/assistant/me", body)
        return page.redirect(ASSISTANT_PATH, gettext("Preferences saved"))
    preferences = await page.api.get("/v1/assistant/me")
    values: dict[str, Any] = preferences | {"budget": format_dollars(preferences.get("personal_budget_micros"))}
    if page.is_post:
        values = {name: form[name] for name in ("enabled", "memory_enabled", "budget")}
    return page.render("assistant/preferences.html", form=values)


@pages.register_get("/memories")
async def list_memories(page: PageContext) -> Response:
    """Show the memories of the person and of the organisation."""
    memories = (await page.api.get("/v1/assistant/memories", limit=2 * MAX_MEMORIES))["data"]
    return page.render(
        "assistant/memories.html",
        memories={scope: [one for one in memories if one["scope"] == scope] for scope in ("person", "org")},
        people=await page.find_person_names(memory["created_by"] for memory in memories),
        form=page.form,
        max_memories=MAX_MEMORIES,
    )


@pages.register_post("/memories", error_view=list_memories)
async def create_memory(page: PageContext) -> Response:
    """Create a memory."""
    body = {"content": page.form.get("content"), "scope": page.form.get("scope", "person")}
    await page.api.post("/v1/assistant/memories", body)
    return page.redirect(MEMORIES_PATH, gettext("Memory added"))


@pages.register_post("/memories/delete-all", error_view=list_memories)
async def delete_memories(page: PageContext) -> Response:
    """Delete all memories of the person or of the organisation."""
    scope = "org" if page.form["scope"] == "org" else "person"
    await page.api.send_change("DELETE", "/v1/assistant/memories", scope=scope)
    return page.redirect(MEMORIES_PATH, gettext("Memories deleted"))


@pages.register_post("/memories/<memory>", error_view=list_memories)
async def change_memory(page: PageContext) -> Response:
    """Change the words of a memory, or renew it for a year."""
    body: dict[str, Any] = {"renew": True} if page.form["renew"] else {"content": page.form.get("content")}
    await page.api.send_change("PATCH", f"/v1/assistant/memories/{page.path_parameters['memory']}", body)
    return page.redirect(MEMORIES_PATH, gettext("Memory renewed") if page.form["renew"] else gettext("Memory changed"))


@pages.register_post("/memories/<memory>/delete", error_view=list_memories)
async def delete_memory(page: PageContext) -> Response:
    """Delete a memory."""
    await page.api.send_change("DELETE", f"/v1/assistant/memories/{page.path_parameters['memory']}")
    return page.redirect(MEMORIES_PATH, gettext("Memory deleted"))


@pages.register_get("/settings", scope="assistant_settings:read")
async def show_settings(page: PageContext) -> Response:
    """Show the settings of the organisation's assistant."""
    settings, form = await page.api.get("/v1/assistant/settings"), page.form
    values: dict[str, Any] = settings | {
        "allowance": format_dollars(settings["daily_allowance_micros"]),
        "per_person_budget": format_dollars(settings.get("per_person_budget_micros")),
    }
    if page.is_post:
        names = ("enabled", "model", "allowance", "spend_credit", "per_person_budget")
        values = {name: form[name] for name in names} | {"roles": form.get_all("roles")}
    return page.render("assistant/settings.html", form=values, roles=tuple(ROLES), settings=settings)


@pages.register_post("/settings", scope="assistant_settings:write", error_view=show_settings)
async def change_settings(page: PageContext) -> Response:
    """Change the settings of the organisation's assistant."""
    form = page.form
    body = {
        "enabled": bool(form["enabled"]),
        "roles": form.get_all("roles"),
        "model": form.get("model") or None,
        "daily_allowance_micros": parse_dollars(form.get("allowance")),
        "spend_credit": bool(form["spend_credit"]),
        "per_person_budget_micros": _parse_budget(form.get("per_person_budget")),
    }
    await page.api.send_change("PATCH", "/v1/assistant/settings", body)
    return page.redirect(SETTINGS_PATH, gettext("Settings saved"))


@pages.register_get("/spend", scope="usage:read")
async def show_spend(page: PageContext) -> Response:
    """Show the spend of the month by person and by day."""
    spend = await page.api.get("/v1/assistant/spend")
    today = page.dependencies[Clock].now().date()
    amounts = {one["date"]: one["micros"] for one in spend["by_day"]}
    days = [date.fromisoformat(f"{spend['period']}-01") + timedelta(days=number) for number in range(today.day)]
    return page.render(
        "assistant/spend.html",
        spend=spend,
        days=[(day, amounts.get(day.isoformat(), 0)) for day in days],
        total=sum(amounts.values()),
        format_balance=format_balance,
        people=await page.find_person_names(one["user"] for one in spend["by_person"]),
    )
