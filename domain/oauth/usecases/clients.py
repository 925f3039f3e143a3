"""Identification of apps: created by an organisation, self-registered, or described by a document at a URL."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

from domain.access.usecases import secret_with
from domain.kernel.ids import new_id
from domain.oauth.asking import Metadata
from domain.oauth.errors import OAuthError
from domain.oauth.model import SECRET_PREFIX, App, AppKind, Origin
from domain.oauth.ports import GrantRules, TokenDigest, TokenStore
from domain.probes.facts import Response
from domain.probes.ports import Unreachable, Web
from ports.clock import Clock
from ports.limits import Budget, Limits

LONGEST_ID = 500
DOCUMENT_BYTES = 10 * 1024
DOCUMENT_SECONDS = 5.0
FRESH_LEAST = timedelta(minutes=1)
FRESH_MOST = timedelta(hours=24)
FRESH_UNSAID = timedelta(minutes=10)
_MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})", re.IGNORECASE)
_URL = re.compile(r"https://[a-z0-9.-]+\.[a-z0-9-]+(?::\d{1,5})?/[!$&-;=?-Z_a-z~%]*")
_ID = re.compile(r"[!-~]+")
"""RFC 6749 appendix A.1, without the space, which no id here contains."""
REGISTRATIONS = (10, 10 / 3600)
"""Burst and rate per second of one address."""
FETCHES = (10, 1 / 6)


async def spend(limits: Limits, key: str, burst: int, rate: float) -> None:
    """Take one of `burst` tokens, refilled at `rate` a second. Raises OAuthError with the time until the next one."""
    take = await limits.take(Budget(f"oauth:{key}", burst, rate))
    if not take.allowed:
        raise OAuthError(
            "temporarily_unavailable",
            "Asked too often; try again after the seconds that Retry-After names.",
            status=429,
            retry_after=max(1, round(take.next_in + 0.5)),
        )


@dataclass(frozen=True, slots=True)
class Clients:
    """Look-up and registration of apps."""

    store: TokenStore
    rules: GrantRules
    web: Web
    limits: Limits
    clock: Clock
    digest: TokenDigest

    async def find(self, client_id: str | None, address: str) -> App | None:
        """Return the app, after fetching its document if needed. Raises OAuthError for an invalid document."""
        if not client_id or len(client_id) > LONGEST_ID or not _ID.fullmatch(client_id):
            return None
        app = await self.store.app(client_id)
        if not client_id.startswith("https://"):
            return app
        if app is not None and app.fresh_until is not None and app.fresh_until > self.clock.now():
            return app
        return await self._fetched(client_id, app, address)

    async def register(self, metadata: Mapping[str, Any], address: str) -> dict[str, Any]:
        """Register an app (RFC 7591); return the response, including the secret. Raises OAuthError."""
        await spend(self.limits, f"register:{address}", *REGISTRATIONS)
        found, now = self.rules.registered(metadata), self.clock.now()
        id, secret = new_id("app"), secret_with(SECRET_PREFIX) if found.confidential else None
        app = _app(id, id, Origin.REGISTERED, found, now)
        digest = self.digest(secret) if secret else None
        await self.store.keep_app(replace(app, digest=digest, last4=secret[-4:] if secret else None))
        body = dict(found.said) | {"client_id": id, "client_id_issued_at": int(now.timestamp())}
        return body | ({"client_secret": secret, "client_secret_expires_at": 0} if secret else {})

    async def _fetched(self, url: str, known: App | None, address: str) -> App:
        if not is_document(url):
            raise OAuthError("invalid_client", "client_id is no https URL with a path that an app could have.")
        await spend(self.limits, f"document:{address}", *FETCHES)
        await spend(self.limits, f"document-of:{urlsplit(url).hostname}", 30, 1.0)
        try:
            answer = await self.web.get(url, accept="application/json", most=DOCUMENT_BYTES, seconds=DOCUMENT_SECONDS)
        except Unreachable:
            raise OAuthError("invalid_client", "The document at client_id could not be fetched.") from None
        found, now = self.rules.described(url, _object(answer)), self.clock.now()
        made = _app(
            known.id if known else new_id("app"), url, Origin.DOCUMENT, found, known.created_at if known else now
        )
        fresh = now + freshness(answer.headers)
        return await self.store.keep_app(replace(made, updated_at=now, fresh_until=fresh))


def is_document(url: str) -> bool:
    """Return whether the URL may be a `client_id`: https, a public-looking host, a path, and only one spelling."""
    if not _URL.fullmatch(url):
        return False
    path = urlsplit(url).path
    return path != "/" and not any(part in (".", "..") for part in path.split("/"))


def freshness(headers: Mapping[str, str]) -> timedelta:
    """Return how long a document is fresh by its Cache-Control: at least a minute, at most a day."""
    metadata = headers.get("cache-control", "")
    if "no-store" in metadata.lower() or "no-cache" in metadata.lower():
        return FRESH_LEAST
    age = _MAX_AGE.search(metadata)
    return min(max(timedelta(seconds=int(age[1])), FRESH_LEAST), FRESH_MOST) if age else FRESH_UNSAID


def _object(answer: Response) -> Mapping[str, Any]:
    """Return the JSON object of the response. Raises OAuthError."""
    kind = answer.media_type
    if answer.status != 200 or not answer.whole or not (kind == "application/json" or kind.endswith("+json")):
        raise OAuthError(
            "invalid_client", f"The document at client_id is answered 200, as JSON, of at most {DOCUMENT_BYTES} bytes."
        )
    try:
        document = json.loads(answer.body)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise OAuthError("invalid_client", "The document at client_id is no JSON object.")
    return document


def _app(id: str, client_id: str, origin: Origin, found: Metadata, created_at: datetime) -> App:
    return App(
        id=id,
        client_id=client_id,
        kind=AppKind.WEB if found.confidential else AppKind.NATIVE,
        origin=origin,
        name=found.name,
        redirect_uris=found.redirect_uris,
        scopes=found.scopes,
        created_at=created_at,
        updated_at=created_at,
        home=found.home,
    )
