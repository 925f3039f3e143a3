"""Bulk operations of the Admin API, each of which writes the data of a query to one file.

A run starts an operation and waits for its end; a postponed run continues with the same operation.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, RetryLater, Unreachable
from connectors.shopify.admin import queries
from connectors.shopify.admin.graphql import run_query

_RUNNING_STATUSES = frozenset({"CREATED", "RUNNING"})
_MAX_REUSE_AGE = timedelta(minutes=5)
_FIRST_WAIT, _MAX_WAIT = 1.0, 15.0
_MAX_WAIT_FACTOR = 10
"""Maximum wait for the end of an operation, as a multiple of limits.max_wait_seconds; then the run is postponed."""
_RETRY_DELAY = timedelta(seconds=30)
_BUSY_CODES = frozenset({"OPERATION_IN_PROGRESS", "LIMIT_REACHED"})
_MAX_MESSAGE_CHARS = 200


async def start_operation(ctx: Context, query: str) -> tuple[str | None, str]:
    """Start a bulk operation of a query, or reuse a recent one; return the shop's currency and the operation's ID.

    An operation of the same query is reused if it is running or ended within the last five minutes. Raises
    ConnectorError.
    """
    # A recent operation may be that of this run, if the run was postponed in the meantime.
    found = await run_query(ctx, queries.RECENT_OPERATIONS, can_wait=False)
    shop = found.get("shop")
    currency = shop.get("currencyCode") if isinstance(shop, Mapping) else None
    operations = found.get("bulkOperations")
    nodes = operations.get("nodes") if isinstance(operations, Mapping) else None
    for node in nodes if isinstance(nodes, list) else []:
        if isinstance(node, Mapping) and _is_reusable(node, query, ctx.now()):
            return currency, str(node["id"])
    return currency, await _start(ctx, query)


def _is_reusable(node: Mapping[str, Any], query: str, now: datetime) -> bool:
    if not isinstance(node.get("id"), str) or _normalise_spaces(str(node.get("query", ""))) != _normalise_spaces(query):
        return False
    if node.get("status") in _RUNNING_STATUSES:
        return True
    try:
        ended = datetime.fromisoformat(str(node.get("completedAt")))
    except ValueError:
        return False
    return node.get("status") == "COMPLETED" and ended.tzinfo is not None and now - ended < _MAX_REUSE_AGE


def _normalise_spaces(query: str) -> str:
    return " ".join(query.split())


async def _start(ctx: Context, query: str) -> str:
    answer = (await run_query(ctx, queries.RUN, {"query": query})).get("bulkOperationRunQuery")
    answer = answer if isinstance(answer, Mapping) else {}
    errors = [error for error in answer.get("userErrors") or [] if isinstance(error, Mapping)]
    operation = answer.get("bulkOperation")
    if errors:
        message = "; ".join(str(error.get("message", "")) for error in errors[:3])[:_MAX_MESSAGE_CHARS]
        if any(str(error.get("code")) in _BUSY_CODES for error in errors) or "already in progress" in message:
            raise RetryLater(
                "The shop is running other bulk queries.", until=ctx.now() + _RETRY_DELAY, reason="upstream_busy"
            )
        raise Unreachable(f"The shop refuses the bulk query: {message}")
    if not isinstance(operation, Mapping) or not isinstance(operation.get("id"), str):
        raise BadData("The shop's response contains no bulk operation.")
    return str(operation["id"])


@dataclass(frozen=True, slots=True)
class BulkResult:
    """Result of a bulk operation.

    `url` is the URL of the file, None for a result without data. `objects` is the number of objects that the shop
    counted.
    """

    url: str | None
    objects: int | None


async def wait_for_operation(ctx: Context, operation: str) -> BulkResult:
    """Wait for the end of a bulk operation and return its result.

    Raises ConnectorError: RetryLater if the wait would exceed limits.max_wait_seconds times _MAX_WAIT_FACTOR.
    """
    # The partial result of a failed operation is not used, because products missing from it would be withdrawn.
    waited, wait = 0.0, _FIRST_WAIT
    while True:
        state = (await run_query(ctx, queries.STATE, {"id": operation})).get("bulkOperation")
        if not isinstance(state, Mapping):
            raise Unreachable("The shop's bulk operation no longer exists.")
        status = str(state.get("status"))
        if status == "COMPLETED":
            url, objects = state.get("url"), str(state.get("objectCount"))
            return BulkResult(
                str(url) if url else None, int(objects) if objects.isdecimal() and len(objects) < 19 else None
            )
        if status not in _RUNNING_STATUSES:
            raise _build_failure(status, state)
        if waited + wait > ctx.limits.max_wait_seconds * _MAX_WAIT_FACTOR:
            message = f"The shop's bulk operation is in progress ({state.get('objectCount')} objects so far)."
            raise RetryLater(message, until=ctx.now() + _RETRY_DELAY, reason="upstream_busy")
        await ctx.sleep(wait)
        waited, wait = waited + wait, min(wait * 2, _MAX_WAIT)


def _build_failure(status: str, state: Mapping[str, Any]) -> Exception:
    code = str(state.get("errorCode") or "")
    if code == "ACCESS_DENIED":
        return Refused("The access token lacks permission for the bulk query.", is_credentials_error=True)
    part = " Its partial result is not used." if state.get("partialDataUrl") else ""
    reason = f" ({code[:50]})" if code else ""
    return Unreachable(f"The shop's bulk operation ended with status {status[:30].lower()}{reason}.{part}")
