"""Signing in: by password and, where it is on, a second step; by a link. Each way begins a new session."""

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
"""How long after the password the second step may be taken."""

_LOOKED_AT = 50
"""Events in which an earlier sign-in is looked for."""


class WrongPassword(PermissionDenied):
    """Address and password do not go together. Check both; if you have forgotten the password, set another one."""


class WrongCode(PermissionDenied):
    """That code is not right, or was used before. Wait for the next one, or type a recovery code."""


class StepOver(PermissionDenied):
    """That took too long. Sign in once more."""


@dataclass(frozen=True, slots=True)
class Entered:
    """Somebody is signed in: the session, its cookie's text, and the cookie that knows this browser from now on."""

    session: Session
    cookie: str
    device: str


@dataclass(frozen=True, slots=True)
class SecondStep:
    """The password was right; `token` proves it to the second step."""

    token: str


@dataclass(frozen=True, slots=True)
class SignInService:
    """How somebody who is nobody yet becomes a person with a session."""

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
        """Sign in, or on to the second step. Raises WrongPassword, the same whatever is wrong; RateLimited, Overloaded."""
        await self.throttle.password(email, visitor, device, self.clock.now())
        user = await self.people.by_email(email)
        encoded = await self.people.password(user.id if user else "")
        text = typed(password)
        if not await self.passwords.verify(encoded, text) or user is None or encoded is None:
            if user is not None:
                self.notices.later(self.notices.tell(user, "sign_in_failed", visitor, "wrong password"))
            raise WrongPassword
        if self.passwords.is_outdated(encoded):
            encoded = await self.passwords.hash(text)
            await self.people.set_password(user.id, encoded, self.clock.now())
        if await self.factors.asks_for_code(user.id):
            return SecondStep(self._token(user.id, encoded))
        return await self.enter(user, (Method.PASSWORD,), visitor, device)

    async def by_code(self, token: str, code: str, visitor: Visitor, device: str) -> Entered:
        """Complete the second step of a sign-in. Raises WrongCode, StepOver, RateLimited."""
        user = await self._of_token(token)
        await self.throttle.code(user.email, visitor, device, self.clock.now())
        method = await self.factors.proved(user, code)
        if method is None:
            await self.notices.tell(user, "sign_in_failed", visitor, "wrong code")
            raise WrongCode
        if method is Method.RECOVERY_CODE:
            await self.notices.tell(user, "recovery_code_used", visitor)
        return await self.enter(user, (Method.PASSWORD, method), visitor, device)

    async def by_link(self, secret: str, visitor: Visitor, device: str) -> Entered | None:
        """Sign in by a link that an operator has made, which is used up; None when it cannot be used. Raises RateLimited."""
        await self.throttle.visitor(visitor)
        link = await self.links.use(secret, Purpose.SIGN_IN)
        user = await self.people.get(link.user) if link is not None else None
        if link is None or user is None:
            return None
        return await self.enter(user, (Method.LINK,), visitor, device, link.org)

    async def enter(
        self, user: User, methods: Sequence[Method], visitor: Visitor, device: str, org: str | None = None
    ) -> Entered:
        """Begin a session for a person who proved their identity, and notify them about a new browser."""
        now = self.clock.now()
        known = self.devices.known(device, user.email_key, now) is not None
        events = await self.people.events(user.id, _LOOKED_AT)
        # Who has more events than that has been here for long: guessing must not push the sign-ins out of sight.
        before = known or len(events) == _LOOKED_AT or any(one.kind == "signed_in" for one in events)
        session, cookie = await self.sessions.begin(user, methods, visitor, org)
        await self.notices.tell(user, "signed_in", visitor, ", ".join(methods))
        if before and not known:
            await self.notices.tell(user, "new_device", visitor)
        return Entered(session, cookie, self.devices.remembered(device, user.email_key, now))

    def _token(self, user: str, encoded: str) -> str:
        expires = int((self.clock.now() + STEP_LASTS).timestamp())
        return f"{user}.{expires}.{self._signature(user, expires, encoded)}"

    async def _of_token(self, token: str) -> User:
        """Whose password was right. Raises StepOver, also when the password was changed since."""
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
