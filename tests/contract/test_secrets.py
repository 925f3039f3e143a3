"""Encrypted values in stores (domain/secrets/ports.py) and their re-encryption (domain/secrets/usecases)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

import pytest

from adapters.aesgcm import AesGcmVault
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.changes.model import FeedPosition
from domain.exports.ports import ScheduledExportStore
from domain.ingestion.ports import describe_credential_destination
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.notifications.model import NotificationChannel, NotificationKind, NotificationRule
from domain.notifications.ports import NotificationRuleStore
from domain.outbox.model import OutgoingMessage
from domain.people.factors import Authenticator
from domain.people.model import User
from domain.secrets.keys import ActiveKeys, derive_cursor_key, derive_hash_key, derive_link_key
from domain.secrets.model import CURSOR_VALIDITY, LINK_VALIDITY, EncryptedValue, EncryptedValueKind
from domain.secrets.ports import StoredKeyRing
from domain.secrets.usecases import reencryption
from domain.secrets.usecases.keyring import KeyRingKeeper, SecretUnknown
from domain.secrets.usecases.reencryption import ValueReencrypter
from domain.secrets.usecases.status import read_secrets_overview
from domain.sources.ports import SourceStore
from domain.sso.model import SsoConnection, build_secret_owner
from domain.sso.ports import SsoStore
from domain.webhooks.model import EncryptedSecrets, Rotation
from domain.webhooks.ports import WebhookStore
from ports.clock import Clock
from ports.idempotency import IdempotencyStore, StoredResponse
from tests.support import builders
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock

pytestmark = pytest.mark.asyncio
FIRST, SECOND, THIRD = (f"the {word} secret, of more than thirty-two characters" for word in ("1st", "2nd", "3rd"))
EARLIER = "0110376462346266363261393734653162643036822b0544e3fd2ecf311b96f5ba96370350ddb11756cfa35e5c5ef84ccdc4afb21eda72d2ee1d88bfecdad159bbf2ffa4ef53c95d1696ce20c9f368edc6b4c0308755508f4d62bc703b0621363eb2f2c82669b8a46e5f3fe334c82338635e30e74f34f4"
"""`{"token": "t"}` of `src_1`, encrypted by the release before destinations."""
ISSUER = "https://id.example"
CREDENTIALS, SIGNING, ANSWER = {"token": "Geheim"}, {"secret": "whsec_x"}, {"body": "{}"}


def describe_destination(connector: str, config: Mapping[str, Any]) -> str | None:
    """Return the destination as a connector that declares its URL; the connector `gone` is not loaded."""
    return None if connector == "gone" else describe_credential_destination(connector, config, {"url"}, ())


@dataclass
class EncryptedValues:
    """Tenant with an encrypted value of every kind."""

    backend: Backend
    tenant: Tenant
    source: str
    endpoint: str
    entry: str
    rule: str
    mail: str
    user: str
    schedule: str

    async def load_ciphertexts(self) -> dict[EncryptedValueKind, bytes]:
        """Return the stored ciphertexts by kind."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            credentials = await tx[SourceStore].load_encrypted_credentials(self.source)
            secrets = await tx[WebhookStore].get_secrets(self.endpoint)
            answer, kept = await tx[IdempotencyStore].lock("once"), await tx[AuditLog].get_sealed(self.entry)
            connection = await tx[SsoStore].find_connection()
            rule = await tx[NotificationRuleStore].get(self.rule)
            schedule = await tx[ScheduledExportStore].get(self.schedule)
        (mail,) = (one for one in await self.backend.outbox.list_latest(1000) if one.id == self.mail)
        app = await self.backend.factors.find_authenticator(self.user)
        assert (
            app
            and credentials
            and secrets
            and secrets.previous
            and answer
            and kept
            and connection
            and rule
            and rule.address
            and schedule
        )
        return {
            EncryptedValueKind.CREDENTIALS: credentials,
            EncryptedValueKind.WEBHOOK_SECRETS: secrets.current,
            EncryptedValueKind.FORMER_WEBHOOK_SECRETS: secrets.previous,
            EncryptedValueKind.STORED_RESPONSES: answer.body,
            EncryptedValueKind.UNDO_VALUES: kept,
            EncryptedValueKind.OUTGOING_MAIL: mail.sealed,
            EncryptedValueKind.AUTHENTICATORS: app.sealed,
            EncryptedValueKind.SSO_SECRETS: connection.sealed,
            EncryptedValueKind.NOTIFICATION_ADDRESSES: rule.address,
            EncryptedValueKind.EXPORT_TARGETS: schedule.credentials,
        }

    async def can_decrypt(self, vault: AesGcmVault) -> bool:
        """Return whether the vault decrypts every value."""
        boxes = await self.load_ciphertexts()
        found = (
            vault.decrypt(boxes[EncryptedValueKind.CREDENTIALS], self.source, BOUND),
            vault.decrypt(boxes[EncryptedValueKind.WEBHOOK_SECRETS], self.endpoint),
            vault.decrypt(boxes[EncryptedValueKind.FORMER_WEBHOOK_SECRETS], self.endpoint),
            vault.decrypt(boxes[EncryptedValueKind.STORED_RESPONSES], "once"),
            vault.decrypt(boxes[EncryptedValueKind.UNDO_VALUES], self.entry),
            vault.decrypt(boxes[EncryptedValueKind.OUTGOING_MAIL], self.mail),
            vault.decrypt(boxes[EncryptedValueKind.AUTHENTICATORS], self.user),
            vault.decrypt(boxes[EncryptedValueKind.SSO_SECRETS], build_secret_owner(self.tenant.org, ISSUER)),
            vault.decrypt(boxes[EncryptedValueKind.NOTIFICATION_ADDRESSES], self.rule),
            vault.decrypt(boxes[EncryptedValueKind.EXPORT_TARGETS], self.schedule),
        )
        return found == (CREDENTIALS, SIGNING, SIGNING, ANSWER, CREDENTIALS, ANSWER, SIGNING, SIGNING, SIGNING, SIGNING)

    async def list_outdated(self, kind: EncryptedValueKind, stamp: bytes) -> Sequence[EncryptedValue]:
        """Return the tenant's outdated values, read in pages of two."""
        found: list[EncryptedValue] = []
        last = None
        while page := await self.backend.sealed_values.list_outdated(kind, stamp, last, 2):
            found += [one for one in page if one.tenant == self.tenant or one.owner in (self.mail, self.user)]
            assert last is None or page[0] != last
            last = page[-1]
        return found


