"""What is sealed in store (domain/secrets/ports.py), and sealing it anew (domain/secrets/usecases)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from adapters.aesgcm import AesGcmVault
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.changes.model import FeedPosition
from domain.ingestion.ports import destination
from domain.kernel.errors import Unavailable
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.outbox.model import OutgoingMessage
from domain.people.factors import Authenticator
from domain.people.model import User
from domain.secrets.keys import WorkingKeys, cursor_key, hash_key, link_key
from domain.secrets.model import CURSORS_COUNT, LINKS_COUNT, SealedKind, SealedValue
from domain.secrets.ports import StoredRing
from domain.secrets.usecases import resealing
from domain.secrets.usecases.keyring import Keyring, SecretUnknown
from domain.secrets.usecases.resealing import Resealing
from domain.secrets.usecases.status import secret_status
from domain.sources.ports import SourceStore
from domain.sso.model import Connection, owner_of
from domain.sso.ports import SsoStore
from domain.webhooks.model import Rotation, SealedSecrets
from domain.webhooks.ports import WebhookStore
from ports.clock import Clock
from ports.idempotency import IdempotencyStore, StoredAnswer
from tests.support import builders
from tests.support.backend import Backend
from tests.support.memory.clock import SettableClock

pytestmark = pytest.mark.asyncio
FIRST, SECOND, THIRD = (f"the {word} secret, of more than thirty-two characters" for word in ("1st", "2nd", "3rd"))
EARLIER = "0110376462346266363261393734653162643036822b0544e3fd2ecf311b96f5ba96370350ddb11756cfa35e5c5ef84ccdc4afb21eda72d2ee1d88bfecdad159bbf2ffa4ef53c95d1696ce20c9f368edc6b4c0308755508f4d62bc703b0621363eb2f2c82669b8a46e5f3fe334c82338635e30e74f34f4"
"""`{"token": "t"}` of `src_1`, as the release before destinations sealed it."""
ISSUER = "https://id.example"
CREDENTIALS, SIGNING, ANSWER = {"token": "Geheim"}, {"secret": "whsec_x"}, {"body": "{}"}


def going_to(connector: str, config: Mapping[str, Any]) -> str | None:
    """As a connector has it that declares its URL; one named `gone` is not loaded."""
    return None if connector == "gone" else destination(connector, config, {"url"}, ())


@dataclass
class Sealed:
    """A tenant with every kind of sealed value."""

    backend: Backend
    tenant: Tenant
    source: str
    endpoint: str
    entry: str
    mail: str
    user: str

    async def boxes(self) -> dict[SealedKind, bytes]:
        """What is in store."""
        async with self.backend.uow.begin(self.tenant, builders.CALL) as tx:
            credentials = await tx[SourceStore].sealed(self.source)
            secrets = await tx[WebhookStore].secrets(self.endpoint)
            answer, kept = await tx[IdempotencyStore].hold("once"), await tx[AuditLog].kept(self.entry)
            connection = await tx[SsoStore].connection()
        (mail,) = (one for one in await self.backend.outbox.latest(1000) if one.id == self.mail)
        app = await self.backend.factors.authenticator(self.user)
        assert app and credentials and secrets and secrets.previous and answer and kept and connection
        return {
            SealedKind.CREDENTIALS: credentials,
            SealedKind.WEBHOOK_SECRETS: secrets.current,
            SealedKind.FORMER_WEBHOOK_SECRETS: secrets.previous,
            SealedKind.ANSWERS: answer.body,
            SealedKind.KEPT_FOR_UNDOING: kept,
            SealedKind.OUTGOING_MAIL: mail.sealed,
            SealedKind.AUTHENTICATORS: app.sealed,
            SealedKind.SSO_SECRETS: connection.sealed,
        }

    async def opens(self, vault: AesGcmVault) -> bool:
        """Whether everything does."""
        boxes = await self.boxes()
        found = (
            vault.open(boxes[SealedKind.CREDENTIALS], self.source, BOUND),
            vault.open(boxes[SealedKind.WEBHOOK_SECRETS], self.endpoint),
            vault.open(boxes[SealedKind.FORMER_WEBHOOK_SECRETS], self.endpoint),
            vault.open(boxes[SealedKind.ANSWERS], "once"),
            vault.open(boxes[SealedKind.KEPT_FOR_UNDOING], self.entry),
            vault.open(boxes[SealedKind.OUTGOING_MAIL], self.mail),
            vault.open(boxes[SealedKind.AUTHENTICATORS], self.user),
            vault.open(boxes[SealedKind.SSO_SECRETS], owner_of(self.tenant.org, ISSUER)),
        )
        return found == (CREDENTIALS, SIGNING, SIGNING, ANSWER, CREDENTIALS, ANSWER, SIGNING, SIGNING)

    async def mine(self, kind: SealedKind, stamp: bytes) -> Sequence[SealedValue]:
        """Its stale values, walked through in steps of two."""
        found: list[SealedValue] = []
        last = None
        while page := await self.backend.sealed_values.stale(kind, stamp, last, 2):
            found += [one for one in page if one.tenant == self.tenant or one.owner in (self.mail, self.user)]
            assert last is None or page[0] != last
            last = page[-1]
        return found


SOURCE = builders.source()
BOUND = going_to(SOURCE.connector, SOURCE.config) or ""


async def sealed(backend: Backend, vault: AesGcmVault, **changes: Any) -> Sealed:
    """One, sealed by that vault."""
    tenant, source = await backend.tenant(), builders.source(**changes)
    endpoint = builders.endpoint(rotation=Rotation(backend.now() + timedelta(hours=1), "abc="))
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[SourceStore].seal(source.id, vault.seal(CREDENTIALS, source.id, BOUND))
        boxes = [vault.seal(SIGNING, endpoint.id) for _ in range(2)]
        await tx[WebhookStore].add(endpoint, SealedSecrets(*boxes), FeedPosition())
        for key, body in (("once", vault.seal(ANSWER, "once")), ("plain", b"{}"), ("empty", b"")):
            await tx[IdempotencyStore].hold(key)
            await tx[IdempotencyStore].keep(key, StoredAnswer(b"f", 200, (), body))
        entry = await tx[AuditLog].add(Change("source", source.id, "update", {}, {}))
        await tx[AuditLog].keep(entry, vault.seal(CREDENTIALS, entry))
        secret, now = vault.seal(SIGNING, owner_of(tenant.org, ISSUER)), builders.MOMENT
        await tx[SsoStore].save(Connection(tenant.org, ISSUER, "joinery", secret, None, False, True, None, now, now))
    now, mail = builders.MOMENT, new_id("mail")
    await backend.outbox.add(OutgoingMessage(mail, "a@fjord.example", "A", "test", vault.seal(ANSWER, mail), now, None))
    user = new_id("usr")
    await backend.people.add(User(user, f"{user}@fjord.example", "", None, now))
    await backend.factors.enrol(Authenticator(user, vault.seal(SIGNING, user), None))
    return Sealed(backend, tenant, source.id, endpoint.id, entry, mail, user)


async def test_stale_values_are_found_and_replaced_as_they_were_read(backend: Backend) -> None:
    old, both = AesGcmVault(FIRST), AesGcmVault(SECOND, (FIRST,))
    one, other = [await sealed(backend, old) for _ in range(2)]
    for kind in SealedKind:
        assert await one.mine(kind, old.stamp) == []
        [value] = await one.mine(kind, both.stamp)
        assert value.sealed == (await one.boxes())[kind] and value.kind is kind
        assert await backend.sealed_values.replace(value, b"\x02\x10fresh") is True
        assert await backend.sealed_values.replace(value, b"\x02\x10other") is False, "it is no longer what was read"
        assert (await one.boxes())[kind] == b"\x02\x10fresh"
    assert await other.opens(old)
    [value] = await other.mine(SealedKind.CREDENTIALS, both.stamp)
    assert (value.connector, dict(value.config)) == (SOURCE.connector, dict(SOURCE.config))


async def test_counts_tell_under_which_secret(backend: Backend) -> None:
    vault = AesGcmVault(f"a secret of this test alone, by {backend.name} {id(backend)}")
    for _ in range(2):
        await sealed(backend, vault)
    assert (await backend.sealed_values.counts())[vault.keys[0]] == {kind.value: 2 for kind in SealedKind}


class FakeKeyRings:
    """KeyRings. `unknowing` are the ids of secrets that some other process does not know."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.ring: StoredRing | None = None
        self.unknowing: set[str] = set()

    async def read(self) -> StoredRing | None:
        return self.ring

    async def write(self, sealed: bytes, expected: bytes | None) -> bool:
        if (self.ring.sealed if self.ring else None) != expected:
            return False
        self.ring = StoredRing(sealed, self._clock.now())
        return True

    async def has_api_keys(self) -> bool:
        return False

    async def lacking(self, key: str) -> int:
        return int(key in self.unknowing)


