"""Cache of the discovery documents and signature keys of identity providers."""

import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from authlib.oidc.discovery import get_well_known_url
from joserfc.jwk import KeySet

from adapters.oidc.keys import UnusableKeySet, import_public_keys
from domain.sso.ports import ProviderFault
from ports.outbound import OutboundClient, OutboundFailed

CACHE_SECONDS = 600.0
"""Seconds for which a discovery document is cached."""
MIN_KEY_REFRESH_SECONDS = 30.0
"""Minimum seconds between two refreshes of an issuer's keys, so that forged tokens cannot cause many requests."""
MAX_ISSUERS = 500
"""Maximum number of cached issuers; beyond it, the issuer that was added first is removed."""
MAX_DOCUMENT_BYTES = 64 * 1024
"""Maximum bytes of a JSON document of an identity provider."""
_REQUIRED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
SIGNATURE_ALGORITHMS = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
)
"""Accepted signature algorithms: asymmetric ones only."""


@dataclass(slots=True)
class _CacheEntry:
    """Discovery document and signature keys of one issuer. Times are monotonic seconds.

    Attributes:
        document: Validated discovery document.
        expires_at: Time until which the entry is used.
        keys: Signature keys; None until they are requested for the first time.
        keys_at: Time at which the keys were fetched.
    """

    document: Mapping[str, Any]
    expires_at: float
    keys: KeySet | None = None
    keys_at: float = float("-inf")


class ProviderDocuments:
    """Cache of the discovery documents and keys of identity providers.

    All methods raise ProviderFault if the document or the keys are unavailable or invalid.

    Args:
        outbound: The HTTP client.
        clock: Returns monotonic seconds.
    """

    def __init__(self, outbound: OutboundClient, clock: Callable[[], float] = time.monotonic) -> None:
        self._outbound, self._seconds = outbound, clock
        self._cache: OrderedDict[str, _CacheEntry] = OrderedDict()

    async def get_document(self, issuer: str) -> Mapping[str, Any]:
        """Return the validated discovery document of the issuer, from the cache or the provider."""
        return (await self._find_entry(issuer)).document

    async def fetch_document(self, issuer: str) -> Mapping[str, Any]:
        """Fetch, validate and cache the discovery document of the issuer, whether or not it is already cached.

        The issuer stated in the document may differ from `issuer` by a trailing slash.
        """
        document = await self._fetch_json(get_well_known_url(issuer, external=True), "discovery document")
        self._check_document(document, issuer)
        self._cache_document(document)
        return document

    async def get_keys(self, issuer: str, *, refresh: bool = False) -> KeySet:
        """Return the signature keys of the issuer, from the cache or the provider.

        Args:
            issuer: The issuer.
            refresh: Whether to fetch cached keys again, unless they are younger than MIN_KEY_REFRESH_SECONDS.
        """
        entry = await self._find_entry(issuer)
        stale = refresh and self._seconds() > entry.keys_at + MIN_KEY_REFRESH_SECONDS
        if entry.keys is None or stale:
            key_set = await self._fetch_json(entry.document["jwks_uri"], "keys")
            try:
                entry.keys = import_public_keys(key_set)
            except UnusableKeySet as error:
                raise ProviderFault(f"The provider's keys are unusable: {error}.") from None
            entry.keys_at = self._seconds()
        return entry.keys

    async def _find_entry(self, issuer: str) -> _CacheEntry:
        """Return the cache entry of the issuer; fetch the discovery document if it is missing or expired."""
        entry = self._cache.get(issuer)
        if entry is None or entry.expires_at < self._seconds():
            document = await self.fetch_document(issuer)
            if document["issuer"] != issuer:
                raise ProviderFault(
                    "The provider's discovery document names another issuer. An owner must check the issuer URL."
                )
            entry = self._cache[issuer]
        return entry

    def _cache_document(self, document: Mapping[str, Any]) -> None:
        self._cache[document["issuer"]] = _CacheEntry(document, self._seconds() + CACHE_SECONDS)
        while len(self._cache) > MAX_ISSUERS:
            self._cache.popitem(last=False)

    def _check_document(self, document: Mapping[str, Any], issuer: str) -> None:
        """Raise ProviderFault if the discovery document belongs to another issuer, or lacks required values."""
        stated = document.get("issuer")
        if not isinstance(stated, str) or stated.rstrip("/") != issuer.rstrip("/"):
            raise ProviderFault(
                "The provider's discovery document names another issuer. An owner must check the issuer URL."
            )
        for name in (*_REQUIRED, "userinfo_endpoint"):
            url = document.get(name)
            if name in _REQUIRED and not isinstance(url, str):
                raise ProviderFault(f"The provider's discovery document has no {name}.")
            if url is not None and not self._outbound.permits(str(url)):
                raise ProviderFault(f"The provider's {name} must be an https URL.")
        if not select_algorithms(document):
            raise ProviderFault(
                "The provider supports no accepted signature algorithm. Enable RS256 or ES256 at the provider."
            )

    async def _fetch_json(self, url: str, description: str) -> Mapping[str, Any]:
        """Fetch a JSON object; `description` names the object in errors. Raises ProviderFault."""
        if not self._outbound.permits(url):
            raise ProviderFault("The issuer must be an https URL.")
        try:
            response = await self._outbound.request("GET", url, {"Accept": "application/json"})
        except OutboundFailed as error:
            raise ProviderFault(f"The provider's {description} cannot be fetched: {error}") from None
        if response.status != 200:
            raise ProviderFault(f"The provider's {description} cannot be fetched: the status is {response.status}.")
        return decode_json_object(response.body, description)


def decode_json_object(body: bytes, description: str) -> Mapping[str, Any]:
    """Decode a JSON object of at most MAX_DOCUMENT_BYTES; `description` names the object in errors. Raises ProviderFault."""
    if len(body) > MAX_DOCUMENT_BYTES:
        raise ProviderFault(f"The provider's {description} is larger than {MAX_DOCUMENT_BYTES} bytes.")
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise ProviderFault(f"The provider's {description} is not a JSON object.")
    return value


def select_algorithms(document: Mapping[str, Any]) -> list[str]:
    """Return the accepted signature algorithms in a discovery document; RS256 if the document states none."""
    names = document.get("id_token_signing_alg_values_supported") or ["RS256"]
    return (
        [name for name in names if isinstance(name, str) and name in SIGNATURE_ALGORITHMS]
        if isinstance(names, list)
        else []
    )