SOURCE = builders.source()
BOUND = describe_destination(SOURCE.connector, SOURCE.config) or ""


async def create_encrypted_values(backend: Backend, vault: AesGcmVault, **changes: Any) -> EncryptedValues:
    """Create a tenant whose values this vault encrypts."""
    tenant, source = await backend.tenant(), builders.source(**changes)
    endpoint = builders.endpoint(rotation=Rotation(backend.now() + timedelta(hours=1), "abc="))
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[SourceStore].save_encrypted_credentials(source.id, vault.encrypt(CREDENTIALS, source.id, BOUND))
        boxes = [vault.encrypt(SIGNING, endpoint.id) for _ in range(2)]
        await tx[WebhookStore].add(endpoint, EncryptedSecrets(*boxes), FeedPosition())
        for key, body in (("once", vault.encrypt(ANSWER, "once")), ("plain", b"{}"), ("empty", b"")):
            await tx[IdempotencyStore].lock(key)
            await tx[IdempotencyStore].store(key, StoredResponse(b"f", 200, (), body))
        entry = await tx[AuditLog].add(Change("source", source.id, "update", {}, {}))
        await tx[AuditLog].store_sealed(entry, vault.encrypt(CREDENTIALS, entry))
        rule = new_id("ntr")
        await tx[NotificationRuleStore].add(
            NotificationRule(
                id=rule,
                person="usr_1",
                name="a",
                kind=NotificationKind.FEED,
                channel=NotificationChannel.SLACK,
                address=vault.encrypt(SIGNING, rule),
                checked_at=tx.now,
                created_at=tx.now,
                updated_at=tx.now,
            )
        )
        schedule = builders.scheduled_export()
        schedule = replace(schedule, credentials=vault.encrypt(SIGNING, schedule.id))
        await tx[ScheduledExportStore].add(schedule)
        secret, now = vault.encrypt(SIGNING, build_secret_owner(tenant.org, ISSUER)), builders.MOMENT
        await tx[SsoStore].save_connection(
            SsoConnection(tenant.org, ISSUER, "joinery", secret, None, False, True, None, now, now)
        )
    now, mail = builders.MOMENT, new_id("mail")
    await backend.outbox.add(
        OutgoingMessage(mail, "a@fjord.example", "A", "test", vault.encrypt(ANSWER, mail), now, None)
    )
    user = new_id("usr")
    await backend.people.add(User(user, f"{user}@fjord.example", "", None, now))
    await backend.factors.enrol(Authenticator(user, vault.encrypt(SIGNING, user), None))
    return EncryptedValues(backend, tenant, source.id, endpoint.id, entry, rule, mail, user, schedule.id)


