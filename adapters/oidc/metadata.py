"""What a provider says of itself: its discovery document and its keys, kept for a while and asked for anew when a key is missing."""

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
"""Seconds between two requests for an issuer's keys because one of them is missing: strangers' tokens cause no more."""
MOST = 500
"""Issuers that are remembered."""
LARGEST = 64 * 1024
"""Bytes of a document or token answer that are parsed."""
_NEEDED = ("authorization_endpoint", "token_endpoint", "jwks_uri")
SIGNED_WITH = frozenset(
    ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519")
)
"""Signatures that a provider's public key checks; never `none`, and none by a secret that the client has as well."""


@dataclass(slots=True)
class _Kept:
    document: Mapping[str, Any]
    until: float
    keys: KeySet | None = None
    keys_at: float = float("-inf")


class ProviderDocuments:
    """Documents of issuers. Raises ProviderFault for all that does not hold."""

    def __init__(self, outbound: Outbound, seconds: Callable[[], float] = time.monotonic) -> None:
        self._outbound, self._seconds = outbound, seconds
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def find(self, issuer: str) -> Mapping[str, Any]:
        """The discovery document: complete, about that issuer, and leading to permitted addresses alone."""
        return (await self._entry(issuer)).document

    async def fresh(self, issuer: str) -> Mapping[str, Any]:
        """The same, asked for now. Its `issuer` may end in a slash that the given one lacks, or lack one."""
        document = await self._json(get_well_known_url(issuer, external=True), "discovery document")
        self._check(document, issuer)
        self._remember(document)
        return document

    async def keys(self, issuer: str, *, again: bool = False) -> KeySet:
        """The keys that it signs with; `again` asks anew, unless that was done just now."""
        entry = await self._entry(issuer)
        stale = again and self._seconds() > entry.keys_at + KEYS_AGAIN
        if entry.keys is None or stale:
            found = await self._json(entry.document["jwks_uri"], "keys")
            try:
                entry.keys = import_public_keys(found)
            except UnusableKeys as error:
                raise ProviderFault(f"The provider's keys cannot be used: {error}.") from None
            entry.keys_at = self._seconds()
        return entry.keys

    async def _entry(self, issuer: str) -> _Kept:
        kept = self._kept.get(issuer)
        if kept is None or kept.until < self._seconds():
            document = await self.fresh(issuer)
            if document["issuer"] != issuer:
                raise ProviderFault("The provider's discovery document is about another issuer.")
            kept = self._kept[issuer]
        return kept

    def _remember(self, document: Mapping[str, Any]) -> None:
        self._kept[document["issuer"]] = _Kept(document, self._seconds() + KEPT_SECONDS)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)

    def _check(self, document: Mapping[str, Any], issuer: str) -> None:
        told = document.get("issuer")
        if not isinstance(told, str) or told.rstrip("/") != issuer.rstrip("/"):
            raise ProviderFault("The provider's discovery document is about another issuer.")
        for name in (*_NEEDED, "userinfo_endpoint"):
            url = document.get(name)
            if name in _NEEDED and not isinstance(url, str):
                raise ProviderFault(f"The provider's discovery document has no {name}.")
            if url is not None and not self._outbound.permits(str(url)):
                raise ProviderFault(f"The provider's {name} is no address that may be used: it must be https.")
        if not algorithms(document):
            raise ProviderFault("The provider signs in no way that is safe: it needs RS256, ES256 or the like.")

    async def _json(self, url: str, what: str) -> Mapping[str, Any]:
        if not self._outbound.permits(url):
            raise ProviderFault("The issuer must be an https address.")
        try:
            answer = await self._outbound.ask("GET", url, {"Accept": "application/json"})
        except OutboundFailed as error:
            raise ProviderFault(f"The provider's {what} cannot be had: {error}") from None
        if answer.status != 200:
            raise ProviderFault(f"The provider's {what} cannot be had: it answers {answer.status}.")
        return decoded(answer.body, what)


def decoded(body: bytes, what: str) -> Mapping[str, Any]:
    """Decode a JSON object of at most LARGEST bytes. Raises ProviderFault."""
    if len(body) > LARGEST:
        raise ProviderFault(f"The provider's {what} is larger than {LARGEST} bytes.")
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise ProviderFault(f"The provider's {what} is no JSON object.")
    return found


def algorithms(document: Mapping[str, Any]) -> list[str]:
    """With which of the safe ones it signs; RS256 when it does not say."""
    told = document.get("id_token_signing_alg_values_supported") or ["RS256"]
    return [one for one in told if isinstance(one, str) and one in SIGNED_WITH] if isinstance(told, list) else []
