"""What is kept sealed under the operator's secret, and how much of it stands under which one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from domain.kernel import retention
from domain.kernel.tenancy import Tenant

CURSORS_COUNT = retention.EVENTS
"""How long cursors of a superseded secret count: as long as the events that they lead to are kept."""
LINKS_COUNT = timedelta(hours=1)
"""How long signed links of a superseded secret count: longer than any is valid."""
SETTLING = timedelta(seconds=10)
"""How long after another secret has come into force processes may still write under the one before."""


@dataclass(frozen=True, slots=True)
class FormerKey:
    """A key whose signatures count until then."""

    key: bytes
    until: datetime


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Kept in store, sealed under the secret in force, which is thereby known to every process.

    `api_keys` keys the hashes of API keys, whatever the secret; the others are keys of superseded secrets.
    """

    api_keys: bytes
    cursors: tuple[FormerKey, ...] = ()
    links: tuple[FormerKey, ...] = ()

    def superseded(self, cursors: bytes, links: bytes, now: datetime) -> "KeyRing":
        """Return the ring after the secret of these keys was replaced; its signatures remain valid for a while."""
        return KeyRing(
            self.api_keys,
            (*counting(self.cursors, now), FormerKey(cursors, now + CURSORS_COUNT)),
            (*counting(self.links, now), FormerKey(links, now + LINKS_COUNT)),
        )

    def plain(self) -> dict[str, Any]:
        """As JSON."""
        formers = {"cursors": self.cursors, "links": self.links}
        told = {name: [[one.key.hex(), one.until.isoformat()] for one in keys] for name, keys in formers.items()}
        return {"api_keys": self.api_keys.hex(), **told}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "KeyRing":
        """Of its JSON."""

        def formers(name: str) -> tuple[FormerKey, ...]:
            return tuple(FormerKey(bytes.fromhex(key), datetime.fromisoformat(until)) for key, until in plain[name])

        return cls(bytes.fromhex(plain["api_keys"]), formers("cursors"), formers("links"))


def counting(keys: Sequence[FormerKey], now: datetime) -> tuple[FormerKey, ...]:
    """Those that still count."""
    return tuple(one for one in keys if now < one.until)


class SealedKind(StrEnum):
    """Where sealed values lie."""

    CREDENTIALS = "source_credentials"
    WEBHOOK_SECRETS = "webhook_secrets"
    FORMER_WEBHOOK_SECRETS = "former_webhook_secrets"
    ANSWERS = "answers"
    KEPT_FOR_UNDOING = "kept_for_undoing"
    OUTGOING_MAIL = "outgoing_mail"
    AUTHENTICATORS = "authenticators"
    SSO_SECRETS = "sso_secrets"


NOBODYS = Tenant("", True)
"""Whose sealed values of people are: no tenant's."""
OF_PEOPLE = frozenset({SealedKind.OUTGOING_MAIL, SealedKind.AUTHENTICATORS})


@dataclass(frozen=True, slots=True)
class SealedValue:
    """One sealed value in store. `owner` is the id (or idempotency key) that it is sealed for, and its row's.

    Credentials also have the source's `connector` and `config`, which say for which destination they are sealed.
    """

    kind: SealedKind
    tenant: Tenant
    owner: str
    sealed: bytes
    connector: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretState:
    """One secret, by its id. `values` counts by kind what is sealed under it; `known` tells whether it is at hand."""

    id: str
    known: bool
    in_force: bool
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """All secrets, the current one first. `lacking` connections are of processes that do not know the current one.

    `since`: when the one in force became so. `hindrances` say why the former ones cannot be done without yet.
    """

    secrets: tuple[SecretState, ...]
    lacking: int
    since: datetime
    hindrances: tuple[str, ...]


def hindrances(states: Sequence[SecretState], lacking: int, since: datetime, now: datetime) -> tuple[str, ...]:
    """Return the reasons why former secrets cannot be retired; the current secret is the first state."""
    found = []
    if lacking:
        found.append(f"{lacking} database connections belong to processes that do not know the current secret.")
    if not states[0].in_force:
        found.append("The current secret is not in force yet.")
    elif now < since + SETTLING:
        found.append("The current secret has only just come into force.")
    found += [
        f"{sum(state.values.values())} values are still sealed under {state.id}."
        for state in states[1:]
        if state.known and state.values
    ]
    return tuple(found)
