"""Storage of apps, grants and tokens, and the protocol rules of OAuth."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.oauth.asking import Call, DeviceStart, Granted, Known, Metadata, Wish
from domain.oauth.model import App, Code, Device, Family, Grant, HeldToken, Token


class TokenDigest(Protocol):
    """Keyed hash under which tokens are stored."""

    def __call__(self, token: str, /) -> bytes:
        """Return the hash."""
        ...


class AppStore(Protocol):
    """The organisation's apps, and its members' grants to any app, in a tenant's transaction. They have no mode."""

    async def add(self, app: App) -> None:
        """Store a new app."""
        ...

    async def get(self, id: str) -> App | None:
        """Return an app, or None."""
        ...

    async def all(self) -> Sequence[App]:
        """Return all apps, oldest first."""
        ...

    async def save(self, app: App) -> None:
        """Store the changed app."""
        ...

    async def remove(self, id: str) -> bool:
        """Delete an app, which invalidates its tokens; return False if there is none."""
        ...

    async def grants(self, user: str | None = None) -> Sequence[Grant]:
        """Return the active grants, of one person or of all, oldest first."""
        ...

    async def grant(self, app: str, user: str) -> Grant | None:
        """Return the person's active grant to that app, or None."""
        ...

    async def put_grant(self, grant: Grant) -> None:
        """Store a new or changed grant."""
        ...


class TokenStore(Protocol):
    """Apps by client id, codes and tokens, across tenants."""

    async def app(self, client_id: str) -> App | None:
        """Return the app with that client id, whoever created it."""
        ...

    async def app_of(self, id: str) -> App | None:
        """Return the app with that id."""
        ...

    async def keep_app(self, app: App) -> App:
        """Store an app that no organisation created, under its `client_id`; return it with any earlier id."""
        ...

    async def add_code(self, code: Code) -> None:
        """Store a new code."""
        ...

    async def code(self, digest: bytes) -> Code | None:
        """Return a code, used or not."""
        ...

    async def token(self, digest: bytes) -> HeldToken | None:
        """Return a token of any kind, active or not."""
        ...

    async def redeem(self, code: Code, family: Family, tokens: Collection[Token]) -> bool:
        """Use the code and store its tokens atomically; return False, with nothing stored, if it was used before."""
        ...

    async def rotate(self, held: HeldToken, tokens: Collection[Token], now: datetime) -> bool:
        """Mark the refresh token as used, store its new tokens and end earlier ones, atomically.

        Returns False, with nothing stored, if the token has changed since it was read.
        """
        ...

    async def issue(self, family: Family, tokens: Collection[Token]) -> None:
        """Store a family with its first tokens."""
        ...

    async def end(self, family: str, why: str, now: datetime) -> bool:
        """End all tokens of a family; return False if it had ended, or does not exist."""
        ...

    async def end_token(self, digest: bytes, now: datetime) -> None:
        """End one token."""
        ...

    async def add_device(self, device: Device) -> bool:
        """Store a device's request; return False if its user code is taken."""
        ...

    async def device(self, digest: bytes) -> Device | None:
        """Return the request with that device code."""
        ...

    async def device_of_user_code(self, digest: bytes, now: datetime) -> Device | None:
        """Return the unexpired request with that user code."""
        ...

    async def save_poll(self, device: Device) -> None:
        """Store the time of the last poll and the interval."""
        ...

    async def decide(self, device: Device) -> bool:
        """Store the person's decision; return False if there is one already."""
        ...

    async def take(self, device: Device, family: Family, tokens: Collection[Token], now: datetime) -> bool:
        """Mark an approved request as used and store its tokens atomically; return False if it was used before."""
        ...

    async def used(self, app: App, now: datetime) -> None:
        """Record a sign-in to an app that no organisation created."""
        ...

    async def purge(self, now: datetime, unused_since: datetime) -> int:
        """Delete what has expired, and self-registered apps unused since then; return the number of rows."""
        ...


@dataclass(frozen=True, slots=True)
class Redirect:
    """Redirect URI with the response parameters, and the code in it; None with a refusal."""

    location: str
    code: str | None


class GrantRules(Protocol):
    """Protocol rules of OAuth: validation of requests against stored rows, and responses.

    Stores nothing. All methods raise OAuthError for refusals.
    """

    def claimed(self, call: Call) -> str | None:
        """Return the `client_id` that the request claims."""
        ...

    def wish(self, call: Call, known: Known) -> Wish:
        """Validate an authorization request. An error's `location` is set once the redirect URI is validated."""
        ...

    def agreed(self, call: Call, known: Known, user: str) -> Redirect:
        """Return the redirect of an approved authorization request."""
        ...

    def denied(self, call: Call, known: Known, code: str = "access_denied") -> Redirect:
        """Return the redirect of a request that was denied or could not be shown."""
        ...

    def token(self, call: Call, known: Known) -> Granted:
        """Return the tokens of a token request."""
        ...

    def device(self, call: Call, known: Known) -> DeviceStart:
        """Return the response to a device authorization request."""
        ...

    def presented(self, call: Call, known: Known, endpoint: str) -> Mapping[str, Any]:
        """Return the response of `revocation` or `introspection`. The app is authenticated and must own the token."""
        ...

    def registered(self, metadata: Mapping[str, Any]) -> Metadata:
        """Validate the metadata of an app that registers itself."""
        ...

    def described(self, url: str, document: Mapping[str, Any]) -> Metadata:
        """Validate the metadata document at an app's `client_id`."""
        ...

    def server(self) -> Mapping[str, Any]:
        """Return the authorization server metadata (RFC 8414)."""
        ...
