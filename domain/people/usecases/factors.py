"""Use cases of the optional second factor: one-time codes of an authenticator app, and recovery codes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from domain.access.usecases import AccessService
from domain.kernel.errors import Conflict, InvalidRequest
from domain.people.factors import (
    RECOVERY_CODE_CHARS,
    RECOVERY_CODE_COUNT,
    RECOVERY_CODE_LENGTH,
    Authenticator,
    format_recovery_code,
    normalise_code,
)
from domain.people.model import AuthMethod, User
from domain.people.ports import Enrolment, Factors, OneTimeCodes
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.sessions import ClientInfo
from domain.secrets.ports import Vault
from ports.clock import Clock

_WRONG_CODE = "This code is wrong. Check the clock of your device, then enter the current code."
_ALREADY_ON = "One-time codes are already turned on. Turn them off first."
_CONFIRMED_ELSEWHERE = (
    "One-time codes were turned on in another tab or browser. The recovery codes shown there are valid. If you did "
    "not save them, create new ones."
)
_NOT_ON = "Recovery codes require one-time codes. Turn on one-time codes first."


@dataclass(frozen=True, slots=True)
class FactorService:
    """Use cases of users' optional second factor.

    `codes` generates and checks one-time codes. `vault` encrypts the secrets of authenticators.
    """

    factors: Factors
    codes: OneTimeCodes
    vault: Vault
    access: AccessService
    notices: SecurityNotifier
    clock: Clock

    async def has_authenticator(self, user: str) -> bool:
        """Return whether the user has a confirmed authenticator, so that a code is required after the password."""
        found = await self.factors.find_authenticator(user)
        return found is not None and found.confirmed_at is not None

    async def count_unused_codes(self, user: str) -> int:
        """Return the number of the user's recovery codes that are not used yet."""
        return await self.factors.count_unused_codes(user)

    async def enrol(self, user: User) -> Enrolment:
        """Create an unconfirmed authenticator, unless the user has one; return the data for setting up the app.

        Concurrent calls return the same data. Raises Conflict if the authenticator is already confirmed.
        """
        sealed = self.vault.encrypt({"secret": self.codes.create_secret()}, user.id)
        found = await self.factors.enrol(Authenticator(user.id, sealed, None))
        if found.confirmed_at is not None:
            raise Conflict(_ALREADY_ON)
        return self.codes.build_enrolment(self._open_secret(found), user.email)

    async def get_pending_enrolment(self, user: User) -> Enrolment | None:
        """Return the data for setting up the user's unconfirmed authenticator, or None if there is none."""
        found = await self.factors.find_authenticator(user.id)
        if found is None or found.confirmed_at is not None:
            return None
        return self.codes.build_enrolment(self._open_secret(found), user.email)

    async def confirm(self, user: User, code: str, client: ClientInfo) -> Sequence[str]:
        """Confirm the authenticator with a first code; return new recovery codes.

        Raises InvalidRequest if the code is wrong, Conflict if no authenticator waits for confirmation.
        """
        found = await self.factors.find_authenticator(user.id)
        if found is None or found.confirmed_at is not None:
            raise Conflict(
                _CONFIRMED_ELSEWHERE if found else "No authenticator app is waiting for confirmation. Start again."
            )
        now = self.clock.now()
        step = self.codes.find_time_step(self._open_secret(found), normalise_code(code), now)
        if step is None:
            raise InvalidRequest.for_field("code", "invalid_value", _WRONG_CODE)
        codes = _create_codes()
        if not await self.factors.confirm(found, step, self._hash_codes(user, codes), now):
            raise Conflict(_CONFIRMED_ELSEWHERE)
        await self.notices.notify(user, "authenticator_added", client)
        return [format_recovery_code(code) for code in codes]

    async def disenrol(self, user: User, client: ClientInfo) -> None:
        """Remove the user's authenticator and recovery codes."""
        if await self.factors.disenrol(user.id):
            await self.notices.notify(user, "authenticator_removed", client)

    async def renew_codes(self, user: User, client: ClientInfo) -> Sequence[str]:
        """Replace the recovery codes; return the new ones.

        Raises Conflict if the user has no confirmed authenticator.
        """
        codes = _create_codes()
        if not await self.factors.replace_codes(user.id, self._hash_codes(user, codes)):
            raise Conflict(_NOT_ON)
        await self.notices.notify(user, "recovery_codes_made", client)
        return [format_recovery_code(code) for code in codes]

    async def verify_code(self, user: User, code: str) -> AuthMethod | None:
        """Verify a one-time code or recovery code, and mark it as used.

        Returns the method that the code belongs to, or None if the code is wrong or already used.
        """
        found, typed = await self.factors.find_authenticator(user.id), normalise_code(code)
        if found is None or found.confirmed_at is None:
            return None
        now = self.clock.now()
        if len(typed) == RECOVERY_CODE_LENGTH:
            used = await self.factors.use_code(user.id, self._hash_code(user.id, typed), now)
            return AuthMethod.RECOVERY_CODE if used else None
        step = self.codes.find_time_step(self._open_secret(found), typed, now)
        if step is None or not await self.factors.use_totp_step(user.id, step):
            return None
        return AuthMethod.TOTP

    def _hash_codes(self, user: User, codes: Sequence[str]) -> Sequence[bytes]:
        return [self._hash_code(user.id, code) for code in codes]

    def _open_secret(self, authenticator: Authenticator) -> str:
        return str(self.vault.decrypt(authenticator.sealed, authenticator.user)["secret"])

    def _hash_code(self, user: str, code: str) -> bytes:
        return self.access.compute_digest(f"joinery recovery code\n{user}\n{code}")


def _create_codes() -> Sequence[str]:
    """Return ten new recovery codes."""
    return [
        "".join(secrets.choice(RECOVERY_CODE_CHARS) for _ in range(RECOVERY_CODE_LENGTH))
        for _ in range(RECOVERY_CODE_COUNT)
    ]