def worker(backend: Backend, rings: FakeKeyRings, *secrets: str, clock: SettableClock) -> tuple[Keyring, Resealing]:
    """A scheduler that knows these secrets."""
    vault = AesGcmVault(secrets[0], secrets[1:])
    keyring = Keyring(rings, vault, WorkingKeys(secrets), clock)
    return keyring, Resealing(keyring, vault, backend.sealed_values, going_to, clock)


async def test_everything_is_sealed_anew_once_everybody_knows_the_secret(backend: Backend) -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    one = await sealed(backend, AesGcmVault(FIRST))
    first, _ = worker(backend, rings, FIRST, clock=clock)
    await first.load()
    keyring, ticking = worker(backend, rings, SECOND, FIRST, clock=clock)
    assert await ticking.tick() == 0, "nothing before the ring is read"
    await keyring.load()
    rings.unknowing = {AesGcmVault(SECOND).keys[0]}
    for _ in range(9):
        assert await ticking.tick() == 0 and not keyring.settled
    rings.unknowing = set()
    for _ in range(resealing.LOOKS - 1):
        assert await ticking.tick() == 0 and not keyring.settled
    assert await ticking.tick() >= 4 and keyring.settled
    assert await one.opens(AesGcmVault(SECOND))
    with pytest.raises(ValueError, match="does not have"):
        await one.opens(AesGcmVault(FIRST))
    with pytest.raises(SecretUnknown, match="JOINERY_SECRET_FORMER"):
        await first.load()
    assert await ticking.tick() == 0 and await ticking.tick() == 0


