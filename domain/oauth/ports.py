"""Ports of OAuth: storage of apps, consents and tokens, and the rules of the protocol."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.oauth.model import App, AuthorizationCode, DeviceRequest, OAuthConsent, Token, TokenFamily, TokenWithFamily
from domain.oauth.requests import (
    AuthorizationRequest,
    ClientMetadata,
    DeviceAuthorization,
    OAuthRequest,
    ReferencedRows,
    TokenGrant,
)


class TokenHasher(Protocol):
    """Function that computes the keyed hash under which a token is stored."""

    def __call__(self, token: str, /) -> bytes:
        """Return the keyed hash of the token."""
        ...


class AppStore(Protocol):
    """Storage of an organisation's apps, and of its members' consents to any app, in a tenant's transaction.

    Both modes of the organisation have the same apps and consents.
    """

    async def add(self, app: App) -> None:
        """Store a new app."""
        ...

    async def get(self, id: str) -> App | None:
        """Return the organisation's app with that ID, or None."""
        ...

    async def list_apps(self) -> Sequence[App]:
        """Return all apps of the organisation, oldest first."""
        ...

    async def save(self, app: App) -> None:
        """Store the changed properties of an app."""
        ...

    async def remove(self, id: str) -> bool:
        """Delete an app, which invalidates its tokens; return False if the organisation has no such app."""
        ...

    async def list_consents(self, user: str | None = None) -> Sequence[OAuthConsent]:
        """Return the active consents of one user, or of all members if `user` is None, oldest first."""
        ...

    async def find_consent(self, app: str, user: str) -> OAuthConsent | None:
        """Return the user's active consent to the app, or None."""
        ...

    async def save_consent(self, consent: OAuthConsent) -> None:
        """Store a new or changed consent."""
        ...


