"""Discovery documents and keys of providers, cached and refreshed when a key is missing."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oidc.discovery import get_well_known_url
from joserfc.jwk import KeySet

from adapters.oidc.keys import UnusableKeys, import_public_keys
from domain.sso.ports import ProviderFault
from ports.outbound import Outbound, OutboundFailed

KEPT_SECONDS = 600.0
KEYS_AGAIN = 30.0
"""Minimum seconds between refreshes of an issuer's keys for an unknown key ID, so that forged tokens cannot cause more."""
MOST = 500
"""Maximum number of cached issuers."""
LARGEST = 64 * 1024
"""Maximum bytes of a document or token response."""
_REQUIRED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
SIGNED_WITH = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
)
"""Accepted signature algorithms: asymmetric ones only, so neither `none` nor any with the client secret."""


@dataclass(slots=True)
class _CacheEntry:
    document: Mapping[str, Any]
    expires_at: float
    keys: KeySet | None = None
    keys_at: float = float("-inf")


class ProviderDocuments:
    """Cache of issuers' documents and keys. Methods raise ProviderFault for unavailable or invalid documents."""

    def __init__(self, outbound: Outbound, seconds: Callable[[], float] = time.monotonic) -> None:
        self._outbound, self._seconds = outbound, seconds
        self._cache: OrderedDict[str, _CacheEntry] = OrderedDict()

    async def find(self, issuer: str) -> Mapping[str, Any]:
        """Return the validated discovery document, cached for KEPT_SECONDS."""
        return (await self._entry(issuer)).document

    async def fresh(self, issuer: str) -> Mapping[str, Any]:
        """Fetch and validate the discovery document. Its `issuer` may differ from the given one in a trailing slash."""
        document = await self._json(get_well_known_url(issuer, external=True), "discovery document")
        self._check(document, issuer)
        self._remember(document)
        return document

    async def keys(self, issuer: str, *, again: bool = False) -> KeySet:
        """Return the issuer's signature keys; `again` fetches them anew, at most every KEYS_AGAIN seconds."""
        entry = await self._entry(issuer)
        stale = again and self._seconds() > entry.keys_at + KEYS_AGAIN
        if entry.keys is None or stale:
            key_set = await self._json(entry.document["jwks_uri"], "keys")
            try:
                entry.keys = import_public_keys(key_set)
            except UnusableKeys as error:
                raise ProviderFault(f"The provider's keys cannot be used: {error}.") from None
            entry.keys_at = self._seconds()
        return entry.keys

    async def _entry(self, issuer: str) -> _CacheEntry:
        entry = self._cache.get(issuer)
        if entry is None or entry.expires_at < self._seconds():
            document = await self.fresh(issuer)
            if document["issuer"] != issuer:
                raise ProviderFault("The provider's discovery document is about another issuer.")
            entry = self._cache[issuer]
        return entry

    def _remember(self, document: Mapping[str, Any]) -> None:
        self._cache[document["issuer"]] = _CacheEntry(document, self._seconds() + KEPT_SECONDS)
        while len(self._cache) > MOST:
            self._cache.popitem(last=False)

    def _check(self, document: Mapping[str, Any], issuer: str) -> None:
        stated = document.get("issuer")
        if not isinstance(stated, str) or stated.rstrip("/") != issuer.rstrip("/"):
            raise ProviderFault("The provider's discovery document is about another issuer.")
        for name in (*_REQUIRED, "userinfo_endpoint"):
            url = document.get(name)
            if name in _REQUIRED and not isinstance(url, str):
                raise ProviderFault(f"The provider's discovery document has no {name}.")
            if url is not None and not self._outbound.permits(str(url)):
                raise ProviderFault(f"The provider's {name} is not permitted: it must be an https URL.")
        if not algorithms(document):
            raise ProviderFault("The provider supports no safe signature algorithm, such as RS256 or ES256.")

    async def _json(self, url: str, description: str) -> Mapping[str, Any]:
        if not self._outbound.permits(url):
            raise ProviderFault("The issuer must be an https URL.")
        try:
            answer = await self._outbound.ask("GET", url, {"Accept": "application/json"})
        except OutboundFailed as error:
            raise ProviderFault(f"The provider's {description} cannot be fetched: {error}") from None
        if answer.status != 200:
            raise ProviderFault(f"The provider's {description} cannot be fetched: the status is {answer.status}.")
        return decoded(answer.body, description)


def decoded(body: bytes, description: str) -> Mapping[str, Any]:
    """Decode a JSON object of at most LARGEST bytes. Raises ProviderFault."""
    if len(body) > LARGEST:
        raise ProviderFault(f"The provider's {description} is larger than {LARGEST} bytes.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProviderFault(f"The provider's {description} is not a JSON object.")
    return value


def algorithms(document: Mapping[str, Any]) -> list[str]:
    """Return the provider's algorithms that are accepted; the default is RS256."""
    names = document.get("id_token_signing_alg_values_supported") or ["RS256"]
    return [name for name in names if isinstance(name, str) and name in SIGNED_WITH] if isinstance(names, list) else []
