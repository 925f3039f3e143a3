"""Look-up of apps by client ID, dynamic client registration, and apps that a metadata document describes."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from domain.access.usecases import generate_secret
from domain.kernel.ids import new_id
from domain.oauth.errors import OAuthError
from domain.oauth.model import SECRET_PREFIX, App, AppKind, AppOrigin
from domain.oauth.ports import OAuthProtocol, TokenHasher, TokenStore
from domain.oauth.requests import ClientMetadata
from domain.probes.facts import ProbeResponse
from domain.probes.ports import Unreachable, WebClient
from ports.clock import Clock
from ports.limits import RateLimitBucket, RateLimits

MAX_CLIENT_ID_CHARS = 500
"""Maximum number of characters of a client ID."""
MAX_DOCUMENT_BYTES = 10 * 1024
"""Maximum size of a metadata document."""
MAX_DOCUMENT_SECONDS = 5.0
"""Maximum duration of the download of a metadata document."""
MIN_CACHE_TIME = timedelta(minutes=1)
"""Minimum time for which a metadata document is cached."""
MAX_CACHE_TIME = timedelta(hours=24)
"""Maximum time for which a metadata document is cached."""
DEFAULT_CACHE_TIME = timedelta(minutes=10)
"""Time for which a metadata document without a `max-age` is cached."""
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_URL = re.compile(r"https://[a-z0-9.-]+\.[a-z0-9-]+(?::\d{1,5})?/[!$&-;=?-Z_a-z~%]*")
_CLIENT_ID = re.compile(r"[!-~]+")
"""Client ID of visible ASCII characters; RFC 6749 appendix A.1 also permits spaces."""
REGISTRATION_RATE = (10, 10 / 3600)
"""Limit of registrations from one network: the maximum number at once, and the number per second."""
FETCH_RATE = (10, 1 / 6)
"""Limit of fetches of metadata documents for callers in one network: the maximum number at once, and per second."""


async def check_rate_limit(limits: RateLimits, key: str, burst: int, rate: float) -> None:
    """Count a request against a rate limit of `burst` requests at once and `rate` per second.

    Raises OAuthError, with the time to wait, if the limit is exceeded.
    """
    take = await limits.take_token(RateLimitBucket(f"oauth:{key}", burst, rate))
    if not take.allowed:
        raise OAuthError(
            "temporarily_unavailable",
            "Too many requests. Wait for the number of seconds in the Retry-After header.",
            status=429,
            retry_after=max(1, round(take.seconds_to_next + 0.5)),
        )


@dataclass(frozen=True, slots=True)
class ClientRegistry:
    """Use cases of the look-up and dynamic registration of apps (RFC 7591).

    `client_network` is the caller's network, whose requests are limited together: an IPv4 address, or an IPv6 /64.
    """

    store: TokenStore
    rules: OAuthProtocol
    web: WebClient
    limits: RateLimits
    clock: Clock
    hash_token: TokenHasher

    async def find_app(self, client_id: str | None, client_network: str) -> App | None:
        """Return the app with the client ID, or None.

        If the client ID is a URL, the metadata document at the URL is fetched unless a copy is cached.
        Raises OAuthError.
        """
        if not client_id or len(client_id) > MAX_CLIENT_ID_CHARS or not _CLIENT_ID.fullmatch(client_id):
            return None
        app = await self.store.find_app(client_id)
        if not client_id.startswith("https://"):
            return app
        if app is not None and app.fresh_until is not None and app.fresh_until > self.clock.now():
            return app
        return await self._fetch_app(client_id, app, client_network)

    async def register(self, metadata: Mapping[str, Any], client_network: str) -> dict[str, Any]:
        """Register an app by its metadata (RFC 7591); return the response, which includes a confidential app's secret.

        Raises OAuthError.
        """
        await check_rate_limit(self.limits, f"register:{client_network}", *REGISTRATION_RATE)
        found, now = self.rules.validate_metadata(metadata), self.clock.now()
        id, secret = new_id("app"), generate_secret(SECRET_PREFIX) if found.is_confidential else None
        app = _create_app(id, id, AppOrigin.REGISTERED, found, now)
        digest = self.hash_token(secret) if secret else None
        await self.store.save_app(replace(app, digest=digest, last4=secret[-4:] if secret else None))
        body = dict(found.response) | {"client_id": id, "client_id_issued_at": int(now.timestamp())}
        return body | ({"client_secret": secret, "client_secret_expires_at": 0} if secret else {})

    async def _fetch_app(self, url: str, stored_app: App | None, client_network: str) -> App:
        if not is_document_url(url):
            raise OAuthError(
                "invalid_client",
                "client_id must be an https URL with a domain name and a path other than /, without . or .. segments.",
            )
        await check_rate_limit(self.limits, f"document:{client_network}", *FETCH_RATE)
        await check_rate_limit(self.limits, f"document-of:{urlsplit(url).hostname}", 30, 1.0)
        try:
            response = await self.web.get(
                url, accept="application/json", max_bytes=MAX_DOCUMENT_BYTES, seconds=MAX_DOCUMENT_SECONDS
            )
        except Unreachable:
            raise OAuthError("invalid_client", "The document at client_id could not be fetched.") from None
        found, now = self.rules.validate_document(url, _parse_document(response)), self.clock.now()
        made = _create_app(
            stored_app.id if stored_app else new_id("app"),
            url,
            AppOrigin.DOCUMENT,
            found,
            stored_app.created_at if stored_app else now,
        )
        fresh = now + parse_cache_time(response.headers)
        return await self.store.save_app(replace(made, updated_at=now, fresh_until=fresh))


def is_document_url(url: str) -> bool:
    """Return whether the URL may be a `client_id`: https, a host name with a dot, and a path without `.` and `..`."""
    if not _URL.fullmatch(url):
        return False
    path = urlsplit(url).path
    return path != "/" and not any(part in (".", "..") for part in path.split("/"))


def parse_cache_time(headers: Mapping[str, str]) -> timedelta:
    """Return for how long a document with these response headers is cached: from `MIN_CACHE_TIME` to `MAX_CACHE_TIME`."""
    cache_control = headers.get("cache-control", "")
    if "no-store" in cache_control.lower() or "no-cache" in cache_control.lower():
        return MIN_CACHE_TIME
    age = _MAX_AGE.search(cache_control)
    return min(max(timedelta(seconds=int(age[1])), MIN_CACHE_TIME), MAX_CACHE_TIME) if age else DEFAULT_CACHE_TIME


def _parse_document(response: ProbeResponse) -> Mapping[str, Any]:
    """Return the metadata document in the response, a JSON object. Raises OAuthError."""
    kind = response.media_type
    if response.status != 200 or not response.is_complete or not (kind == "application/json" or kind.endswith("+json")):
        raise OAuthError(
            "invalid_client",
            f"The document at client_id must be returned with status 200, as JSON of at most {MAX_DOCUMENT_BYTES} bytes.",
        )
    try:
        document = json.loads(response.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OAuthError("invalid_client", "The document at client_id is not a JSON object.")
    return document


def _create_app(id: str, client_id: str, origin: AppOrigin, metadata: ClientMetadata, created_at: datetime) -> App:
    return App(
        id=id,
        client_id=client_id,
        kind=AppKind.WEB if metadata.is_confidential else AppKind.NATIVE,
        origin=origin,
        name=metadata.name,
        redirect_uris=metadata.redirect_uris,
        scopes=metadata.scopes,
        created_at=created_at,
        updated_at=created_at,
        home=metadata.home,
    )
