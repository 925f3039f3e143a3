"""All services of a user's account in one object."""

from dataclasses import dataclass

from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import SecurityNotifier
from domain.people.usecases.passkeys import PasskeyService
from domain.people.usecases.passwords import PasswordService
from domain.people.usecases.sign_in import SignInService


@dataclass(frozen=True, slots=True)
class AuthServices:
    """Services of sign-in, passwords, one-time codes, passkeys and security notices."""

    sign_in: SignInService
    passwords: PasswordService
    factors: FactorService
    passkeys: PasskeyService
    notices: SecurityNotifier
