"""Everything that a person's account is worked with, as one value: made once a process."""

from dataclasses import dataclass

from domain.access.usecases import AccessService
from domain.outbox.usecases.outgoing_mail import OutgoingMail
from domain.people.ports import Ceremonies, Factors, OneTimeCodes, Passkeys, PasswordGuesses, Passwords, People
from domain.people.usecases.factors import FactorService
from domain.people.usecases.notices import Notices
from domain.people.usecases.passkeys import PasskeyService
from domain.people.usecases.passwords import PasswordService
from domain.people.usecases.sessions import LinkService, SessionService
from domain.people.usecases.signing_in import SignInService
from domain.people.usecases.throttling import Devices, Throttle
from domain.secrets.ports import Vault
from ports.clock import Clock
from ports.limits import Limits


@dataclass(frozen=True, slots=True)
class Accounts:
    """Signing in, and what somebody signs in with."""

    sign_in: SignInService
    passwords: PasswordService
    factors: FactorService
    passkeys: PasskeyService
    notices: Notices


@dataclass(frozen=True, slots=True, kw_only=True)
class Technology:
    """What hashes, counts, seals and speaks to devices."""

    passwords: Passwords
    guesses: PasswordGuesses
    codes: OneTimeCodes
    ceremonies: Ceremonies
    limits: Limits
    vault: Vault
    clock: Clock
    base_url: str


def accounts_of(
    people: People,
    factors: Factors,
    passkeys: Passkeys,
    sessions: SessionService,
    links: LinkService,
    access: AccessService,
    mail: OutgoingMail,
    by: Technology,
) -> Accounts:
    """The use cases over these stores."""
    devices = Devices(access)
    throttle, notices = Throttle(by.limits, devices), Notices(people, mail, by.clock, by.base_url)
    codes = FactorService(factors, by.codes, by.vault, access, notices, by.clock)
    sign_in = SignInService(
        people, sessions, links, codes, by.passwords, access, throttle, devices, notices, by.clock
    )  # fmt: skip
    own = PasswordService(
        people, sessions, links, codes, by.passwords, by.guesses, throttle, mail, notices, by.clock, by.base_url
    )  # fmt: skip
    keys = PasskeyService(
        passkeys, by.ceremonies, people, sessions, sign_in, access, throttle, notices, by.clock
    )  # fmt: skip
    return Accounts(sign_in, own, codes, keys, notices)
