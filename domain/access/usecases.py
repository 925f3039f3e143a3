"""Authentication of requests, and creation of API keys, which are stored as keyed hashes."""

import hmac
import secrets
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime

from domain.access.model import (
    KEY_PREFIXES,
    ROLES,
    SCOPES,
    SESSION_PREFIX,
    TOKEN_PREFIXES,
    ApiKey,
    Credential,
    Principal,
    compute_checksum,
    is_address_allowed,
    limit_scopes_to_role,
)
from domain.access.ports import CredentialLookup, KeyStore, TokenLookup
from domain.kernel.errors import AuthenticationRequired, InvalidRequest, PermissionDenied
from domain.kernel.ids import ALPHABET, new_id
from domain.kernel.tenancy import Tenant
from domain.orgs.ports import OrgStore
from domain.secrets.keys import ActiveKeys
from ports.unit_of_work import Tx

_KINDS = (*TOKEN_PREFIXES.items(), (SESSION_PREFIX, b"s"))
_KEY_DIGEST_BYTES = 32
"""Length of an API key's digest in bytes; digests of other credentials have one more byte in front."""
StoredCredential = tuple[Credential, Principal]


@dataclass(frozen=True, slots=True)
class KeyRequest:
    """Properties of a new API key.

    `role` is the role of the key's creator. `networks` are CIDR blocks from which the key may be used; empty for any.
    """

    name: str
    restricted: bool = False
    scopes: frozenset[str] = SCOPES
    role: str = "owner"
    networks: tuple[str, ...] = ()
    expires_at: datetime | None = None
    member: str | None = None


def generate_api_key(livemode: bool, restricted: bool) -> str:
    """Return the text of a new API key (see `generate_secret`), with the prefix for its mode and kind.

    Args:
        livemode: Whether the key is for live mode; otherwise for test mode.
        restricted: Whether the prefix marks the key as restricted.
    """
    return generate_secret(KEY_PREFIXES[livemode, restricted])


def generate_secret(prefix: str) -> str:
    """Return a new secret: the prefix, 32 random base62 characters (190 bits), and a checksum of 6 characters."""
    body = "".join(secrets.choice(ALPHABET) for _ in range(32))
    return prefix + body + compute_checksum(prefix + body)


class AccessService:
    """Verification of credentials, and creation of API keys.

    `keys` has the keys for hashing. `tokens` has the look-up of each kind of token, by the first byte of the digests.
    """

    def __init__(
        self, credentials: CredentialLookup, keys: ActiveKeys, tokens: Mapping[bytes, TokenLookup] | None = None
    ) -> None:
        self._credentials, self._keys, self._tokens = credentials, keys, tokens or {}

    def compute_digest(self, text: str) -> bytes:
        """Compute the keyed hash under which a credential is stored.

        The hash is HMAC-SHA256 (RFC 2104); for credentials other than API keys, the byte of the kind precedes it. Raises
        Unavailable.
        """
        digest = hmac.digest(self._keys.api_key_hash_key, text.encode(), "sha256")
        kind = next((kind for prefix, kind in _KINDS if text.startswith(prefix)), b"")
        return kind + digest

    async def find(self, digest: bytes) -> StoredCredential | None:
        """Return the credential with the digest, and its principal with the scopes of the member's role; None if unknown."""
        return (await self.find_all((digest,))).get(digest)

    async def find_all(self, digests: Collection[bytes]) -> Mapping[bytes, StoredCredential]:
        """Return stored credentials and their principals by digest; unknown digests are omitted."""
        proofs: dict[bytes, StoredCredential] = {}
        if keys := [digest for digest in digests if len(digest) == _KEY_DIGEST_BYTES]:
            proofs |= await self._credentials.find_keys(keys)
        for kind, store in self._tokens.items():
            if tokens := [digest for digest in digests if len(digest) > _KEY_DIGEST_BYTES and digest[:1] == kind]:
                proofs |= await store.find_tokens(tokens)
        return {digest: _limit_scopes(proof) for digest, proof in proofs.items()}

    @staticmethod
    def verify(stored_credential: StoredCredential | None, address: str, now: datetime) -> Principal:
        """Return the principal of a credential, if the credential is active and used from an allowed address.

        Otherwise, raises the same AuthenticationRequired for every cause.
        """
        if stored_credential is None:
            raise AuthenticationRequired
        credential, principal = stored_credential
        expires_at = credential.expires_at
        ended = credential.revoked_at is not None or (expires_at is not None and expires_at <= now)
        if ended or not is_address_allowed(credential.networks, address):
            raise AuthenticationRequired
        return principal

    async def pin_version(self, org: str, version: str) -> str:
        """Set the organisation's API version to `version` if none is set; return the organisation's API version."""
        return await self._credentials.pin_version(org, version)

    async def create_key(self, tx: Tx, request: KeyRequest) -> tuple[ApiKey, str]:
        """Create and store an API key for the transaction's organisation and mode; return the key and the secret.

        Scopes that the role does not include are omitted. Raises InvalidRequest for an unknown scope.
        """
        if unknown := request.scopes - SCOPES:
            raise InvalidRequest(f"Unknown scopes: {', '.join(sorted(unknown))}. Use: {', '.join(sorted(SCOPES))}.")
        text = generate_api_key(tx.tenant.livemode, request.restricted)
        key = self._create_key(tx.tenant, request, text, tx.now)
        await tx[KeyStore].add(key)
        return key, text

    def _create_key(self, tenant: Tenant, request: KeyRequest, text: str, now: datetime) -> ApiKey:
        return ApiKey(
            id=new_id("key"),
            tenant=tenant,
            name=request.name,
            digest=self.compute_digest(text),
            last4=text[-4:],
            restricted=request.restricted,
            scopes=limit_scopes_to_role(request.scopes, request.role),
            role=request.role,
            networks=request.networks,
            expires_at=request.expires_at,
            revoked_at=None,
            created_at=now,
            member=request.member,
        )


def _limit_scopes(proof: StoredCredential) -> StoredCredential:
    credential, principal = proof
    return credential, replace(principal, scopes=limit_scopes_to_role(principal.scopes, principal.role))


async def find_member_scopes(tx: Tx, user: str) -> frozenset[str]:
    """Return the scopes of a user's current role in the organisation; none if the user is not a member."""
    member = await tx[OrgStore].find_member_by_user(user)
    return ROLES[member.role] if member else frozenset()


async def require_member_scope(tx: Tx, user: str, scope: str) -> None:
    """Raise PermissionDenied unless the person for whom a job acts is a member whose present role has the scope."""
    scopes = await find_member_scopes(tx, user)
    if not scopes:
        raise PermissionDenied("The person who started this has left the organisation.")
    if scope not in scopes:
        raise PermissionDenied("The role of the person who started this no longer permits it.")


def parse_scopes(words: Iterable[str]) -> frozenset[str]:
    """Return the scopes that an operator's list names; the word `all` means every scope."""
    named = frozenset(words)
    return SCOPES if "all" in named else named
