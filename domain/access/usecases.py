"""Authentication of requests, and creation of API keys, of which only a keyed hash is stored."""

import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from domain.access.model import (
    KEY_PREFIXES,
    SCOPES,
    SESSION_PREFIX,
    TOKEN_PREFIXES,
    ApiKey,
    Credential,
    Principal,
    address_allowed,
    checksum,
    effective_scopes,
)
from domain.access.ports import Credentials, KeyStore, TokenProofs
from domain.kernel.errors import AuthenticationRequired, InvalidRequest
from domain.kernel.ids import ALPHABET, new_id
from domain.kernel.tenancy import Tenant
from domain.secrets.keys import WorkingKeys
from ports.unit_of_work import Tx

_KINDS = (*TOKEN_PREFIXES.items(), (SESSION_PREFIX, b"s"))
_PLAIN = 32
"""Bytes of an API key's digest; digests of other credentials begin with one more byte."""
Proof = tuple[Credential, Principal]


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Properties of a new key. `role` is its member's role; `networks` are CIDR blocks, empty for any address."""

    name: str
    restricted: bool = False
    scopes: frozenset[str] = SCOPES
    role: str = "owner"
    networks: tuple[str, ...] = ()
    expires_at: datetime | None = None
    member: str | None = None


def new_secret(livemode: bool, restricted: bool) -> str:
    """Return a new key's text: prefix, 32 base62 characters, checksum of 6 (docs/conventions.md#authentication)."""
    return secret_with(KEY_PREFIXES[livemode, restricted])


def secret_with(prefix: str) -> str:
    """Return a new secret: the prefix, 32 random base62 characters (190 bits) and their checksum of 6."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(32))
    return prefix + body + checksum(prefix + body)


class AccessService:
    """Verification of credentials.

    `keys` holds the hash keys; `tokens` maps the first byte of a digest to the store of tokens of that kind.
    """

    def __init__(
        self, credentials: Credentials, keys: WorkingKeys, tokens: Mapping[bytes, TokenProofs] | None = None
    ) -> None:
        self._credentials, self._keys, self._tokens = credentials, keys, tokens or {}

    def digest(self, text: str) -> bytes:
        """Compute the keyed hash under which a credential is stored.

        It is HMAC-SHA256 (RFC 2104), after the byte of its kind unless it is an API key. Raises Unavailable.
        """
        digest = hmac.digest(self._keys.api_keys, text.encode(), "sha256")
        kind = next((kind for prefix, kind in _KINDS if text.startswith(prefix)), b"")
        return kind + digest

    async def find(self, digest: bytes) -> Proof | None:
        """Return the stored credential and its principal, with the scopes cut to the member's role, or None."""
        return (await self.known((digest,))).get(digest)

    async def known(self, digests: Collection[bytes]) -> Mapping[bytes, Proof]:
        """Return the stored credentials and principals by digest; unknown digests are omitted."""
        proofs: dict[bytes, Proof] = {}
        if keys := [digest for digest in digests if len(digest) == _PLAIN]:
            proofs |= await self._credentials.keys(keys)
        for kind, store in self._tokens.items():
            if tokens := [digest for digest in digests if len(digest) > _PLAIN and digest[:1] == kind]:
                proofs |= await store.proofs(tokens)
        return {digest: _cut(proof) for digest, proof in proofs.items()}

    @staticmethod
    def judge(proof: Proof | None, address: str, now: datetime) -> Principal:
        """Return the principal of a credential that is active and used from an allowed address.

        Raises AuthenticationRequired, the same for every reason.
        """
        if proof is None:
            raise AuthenticationRequired
        credential, principal = proof
        expires_at = credential.expires_at
        ended = credential.revoked_at is not None or (expires_at is not None and expires_at <= now)
        if ended or not address_allowed(credential.networks, address):
            raise AuthenticationRequired
        return principal

    async def pin_version(self, org: str, version: str) -> str:
        """Pin the organisation's API version unless one is pinned; return the pinned version."""
        return await self._credentials.pin_version(org, version)

    async def issue_key(self, tx: Tx, request: KeyRequest) -> tuple[ApiKey, str]:
        """Create and store a key of the transaction's organisation and mode; return it and its secret.

        Scopes that the role lacks are omitted. Raises InvalidRequest for an unknown scope.
        """
        if unknown := request.scopes - SCOPES:
            raise InvalidRequest(f"Unknown scopes: {', '.join(sorted(unknown))}. Use: {', '.join(sorted(SCOPES))}.")
        text = new_secret(tx.tenant.livemode, request.restricted)
        key = self._key_of(tx.tenant, request, text, tx.now)
        await tx[KeyStore].add(key)
        return key, text

    def _key_of(self, tenant: Tenant, request: KeyRequest, text: str, now: datetime) -> ApiKey:
        return ApiKey(
            id=new_id("key"),
            tenant=tenant,
            name=request.name,
            digest=self.digest(text),
            last4=text[-4:],
            restricted=request.restricted,
            scopes=effective_scopes(request.scopes, request.role),
            role=request.role,
            networks=request.networks,
            expires_at=request.expires_at,
            revoked_at=None,
            created_at=now,
            member=request.member,
        )


def _cut(proof: Proof) -> Proof:
    credential, principal = proof
    return credential, replace(principal, scopes=effective_scopes(principal.scopes, principal.role))


def scopes_of(words: Iterable[str]) -> frozenset[str]:
    """Return the scopes that an operator names; `all` stands for every scope."""
    named = frozenset(words)
    return SCOPES if "all" in named else named
