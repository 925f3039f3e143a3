"""Setting passwords, by signed-in people or by a mailed link."""

from dataclasses import dataclass, replace

from domain.kernel.errors import Conflict, InvalidRequest
from domain.kernel.names import displayable_name
from domain.outbox.usecases import OutgoingMail
from domain.people.model import Method, Purpose, Session, User
from domain.people.passwords import FEWEST_GUESSES, SOON, normalised, own_words, refusal, typed
from domain.people.ports import PasswordGuesses, Passwords, People
from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import Notices
from domain.people.usecases.sessions import LinkService, SessionService, Visitor
from domain.people.usecases.signing_in import WrongPassword
from domain.people.usecases.throttling import Throttle
from ports.clock import Clock

SET_PASSWORD = "/console/set-password/"  # noqa: S105  a page
THERE = "An account with this address exists. Sign in to accept. If you have no password, request a link by mail."
_MAIL = (
    "Hello {name},\n\nsomebody, hopefully you, has asked to set another password for your Joinery account. Do so here, within "
    "an hour and once:\n\n{url}\n\nIf it was not you, there is nothing to do: without this link nobody sets anything.\n"
)


@dataclass(frozen=True, slots=True)
class PasswordService:
    """Passwords of people."""

    people: People
    sessions: SessionService
    links: LinkService
    factors: FactorService
    passwords: Passwords
    guesses: PasswordGuesses
    throttle: Throttle
    mail: OutgoingMail
    notices: Notices
    clock: Clock
    base_url: str

    async def has_one(self, user: str) -> bool:
        """Return whether the person has a password."""
        return await self.people.password(user) is not None

    async def change(self, user: User, new: str, session: Session | None, visitor: Visitor) -> int:
        """Set another password; revoke other sessions and unused links; return the number of revoked sessions.

        Raises InvalidRequest, RateLimited, Overloaded.
        """
        return await self._set(user, await self._hash_valid(new, user), session, visitor)

    async def _set(self, user: User, encoded: str, session: Session | None, visitor: Visitor) -> int:
        await self.people.set_password(user.id, encoded, self.clock.now())
        await self.links.withdraw(user.id)
        ended = await self.sessions.revoke_all(user.id, but=session.id if session else None)
        await self.notices.notify(user, "password_changed", visitor)
        return ended

    async def set_up(self, user: User, first: str) -> None:
        """Create an account with its password atomically.

        Raises InvalidRequest, RateLimited, Overloaded; Conflict if the address is taken.
        """
        encoded = await self._hash_valid(first, user)
        if not await self.people.set_up(user, encoded, self.clock.now()):
            raise Conflict(THERE)

    async def _hash_valid(self, password: str, user: User) -> str:
        """Return the hash of an acceptable password. Raises InvalidRequest, RateLimited, Overloaded."""
        reason = refusal(password, user.email, user.name)
        if reason is None:
            await self.throttle.setting(user.email)
            guesses = await self.guesses.withstands(normalised(password), own_words(user.email, user.name))
            reason = SOON if guesses < FEWEST_GUESSES else None
        if reason is not None:
            raise InvalidRequest.of("password", "invalid_value", reason)
        return await self.passwords.hash(normalised(password))

    async def prove(self, user: User, session: Session, password: str, code: str, visitor: Visitor) -> Session:
        """Authenticate the signed-in person again (sudo) by password or code.

        Raises WrongPassword, RateLimited, Overloaded.
        """
        await self.throttle.proof(session.id)
        method: Method | None
        if code:
            method = await self.factors.proved(user, code)
        else:
            encoded, text = await self.people.password(user.id), typed(password)
            method = Method.PASSWORD if await self.passwords.verify(encoded, text) else None
        if method is None:
            await self.notices.notify(user, "proof_failed", visitor)
            raise WrongPassword("This is wrong. Try again.")
        if method is Method.RECOVERY_CODE:
            await self.notices.notify(user, "recovery_code_used", visitor)
        return await self.sessions.confirm(session, method)

    async def forgot(self, email: str, visitor: Visitor) -> None:
        """Mail a link to set a password if the address has an account, without revealing whether it has.

        Raises RateLimited.
        """
        if await self.throttle.link(email, visitor):
            self.notices.later(self._mail_link(email, visitor))

    async def _mail_link(self, email: str, visitor: Visitor) -> None:
        user = await self.people.by_email(email)
        if user is None:
            return
        _, secret = await self.links.make(user, Purpose.SET_PASSWORD)
        body = _MAIL.format(name=displayable_name(user.called, "there"), url=self.base_url + SET_PASSWORD + secret)
        await self.mail.queue(user.email, "Set another password for Joinery", body, Purpose.SET_PASSWORD)
        await self.notices.notify(user, "password_link_mailed", visitor)

    async def of_link(self, secret: str) -> User | None:
        """Return the person of a link to set a password, or None if it cannot be used."""
        link = await self.links.look(secret, Purpose.SET_PASSWORD)
        return await self.people.get(link.user) if link is not None else None

    async def set_by_link(self, secret: str, new: str, visitor: Visitor) -> User | None:
        """Set the password and use the link, which verifies the address; return None if it cannot be used.

        Raises InvalidRequest, RateLimited, Overloaded, with the link unused.
        """
        await self.throttle.visitor(visitor)
        user = await self.of_link(secret)
        if user is None:
            return None
        encoded = await self._hash_valid(new, user)
        if await self.links.use(secret, Purpose.SET_PASSWORD) is None:
            return None
        await self._set(user, encoded, None, visitor)
        if user.verified_at is None:
            user = replace(user, verified_at=self.clock.now())
            await self.people.change(user)
        return user
