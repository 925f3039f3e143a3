"""State of the deployment's secrets, for operators."""

from domain.secrets.model import SecretsOverview, SecretState, list_retirement_obstacles
from domain.secrets.ports import EncryptedValues, KeyRingStore, Vault
from ports.clock import Clock


async def read_secrets_overview(
    rings: KeyRingStore, values: EncryptedValues, vault: Vault, clock: Clock
) -> SecretsOverview:
    """Return the states of all available secrets, and of other secrets with which values are still encrypted.

    Raises Unavailable.
    """
    stored = await rings.read()
    assert stored is not None, "the ring was read before"
    in_force, counts = vault.parse_secret_id(stored.ciphertext), await values.count_by_secret()
    secret_ids = (*vault.secret_ids, *sorted(counts.keys() - set(vault.secret_ids)))
    states = tuple(
        SecretState(key, key in vault.secret_ids, key == in_force, counts.get(key, {})) for key in secret_ids
    )
    lacking = await rings.count_outdated_connections(vault.secret_ids[0])
    reasons = list_retirement_obstacles(states, lacking, stored.changed_at, clock.now())
    return SecretsOverview(states, lacking, stored.changed_at, reasons)