async def test_nothing_is_sealed_anew_that_somebody_could_not_open(backend: Backend) -> None:
    """A process of an earlier release, say."""
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    one = await sealed(backend, AesGcmVault(FIRST))
    keyring, ticking = worker(backend, rings, SECOND, FIRST, clock=clock)
    await keyring.load()
    await keyring.promote()
    rings.unknowing = {AesGcmVault(SECOND).keys[0]}
    assert await ticking.tick() == 0 and await one.opens(AesGcmVault(FIRST))
    rings.unknowing = set()
    assert await ticking.tick() >= 4 and await one.opens(AesGcmVault(SECOND))


async def test_it_goes_on_where_it_was_killed_and_rotates_again(backend: Backend) -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    many = [await sealed(backend, AesGcmVault(FIRST)) for _ in range(3)]
    first, _ = worker(backend, rings, FIRST, clock=clock)
    await first.load()

    class Dying:
        """Values of which only some are replaced before the process is gone."""

        def __init__(self, left: int) -> None:
            self.left = left

        def __getattr__(self, name: str) -> Any:
            return getattr(backend.sealed_values, name)

        async def replace(self, value: SealedValue, fresh: bytes) -> bool:
            self.left -= 1
            if self.left < 0:
                raise ConnectionError
            return await backend.sealed_values.replace(value, fresh)

    for left, secrets in ((2, (SECOND, FIRST)), (3, (THIRD, SECOND, FIRST))):
        vault = AesGcmVault(secrets[0], secrets[1:])
        keyring = Keyring(rings, vault, WorkingKeys(secrets), clock)
        await keyring.load()
        await keyring.promote()
        with pytest.raises(ConnectionError):
            await Resealing(keyring, vault, Dying(left), going_to, clock).tick()
        assert all([await one.opens(AesGcmVault(*secrets[:1], secrets[1:])) for one in many])
    keyring, ticking = worker(backend, rings, THIRD, SECOND, FIRST, clock=clock)
    await keyring.load()
    await ticking.tick()
    assert all([await one.opens(AesGcmVault(THIRD)) for one in many])


async def test_credentials_that_are_stored_meanwhile_stay(backend: Backend) -> None:
    clock, both = SettableClock(), AesGcmVault(SECOND, (FIRST,))
    one = await sealed(backend, AesGcmVault(FIRST))

    class Slow:
        """Values that somebody changes between reading and writing."""

        def __getattr__(self, name: str) -> Any:
            return getattr(backend.sealed_values, name)

        async def replace(self, value: SealedValue, fresh: bytes) -> bool:
            if value.owner == one.source:
                async with backend.uow.begin(one.tenant, builders.CALL) as tx:
                    await tx[SourceStore].seal(one.source, both.seal({"token": "newer"}, one.source, BOUND))
            return await backend.sealed_values.replace(value, fresh)

    keyring = Keyring(FakeKeyRings(clock), both, WorkingKeys((SECOND, FIRST)), clock)
    await keyring.load()
    await keyring.promote()
    await Resealing(keyring, both, Slow(), going_to, clock).run()
    box = (await one.boxes())[SealedKind.CREDENTIALS]
    assert both.open(box, one.source, BOUND) == {"token": "newer"}


