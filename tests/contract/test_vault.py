"""Encryption of credentials (domain/secrets/ports.py)."""

import pytest

from adapters.aesgcm import AesGcmVault

OLD, NEW = "the first secret, at least 32 characters", "the second secret, at least 32 characters"
CREDENTIALS = {"username": "änna", "password": "Geheim", "pages": 3}


def test_encrypted_values_are_decrypted() -> None:
    vault = AesGcmVault(OLD)
    sealed = vault.encrypt(CREDENTIALS, "src_1")
    assert vault.decrypt(sealed, "src_1") == CREDENTIALS
    assert AesGcmVault(OLD).decrypt(sealed, "src_1") == CREDENTIALS
    assert b"Geheim" not in sealed
    assert vault.encrypt(CREDENTIALS, "src_1") != sealed


def test_is_bound_to_its_source() -> None:
    sealed = AesGcmVault(OLD).encrypt(CREDENTIALS, "src_1")
    with pytest.raises(ValueError, match="another owner"):
        AesGcmVault(OLD).decrypt(sealed, "src_2")


def test_every_changed_byte_is_detected() -> None:
    vault = AesGcmVault(OLD)
    sealed = vault.encrypt(CREDENTIALS, "src_1")
    for position in range(len(sealed)):
        changed = bytearray(sealed)
        changed[position] ^= 1
        with pytest.raises(ValueError):
            vault.decrypt(bytes(changed), "src_1")
    for length in range(len(sealed)):
        with pytest.raises(ValueError):
            vault.decrypt(sealed[:length], "src_1")


def test_keys_rotate() -> None:
    sealed = AesGcmVault(OLD).encrypt(CREDENTIALS, "src_1")
    both = AesGcmVault(NEW, (OLD,))
    assert both.decrypt(sealed, "src_1") == CREDENTIALS
    assert not sealed.startswith(both.current_prefix)
    assert both.secret_ids == (both.parse_secret_id(both.encrypt({}, "")), both.parse_secret_id(sealed))
    again = both.encrypt(both.decrypt(sealed, "src_1"), "src_1")
    assert again.startswith(both.current_prefix)
    assert AesGcmVault(NEW).decrypt(again, "src_1") == CREDENTIALS
    with pytest.raises(ValueError, match="does not have"):
        AesGcmVault(NEW).decrypt(sealed, "src_1")


def test_is_bound_to_its_destination() -> None:
    vault = AesGcmVault(OLD)
    sealed = vault.encrypt(CREDENTIALS, "src_1", "https://vendor.example:443")
    assert vault.decrypt(sealed, "src_1", "https://vendor.example:443") == CREDENTIALS
    for owner, destination in (
        ("src_1", ""),
        ("src_1", "https://other.example:443"),
        ("src_2", "https://vendor.example:443"),
        ("src_1https://vendor.example:443", ""),
    ):
        with pytest.raises(ValueError, match="another owner or destination"):
            vault.decrypt(sealed, owner, destination)


def test_values_of_an_earlier_release_are_decrypted_and_outdated() -> None:
    """The earlier release did not bind values to a destination."""
    sealed = bytes.fromhex(
        "0110376462346266363261393734653162643036822b0544e3fd2ecf311b96f5ba96370350ddb11756cfa35e5c5ef84ccdc4afb21eda72d2ee1d88bfecdad159bbf2ffa4ef53c95d1696ce20c9f368edc6b4c0308755508f4d62bc703b0621363eb2f2c82669b8a46e5f3fe334c82338635e30e74f34f4"
    )
    vault = AesGcmVault(OLD)
    assert vault.decrypt(sealed, "src_1", "anywhere") == {"token": "t"}
    assert not sealed.startswith(vault.current_prefix)
    with pytest.raises(ValueError, match="another owner"):
        vault.decrypt(sealed, "src_2")