async def test_outdated_values_are_replaced_only_if_unchanged(backend: Backend) -> None:
    old, both = AesGcmVault(FIRST), AesGcmVault(SECOND, (FIRST,))
    one, other = [await create_encrypted_values(backend, old) for _ in range(2)]
    for kind in EncryptedValueKind:
        assert await one.list_outdated(kind, old.current_prefix) == []
        [value] = await one.list_outdated(kind, both.current_prefix)
        assert value.ciphertext == (await one.load_ciphertexts())[kind] and value.kind is kind
        assert await backend.sealed_values.replace(value, b"\x02\x10fresh") is True
        assert await backend.sealed_values.replace(value, b"\x02\x10other") is False, "the stored value has changed"
        assert (await one.load_ciphertexts())[kind] == b"\x02\x10fresh"
    assert await other.can_decrypt(old)
    [value] = await other.list_outdated(EncryptedValueKind.CREDENTIALS, both.current_prefix)
    assert (value.connector, dict(value.config)) == (SOURCE.connector, dict(SOURCE.config))


async def test_counts_are_grouped_by_secret(backend: Backend) -> None:
    vault = AesGcmVault(f"a secret of this test alone, by {backend.name} {id(backend)}")
    for _ in range(2):
        await create_encrypted_values(backend, vault)
    assert (await backend.sealed_values.count_by_secret())[vault.secret_ids[0]] == {
        kind.value: 2 for kind in EncryptedValueKind
    }