class TokenStore(Protocol):
    """Storage of apps by client ID, and of the codes and tokens of all tenants."""

    async def find_app(self, client_id: str) -> App | None:
        """Return the app with that client ID, created by an organisation or registered dynamically; None if unknown."""
        ...

    async def get_app(self, id: str) -> App | None:
        """Return the app with that ID, or None."""
        ...

    async def save_app(self, app: App) -> App:
        """Store an app that no organisation created, and return it.

        A stored app with the same `client_id` is updated, and retains its ID.
        """
        ...

    async def add_code(self, code: AuthorizationCode) -> None:
        """Store a new authorization code."""
        ...

    async def find_code(self, digest: bytes) -> AuthorizationCode | None:
        """Return the authorization code with that keyed hash, also if it was used, or None."""
        ...

    async def find_token(self, digest: bytes) -> TokenWithFamily | None:
        """Return the access or refresh token with that keyed hash, also if it is revoked or expired.

        None if unknown.
        """
        ...

    async def redeem_code(self, code: AuthorizationCode, family: TokenFamily, tokens: Collection[Token]) -> bool:
        """Mark the authorization code as used and store the tokens issued for it, atomically.

        Returns False, and stores nothing, if the code was used before.
        """
        ...

    async def redeem_refresh_token(self, stored: TokenWithFamily, tokens: Collection[Token], now: datetime) -> bool:
        """Mark the refresh token as used and store the tokens issued for it, atomically.

        Tokens that an earlier use of the same refresh token returned are revoked. Returns False, and stores nothing, if
        the stored token has changed since `stored` was read.
        """
        ...

    async def add_family(self, family: TokenFamily, tokens: Collection[Token]) -> None:
        """Store a token family with its first tokens."""
        ...

    async def revoke_family(self, family: str, reason: str, now: datetime) -> bool:
        """Revoke all tokens of a token family; `reason` is the reason, `revoked` or `reuse`.

        Returns False if the family was already revoked or does not exist.
        """
        ...

    async def revoke_token(self, digest: bytes, now: datetime) -> None:
        """Revoke one token; the other tokens of its family remain valid."""
        ...

    async def add_device(self, device: DeviceRequest) -> bool:
        """Store a device authorization request; return False if its user code is taken."""
        ...

    async def find_device(self, digest: bytes) -> DeviceRequest | None:
        """Return the device authorization request whose device code has that keyed hash, or None."""
        ...

    async def find_device_by_user_code(self, digest: bytes, now: datetime) -> DeviceRequest | None:
        """Return the unexpired device authorization request whose user code has that keyed hash, or None."""
        ...

    async def save_poll(self, device: DeviceRequest) -> None:
        """Store the time of the device's last poll, and the minimum interval between its polls."""
        ...

    async def save_decision(self, device: DeviceRequest) -> bool:
        """Store the user's decision on a device authorization request; return False if a decision is stored already."""
        ...

    async def redeem_device(
        self, device: DeviceRequest, family: TokenFamily, tokens: Collection[Token], now: datetime
    ) -> bool:
        """Mark an approved device authorization request as used and store the tokens issued for it, atomically.

        Returns False, and stores nothing, if the request was used before.
        """
        ...

    async def record_sign_in(self, app: App, now: datetime) -> None:
        """Store `now` as the last sign-in to an app that no organisation created."""
        ...

    async def delete_expired(self, now: datetime, unused_since: datetime) -> int:
        """Delete codes, token families and device requests that expired before `now`, and unused dynamically registered apps.

        An app is unused without a sign-in since `unused_since`. Returns the number of deleted rows.
        """
        ...


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect of the browser to the app.

    Attributes:
        location: The redirect URI with the parameters of the response.
        code: The authorization code in `location`; None if `location` reports an error.
    """

    location: str
    code: str | None


class OAuthProtocol(Protocol):
    """Rules of the OAuth protocol: validation of requests against stored rows, and contents of responses.

    The methods store nothing, and raise OAuthError to refuse a request. The parameter `oauth_request` is the
    request, `rows` are the stored rows that the request refers to.
    """

    def get_client_id(self, oauth_request: OAuthRequest) -> str | None:
        """Return the `client_id` that the request contains, without verifying it, or None."""
        ...

    def validate_authorization(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> AuthorizationRequest:
        """Validate an authorization request.

        Errors after the validation of the redirect URI have a `location`, to which the browser is redirected.
        """
        ...

    def approve(self, oauth_request: OAuthRequest, rows: ReferencedRows, user: str) -> Redirect:
        """Create a code for an authorization request that the user has approved.

        Return the redirect that contains the code.
        """
        ...

    def deny(self, oauth_request: OAuthRequest, rows: ReferencedRows, error_code: str = "access_denied") -> Redirect:
        """Return the redirect that reports an error to the app, instead of a code.

        `error_code` is `access_denied` if the user denied the request. It is `login_required` or `interaction_required`
        if the user must act first, but the request permits no page (`prompt=none`).
        """
        ...

    def grant_tokens(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> TokenGrant:
        """Validate a token request; return the tokens to issue."""
        ...

    def authorise_device(self, oauth_request: OAuthRequest, rows: ReferencedRows) -> DeviceAuthorization:
        """Validate a device authorization request; return the new codes and the response."""
        ...

    def answer_revocation_or_introspection(
        self, oauth_request: OAuthRequest, rows: ReferencedRows, endpoint: str
    ) -> Mapping[str, Any]:
        """Authenticate the app in a revocation or introspection request; return the response.

        A token of another app counts as unknown. `endpoint` is `revocation` or `introspection`.
        """
        ...

    def validate_metadata(self, metadata: Mapping[str, Any]) -> ClientMetadata:
        """Validate the metadata of an app that registers itself."""
        ...

    def validate_document(self, url: str, document: Mapping[str, Any]) -> ClientMetadata:
        """Validate the metadata document that was fetched from `url`, the `client_id` of an app."""
        ...

    def describe_server(self) -> Mapping[str, Any]:
        """Return the authorization server metadata (RFC 8414)."""
        ...
