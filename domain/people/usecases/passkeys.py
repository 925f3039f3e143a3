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
from domain.people.factors import CHALLENGE_LIFETIME, MAX_PASSKEY_NAME_CHARS, MAX_PASSKEYS, Passkey
from domain.people.model import AuthMethod, Session, User
from domain.people.ports import PasskeyCeremonies, PasskeyRefused, Passkeys, People
from domain.people.usecases.attempt_limits import AttemptLimiter
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.sessions import ClientInfo, SessionService
from domain.people.usecases.sign_in import CompletedSignIn, SignInService
from ports.clock import Clock

_CHALLENGE_BYTES = 32
_LOG = logging.getLogger("joinery.people")


class PasskeyNotAccepted(PermissionDenied):
    """This passkey could not be used. Try again, or use another sign-in method.

    Raised if a passkey, a challenge or the browser's response is invalid; the precise reason is only logged.
    """


@dataclass(frozen=True, slots=True)
class PasskeyChallenge:
    """WebAuthn options for the browser as JSON, and the challenge that the browser must send back."""

    options: str
    challenge: str


@dataclass(frozen=True, slots=True)
class PasskeyService:
    """Use cases of passkeys. A challenge can be used once, within five minutes, by the user for whom it was created."""

    passkeys: Passkeys
    ceremonies: PasskeyCeremonies
    people: People
    sessions: SessionService
    sign_in_service: SignInService
    access: AccessService
    throttle: AttemptLimiter
    notices: SecurityNotifier
    clock: Clock

    async def list_by_user(self, user: str) -> Sequence[Passkey]:
        """Return the user's passkeys, oldest first."""
        return await self.passkeys.list_by_user(user)

    async def begin_registration(self, user: User) -> PasskeyChallenge:
        """Create the challenge and options with which the browser registers a passkey.

        Raises Conflict if the user has too many passkeys.
        """
        known = await self.passkeys.list_by_user(user.id)
        if len(known) >= MAX_PASSKEYS:
            raise Conflict(f"An account has at most {MAX_PASSKEYS} passkeys. Remove one first.")
        challenge, text = await self._create_challenge(user.id)
        return PasskeyChallenge(self.ceremonies.build_registration_options(user, known, challenge), text)

    async def register(self, user: User, response: str, challenge: str, name: str, client: ClientInfo) -> Passkey:
        """Verify the browser's registration response (`response`) and store the passkey under the name.

        Raises PasskeyNotAccepted, Conflict, RateLimited.
        """
        await self.throttle.count_passkey_registration(user.email)
        challenge_bytes = await self._use_challenge(challenge, user.id)
        try:
            new = self.ceremonies.verify_registration(response, challenge_bytes)
        except PasskeyRefused as error:
            raise self._log_refusal(str(error)) from error
        passkey_name = " ".join(name.split())[:MAX_PASSKEY_NAME_CHARS] or "Passkey"
        passkey = Passkey(
            new_id("pky"),
            user.id,
            new.credential_id,
            new.public_key,
            new.sign_count,
            passkey_name,
            new.backed_up,
            self.clock.now(),
        )
        if not await self.passkeys.add(passkey):
            raise Conflict("This passkey is already registered.")
        await self.notices.notify(user, "passkey_added", client, passkey_name)
        return passkey

    async def begin_sign_in(self, client: ClientInfo) -> PasskeyChallenge:
        """Create the challenge and options with which the browser signs in by any passkey. Raises RateLimited."""
        await self.throttle.count_passkey_or_link_attempt(client)
        challenge, text = await self._create_challenge(None)
        return PasskeyChallenge(self.ceremonies.build_sign_in_options(challenge), text)

    async def complete_sign_in(
        self, response: str, challenge: str, client: ClientInfo, device_cookie: str
    ) -> CompletedSignIn:
        """Verify the browser's response (`response`) and sign in the owner of the passkey.

        `device_cookie` is the browser's device cookie. Raises PasskeyNotAccepted.
        """
        challenge_bytes = await self._use_challenge(challenge, None)
        passkey = await self._verify(response, challenge_bytes)
        user = await self.people.get(passkey.user)
        if user is None:
            raise self._log_refusal("unknown passkey")
        return await self.sign_in_service.start_session(user, (AuthMethod.PASSKEY,), client, device_cookie)

    async def begin_reauthentication(self, user: User) -> PasskeyChallenge:
        """Create the challenge and options with which a signed-in user authenticates again.

        Raises Conflict if the user has no passkey.
        """
        known = await self.passkeys.list_by_user(user.id)
        if not known:
            raise Conflict("You have no passkey. Choose another way.")
        challenge, text = await self._create_challenge(user.id)
        return PasskeyChallenge(self.ceremonies.build_sign_in_options(challenge, known), text)

    async def complete_reauthentication(self, user: User, session: Session, response: str, challenge: str) -> Session:
        """Verify the browser's response (`response`) and record in the session that the user has authenticated again.

        Raises PasskeyNotAccepted, RateLimited.
        """
        await self.throttle.count_reauthentication(session.id)
        challenge_bytes = await self._use_challenge(challenge, user.id)
        if (await self._verify(response, challenge_bytes)).user != user.id:
            raise self._log_refusal("passkey of another person")
        return await self.sessions.record_authentication(session, AuthMethod.PASSKEY)

    async def rename(self, user: User, id: str, name: str) -> None:
        """Rename a passkey of the user. Raises NotFound."""
        passkey_name = " ".join(name.split())[:MAX_PASSKEY_NAME_CHARS] or "Passkey"
        if not await self.passkeys.rename(user.id, id, passkey_name):
            raise NotFound

    async def remove(self, user: User, id: str, client: ClientInfo) -> None:
        """Remove a passkey of the user. Raises NotFound."""
        if not await self.passkeys.remove(user.id, id):
            raise NotFound
        await self.notices.notify(user, "passkey_removed", client)

    async def delete_challenges(self, before: datetime) -> int:
        """Delete passkey challenges that expired before `before`; return their number."""
        return await self.passkeys.delete_challenges(before)

    async def _create_challenge(self, user: str | None) -> tuple[bytes, str]:
        challenge, now = secrets.token_bytes(_CHALLENGE_BYTES), self.clock.now()
        await self.passkeys.add_challenge(self._hash_challenge(challenge), user, now + CHALLENGE_LIFETIME)
        return challenge, urlsafe_b64encode(challenge).decode().rstrip("=")

    async def _use_challenge(self, text: str, user: str | None) -> bytes:
        """Mark the challenge as used; return its decoded bytes. Raises PasskeyNotAccepted."""
        try:
            challenge = urlsafe_b64decode(text[:100].encode("ascii") + b"=" * (-len(text[:100]) % 4))
        except (ValueError, NoBase64):
            challenge = b""
        if not await self.passkeys.use_challenge(self._hash_challenge(challenge), user, self.clock.now()):
            raise self._log_refusal("unknown, used or expired challenge")
        return challenge

    async def _verify(self, response: str, challenge: bytes) -> Passkey:
        """Verify the signature in the browser's response, and return the passkey. Raises PasskeyNotAccepted."""
        try:
            passkey = await self.passkeys.find(self.ceremonies.parse_credential_id(response))
            if passkey is None or await self.people.get(passkey.user) is None:
                raise self._log_refusal("unknown credential")
            count = self.ceremonies.verify_signature(response, challenge, passkey)
        except PasskeyRefused as error:
            raise self._log_refusal(str(error)) from error
        if not await self.passkeys.record_signature(passkey, count, self.clock.now()):
            raise self._log_refusal("signature count did not increase, the passkey may have been copied")
        return passkey

    def _hash_challenge(self, challenge: bytes) -> bytes:
        return self.access.compute_digest(f"joinery challenge\n{challenge.hex()}")

    @staticmethod
    def _log_refusal(reason: str) -> PasskeyNotAccepted:
        """Log why a passkey is refused; return the error for the caller to raise, which does not name the reason."""
        _LOG.info("passkey refused: %s", reason)
        return PasskeyNotAccepted()
