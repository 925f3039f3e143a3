"""Bulk operations, which write a shop's data to one file: started, awaited, and resumed by a later run."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, RetryLater, Unreachable
from connectors.shopify.admin import queries
from connectors.shopify.admin.graphql import ask

_GOING = frozenset({"CREATED", "RUNNING"})
_FRESH = timedelta(minutes=5)
_FIRST_WAIT, _LONGEST_WAIT = 1.0, 15.0
_WAITS = 10
"""Multiple of limits.patience_seconds after which the run is postponed."""
_AGAIN = timedelta(seconds=30)
_BUSY = frozenset({"OPERATION_IN_PROGRESS", "LIMIT_REACHED"})
_LONGEST = 200


async def begin(ctx: Context, query: str) -> tuple[str | None, str]:
    """Return the shop's currency, and the ID of a running or a new operation of the query.

    An operation of the same query that ended within the last five minutes is reused: its run was postponed in the
    meantime. Raises ConnectorError.
    """
    found = await ask(ctx, queries.RECENT, patient=False)
    shop = found.get("shop")
    currency = shop.get("currencyCode") if isinstance(shop, Mapping) else None
    listed = found.get("bulkOperations")
    nodes = listed.get("nodes") if isinstance(listed, Mapping) else None
    for node in nodes if isinstance(nodes, list) else []:
        if isinstance(node, Mapping) and _is_ours(node, query, ctx.now()):
            return currency, str(node["id"])
    return currency, await _run(ctx, query)


def _is_ours(node: Mapping[str, Any], query: str, now: datetime) -> bool:
    if not isinstance(node.get("id"), str) or _plain(str(node.get("query", ""))) != _plain(query):
        return False
    if node.get("status") in _GOING:
        return True
    try:
        ended = datetime.fromisoformat(str(node.get("completedAt")))
    except ValueError:
        return False
    return node.get("status") == "COMPLETED" and ended.tzinfo is not None and now - ended < _FRESH


def _plain(query: str) -> str:
    return " ".join(query.split())


async def _run(ctx: Context, query: str) -> str:
    answer = (await ask(ctx, queries.RUN, {"query": query})).get("bulkOperationRunQuery")
    answer = answer if isinstance(answer, Mapping) else {}
    errors = [error for error in answer.get("userErrors") or [] if isinstance(error, Mapping)]
    operation = answer.get("bulkOperation")
    if errors:
        message = "; ".join(str(error.get("message", "")) for error in errors[:3])[:_LONGEST]
        if any(str(error.get("code")) in _BUSY for error in errors) or "already in progress" in message:
            raise RetryLater("The shop works on other bulk queries.", until=ctx.now() + _AGAIN, reason="upstream_busy")
        raise Unreachable(f"The shop refuses the bulk query: {message}")
    if not isinstance(operation, Mapping) or not isinstance(operation.get("id"), str):
        raise BadData("The shop's answer names no bulk operation.")
    return str(operation["id"])


@dataclass(frozen=True, slots=True)
class Written:
    """Result of an operation: the file's address, None if it is empty, and the number of objects by the shop."""

    url: str | None
    objects: int | None


async def finished(ctx: Context, operation: str) -> Written:
    """Wait for the operation and return its result. Raises ConnectorError.

    The partial result of a failed operation is not used, as it cannot show which items were removed.
    """
    waited, wait = 0.0, _FIRST_WAIT
    while True:
        state = (await ask(ctx, queries.STATE, {"id": operation})).get("bulkOperation")
        if not isinstance(state, Mapping):
            raise Unreachable("The shop no longer knows the bulk operation that it began.")
        status = str(state.get("status"))
        if status == "COMPLETED":
            url, objects = state.get("url"), str(state.get("objectCount"))
            return Written(
                str(url) if url else None, int(objects) if objects.isdecimal() and len(objects) < 19 else None
            )
        if status not in _GOING:
            raise _failure(status, state)
        if waited + wait > ctx.limits.patience_seconds * _WAITS:
            message = f"The shop still writes its data ({state.get('objectCount')} objects so far)."
            raise RetryLater(message, until=ctx.now() + _AGAIN, reason="upstream_busy")
        await ctx.sleep(wait)
        waited, wait = waited + wait, min(wait * 2, _LONGEST_WAIT)


def _failure(status: str, state: Mapping[str, Any]) -> Exception:
    code = str(state.get("errorCode") or "")
    if code == "ACCESS_DENIED":
        return Refused("The access token may not read what the bulk query asks for.", credentials=True)
    part = " What it had written until then is not used." if state.get("partialDataUrl") else ""
    reason = f" ({code[:50]})" if code else ""
    return Unreachable(f"The shop's bulk operation ended as {status[:30].lower()}{reason}.{part}")
