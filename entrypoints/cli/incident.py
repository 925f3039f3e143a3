"""What the operator says about the service: incidents, shown at /status and by GET /v1/status/history."""

from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Literal

from cyclopts import Parameter

from domain.kernel.ids import is_id
from domain.platform.incidents import TEXT, TITLE, Incident, OpenedBy, opened
from domain.platform.model import COMPONENTS, ComponentState
from domain.platform.ports import Incidents
from entrypoints.cli.store import DEFAULT, Store, attributes
from entrypoints.errors import CommandError
from ports.clock import Clock

State = Literal["degraded", "down"]


async def open_one(
    *,
    component: Annotated[str, Parameter(choices=COMPONENTS)],
    state: State = "degraded",
    title: str,
    text: str | None = None,
    store: Store = DEFAULT,
) -> int:
    """Tell that a part of the service does not do its work.

    Args:
        title: one line
        text: what is known (default: the title)
    """
    async with store.open() as parts:
        now = parts[Clock].now()
        title, text = _bounded(title, TITLE), _bounded(text or title, TEXT)
        made = opened(component, ComponentState(state), title, text, OpenedBy.OPERATOR, now, now)
        await parts[Incidents].save(made)
    return store.answer(_described(made), f"Opened {made.id}: {made.component} is {made.state}.")


async def update(id: str, /, *, text: str, state: State | None = None, store: Store = DEFAULT) -> int:
    """Tell what is known by now."""
    after = await _change(
        store,
        id,
        lambda before, now: before.told(now, _bounded(text, TEXT), ComponentState(state) if state else None),
    )
    return store.answer(_described(after), f"{after.id} is updated: {after.component} is {after.state}.")


async def close(id: str, /, *, text: str = "It is over.", store: Store = DEFAULT) -> int:
    """Tell that it is over."""
    after = await _change(store, id, lambda before, now: before.closed(now, _bounded(text, TEXT)))
    return store.answer(_described(after), f"Closed {after.id}.")


async def list_open(*, store: Store = DEFAULT) -> int:
    """List those that are open."""
    async with store.open() as parts:
        found = await parts[Incidents].open()
    lines = [f"{one.id}  {one.component:<10} {one.state:<10} {one.title}" for one in found]
    answer = {"incidents": [_described(one) for one in found]}
    return store.answer(answer, *lines or ["No incident is open."])


def _bounded(text: str, longest: int) -> str:
    if not 0 < len(text) <= longest:
        raise CommandError(f"Say it in 1 to {longest:,} characters.")
    return text


async def _change(store: Store, id: str, change: Callable[[Incident, datetime], Incident]) -> Incident:
    """Save an incident changed now."""
    async with store.open() as parts:
        before = await parts[Incidents].get(id) if is_id("inc", id) else None
        if before is None:
            raise CommandError(f"There is no incident {id!r}; `joinery incident list` shows the open ones.")
        after = change(before, parts[Clock].now())
        if not await parts[Incidents].save(after, before):
            raise CommandError("The incident has changed meanwhile; run this again.")
    return after


def _described(incident: Incident) -> dict[str, Any]:
    closed = ("closed_at",) if incident.closed_at else ()
    return {"incident": incident.id, **attributes(incident, "component", "state", "title", "opened_at", *closed)}
