"""What the operator says about the service: incidents, shown at /status and by GET /v1/status/history."""

import argparse

from domain.kernel.ids import is_id
from domain.kernel.plain import instant
from domain.platform.incidents import TEXT, TITLE, Incident, OpenedBy, opened
from domain.platform.model import ComponentState
from entrypoints.cli.errors import CommandError
from entrypoints.cli.orgs import answered, container
from entrypoints.container import Container


async def open_one(options: argparse.Namespace) -> int:
    """`joinery incident open`."""
    async with container(options) as parts:
        now, state = parts.clock().now(), ComponentState(options.state)
        title, text = _bounded(options.title, TITLE), _bounded(options.text or options.title, TEXT)
        made = opened(options.component, state, title, text, OpenedBy.OPERATOR, now, now)
        await parts.incidents().save(made)
    return _told(options, made, f"Opened {made.id}: {made.component} is {made.state}.")


async def update(options: argparse.Namespace) -> int:
    """`joinery incident update`."""
    async with container(options) as parts:
        state = ComponentState(options.state) if options.state else None
        before = await _found(parts, options.id)
        after = before.told(parts.clock().now(), _bounded(options.text, TEXT), state)
        await _kept(parts, after, before)
    return _told(options, after, f"{after.id} is updated: {after.component} is {after.state}.")


async def close(options: argparse.Namespace) -> int:
    """`joinery incident close`."""
    async with container(options) as parts:
        before = await _found(parts, options.id)
        after = before.closed(parts.clock().now(), _bounded(options.text, TEXT))
        await _kept(parts, after, before)
    return _told(options, after, f"Closed {after.id}.")


async def list_open(options: argparse.Namespace) -> int:
    """`joinery incident list`."""
    async with container(options) as parts:
        found = await parts.incidents().open()
    lines = [f"{one.id}  {one.component:<10} {one.state:<10} {one.title}" for one in found]
    answer = {"incidents": [_described(one) for one in found]}
    return answered(options, answer, "\n".join(lines) or "No incident is open.")


def _bounded(text: str, longest: int) -> str:
    if not 0 < len(text) <= longest:
        raise CommandError(f"Say it in 1 to {longest:,} characters.")
    return text


async def _kept(parts: Container, after: Incident, before: Incident) -> None:
    if not await parts.incidents().save(after, before):
        raise CommandError("The incident has changed meanwhile; run this again.")


async def _found(parts: Container, id: str) -> Incident:
    incident = await parts.incidents().get(id) if is_id("inc", id) else None
    if incident is None:
        raise CommandError(f"There is no incident {id!r}; `joinery incident list` shows the open ones.")
    return incident


def _told(options: argparse.Namespace, incident: Incident, sentence: str) -> int:
    return answered(options, _described(incident), sentence)


def _described(incident: Incident) -> dict[str, object]:
    closed = {"closed_at": instant(incident.closed_at)} if incident.closed_at else {}
    return {
        "incident": incident.id,
        "component": incident.component,
        "state": incident.state,
        "title": incident.title,
        "opened_at": instant(incident.opened_at),
        **closed,
    }