async def test_what_an_earlier_release_sealed_is_bound_without_any_rotation(backend: Backend) -> None:
    secret, clock = "the first secret, at least 32 characters", SettableClock()
    tenant, source = await backend.tenant(), builders.source(id="src_1")
    async with backend.uow.begin(tenant, builders.CALL) as tx:
        await tx[SourceStore].add(source)
        await tx[SourceStore].seal("src_1", bytes.fromhex(EARLIER))
    keyring, ticking = worker(backend, FakeKeyRings(clock), secret, clock=clock)
    await keyring.load()
    assert await ticking.tick() >= 1
    async with backend.uow.read(tenant) as tx:
        box = await tx[SourceStore].sealed("src_1")
    assert box is not None and AesGcmVault(secret).open(box, "src_1", BOUND) == {"token": "t"}
    with pytest.raises(ValueError, match="address"):
        AesGcmVault(secret).open(box, "src_1", "elsewhere")


async def test_what_cannot_be_opened_stays_and_is_told(backend: Backend, caplog: pytest.LogCaptureFixture) -> None:
    clock, both = SettableClock(), AesGcmVault(SECOND, (FIRST,))
    gone = await sealed(backend, AesGcmVault(FIRST), connector="gone")
    broken = await sealed(backend, AesGcmVault(FIRST))
    box = AesGcmVault(FIRST).seal(CREDENTIALS, "src_other", BOUND)
    async with backend.uow.begin(broken.tenant, builders.CALL) as tx:
        await tx[SourceStore].seal(broken.source, box)
    rings = FakeKeyRings(clock)
    keyring = Keyring(rings, both, WorkingKeys((SECOND, FIRST)), clock)
    await keyring.load()
    await keyring.promote()
    await Resealing(keyring, both, backend.sealed_values, going_to, clock).run()
    assert (await broken.boxes())[SealedKind.CREDENTIALS] == box and "could not be opened" in caplog.text
    assert both.open((await gone.boxes())[SealedKind.CREDENTIALS], gone.source, BOUND) == CREDENTIALS
    clock.advance(timedelta(minutes=1))
    told = await secret_status(rings, backend.sealed_values, both, clock)
    assert any("still sealed under " + both.keys[1] in one for one in told.hindrances)


# The key ring


async def test_keys_of_a_superseded_secret_count_until_they_lapse() -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    keys = [WorkingKeys(secrets) for secrets in ((FIRST,), (SECOND, FIRST), (SECOND,))]
    rising = [Keyring(rings, AesGcmVault(one.secrets[0], one.secrets[1:]), one, clock) for one in keys]
    with pytest.raises(Unavailable):
        _ = keys[0].api_keys
    await rising[0].load()
    await rising[1].load()
    assert keys[1].cursors.current == cursor_key(FIRST) and not rising[1].settled
    assert [one.key for one in keys[1].cursors.former] == [cursor_key(SECOND)], "others may be further"
    await rising[1].promote()
    await rising[2].load()
    for one in keys[1:]:
        assert one.cursors.current == cursor_key(SECOND) and one.links.current == link_key(SECOND)
        assert [former.key for former in one.cursors.former] == [cursor_key(FIRST)]
        assert [former.key for former in one.links.former] == [link_key(FIRST)]
        assert one.api_keys == keys[0].api_keys
    clock.advance(LINKS_COUNT)
    await rising[2].load()
    assert keys[2].links.former == () and len(keys[2].cursors.former) == 1
    clock.advance(CURSORS_COUNT)
    await rising[2].load()
    assert keys[2].cursors.former == ()


async def test_api_keys_of_an_earlier_release_stay_valid() -> None:
    """It hashed them by a key that was derived from the secret."""
    clock = SettableClock()
    rings = FakeKeyRings(clock)

    async def kept() -> bool:
        return True

    rings.has_api_keys = kept  # type: ignore[method-assign]
    keys = WorkingKeys((SECOND, FIRST))
    await Keyring(rings, AesGcmVault(SECOND, (FIRST,)), keys, clock).load()
    assert keys.api_keys == hash_key(FIRST)


async def test_two_that_bring_it_into_force_at_once() -> None:
    clock = SettableClock()
    rings = FakeKeyRings(clock)
    await Keyring(rings, AesGcmVault(FIRST), WorkingKeys((FIRST,)), clock).load()
    both = [Keyring(rings, AesGcmVault(SECOND, (FIRST,)), WorkingKeys((SECOND, FIRST)), clock) for _ in range(2)]
    for one in both:
        await one.load()
    for one in both:
        await one.promote()
    assert all(one.settled for one in both)
    keys = WorkingKeys((SECOND,))
    await Keyring(rings, AesGcmVault(SECOND), keys, clock).load()
    assert len(keys.cursors.former) == 1
