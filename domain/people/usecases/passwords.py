"""Use cases of passwords: setting a password, when signed in or by a mailed link, and authenticating again."""

from dataclasses import dataclass, replace

from domain.kernel.errors import Conflict, InvalidRequest
from domain.kernel.names import displayable_name
from domain.outbox.usecases import OutgoingMail
from domain.people.model import AuthMethod, LinkPurpose, Session, User
from domain.people.passwords import (
    EASY_TO_GUESS,
    MIN_GUESSES,
    describe_password_refusal,
    list_personal_words,
    normalise_entered_password,
    normalise_password,
)
from domain.people.ports import GuessEstimator, PasswordHasher, People
from domain.people.usecases.attempt_limits import AttemptLimiter
from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.sessions import ClientInfo, LinkService, SessionService
from domain.people.usecases.sign_in import WrongPassword
from ports.clock import Clock

SET_PASSWORD = "/console/set-password/"  # noqa: S105  a page
ACCOUNT_EXISTS = (
    "An account with this address exists. Sign in to accept the invitation. If you have no password, request an email "
    "with a link to set one."
)
_MAIL = (
    "Hello {name},\n\nwe received a request to reset the password of your Joinery account. To set a new password, "
    "open this link within an hour:\n\n{url}\n\nThe link works once. If you did not request it, ignore this "
    "message; your password stays unchanged.\n"
)


@dataclass(frozen=True, slots=True)
class PasswordService:
    """Use cases of passwords; `hasher` computes and verifies their hashes."""

    people: People
    sessions: SessionService
    links: LinkService
    factors: FactorService
    hasher: PasswordHasher
    guess_estimator: GuessEstimator
    throttle: AttemptLimiter
    mail: OutgoingMail
    notices: SecurityNotifier
    clock: Clock
    base_url: str

    async def has_password(self, user: str) -> bool:
        """Return whether the user has a password."""
        return await self.people.get_password_hash(user) is not None

    async def change(self, user: User, new_password: str, session: Session | None, client: ClientInfo) -> int:
        """Set the password `new_password`, and revoke the user's other sessions and unused links.

        Returns the number of revoked sessions; `session` remains. Raises InvalidRequest, RateLimited, Overloaded.
        """
        return await self._store_password(user, await self._validate_and_hash(new_password, user), session, client)

    async def _store_password(self, user: User, encoded: str, session: Session | None, client: ClientInfo) -> int:
        await self.people.set_password_hash(user.id, encoded, self.clock.now())
        await self.links.invalidate_unused(user.id)
        ended = await self.sessions.revoke_all(user.id, kept_session=session.id if session else None)
        await self.notices.notify(user, "password_changed", client)
        return ended

    async def create_account(self, user: User, password: str) -> None:
        """Create the account of a new user with a first password, atomically.

        Raises InvalidRequest, RateLimited, Overloaded, or Conflict if the email address is taken.
        """
        encoded = await self._validate_and_hash(password, user)
        if not await self.people.add_with_password(user, encoded, self.clock.now()):
            raise Conflict(ACCOUNT_EXISTS)

    async def _validate_and_hash(self, password: str, user: User) -> str:
        """Validate the user's new password and return its hash.

        Raises InvalidRequest, RateLimited, Overloaded.
        """
        reason = describe_password_refusal(password, user.email, user.name)
        if reason is None:
            await self.throttle.count_password_check(user.email)
            guesses = await self.guess_estimator.estimate_guesses(
                normalise_password(password), list_personal_words(user.email, user.name)
            )
            reason = EASY_TO_GUESS if guesses < MIN_GUESSES else None
        if reason is not None:
            raise InvalidRequest.for_field("password", "invalid_value", reason)
        return await self.hasher.hash(normalise_password(password))

    async def reauthenticate(
        self, user: User, session: Session, password: str, code: str, client: ClientInfo
    ) -> Session:
        """Authenticate a signed-in user again by `code`, or by password if `code` is empty; return the session.

        `code` is a one-time code or recovery code. Raises WrongPassword, RateLimited, Overloaded.
        """
        await self.throttle.count_reauthentication(session.id)
        method: AuthMethod | None
        if code:
            method = await self.factors.verify_code(user, code)
        else:
            encoded, text = await self.people.get_password_hash(user.id), normalise_entered_password(password)
            method = AuthMethod.PASSWORD if await self.hasher.verify(encoded, text) else None
        if method is None:
            await self.notices.notify(user, "proof_failed", client)
            raise WrongPassword("The password or code is wrong. Try again.")
        if method is AuthMethod.RECOVERY_CODE:
            await self.notices.notify(user, "recovery_code_used", client)
        return await self.sessions.record_authentication(session, method)

    async def mail_reset_link(self, email: str, client: ClientInfo) -> None:
        """Mail a link for setting a new password if the email address has an account.

        The caller cannot find out whether the address has an account. Raises RateLimited.
        """
        if await self.throttle.count_link_request(email, client):
            self.notices.run_in_background(self._mail_link(email, client))

    async def _mail_link(self, email: str, client: ClientInfo) -> None:
        user = await self.people.find_by_email(email)
        if user is None:
            return
        _, secret = await self.links.create(user, LinkPurpose.SET_PASSWORD)
        body = _MAIL.format(
            name=displayable_name(user.display_name, "there"), url=self.base_url + SET_PASSWORD + secret
        )
        await self.mail.add_message(user.email, "Reset your Joinery password", body, LinkPurpose.SET_PASSWORD)
        await self.notices.notify(user, "password_link_mailed", client)

    async def find_user_by_link(self, secret: str) -> User | None:
        """Return the user who may set a password by the link with that secret; None if the link cannot be used."""
        link = await self.links.find(secret, LinkPurpose.SET_PASSWORD)
        return await self.people.get(link.user) if link is not None else None

    async def set_by_link(self, secret: str, new_password: str, client: ClientInfo) -> User | None:
        """Set the password `new_password` by a mailed link; return the user, or None if the link cannot be used.

        The link is marked as used, and the user's email address as verified. After InvalidRequest, RateLimited or
        Overloaded, the link can still be used.
        """
        await self.throttle.count_passkey_or_link_attempt(client)
        user = await self.find_user_by_link(secret)
        if user is None:
            return None
        encoded = await self._validate_and_hash(new_password, user)
        if await self.links.use(secret, LinkPurpose.SET_PASSWORD) is None:
            return None
        await self._store_password(user, encoded, None, client)
        if user.verified_at is None:
            user = replace(user, verified_at=self.clock.now())
            await self.people.save(user)
        return user
