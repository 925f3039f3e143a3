"""A person asked by an app: what it wants, what they agreed to before, and the code or sign-in that comes of their word."""

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
    """What a person's consent gives: where the browser goes, and the code that is in there."""

    location: str
    code: Code


@dataclass(frozen=True, slots=True)
class ConsentService:
    """Authorization requests and devices' user codes, as a person answers them. `digest` hashes codes as they are stored."""

    store: TokenStore
    clients: Clients
    rules: GrantRules
    limits: Limits
    clock: Clock
    digest: TokenDigest

    async def wish(self, call: Call, address: str) -> tuple[Wish, Known]:
        """Validate an authorization request. Raises OAuthError, with the redirect location once it has been validated."""
        known = await self._known(call, address)
        return self.rules.wish(call, known), known

    async def agreed_before(self, tx: Tx, wish: Wish, user: str) -> bool:
        """Whether the person agreed to all of it before, and whoever receives the code is known for certain."""
        if "consent" in wish.prompt or not redirects.is_safe_to_skip(wish.redirect_uri):
            return False
        grant = await tx[AppStore].grant(wish.app.id, user)
        return grant is not None and wish.scopes <= grant.scopes

    async def agree(self, tx: Tx, call: Call, known: Known, user: str) -> Agreed:
        """Store the person's grant in the transaction's organisation, and return a code that is valid for a minute.

        The code is kept once the transaction is over (`keep`): it is worth nothing without the grant.
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
        """Keep the code; answers where the browser goes with it."""
        await self.store.add_code(agreed.code)
        return agreed.location

    def deny(self, call: Call, known: Known, code: str = "access_denied") -> str:
        """Where the browser goes when the person does not agree, or `login_required`, `interaction_required`."""
        return self.rules.denied(call, known, code).location

    async def begin_device(self, call: Call, address: str) -> dict[str, object]:
        """Start a device authorization and return the response to the device (RFC 8628 §3.2). Raises OAuthError."""
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
        """Return the pending request with the user code that a person entered, or None.

        A person may try ten, then one each ten seconds (20,000,000,000 codes, ten minutes). Raises OAuthError beyond that.
        """
        await spend(self.limits, f"user-code:{user}", 10, 0.1)
        await spend(self.limits, f"user-code-of:{address}", 30, 0.5)
        found = await self.store.device_of_user_code(self._user_code(typed), self.clock.now())
        app = await self.store.app_of(found.app) if found else None
        return (found, app) if found is not None and app is not None and found.approved is None else None

    async def agree_to_device(self, tx: Tx, found: tuple[Device, App], user: str) -> Device:
        """Store the person's grant and return the approved device, to be saved by `decide` after the commit."""
        device, app = found
        grant: Grant = await GrantService.agree(tx, app, user, device.scopes)
        return replace(device, approved=True, consent=Consent(user, tx.tenant.org, grant.id))

    async def decide(self, device: Device) -> bool:
        """Keep the person's word on a device; False when it was decided already."""
        return await self.store.decide(device)

    def _user_code(self, text: str) -> bytes:
        return self.digest(USER_CODE_PREFIX + user_code_of(text))

    async def _known(self, call: Call, address: str) -> Known:
        app = await self.clients.find(self.rules.claimed(call), address)
        return Known(self.clock.now(), app)
