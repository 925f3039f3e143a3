"""Client of the GraphQL Admin API of a Shopify shop, which waits if the shop limits the rate of queries."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from connectors.sdk.context import Context
from connectors.sdk.errors import BadData, Refused, RetryLater, Unreachable
from connectors.sdk.readers.json_stream import decode_page
from connectors.sdk.responses import parse_media_type, raise_for_status, read_body

VERSION = "2026-01"
_MAX_ATTEMPTS = 6
_MAX_RESPONSE_BYTES = 1024 * 1024
_CLOSED_STATUSES = {402: "is frozen because of unpaid fees", 423: "is locked"}
_DENIED_CODES = frozenset({"ACCESS_DENIED", "UNAUTHORIZED", "FORBIDDEN"})
_MAX_MESSAGE_CHARS = 200


@dataclass(frozen=True, slots=True)
class ThrottleDelay:
    """Wait that the shop requires before the next query, in seconds."""

    seconds: float


def find_shop_url(ctx: Context) -> str:
    """Return the URL of the shop: the setting `url` or, without it, the URL of the shop in the credentials."""
    url = ctx.config.get("url") or f"https://{(ctx.credentials or {}).get('shop', '')}"
    return str(url).rstrip("/")


def find_api_version(ctx: Context) -> str:
    """Return the version of the Admin API from the source's settings, or the default version."""
    return str(ctx.config.get("api_version", VERSION))


async def run_query(
    ctx: Context, query: str, variables: Mapping[str, Any] | None = None, *, can_wait: bool = True
) -> dict[str, Any]:
    """Run a GraphQL query and return the `data` of the response. Raises ConnectorError.

    If the shop refuses the query because of the cost limit, the query is repeated after a wait. RetryLater is raised
    instead if the wait would exceed limits.max_wait_seconds, or if `can_wait` is false.
    """
    body = json.dumps({"query": query, "variables": variables or {}}).encode()
    for retries in range(_MAX_ATTEMPTS - 1, -1, -1):
        answer = await _send_request(ctx, body)
        if not isinstance(answer, ThrottleDelay):
            return answer
        if not can_wait or not retries or answer.seconds > ctx.limits.max_wait_seconds:
            until = ctx.now() + timedelta(seconds=answer.seconds)
            raise RetryLater("The shop limits the rate of requests.", until=until)
        await ctx.sleep(answer.seconds)
    raise AssertionError("internal error: the last attempt neither returned nor raised")


async def _send_request(ctx: Context, body: bytes) -> dict[str, Any] | ThrottleDelay:
    token = str((ctx.credentials or {}).get("access_token", ""))
    headers = {"Content-Type": "application/json", "Accept": "application/json", "X-Shopify-Access-Token": token}
    url = f"{find_shop_url(ctx)}/admin/api/{find_api_version(ctx)}/graphql.json"
    async with ctx.http.post(url, body=body, headers=headers) as response:
        if response.status in _CLOSED_STATUSES:
            raise Refused(f"The shop {_CLOSED_STATUSES[response.status]} (HTTP {response.status}).")
        if 300 <= response.status < 400:
            raise Unreachable(
                "The shop redirects to another domain; set its myshopify.com domain in the credentials (shop)."
            )
        try:
            raise_for_status(response, ctx)
        except RetryLater as error:
            if error.until is None and response.status == 429:
                return ThrottleDelay(_compute_delay(await _parse_response(ctx, response)) or 2.0)
            raise
        if "html" in parse_media_type(response):
            raise Refused("The shop returned a web page instead of JSON.")
        return _extract_data(await _parse_response(ctx, response))


async def _parse_response(ctx: Context, response: Any) -> Any:
    """Decode the JSON of a GraphQL response; return an empty dict if the status is not 200 and there is no JSON.

    Raises TooLarge if the response exceeds 1 MiB or limits.page_bytes.
    """
    body = await read_body(response, min(_MAX_RESPONSE_BYTES, ctx.limits.page_bytes))
    try:
        return await decode_page(body)
    except BadData:
        if response.status != 200:
            return {}
        raise


def _extract_data(document: Any) -> dict[str, Any] | ThrottleDelay:
    if not isinstance(document, dict):
        raise BadData("The shop's response is not a GraphQL response.")
    errors = document.get("errors")
    if errors:
        wait = _compute_delay(document)
        if wait is not None:
            return ThrottleDelay(wait)
        raise _build_error(errors)
    data = document.get("data")
    if not isinstance(data, dict):
        raise BadData("The shop's response contains no data.")
    return data


def _build_error(errors: Any) -> Exception:
    """Return the error to raise for the GraphQL errors of a response: Refused for missing access, else Unreachable."""
    all_errors = errors if isinstance(errors, list) else [errors]
    codes = {_find_error_code(error) for error in all_errors}
    message = "; ".join(_find_error_message(error) for error in all_errors[:3])[:_MAX_MESSAGE_CHARS]
    if codes & _DENIED_CODES:
        return Refused(f"The access token lacks permission: {message}", is_credentials_error=True)
    return Unreachable(f"The shop rejected the query: {message}")


def _find_error_code(error: Any) -> str:
    extensions = error.get("extensions") if isinstance(error, dict) else None
    return str(extensions.get("code", "")).upper() if isinstance(extensions, dict) else ""


def _find_error_message(error: Any) -> str:
    return str(error.get("message", "") if isinstance(error, dict) else error)


def _compute_delay(document: Any) -> float | None:
    """Return the seconds until a throttled query may be repeated, by its cost; None if the query was not throttled."""
    if not isinstance(document, dict):
        return None
    errors = document.get("errors")
    all_errors = errors if isinstance(errors, list) else [errors]
    if not any(
        _find_error_code(error) == "THROTTLED" or _find_error_message(error).lower() == "throttled"
        for error in all_errors
        if error
    ):
        return None
    cost = _get_object(_get_object(document, "extensions"), "cost")
    status = _get_object(cost, "throttleStatus")
    numbers = [_parse_number(cost.get("requestedQueryCost")), _parse_number(status.get("currentlyAvailable"))]
    rate = _parse_number(status.get("restoreRate"))
    if rate is None or rate <= 0 or None in numbers:
        return 2.0
    requested, available = (float(number or 0) for number in numbers)
    return min(max((requested - available) / rate, 0.5), 3_600.0)


def _get_object(holder: Any, name: str) -> dict[str, Any]:
    found = holder.get(name) if isinstance(holder, dict) else None
    return found if isinstance(found, dict) else {}


def _parse_number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
