"""Passkeys: registration, sign-in, renewed authentication and removal."""

import logging
import secrets
from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as NoBase64
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from domain.access.usecases import AccessService
from domain.kernel.errors import Conflict, NotFound, PermissionDenied
from domain.kernel.ids import new_id
from domain.people.factors import CHALLENGE_LASTS, LONGEST_PASSKEY_NAME, MOST_PASSKEYS, Passkey
from domain.people.model import Method, Session, User
from domain.people.ports import Ceremonies, PasskeyRefused, Passkeys, People
from domain.people.usecases.notices import Notices
from domain.people.usecases.sessions import SessionService, Visitor
from domain.people.usecases.signing_in import Entered, SignInService
from domain.people.usecases.throttling import Throttle
from ports.clock import Clock

_CHALLENGE = 32
_LOG = logging.getLogger("joinery.people")


class PasskeyUnknown(PermissionDenied):
    """This passkey could not be used. Try again, or choose another way."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Options for the browser as JSON, and the challenge, which it returns with its response."""

    options: str
    challenge: str


@dataclass(frozen=True, slots=True)
class PasskeyService:
    """Passkeys of people. A challenge can be answered once, within five minutes, by the person it was created for."""

    passkeys: Passkeys
    ceremonies: Ceremonies
    people: People
    sessions: SessionService
    entry: SignInService
    access: AccessService
    throttle: Throttle
    notices: Notices
    clock: Clock

    async def of_user(self, user: str) -> Sequence[Passkey]:
        """Return the user's passkeys, oldest first."""
        return await self.passkeys.of_user(user)

    async def registration(self, user: User) -> Asked:
        """Return the options to register a passkey. Raises Conflict if there are too many."""
        known = await self.passkeys.of_user(user.id)
        if len(known) >= MOST_PASSKEYS:
            raise Conflict(f"An account has at most {MOST_PASSKEYS} passkeys; remove one first.")
        challenge, text = await self._challenge(user.id)
        return Asked(self.ceremonies.registration(user, known, challenge), text)

    async def register(self, user: User, answer: str, challenge: str, name: str, visitor: Visitor) -> Passkey:
        """Store the registered passkey. Raises PasskeyUnknown, Conflict, RateLimited."""
        await self.throttle.passkey(user.email)
        challenge_bytes = await self._take_challenge(challenge, user.id)
        try:
            new = self.ceremonies.registered(answer, challenge_bytes)
        except PasskeyRefused as error:
            raise self._unknown(str(error)) from error
        called = " ".join(name.split())[:LONGEST_PASSKEY_NAME] or "Passkey"
        passkey = Passkey(
            new_id("pky"),
            user.id,
            new.credential,
            new.public_key,
            new.sign_count,
            called,
            new.backed_up,
            self.clock.now(),
        )
        if not await self.passkeys.add(passkey):
            raise Conflict("This passkey is already registered.")
        await self.notices.notify(user, "passkey_added", visitor, called)
        return passkey

    async def sign_in(self, visitor: Visitor) -> Asked:
        """Return the options to sign in with any passkey. Raises RateLimited."""
        await self.throttle.visitor(visitor)
        challenge, text = await self._challenge(None)
        return Asked(self.ceremonies.sign_in(challenge), text)

    async def signed_in(self, answer: str, challenge: str, visitor: Visitor, device: str) -> Entered:
        """Sign in the owner of the responding passkey. Raises PasskeyUnknown."""
        challenge_bytes = await self._take_challenge(challenge, None)
        passkey = await self._verify(answer, challenge_bytes)
        user = await self.people.get(passkey.user)
        if user is None:
            raise self._unknown("nobody has that passkey")
        return await self.entry.enter(user, (Method.PASSKEY,), visitor, device)

    async def proof(self, user: User) -> Asked:
        """Return the options to authenticate the signed-in person again. Raises Conflict if they have no passkey."""
        known = await self.passkeys.of_user(user.id)
        if not known:
            raise Conflict("You have no passkey.")
        challenge, text = await self._challenge(user.id)
        return Asked(self.ceremonies.sign_in(challenge, known), text)

    async def prove(self, user: User, session: Session, answer: str, challenge: str) -> Session:
        """Authenticate the signed-in person again (sudo). Raises PasskeyUnknown, RateLimited."""
        await self.throttle.proof(session.id)
        challenge_bytes = await self._take_challenge(challenge, user.id)
        if (await self._verify(answer, challenge_bytes)).user != user.id:
            raise self._unknown("it is somebody else's")
        return await self.sessions.confirm(session, Method.PASSKEY)

    async def rename(self, user: User, id: str, name: str) -> None:
        """Rename a passkey. Raises NotFound."""
        called = " ".join(name.split())[:LONGEST_PASSKEY_NAME] or "Passkey"
        if not await self.passkeys.rename(user.id, id, called):
            raise NotFound

    async def remove(self, user: User, id: str, visitor: Visitor) -> None:
        """Remove a passkey. Raises NotFound."""
        if not await self.passkeys.remove(user.id, id):
            raise NotFound
        await self.notices.notify(user, "passkey_removed", visitor)

    async def forget(self, before: datetime) -> int:
        """Delete challenges that expired before then."""
        return await self.passkeys.forget_challenges(before)

    async def _challenge(self, user: str | None) -> tuple[bytes, str]:
        challenge, now = secrets.token_bytes(_CHALLENGE), self.clock.now()
        await self.passkeys.challenge(self._digest(challenge), user, now + CHALLENGE_LASTS)
        return challenge, urlsafe_b64encode(challenge).decode().rstrip("=")

    async def _take_challenge(self, text: str, user: str | None) -> bytes:
        """Use the challenge and return it. Raises PasskeyUnknown."""
        try:
            challenge = urlsafe_b64decode(text[:100].encode("ascii") + b"=" * (-len(text[:100]) % 4))
        except (ValueError, NoBase64):
            challenge = b""
        if not await self.passkeys.take_challenge(self._digest(challenge), user, self.clock.now()):
            raise self._unknown("its challenge is none of ours, was used, or is over")
        return challenge

    async def _verify(self, answer: str, challenge: bytes) -> Passkey:
        """Verify the signature, store its count and return the passkey. Raises PasskeyUnknown."""
        try:
            passkey = await self.passkeys.find(self.ceremonies.credential(answer))
            if passkey is None or await self.people.get(passkey.user) is None:
                raise self._unknown("nobody has that credential")
            count = self.ceremonies.signed(answer, challenge, passkey)
        except PasskeyRefused as error:
            raise self._unknown(str(error)) from error
        if not await self.passkeys.used(passkey, count, self.clock.now()):
            raise self._unknown("its count does not rise: somebody may have a copy")
        return passkey

    def _digest(self, challenge: bytes) -> bytes:
        return self.access.digest(f"joinery challenge\n{challenge.hex()}")

    @staticmethod
    def _unknown(reason: str) -> PasskeyUnknown:
        _LOG.info("passkey refused: %s", reason)
        return PasskeyUnknown()
