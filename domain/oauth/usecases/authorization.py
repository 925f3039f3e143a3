"""Requests of apps and devices for access, which a user approves or denies in a browser."""

from dataclasses import dataclass, replace
from datetime import timedelta

from domain.kernel.ids import new_id
from domain.oauth import redirects
from domain.oauth.errors import OAuthError
from domain.oauth.model import (
    CODE_SECONDS,
    DEVICE_CODE_SECONDS,
    USER_CODE_PREFIX,
    App,
    AuthorizationCode,
    ConsentReference,
    DeviceRequest,
    OAuthConsent,
)
from domain.oauth.ports import AppStore, OAuthProtocol, TokenHasher, TokenStore
from domain.oauth.requests import AuthorizationRequest, OAuthRequest, ReferencedRows, normalise_user_code
from domain.oauth.usecases.clients import ClientRegistry, check_rate_limit
from domain.oauth.usecases.oauth_consents import OAuthConsentService
from ports.clock import Clock
from ports.limits import RateLimits
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class ApprovedAuthorization:
    """Result of a consent: the URL to redirect the browser to, and the code to store."""

    location: str
    code: AuthorizationCode


@dataclass(frozen=True, slots=True)
class AuthorizationService:
    """Use cases of authorization requests and of devices' user codes. `hash_token` computes the keyed hash of a code.

    `client_network` is the caller's network, whose requests are limited together: an IPv4 address, or an IPv6 /64.
    """

    store: TokenStore
    clients: ClientRegistry
    rules: OAuthProtocol
    limits: RateLimits
    clock: Clock
    hash_token: TokenHasher

    async def validate(
        self, oauth_request: OAuthRequest, client_network: str
    ) -> tuple[AuthorizationRequest, ReferencedRows]:
        """Validate an authorization request; return the result, and the stored rows that the request refers to.

        Raises OAuthError, with a `location` once the redirect URI is validated.
        """
        rows = await self._load_stored_rows(oauth_request, client_network)
        return self.rules.validate_authorization(oauth_request, rows), rows

    async def can_skip_consent(self, tx: Tx, request: AuthorizationRequest, user: str) -> bool:
        """Return whether the consent of the user is still valid, so that no consent page is necessary.

        The user must have consented to all requested scopes before, and only the app may receive codes at the redirect
        URI.
        """
        if "consent" in request.prompt or not redirects.is_received_by_app_only(request.redirect_uri):
            return False
        consent = await tx[AppStore].find_consent(request.app.id, user)
        return consent is not None and request.scopes <= consent.scopes

    async def record_consent(
        self, tx: Tx, oauth_request: OAuthRequest, rows: ReferencedRows, user: str
    ) -> ApprovedAuthorization:
        """Record the user's consent in the transaction's organisation, and create an authorization code.

        The caller stores the code with `store_code` after the commit.
        """
        validated = self.rules.validate_authorization(oauth_request, rows)
        redirect = self.rules.approve(oauth_request, rows, user)
        consent = await OAuthConsentService.ensure_consent(tx, validated.app, user, validated.scopes)
        now = rows.now
        code = AuthorizationCode(
            digest=self.hash_token(redirect.code or ""),
            app=validated.app.id,
            consent=ConsentReference(user, tx.tenant.org, consent.id),
            redirect_uri=validated.redirect_uri,
            challenge=validated.challenge,
            scopes=validated.scopes,
            audience=validated.audience,
            created_at=now,
            expires_at=now + timedelta(seconds=CODE_SECONDS),
            family=new_id("fam"),
        )
        return ApprovedAuthorization(redirect.location, code)

    async def store_code(self, approved: ApprovedAuthorization) -> str:
        """Store the authorization code; return the URL to redirect the browser to."""
        await self.store.add_code(approved.code)
        return approved.location

    def build_error_location(
        self, oauth_request: OAuthRequest, rows: ReferencedRows, error_code: str = "access_denied"
    ) -> str:
        """Return the URL that reports an error to the app.

        `error_code` is `access_denied`, `login_required` or `interaction_required`.
        """
        return self.rules.deny(oauth_request, rows, error_code).location

    async def add_device_request(self, oauth_request: OAuthRequest, client_network: str) -> dict[str, object]:
        """Store a device authorization request; return the response (RFC 8628 §3.2). Raises OAuthError."""
        await check_rate_limit(self.limits, f"device:{client_network}", 10, 0.2)
        start = self.rules.authorise_device(oauth_request, await self._load_stored_rows(oauth_request, client_network))
        now = self.clock.now()
        device = DeviceRequest(
            digest=self.hash_token(start.device_code),
            user_code=self._hash_user_code(start.user_code),
            app=start.app.id,
            scopes=start.scopes,
            audience=start.audience,
            created_at=now,
            expires_at=now + timedelta(seconds=DEVICE_CODE_SECONDS),
            family=new_id("fam"),
        )
        if not await self.store.add_device(device):
            raise OAuthError(
                "temporarily_unavailable", "The generated user code is in use. Send the request again.", retry_after=1
            )
        return dict(start.response_fields)

    async def find_device_request(
        self, entered_code: str, user: str, client_network: str
    ) -> tuple[DeviceRequest, App] | None:
        """Return the device authorization request whose user code was entered (`entered_code`), and its app.

        Returns None if the code is unknown or expired, or if the request is already decided. Raises OAuthError after
        too many attempts of the user or of the network.
        """
        # A user has ten attempts, then one each ten seconds; of 20,000,000,000 codes, each is valid for ten minutes.
        await check_rate_limit(self.limits, f"user-code:{user}", 10, 0.1)
        await check_rate_limit(self.limits, f"user-code-of:{client_network}", 30, 0.5)
        found = await self.store.find_device_by_user_code(self._hash_user_code(entered_code), self.clock.now())
        app = await self.store.get_app(found.app) if found else None
        return (found, app) if found is not None and app is not None and found.approved is None else None

    async def record_device_consent(
        self, tx: Tx, device_and_app: tuple[DeviceRequest, App], user: str
    ) -> DeviceRequest:
        """Record the user's consent to a device in the transaction's organisation; return the approved request.

        The caller stores the approved request with `save_decision` after the commit.
        """
        device, app = device_and_app
        consent: OAuthConsent = await OAuthConsentService.ensure_consent(tx, app, user, device.scopes)
        return replace(device, approved=True, consent=ConsentReference(user, tx.tenant.org, consent.id))

    async def save_decision(self, device: DeviceRequest) -> bool:
        """Store the user's decision on a device authorization request; return False if a decision is stored already."""
        return await self.store.save_decision(device)

    def _hash_user_code(self, text: str) -> bytes:
        return self.hash_token(USER_CODE_PREFIX + normalise_user_code(text))

    async def _load_stored_rows(self, oauth_request: OAuthRequest, client_network: str) -> ReferencedRows:
        app = await self.clients.find_app(self.rules.get_client_id(oauth_request), client_network)
        return ReferencedRows(self.clock.now(), app)
