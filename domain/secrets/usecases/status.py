"""Status of secrets for operators."""

from domain.secrets.model import SecretState, SecretStatus, hindrances
from domain.secrets.ports import KeyRings, SealedValues, Vault
from ports.clock import Clock


async def secret_status(rings: KeyRings, values: SealedValues, vault: Vault, clock: Clock) -> SecretStatus:
    """Return the state of every available secret, and of every other one that still seals values.

    Raises Unavailable.
    """
    stored = await rings.read()
    assert stored is not None, "the ring was read before"
    in_force, counts = vault.key_of(stored.sealed), await values.counts()
    named = (*vault.keys, *sorted(counts.keys() - set(vault.keys)))
    states = tuple(SecretState(key, key in vault.keys, key == in_force, counts.get(key, {})) for key in named)
    lacking = await rings.lacking(vault.keys[0])
    reasons = hindrances(states, lacking, stored.changed_at, clock.now())
    return SecretStatus(states, lacking, stored.changed_at, reasons)