class FakeKeyRings:
    """Key rings; `unknown_secrets` are IDs of secrets that some other process does not know."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ring: StoredKeyRing | None = None
        self.unknown_secrets: set[str] = set()

    async def read(self) -> StoredKeyRing | None:
        return self.ring

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        if (self.ring.ciphertext if self.ring else None) != expected:
            return False
        self.ring = StoredKeyRing(sealed, self._clock.now())
        return True

    async def has_api_keys(self) -> bool:
        return False

    async def count_outdated_connections(self, secret_id: str) -> int:
        return int(secret_id in self.unknown_secrets)


def create_reencrypter(
    backend: Backend, rings: FakeKeyRings, *secrets: str, clock: SettableClock
) -> tuple[KeyRingKeeper, ValueReencrypter]:
    """Return the key ring and the re-encryption of a scheduler with these secrets."""
    vault = AesGcmVault(secrets[0], secrets[1:])
    keyring = KeyRingKeeper(rings, vault, ActiveKeys(secrets), clock)
    return keyring, ValueReencrypter(keyring, vault, backend.sealed_values, describe_destination, clock)


async def test_values_are_reencrypted_once_every_process_has_the_secret(backend: Backend) -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    one = await create_encrypted_values(backend, AesGcmVault(FIRST))
    first, _ = create_reencrypter(backend, rings, FIRST, clock=clock)
    await first.load()
    keyring, ticking = create_reencrypter(backend, rings, SECOND, FIRST, clock=clock)
    assert await ticking.activate_and_reencrypt() == 0, "nothing happens before the key ring is read"
    await keyring.load()
    rings.unknown_secrets = {AesGcmVault(SECOND).secret_ids[0]}
    for _ in range(9):
        assert await ticking.activate_and_reencrypt() == 0 and not keyring.is_newest_active
    rings.unknown_secrets = set()
    for _ in range(reencryption.REQUIRED_CHECKS - 1):
        assert await ticking.activate_and_reencrypt() == 0 and not keyring.is_newest_active
    assert await ticking.activate_and_reencrypt() >= 4 and keyring.is_newest_active
    assert await one.can_decrypt(AesGcmVault(SECOND))
    with pytest.raises(ValueError, match="does not have"):
        await one.can_decrypt(AesGcmVault(FIRST))
    with pytest.raises(SecretUnknown, match="JOINERY_SECRET_FORMER"):
        await first.load()
    assert await ticking.activate_and_reencrypt() == 0 and await ticking.activate_and_reencrypt() == 0


async def test_no_value_is_reencrypted_that_a_process_could_not_decrypt(backend: Backend) -> None:
    """For example, a process of an earlier release."""
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    one = await create_encrypted_values(backend, AesGcmVault(FIRST))
    keyring, ticking = create_reencrypter(backend, rings, SECOND, FIRST, clock=clock)
    await keyring.load()
    await keyring.activate_newest()
    rings.unknown_secrets = {AesGcmVault(SECOND).secret_ids[0]}
    assert await ticking.activate_and_reencrypt() == 0 and await one.can_decrypt(AesGcmVault(FIRST))
    rings.unknown_secrets = set()
    assert await ticking.activate_and_reencrypt() >= 4 and await one.can_decrypt(AesGcmVault(SECOND))


async def test_reencryption_resumes_after_a_kill(backend: Backend) -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    many = [await create_encrypted_values(backend, AesGcmVault(FIRST)) for _ in range(3)]
    first, _ = create_reencrypter(backend, rings, FIRST, clock=clock)
    await first.load()

    class DyingValues:
        """Encrypted values whose process is killed after `left` replacements."""

        def __init__(self, left: int) -> None:
            self.left = left

        def __getattr__(self, name: str) -> Any:
            return getattr(backend.sealed_values, name)

        async def replace(self, value: EncryptedValue, fresh: bytes) -> bool:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError
            return await backend.sealed_values.replace(value, fresh)

    for left, secrets in ((2, (SECOND, FIRST)), (3, (THIRD, SECOND, FIRST))):
        vault = AesGcmVault(secrets[0], secrets[1:])
        keyring = KeyRingKeeper(rings, vault, ActiveKeys(secrets), clock)
        await keyring.load()
        await keyring.activate_newest()
        with pytest.raises(ConnectionError):
            await ValueReencrypter(
                keyring, vault, DyingValues(left), describe_destination, clock
            ).activate_and_reencrypt()
        assert all([await one.can_decrypt(AesGcmVault(*secrets[:1], secrets[1:])) for one in many])
    keyring, ticking = create_reencrypter(backend, rings, THIRD, SECOND, FIRST, clock=clock)
    await keyring.load()
    await ticking.activate_and_reencrypt()
    assert all([await one.can_decrypt(AesGcmVault(THIRD)) for one in many])


async def test_credentials_stored_during_reencryption_are_kept(backend: Backend) -> None:
    clock, both = SettableClock(), AesGcmVault(SECOND, (FIRST,))
    one = await create_encrypted_values(backend, AesGcmVault(FIRST))

    class ContendedValues:
        """Encrypted values that another transaction changes between read and write."""

        def __getattr__(self, name: str) -> Any:
            return getattr(backend.sealed_values, name)

        async def replace(self, value: EncryptedValue, fresh: bytes) -> bool:
            if value.owner == one.source:
                async with backend.uow.begin(one.tenant, builders.CALL) as tx:
                    await tx[SourceStore].save_encrypted_credentials(
                        one.source, both.encrypt({"token": "newer"}, one.source, BOUND)
                    )
            return await backend.sealed_values.replace(value, fresh)

    keyring = KeyRingKeeper(FakeKeyRings(clock), both, ActiveKeys((SECOND, FIRST)), clock)
    await keyring.load()
    await keyring.activate_newest()
    await ValueReencrypter(keyring, both, ContendedValues(), describe_destination, clock).reencrypt_all()
    box = (await one.load_ciphertexts())[EncryptedValueKind.CREDENTIALS]
    assert both.decrypt(box, one.source, BOUND) == {"token": "newer"}


async def test_values_of_an_earlier_release_are_bound_without_a_rotation(backend: Backend) -> None:
    secret, clock = "the first secret, at least 32 characters", SettableClock()
    tenant, source = await backend.tenant(), builders.source(id="src_1")
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[SourceStore].save_encrypted_credentials("src_1", bytes.fromhex(EARLIER))
    keyring, ticking = create_reencrypter(backend, FakeKeyRings(clock), secret, clock=clock)
    await keyring.load()
    assert await ticking.activate_and_reencrypt() >= 1
    async with backend.uow.begin_reading(tenant) as tx:
        box = await tx[SourceStore].load_encrypted_credentials("src_1")
    assert box is not None and AesGcmVault(secret).decrypt(box, "src_1", BOUND) == {"token": "t"}
    with pytest.raises(ValueError, match="owner or destination"):
        AesGcmVault(secret).decrypt(box, "src_1", "elsewhere")


async def test_undecryptable_values_are_kept_and_reported(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    clock, both = SettableClock(), AesGcmVault(SECOND, (FIRST,))
    gone = await create_encrypted_values(backend, AesGcmVault(FIRST), connector="gone")
    broken = await create_encrypted_values(backend, AesGcmVault(FIRST))
    box = AesGcmVault(FIRST).encrypt(CREDENTIALS, "src_other", BOUND)
    async with backend.uow.begin(broken.tenant, builders.CALL) as tx:
        await tx[SourceStore].save_encrypted_credentials(broken.source, box)
    rings = FakeKeyRings(clock)
    keyring = KeyRingKeeper(rings, both, ActiveKeys((SECOND, FIRST)), clock)
    await keyring.load()
    await keyring.activate_newest()
    await ValueReencrypter(keyring, both, backend.sealed_values, describe_destination, clock).reencrypt_all()
    assert (await broken.load_ciphertexts())[
        EncryptedValueKind.CREDENTIALS
    ] == box and "cannot be decrypted" in caplog.text
    assert (
        both.decrypt((await gone.load_ciphertexts())[EncryptedValueKind.CREDENTIALS], gone.source, BOUND) == CREDENTIALS
    )
    clock.advance(timedelta(minutes=1))
    status = await read_secrets_overview(rings, backend.sealed_values, both, clock)
    assert any("still encrypted with secret " + both.secret_ids[1] in one for one in status.obstacles)


# Key ring


async def test_keys_of_a_former_secret_are_valid_until_they_expire() -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    keys = [ActiveKeys(secrets) for secrets in ((FIRST,), (SECOND, FIRST), (SECOND,))]
    rising = [KeyRingKeeper(rings, AesGcmVault(one.secrets[0], one.secrets[1:]), one, clock) for one in keys]
    with pytest.raises(Unavailable):
        _ = keys[0].api_key_hash_key
    await rising[0].load()
    await rising[1].load()
    assert keys[1].cursor_keys.current == derive_cursor_key(FIRST) and not rising[1].is_newest_active
    assert [one.key for one in keys[1].cursor_keys.former] == [derive_cursor_key(SECOND)], (
        "other processes may be ahead"
    )
    await rising[1].activate_newest()
    await rising[2].load()
    for one in keys[1:]:
        assert one.cursor_keys.current == derive_cursor_key(SECOND) and one.link_keys.current == derive_link_key(SECOND)
        assert [former.key for former in one.cursor_keys.former] == [derive_cursor_key(FIRST)]
        assert [former.key for former in one.link_keys.former] == [derive_link_key(FIRST)]
        assert one.api_key_hash_key == keys[0].api_key_hash_key
    clock.advance(LINK_VALIDITY)
    await rising[2].load()
    assert keys[2].link_keys.former == () and len(keys[2].cursor_keys.former) == 1
    clock.advance(CURSOR_VALIDITY)
    await rising[2].load()
    assert keys[2].cursor_keys.former == ()


async def test_api_keys_of_an_earlier_release_stay_valid() -> None:
    """The earlier release hashed them with a key that was derived from the secret."""
    clock = SettableClock()
    rings = FakeKeyRings(clock)

    async def kept() -> bool:
        return True

    rings.has_api_keys = kept  # type: ignore[method-assign]
    keys = ActiveKeys((SECOND, FIRST))
    await KeyRingKeeper(rings, AesGcmVault(SECOND, (FIRST,)), keys, clock).load()
    assert keys.api_key_hash_key == derive_hash_key(FIRST)


async def test_two_processes_can_activate_the_same_secret() -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    await KeyRingKeeper(rings, AesGcmVault(FIRST), ActiveKeys((FIRST,)), clock).load()
    both = [KeyRingKeeper(rings, AesGcmVault(SECOND, (FIRST,)), ActiveKeys((SECOND, FIRST)), clock) for _ in range(2)]
    for one in both:
        await one.load()
    for one in both:
        await one.activate_newest()
    assert all(one.is_newest_active for one in both)
    keys = ActiveKeys((SECOND,))
    await KeyRingKeeper(rings, AesGcmVault(SECOND), keys, clock).load()
    assert len(keys.cursor_keys.former) == 1
