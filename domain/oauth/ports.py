"""OAuth in store, and who knows its grammar: apps and grants of an organisation, sign-ins of all, and the rules of the RFCs."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from domain.oauth.asking import Call, DeviceStart, Granted, Known, Metadata, Wish
from domain.oauth.model import App, Code, Device, Family, Grant, HeldToken, Token


class TokenDigest(Protocol):
    """The keyed hash of a token, which is what is stored of it."""

    def __call__(self, token: str, /) -> bytes:
        """Return the hash."""
        ...


class AppStore(Protocol):
    """In a tenant's transaction: the apps that the organisation made, and what its people granted to any. Of no mode."""

    async def add(self, app: App) -> None:
        """Keep a new app."""
        ...

    async def get(self, id: str) -> App | None:
        """One of them."""
        ...

    async def all(self) -> Sequence[App]:
        """Every one, the oldest first."""
        ...

    async def save(self, app: App) -> None:
        """Keep the app as it is now."""
        ...

    async def remove(self, id: str) -> bool:
        """Take one away, and with it everything that its tokens prove; False when there is none."""
        ...

    async def grants(self, user: str | None = None) -> Sequence[Grant]:
        """Return the grants in force, of one person or of all, oldest first."""
        ...

    async def grant(self, app: str, user: str) -> Grant | None:
        """Return the grant in force of the person for the app."""
        ...

    async def put_grant(self, grant: Grant) -> None:
        """Keep a new grant, or an old one as it is now."""
        ...


class TokenStore(Protocol):
    """Across tenants: apps by how they name themselves, and the codes and tokens of sign-ins."""

    async def app(self, client_id: str) -> App | None:
        """Return the app with the client ID, of any organisation."""
        ...

    async def app_of(self, id: str) -> App | None:
        """Return the app with the ID."""
        ...

    async def keep_app(self, app: App) -> App:
        """Keep an app that no organisation made, under its `client_id`; answers it with the id that it had before."""
        ...

    async def add_code(self, code: Code) -> None:
        """Keep a new code."""
        ...

    async def code(self, digest: bytes) -> Code | None:
        """Return a code, used or not."""
        ...

    async def token(self, digest: bytes) -> HeldToken | None:
        """Return a token of any kind, in force or not."""
        ...

    async def redeem(self, code: Code, family: Family, tokens: Collection[Token]) -> bool:
        """Use the code and keep what it gives, at once; False, and nothing is kept, when it was used already."""
        ...

    async def rotate(self, held: HeldToken, tokens: Collection[Token], now: datetime) -> bool:
        """Use the refresh token and keep what comes of it, at once; what came of it before is ended.

        False, and nothing is kept, when it is not any more as it was read.
        """
        ...

    async def issue(self, family: Family, tokens: Collection[Token]) -> None:
        """Keep a family with its first tokens."""
        ...

    async def end(self, family: str, why: str, now: datetime) -> bool:
        """End all tokens of a family; False when it had ended, or there is none."""
        ...

    async def end_token(self, digest: bytes, now: datetime) -> None:
        """End one token."""
        ...

    async def add_device(self, device: Device) -> bool:
        """Keep a device's request; False when another one has the user code."""
        ...

    async def device(self, digest: bytes) -> Device | None:
        """Return the request with the device code."""
        ...

    async def device_of_user_code(self, digest: bytes, now: datetime) -> Device | None:
        """Return the request with the user code, unless it has expired."""
        ...

    async def save_poll(self, device: Device) -> None:
        """Keep when it was polled, and its interval."""
        ...

    async def decide(self, device: Device) -> bool:
        """Keep what the person decided; False when somebody has decided already."""
        ...

    async def take(self, device: Device, family: Family, tokens: Collection[Token], now: datetime) -> bool:
        """Use an approved request and keep what it gives, at once; False when it was used already."""
        ...

    async def used(self, app: App, now: datetime) -> None:
        """Note that somebody signed in to an app that no organisation made."""
        ...

    async def purge(self, now: datetime, unused_since: datetime) -> int:
        """Delete what is over, and self-registered apps that nobody has used since; answers how many rows."""
        ...


@dataclass(frozen=True, slots=True)
class Redirect:
    """Where the browser goes with the answer, and the text of the code in it; None with a refusal."""

    location: str
    code: str | None


class GrantRules(Protocol):
    """The grammar of OAuth: judges requests by what is known, and words the answers. Asks and keeps nothing.

    Everything raises OAuthError for what is refused.
    """

    def claimed(self, call: Call) -> str | None:
        """Who the request says that it comes from: the `client_id`."""
        ...

    def wish(self, call: Call, known: Known) -> Wish:
        """Validate an authorization request. The error's `location` is set once the redirect URI has been validated."""
        ...

    def agreed(self, call: Call, known: Known, user: str) -> Redirect:
        """Return the response to an authorization request that the person accepted."""
        ...

    def denied(self, call: Call, known: Known, code: str = "access_denied") -> Redirect:
        """Return the response to an authorization request that was declined or could not be shown."""
        ...

    def token(self, call: Call, known: Known) -> Granted:
        """Return what a token request is granted."""
        ...

    def device(self, call: Call, known: Known) -> DeviceStart:
        """Return the response to a device that requests sign-in."""
        ...

    def presented(self, call: Call, known: Known, endpoint: str) -> Mapping[str, Any]:
        """Return the response of `revocation` or `introspection` for an authenticated app and its own token, if any."""
        ...

    def registered(self, metadata: Mapping[str, Any]) -> Metadata:
        """Validate the metadata of an app that registers itself."""
        ...

    def described(self, url: str, document: Mapping[str, Any]) -> Metadata:
        """Validate the document at an app's `client_id`."""
        ...

    def server(self) -> Mapping[str, Any]:
        """Return the server's metadata (RFC 8414)."""
        ...
