"""Sign-in by password and optional second step, or by link. Each begins a new session."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.access.usecases import AccessService
from domain.kernel.errors import PermissionDenied
from domain.people.model import Method, Purpose, Session, User
from domain.people.passwords import typed
from domain.people.ports import Passwords, People
from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import Notices
from domain.people.usecases.sessions import LinkService, SessionService, Visitor
from domain.people.usecases.throttling import Devices, Throttle
from ports.clock import Clock

STEP_LASTS = timedelta(minutes=10)
"""Time after the password in which the second step is accepted."""

_EVENTS_SEARCHED = 50
"""Number of events that are searched for an earlier sign-in."""


class WrongPassword(PermissionDenied):
    """Address or password is wrong. Check both, or reset the password."""


class WrongCode(PermissionDenied):
    """This code is wrong or already used. Enter the next code or a recovery code."""


class StepOver(PermissionDenied):
    """The sign-in took too long. Sign in again."""


@dataclass(frozen=True, slots=True)
class Entered:
    """A completed sign-in: session, session cookie, and the device cookie that recognises this browser."""

    session: Session
    cookie: str
    device: str


@dataclass(frozen=True, slots=True)
class SecondStep:
    """A sign-in that needs the second step; `token` proves the password."""

    token: str


@dataclass(frozen=True, slots=True)
class SignInService:
    """Sign-in of people."""

    people: People
    sessions: SessionService
    links: LinkService
    factors: FactorService
    passwords: Passwords
    access: AccessService
    throttle: Throttle
    devices: Devices
    notices: Notices
    clock: Clock

    async def by_password(self, email: str, password: str, visitor: Visitor, device: str) -> Entered | SecondStep:
        """Sign in, or continue with the second step.

        Raises WrongPassword, the same whatever is wrong; RateLimited, Overloaded.
        """
        await self.throttle.password(email, visitor, device, self.clock.now())
        user = await self.people.by_email(email)
        encoded = await self.people.password(user.id if user else "")
        text = typed(password)
        if not await self.passwords.verify(encoded, text) or user is None or encoded is None:
            if user is not None:
                self.notices.later(self.notices.notify(user, "sign_in_failed", visitor, "wrong password"))
            raise WrongPassword
        if self.passwords.is_outdated(encoded):
            encoded = await self.passwords.hash(text)
            await self.people.set_password(user.id, encoded, self.clock.now())
        if await self.factors.asks_for_code(user.id):
            return SecondStep(self._token(user.id, encoded))
        return await self.enter(user, (Method.PASSWORD,), visitor, device)

    async def by_code(self, token: str, code: str, visitor: Visitor, device: str) -> Entered:
        """Complete the second step. Raises WrongCode, StepOver, RateLimited."""
        user = await self._of_token(token)
        await self.throttle.code(user.email, visitor, device, self.clock.now())
        method = await self.factors.proved(user, code)
        if method is None:
            await self.notices.notify(user, "sign_in_failed", visitor, "wrong code")
            raise WrongCode
        if method is Method.RECOVERY_CODE:
            await self.notices.notify(user, "recovery_code_used", visitor)
        return await self.enter(user, (Method.PASSWORD, method), visitor, device)

    async def by_link(self, secret: str, visitor: Visitor, device: str) -> Entered | None:
        """Sign in by an operator's link and use it; return None if it cannot be used. Raises RateLimited."""
        await self.throttle.visitor(visitor)
        link = await self.links.use(secret, Purpose.SIGN_IN)
        user = await self.people.get(link.user) if link is not None else None
        if link is None or user is None:
            return None
        return await self.enter(user, (Method.LINK,), visitor, device, link.org)

    async def enter(
        self, user: User, methods: Sequence[Method], visitor: Visitor, device: str, org: str | None = None
    ) -> Entered:
        """Begin a session for an authenticated person, with a notice if the browser is new."""
        now = self.clock.now()
        known = self.devices.known(device, user.email_key, now) is not None
        events = await self.people.events(user.id, _EVENTS_SEARCHED)
        # More events than that imply an established account: failed attempts must not hide earlier sign-ins.
        before = known or len(events) == _EVENTS_SEARCHED or any(event.kind == "signed_in" for event in events)
        session, cookie = await self.sessions.begin(user, methods, visitor, org)
        await self.notices.notify(user, "signed_in", visitor, ", ".join(methods))
        if before and not known:
            await self.notices.notify(user, "new_device", visitor)
        return Entered(session, cookie, self.devices.remembered(device, user.email_key, now))

    def _token(self, user: str, encoded: str) -> str:
        expires = int((self.clock.now() + STEP_LASTS).timestamp())
        return f"{user}.{expires}.{self._signature(user, expires, encoded)}"

    async def _of_token(self, token: str) -> User:
        """Return the person of a second-step token. Raises StepOver, also if the password has changed since."""
        id_, _, rest = token.partition(".")
        expires, _, signature = rest.partition(".")
        if not expires.isdecimal() or len(expires) > 12 or int(expires) <= self.clock.now().timestamp():
            raise StepOver
        user, encoded = await self.people.get(id_), await self.people.password(id_)
        made = self._signature(id_, int(expires), encoded or "")
        if (
            user is None
            or encoded is None
            or not hmac.compare_digest(made.encode(), signature.encode("utf-8", "replace"))
        ):
            raise StepOver
        return user

    def _signature(self, user: str, expires: int, encoded: str) -> str:
        return self.access.digest(f"joinery second step\n{user}\n{expires}\n{encoded}").hex()
