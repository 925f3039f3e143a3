"""The key ring, encrypted values, and the state of the deployment's secrets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from domain.kernel import retention
from domain.kernel.tenancy import Tenant

CURSOR_VALIDITY = retention.EVENTS
"""Time for which cursors that are signed with a replaced secret remain valid."""
LINK_VALIDITY = timedelta(hours=1)
"""Time for which links that are signed with a replaced secret remain valid."""
MAX_SWITCH_TIME = timedelta(seconds=10)
"""Time after a change of the active secret during which processes may still use the previous secret."""


@dataclass(frozen=True, slots=True)
class FormerKey:
    """Key of a replaced secret, whose signatures are valid until `valid_until`."""

    key: bytes
    valid_until: datetime


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Keys of the deployment, which are stored encrypted with the active secret.

    Attributes:
        api_key_hash_key: The key with which API keys are hashed; it never changes.
        former_cursor_keys: Keys of replaced secrets with which cursors were signed.
        former_link_keys: Keys of replaced secrets with which links were signed.
    """

    api_key_hash_key: bytes
    former_cursor_keys: tuple[FormerKey, ...] = ()
    former_link_keys: tuple[FormerKey, ...] = ()

    def with_former_keys(self, cursor_key: bytes, link_key: bytes, now: datetime) -> "KeyRing":
        """Return the key ring with these keys of a replaced secret added; their signatures remain valid for a while."""
        return KeyRing(
            self.api_key_hash_key,
            (*select_valid_keys(self.former_cursor_keys, now), FormerKey(cursor_key, now + CURSOR_VALIDITY)),
            (*select_valid_keys(self.former_link_keys, now), FormerKey(link_key, now + LINK_VALIDITY)),
        )

    def to_json(self) -> dict[str, Any]:
        """Return the key ring as a JSON object, with keys in hexadecimal."""
        former_keys = {"cursors": self.former_cursor_keys, "links": self.former_link_keys}
        plain = {
            name: [[key.key.hex(), key.valid_until.isoformat()] for key in keys] for name, keys in former_keys.items()
        }
        return {"api_keys": self.api_key_hash_key.hex(), **plain}

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> "KeyRing":
        """Return the key ring from the JSON object that `to_json` returns."""

        def parse_former_keys(name: str) -> tuple[FormerKey, ...]:
            return tuple(FormerKey(bytes.fromhex(key), datetime.fromisoformat(until)) for key, until in plain[name])

        return cls(bytes.fromhex(plain["api_keys"]), parse_former_keys("cursors"), parse_former_keys("links"))


def select_valid_keys(keys: Sequence[FormerKey], now: datetime) -> tuple[FormerKey, ...]:
    """Return the keys whose signatures are still valid."""
    return tuple(key for key in keys if now < key.valid_until)


class EncryptedValueKind(StrEnum):
    """Kinds of encrypted values.

    Attributes:
        CREDENTIALS: Credentials of sources.
        WEBHOOK_SECRETS: Secrets of webhook endpoints.
        FORMER_WEBHOOK_SECRETS: Previous secrets of webhook endpoints, during a secret rotation.
        STORED_RESPONSES: Responses that are stored for idempotency keys.
        UNDO_VALUES: Previous secrets and credentials with which an audit entry can be undone.
        OUTGOING_MAIL: Bodies of emails in the outbox.
        AUTHENTICATORS: Secrets of users' authenticator apps.
        SSO_SECRETS: Client secrets for single sign-on.
        NOTIFICATION_ADDRESSES: URLs of the receivers of notifications, and their signing secrets.
        EXPORT_TARGETS: Credentials of the targets of scheduled exports.
    """

    CREDENTIALS = "source_credentials"
    WEBHOOK_SECRETS = "webhook_secrets"
    FORMER_WEBHOOK_SECRETS = "former_webhook_secrets"
    STORED_RESPONSES = "answers"
    UNDO_VALUES = "kept_for_undoing"
    OUTGOING_MAIL = "outgoing_mail"
    AUTHENTICATORS = "authenticators"
    SSO_SECRETS = "sso_secrets"
    NOTIFICATION_ADDRESSES = "notification_addresses"
    EXPORT_TARGETS = "export_targets"


NO_TENANT = Tenant("", True)
"""Placeholder for the tenant of encrypted values of users, which belong to no tenant."""
USER_KINDS = frozenset({EncryptedValueKind.OUTGOING_MAIL, EncryptedValueKind.AUTHENTICATORS})
"""Kinds of encrypted values that belong to users, not to tenants."""


@dataclass(frozen=True, slots=True)
class EncryptedValue:
    """Stored encrypted value, with the data that is needed to decrypt it.

    Attributes:
        owner: Owner with which the value was encrypted (`Vault.encrypt`), such as a source ID or an idempotency key.
        ciphertext: The encrypted value.
        connector: Connector of a source's credentials.
        config: Settings of the source; they and the connector determine the destination of credentials.
    """

    kind: EncryptedValueKind
    tenant: Tenant
    owner: str
    ciphertext: bytes
    connector: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SecretState:
    """State of one secret.

    Attributes:
        id: ID of the secret, derived from the secret.
        is_available: Whether this process has the secret.
        is_active: Whether the secret is the active one, with which values are encrypted.
        values: Number of values that are encrypted with the secret, by kind.
    """

    id: str
    is_available: bool
    is_active: bool
    values: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class SecretsOverview:
    """Overview of the deployment's secrets: the state of each secret, and whether earlier secrets can be removed.

    Attributes:
        outdated_connections: Number of database connections of processes that have not loaded the newest secret.
        active_since: When the active secret became active.
        secrets: State of each secret, the newest first.
        obstacles: Why earlier secrets cannot be removed yet, as sentences.
    """

    secrets: tuple[SecretState, ...]
    outdated_connections: int
    active_since: datetime
    obstacles: tuple[str, ...]


def list_retirement_obstacles(
    states: Sequence[SecretState], outdated_connections: int, active_since: datetime, now: datetime
) -> tuple[str, ...]:
    """Return sentences that state why earlier secrets cannot be removed yet.

    Args:
        states: States of the secrets, the newest first.
        outdated_connections: Number of database connections of processes that have not loaded the newest secret.
        active_since: When the active secret became active.
        now: The current time.
    """
    reasons = []
    if outdated_connections:
        reasons.append(
            f"{outdated_connections} database connections belong to processes without the current secret. Restart "
            "these processes with the current secret."
        )
    if not states[0].is_active:
        reasons.append("The current secret is not in use yet: some processes have not loaded it.")
    elif now < active_since + MAX_SWITCH_TIME:
        reasons.append("The current secret has only just come into use. Wait some seconds.")
    reasons += [
        f"{sum(state.values.values())} values are still encrypted with secret {state.id}."
        for state in states[1:]
        if state.is_available and state.values
    ]
    return tuple(reasons)
