"""Sign-in by password and optional second step, or by link. Each sign-in starts a new session."""

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from domain.access.usecases import AccessService
from domain.kernel.errors import PermissionDenied
from domain.people.model import AuthMethod, LinkPurpose, Session, User
from domain.people.passwords import normalise_entered_password
from domain.people.ports import PasswordHasher, People
from domain.people.usecases.attempt_limits import AttemptLimiter, DeviceCookies
from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.sessions import ClientInfo, LinkService, SessionService
from ports.clock import Clock

SECOND_STEP_LIFETIME = timedelta(minutes=10)
"""Maximum time between the password and the second step."""

_MAX_SEARCHED_EVENTS = 50
"""Maximum number of a user's newest security events that are searched for an earlier sign-in."""


class WrongPassword(PermissionDenied):
    """Address or password is wrong. Check both, or reset the password.

    Raised if the address has no account, the account has no password, or the password or code is wrong.
    """


class WrongCode(PermissionDenied):
    """This code is wrong or already used. Enter the next code or a recovery code.

    Raised if the code of a second step is not valid.
    """


class SecondStepExpired(PermissionDenied):
    """The sign-in took too long. Sign in again.

    Raised if the token of a SecondStep is invalid or expired, or if the password has changed since.
    """


@dataclass(frozen=True, slots=True)
class CompletedSignIn:
    """Completed sign-in: the session, the session cookie, and the device cookie that identifies the browser later."""

    session: Session
    session_cookie: str
    device_cookie: str


@dataclass(frozen=True, slots=True)
class SecondStep:
    """Required second step of a sign-in; `token` proves that the password was correct."""

    token: str


@dataclass(frozen=True, slots=True)
class SignInService:
    """Use cases of sign-in. The parameter `device_cookie` is the browser's device cookie, or an empty string."""

    people: People
    sessions: SessionService
    links: LinkService
    factors: FactorService
    hasher: PasswordHasher
    access: AccessService
    throttle: AttemptLimiter
    devices: DeviceCookies
    notices: SecurityNotifier
    clock: Clock

    async def sign_in_with_password(
        self, email: str, password: str, client: ClientInfo, device_cookie: str
    ) -> CompletedSignIn | SecondStep:
        """Sign in with a password; return a SecondStep if the user must enter a code as well.

        Raises RateLimited, Overloaded, or WrongPassword, which does not reveal whether the address has an account.
        """
        await self.throttle.count_password_attempt(email, client, device_cookie, self.clock.now())
        user = await self.people.find_by_email(email)
        encoded = await self.people.get_password_hash(user.id if user else "")
        text = normalise_entered_password(password)
        if not await self.hasher.verify(encoded, text) or user is None or encoded is None:
            if user is not None:
                self.notices.run_in_background(self.notices.notify(user, "sign_in_failed", client, "wrong password"))
            raise WrongPassword
        if self.hasher.is_outdated(encoded):
            encoded = await self.hasher.hash(text)
            await self.people.set_password_hash(user.id, encoded, self.clock.now())
        if await self.factors.has_authenticator(user.id):
            return SecondStep(self._create_token(user.id, encoded))
        return await self.start_session(user, (AuthMethod.PASSWORD,), client, device_cookie)

    async def complete_second_step(
        self, token: str, code: str, client: ClientInfo, device_cookie: str
    ) -> CompletedSignIn:
        """Complete a sign-in with a one-time code or recovery code.

        `token` is the token of the SecondStep that `sign_in_with_password` returned.
        Raises WrongCode, SecondStepExpired, RateLimited.
        """
        user = await self._verify_token(token)
        await self.throttle.count_code_attempt(user.email, client, device_cookie, self.clock.now())
        method = await self.factors.verify_code(user, code)
        if method is None:
            await self.notices.notify(user, "sign_in_failed", client, "wrong code")
            raise WrongCode
        if method is AuthMethod.RECOVERY_CODE:
            await self.notices.notify(user, "recovery_code_used", client)
        return await self.start_session(user, (AuthMethod.PASSWORD, method), client, device_cookie)

    async def sign_in_with_link(self, secret: str, client: ClientInfo, device_cookie: str) -> CompletedSignIn | None:
        """Sign in with the secret of a one-time link; return None if the link cannot be used. Raises RateLimited."""
        await self.throttle.count_passkey_or_link_attempt(client)
        link = await self.links.use(secret, LinkPurpose.SIGN_IN)
        user = await self.people.get(link.user) if link is not None else None
        if link is None or user is None:
            return None
        return await self.start_session(user, (AuthMethod.LINK,), client, device_cookie, link.org)

    async def start_session(
        self,
        user: User,
        methods: Sequence[AuthMethod],
        client: ClientInfo,
        device_cookie: str,
        org: str | None = None,
    ) -> CompletedSignIn:
        """Start a session for an authenticated user, and notify the user if the browser is new to the account.

        The session shows `org` if that organisation accepts the methods, else the user's first organisation that does.
        """
        now = self.clock.now()
        known = self.devices.find_browser_id(device_cookie, user.email_key, now) is not None
        events = await self.people.list_events(user.id, _MAX_SEARCHED_EVENTS)
        # More events than that imply an established account: failed attempts must not hide earlier sign-ins.
        has_signed_in = (
            known or len(events) == _MAX_SEARCHED_EVENTS or any(event.kind == "signed_in" for event in events)
        )
        session, cookie = await self.sessions.start(user, methods, client, org)
        await self.notices.notify(user, "signed_in", client, ", ".join(methods))
        if has_signed_in and not known:
            await self.notices.notify(user, "new_device", client)
        return CompletedSignIn(session, cookie, self.devices.add_user(device_cookie, user.email_key, now))

    def _create_token(self, user: str, encoded: str) -> str:
        expires = int((self.clock.now() + SECOND_STEP_LIFETIME).timestamp())
        return f"{user}.{expires}.{self._sign(user, expires, encoded)}"

    async def _verify_token(self, token: str) -> User:
        """Return the user of a SecondStep's token.

        Raises SecondStepExpired if the token is invalid or too old, or if the password has changed since.
        """
        id_, _, rest = token.partition(".")
        expires, _, signature = rest.partition(".")
        if not expires.isdecimal() or len(expires) > 12 or int(expires) <= self.clock.now().timestamp():
            raise SecondStepExpired
        user, encoded = await self.people.get(id_), await self.people.get_password_hash(id_)
        expected = self._sign(id_, int(expires), encoded or "")
        if (
            user is None
            or encoded is None
            or not hmac.compare_digest(expected.encode(), signature.encode("utf-8", "replace"))
        ):
            raise SecondStepExpired
        return user

    def _sign(self, user: str, expires: int, encoded: str) -> str:
        return self.access.compute_digest(f"joinery second step\n{user}\n{expires}\n{encoded}").hex()
