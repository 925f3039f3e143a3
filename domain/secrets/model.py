"""The key ring, sealed values, and the state of secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from domain.kernel import retention
from domain.kernel.tenancy import Tenant

CURSORS_COUNT = retention.EVENTS
"""Validity of cursors signed by a superseded secret: as long as events are kept."""
LINKS_COUNT = timedelta(hours=1)
"""Validity of links signed by a superseded secret: longer than any link's lifetime."""
SETTLING = timedelta(seconds=10)
"""Time after a change of the secret in force in which processes may still use the previous one."""


@dataclass(frozen=True, slots=True)
class FormerKey:
    """A key whose signatures are valid until then."""

    key: bytes
    until: datetime


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The deployment's keys, stored sealed under the secret in force.

    `api_keys` is the key of API key hashes, independent of the secret; the others are keys of superseded secrets.
    """

    api_keys: bytes
    cursors: tuple[FormerKey, ...] = ()
    links: tuple[FormerKey, ...] = ()

    def superseded(self, cursors: bytes, links: bytes, now: datetime) -> "KeyRing":
        """Return the ring after the secret of these keys was superseded; their signatures remain valid for a while."""
        return KeyRing(
            self.api_keys,
            (*counting(self.cursors, now), FormerKey(cursors, now + CURSORS_COUNT)),
            (*counting(self.links, now), FormerKey(links, now + LINKS_COUNT)),
        )

    def plain(self) -> dict[str, Any]:
        """Return the ring as JSON."""
        formers = {"cursors": self.cursors, "links": self.links}
        plain = {name: [[key.key.hex(), key.until.isoformat()] for key in keys] for name, keys in formers.items()}
        return {"api_keys": self.api_keys.hex(), **plain}

    @classmethod
    def of(cls, plain: Mapping[str, Any]) -> "KeyRing":
        """Parse a ring from JSON."""

        def formers(name: str) -> tuple[FormerKey, ...]:
            return tuple(FormerKey(bytes.fromhex(key), datetime.fromisoformat(until)) for key, until in plain[name])

        return cls(bytes.fromhex(plain["api_keys"]), formers("cursors"), formers("links"))


def counting(keys: Sequence[FormerKey], now: datetime) -> tuple[FormerKey, ...]:
    """Return the keys that are still valid."""
    return tuple(key for key in keys if now < key.until)


class SealedKind(StrEnum):
    """Kinds of sealed values, by place of storage."""

    CREDENTIALS = "source_credentials"
    WEBHOOK_SECRETS = "webhook_secrets"
    FORMER_WEBHOOK_SECRETS = "former_webhook_secrets"
    ANSWERS = "answers"
    KEPT_FOR_UNDOING = "kept_for_undoing"
    OUTGOING_MAIL = "outgoing_mail"
    AUTHENTICATORS = "authenticators"
    SSO_SECRETS = "sso_secrets"


NOBODYS = Tenant("", True)
"""Placeholder for the tenant of people's sealed values, which have none."""
OF_PEOPLE = frozenset({SealedKind.OUTGOING_MAIL, SealedKind.AUTHENTICATORS})


@dataclass(frozen=True, slots=True)
class SealedValue:
    """A stored sealed value.

    `owner` is the id (or idempotency key) of its row, to which the seal is bound. Credentials also have the source's
    `connector` and `config`, which determine the destination to which the seal is bound.
    """

    kind: SealedKind
    tenant: Tenant
    owner: str
    sealed: bytes
    connector: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretState:
    """State of a secret by its id.

    `values` counts the values sealed under it by kind; `known`: the secret is available.
    """

    id: str
    known: bool
    in_force: bool
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SecretStatus:
    """State of all secrets, the current one first.

    `lacking` is the number of connections of processes without the current secret; `since` is when the secret in force
    became so. `hindrances` say why former secrets cannot be retired yet.
    """

    secrets: tuple[SecretState, ...]
    lacking: int
    since: datetime
    hindrances: tuple[str, ...]


def hindrances(states: Sequence[SecretState], lacking: int, since: datetime, now: datetime) -> tuple[str, ...]:
    """Return the sentences that say why former secrets cannot be retired yet; the first state is the current secret's."""
    reasons = []
    if lacking:
        reasons.append(f"{lacking} database connections belong to processes that do not know the current secret.")
    if not states[0].in_force:
        reasons.append("The current secret is not in force yet.")
    elif now < since + SETTLING:
        reasons.append("The current secret has only just come into force.")
    reasons += [
        f"{sum(state.values.values())} values are still sealed under {state.id}."
        for state in states[1:]
        if state.known and state.values
    ]
    return tuple(reasons)
