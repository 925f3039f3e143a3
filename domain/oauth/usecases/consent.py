"""Consent of a person to an app: the request, earlier consent, and the resulting code or device sign-in."""

from dataclasses import dataclass, replace
from datetime import timedelta

from domain.kernel.ids import new_id
from domain.oauth import redirects
from domain.oauth.asking import Call, Known, Wish, user_code_of
from domain.oauth.errors import OAuthError
from domain.oauth.model import CODE_SECONDS, DEVICE_SECONDS, USER_CODE_PREFIX, App, Code, Consent, Device, Grant
from domain.oauth.ports import AppStore, GrantRules, TokenDigest, TokenStore
from domain.oauth.usecases.clients import Clients, spend
from domain.oauth.usecases.grants import GrantService
from ports.clock import Clock
from ports.limits import Limits
from ports.unit_of_work import Tx


@dataclass(frozen=True, slots=True)
class Agreed:
    """Result of a consent: the redirect and its code."""

    location: str
    code: Code


@dataclass(frozen=True, slots=True)
class ConsentService:
    """Authorization requests and devices' user codes, as a person answers them. `digest` hashes codes for storage."""

    store: TokenStore
    clients: Clients
    rules: GrantRules
    limits: Limits
    clock: Clock
    digest: TokenDigest

    async def wish(self, call: Call, address: str) -> tuple[Wish, Known]:
        """Return the validated authorization request.

        Raises OAuthError, with the browser's location once that is validated.
        """
        known = await self._known(call, address)
        return self.rules.wish(call, known), known

    async def agreed_before(self, tx: Tx, wish: Wish, user: str) -> bool:
        """Return whether the person consented to all scopes before and the receiver of the code is certain."""
        if "consent" in wish.prompt or not redirects.is_safe_to_skip(wish.redirect_uri):
            return False
        grant = await tx[AppStore].grant(wish.app.id, user)
        return grant is not None and wish.scopes <= grant.scopes

    async def agree(self, tx: Tx, call: Call, known: Known, user: str) -> Agreed:
        """Record the person's consent in the transaction's organisation and create a code that lasts a minute.

        The code is stored after the transaction (`keep`), because it is worthless without the grant.
        """
        wish = self.rules.wish(call, known)
        redirect = self.rules.agreed(call, known, user)
        grant = await GrantService.agree(tx, wish.app, user, wish.scopes)
        now = known.now
        code = Code(
            digest=self.digest(redirect.code or ""),
            app=wish.app.id,
            consent=Consent(user, tx.tenant.org, grant.id),
            redirect_uri=wish.redirect_uri,
            challenge=wish.challenge,
            scopes=wish.scopes,
            audience=wish.audience,
            created_at=now,
            expires_at=now + timedelta(seconds=CODE_SECONDS),
            family=new_id("fam"),
        )
        return Agreed(redirect.location, code)

    async def keep(self, agreed: Agreed) -> str:
        """Store the code; return the browser's location."""
        await self.store.add_code(agreed.code)
        return agreed.location

    def deny(self, call: Call, known: Known, code: str = "access_denied") -> str:
        """Return the browser's location for a denial, `login_required` or `interaction_required`."""
        return self.rules.denied(call, known, code).location

    async def begin_device(self, call: Call, address: str) -> dict[str, object]:
        """Return the response to a device authorization request (RFC 8628 §3.2). Raises OAuthError."""
        await spend(self.limits, f"device:{address}", 10, 0.2)
        start = self.rules.device(call, await self._known(call, address))
        now = self.clock.now()
        device = Device(
            digest=self.digest(start.device_code),
            user_code=self._user_code(start.user_code),
            app=start.app.id,
            scopes=start.scopes,
            audience=start.audience,
            created_at=now,
            expires_at=now + timedelta(seconds=DEVICE_SECONDS),
            family=new_id("fam"),
        )
        if not await self.store.add_device(device):
            raise OAuthError("temporarily_unavailable", "Ask once more.", retry_after=1)
        return dict(start.answer)

    async def device(self, typed: str, user: str, address: str) -> tuple[Device, App] | None:
        """Return the request with the user code that a person typed, or None if it is unknown or expired.

        A person has ten attempts, then one in ten seconds (20,000,000,000 codes, ten minutes). Raises OAuthError beyond
        that.
        """
        await spend(self.limits, f"user-code:{user}", 10, 0.1)
        await spend(self.limits, f"user-code-of:{address}", 30, 0.5)
        found = await self.store.device_of_user_code(self._user_code(typed), self.clock.now())
        app = await self.store.app_of(found.app) if found else None
        return (found, app) if found is not None and app is not None and found.approved is None else None

    async def agree_to_device(self, tx: Tx, found: tuple[Device, App], user: str) -> Device:
        """Record the consent to a device in the transaction's organisation; `decide` stores the result afterwards."""
        device, app = found
        grant: Grant = await GrantService.agree(tx, app, user, device.scopes)
        return replace(device, approved=True, consent=Consent(user, tx.tenant.org, grant.id))

    async def decide(self, device: Device) -> bool:
        """Store the person's decision on a device; return False if there is one already."""
        return await self.store.decide(device)

    def _user_code(self, text: str) -> bytes:
        return self.digest(USER_CODE_PREFIX + user_code_of(text))

    async def _known(self, call: Call, address: str) -> Known:
        app = await self.clients.find(self.rules.claimed(call), address)
        return Known(self.clock.now(), app)
