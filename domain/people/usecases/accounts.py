"""The services of a person's account as one value."""

from dataclasses import dataclass

from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import Notices
from domain.people.usecases.passkeys import PasskeyService
from domain.people.usecases.passwords import PasswordService
from domain.people.usecases.signing_in import SignInService


@dataclass(frozen=True, slots=True)
class Accounts:
    """Services of sign-in and of credentials."""

    sign_in: SignInService
    passwords: PasswordService
    factors: FactorService
    passkeys: PasskeyService
    notices: Notices
