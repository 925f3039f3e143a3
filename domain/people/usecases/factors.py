"""One-time codes of an app, and recovery codes."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from domain.access.usecases import AccessService
from domain.kernel.errors import Conflict, InvalidRequest
from domain.people.factors import CODE_LENGTH, CODE_LETTERS, RECOVERY_CODES, Authenticator, shown_code, typed_code
from domain.people.model import Method, User
from domain.people.ports import Enrolment, Factors, OneTimeCodes
from domain.people.usecases.notices import Notices
from domain.people.usecases.sessions import Visitor
from domain.secrets.ports import Vault
from ports.clock import Clock

_WRONG = "This code is wrong. Check that the clock of your device is right, then enter the code that it shows now."
_ON = "One-time codes are already turned on. Turn them off first."
_ELSEWHERE = (
    "One-time codes were turned on in another tab or browser. The recovery codes shown there are valid. "
    "If you have not kept them, create new ones."
)
_OFF = "Recovery codes need one-time codes. Turn those on first."


@dataclass(frozen=True, slots=True)
class FactorService:
    """The optional second factor of people."""

    factors: Factors
    codes: OneTimeCodes
    vault: Vault
    access: AccessService
    notices: Notices
    clock: Clock

    async def asks_for_code(self, user: str) -> bool:
        """Return whether the person's sign-in by password has a second step."""
        found = await self.factors.authenticator(user)
        return found is not None and found.confirmed_at is not None

    async def codes_left(self, user: str) -> int:
        """Return the number of unused recovery codes."""
        return await self.factors.codes_left(user)

    async def enrol(self, user: User) -> Enrolment:
        """Return the data to set up an app, the same for concurrent calls. Raises Conflict if one is confirmed."""
        sealed = self.vault.seal({"secret": self.codes.secret()}, user.id)
        found = await self.factors.enrol(Authenticator(user.id, sealed, None))
        if found.confirmed_at is not None:
            raise Conflict(_ON)
        return self.codes.enrolment(self._secret(found), user.email)

    async def enrolling(self, user: User) -> Enrolment | None:
        """Return the set-up data of the unconfirmed app, or None."""
        found = await self.factors.authenticator(user.id)
        if found is None or found.confirmed_at is not None:
            return None
        return self.codes.enrolment(self._secret(found), user.email)

    async def confirm(self, user: User, code: str, visitor: Visitor) -> Sequence[str]:
        """Confirm the app by its first code; return the recovery codes. Raises InvalidRequest, Conflict."""
        found = await self.factors.authenticator(user.id)
        if found is None or found.confirmed_at is not None:
            raise Conflict(_ELSEWHERE if found else "There is no app to confirm. Start again.")
        now = self.clock.now()
        step = self.codes.step(self._secret(found), typed_code(code), now)
        if step is None:
            raise InvalidRequest.of("code", "invalid_value", _WRONG)
        codes = _new_codes()
        if not await self.factors.confirm(found, step, self._digests(user, codes), now):
            raise Conflict(_ELSEWHERE)
        await self.notices.notify(user, "authenticator_added", visitor)
        return [shown_code(code) for code in codes]

    async def disenrol(self, user: User, visitor: Visitor) -> None:
        """Remove the app and the recovery codes."""
        if await self.factors.disenrol(user.id):
            await self.notices.notify(user, "authenticator_removed", visitor)

    async def renew_codes(self, user: User, visitor: Visitor) -> Sequence[str]:
        """Replace the recovery codes and return the new ones, once. Raises Conflict if no app is confirmed."""
        codes = _new_codes()
        if not await self.factors.replace_codes(user.id, self._digests(user, codes)):
            raise Conflict(_OFF)
        await self.notices.notify(user, "recovery_codes_made", visitor)
        return [shown_code(code) for code in codes]

    async def proved(self, user: User, code: str) -> Method | None:
        """Use the code; return the method that it proves, or None."""
        found, typed = await self.factors.authenticator(user.id), typed_code(code)
        if found is None or found.confirmed_at is None:
            return None
        now = self.clock.now()
        if len(typed) == CODE_LENGTH:
            used = await self.factors.use_code(user.id, self._digest(user.id, typed), now)
            return Method.RECOVERY_CODE if used else None
        step = self.codes.step(self._secret(found), typed, now)
        if step is None or not await self.factors.take_step(user.id, step):
            return None
        return Method.TOTP

    def _digests(self, user: User, codes: Sequence[str]) -> Sequence[bytes]:
        return [self._digest(user.id, code) for code in codes]

    def _secret(self, authenticator: Authenticator) -> str:
        return str(self.vault.open(authenticator.sealed, authenticator.user)["secret"])

    def _digest(self, user: str, code: str) -> bytes:
        return self.access.digest(f"joinery recovery code\n{user}\n{code}")


def _new_codes() -> Sequence[str]:
    """Return ten new recovery codes."""
    return ["".join(secrets.choice(CODE_LETTERS) for _ in range(CODE_LENGTH)) for _ in range(RECOVERY_CODES)]
