"""Client of a shop's GraphQL Admin API: authenticated, aware of the cost limit and of errors with status 200."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from connectors.sdk.answers import body_of, check, media_type
from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, RetryLater, Unreachable
from connectors.sdk.readers.json_stream import decoded_page

VERSION = "2026-01"
_TRIES = 6
_ANSWER = 1024 * 1024
_CLOSED = {402: "is frozen for want of payment", 423: "is locked"}
_DENIED = frozenset({"ACCESS_DENIED", "UNAUTHORIZED", "FORBIDDEN"})
_LONGEST = 200


@dataclass(frozen=True, slots=True)
class Throttled:
    """Seconds until the shop accepts the request again."""

    seconds: float


def base_url(ctx: Context) -> str:
    """Return the shop's address: config.url if set, else that of the shop in the credentials."""
    url = ctx.config.get("url") or f"https://{(ctx.credentials or {}).get('shop', '')}"
    return str(url).rstrip("/")


def version_of(ctx: Context) -> str:
    """Return the version of the API for the source."""
    return str(ctx.config.get("api_version", VERSION))


async def ask(
    ctx: Context, query: str, variables: Mapping[str, Any] | None = None, *, patient: bool = True
) -> dict[str, Any]:
    """Return the `data` of a response. Raises ConnectorError.

    If the shop throttles by its cost limit (an error with status 200, or 429), the call waits until the query's cost is
    restored. Above limits.patience_seconds, or if not `patient`, RetryLater is raised.
    """
    body = json.dumps({"query": query, "variables": variables or {}}).encode()
    for retries in range(_TRIES - 1, -1, -1):
        answer = await _asked(ctx, body)
        if not isinstance(answer, Throttled):
            return answer
        if not patient or not retries or answer.seconds > ctx.limits.patience_seconds:
            until = ctx.now() + timedelta(seconds=answer.seconds)
            raise RetryLater("The shop limits the rate of requests.", until=until)
        await ctx.sleep(answer.seconds)
    raise AssertionError("the last try returns or raises")


async def _asked(ctx: Context, body: bytes) -> dict[str, Any] | Throttled:
    token = str((ctx.credentials or {}).get("access_token", ""))
    headers = {"Content-Type": "application/json", "Accept": "application/json", "X-Shopify-Access-Token": token}
    url = f"{base_url(ctx)}/admin/api/{version_of(ctx)}/graphql.json"
    async with ctx.http.post(url, body=body, headers=headers) as response:
        if response.status in _CLOSED:
            raise Refused(f"The shop {_CLOSED[response.status]} (HTTP {response.status}).")
        if 300 <= response.status < 400:
            raise Unreachable("The shop answers from another address; name its own in the credentials (shop).")
        try:
            check(response, ctx)
        except RetryLater as error:
            if error.until is None and response.status == 429:
                return Throttled(_waiting(await _document(ctx, response)) or 2.0)
            raise
        if "html" in media_type(response):
            raise Refused("The shop answers with a web page instead of JSON.")
        return _data(await _document(ctx, response))


async def _document(ctx: Context, response: Any) -> Any:
    """Parse a GraphQL response, which is small: large data comes as a file."""
    body = await body_of(response, min(_ANSWER, ctx.limits.page_bytes))
    try:
        return await decoded_page(body)
    except BadData:
        if response.status != 200:
            return {}
        raise


def _data(document: Any) -> dict[str, Any] | Throttled:
    if not isinstance(document, dict):
        raise BadData("The shop's response is not a GraphQL response.")
    errors = document.get("errors")
    if errors:
        wait = _waiting(document)
        if wait is not None:
            return Throttled(wait)
        raise _error(errors)
    data = document.get("data")
    if not isinstance(data, dict):
        raise BadData("The shop's answer holds no data.")
    return data


def _error(errors: Any) -> Exception:
    """Return the error for a response's errors: Refused for access, Unreachable for others, with the shop's messages."""
    listed = errors if isinstance(errors, list) else [errors]
    codes = {_code(error) for error in listed}
    message = "; ".join(_message(error) for error in listed[:3])[:_LONGEST]
    if codes & _DENIED:
        return Refused(f"The access token may not read this: {message}", credentials=True)
    return Unreachable(f"The shop refuses the query: {message}")


def _code(error: Any) -> str:
    extensions = error.get("extensions") if isinstance(error, dict) else None
    return str(extensions.get("code", "")).upper() if isinstance(extensions, dict) else ""


def _message(error: Any) -> str:
    return str(error.get("message", "") if isinstance(error, dict) else error)


def _waiting(document: Any) -> float | None:
    """Return the seconds until a throttled query may be repeated, by its cost and the restore rate, or None."""
    if not isinstance(document, dict):
        return None
    errors = document.get("errors")
    listed = errors if isinstance(errors, list) else [errors]
    if not any(_code(error) == "THROTTLED" or _message(error).lower() == "throttled" for error in listed if error):
        return None
    cost = _of(_of(document, "extensions"), "cost")
    status = _of(cost, "throttleStatus")
    numbers = [_number(cost.get("requestedQueryCost")), _number(status.get("currentlyAvailable"))]
    rate = _number(status.get("restoreRate"))
    if rate is None or rate <= 0 or None in numbers:
        return 2.0
    requested, available = (float(number or 0) for number in numbers)
    return min(max((requested - available) / rate, 0.5), 3_600.0)


def _of(holder: Any, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
