"""API keys and the principals that they authenticate (domain/access/ports.py)."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.access.model import ROLES, ApiKey
from domain.access.ports import KeyStore
from domain.kernel.ids import new_id
from domain.kernel.paging import Page, PageRequest
from domain.kernel.tenancy import Actor, Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from tests.support import builders
from tests.support.backend import Backend
from tests.support.pagination import check_pagination

pytestmark = pytest.mark.asyncio
CALL = builders.CALL


async def _add_key(backend: Backend, key: ApiKey) -> None:
    async with backend.uow.begin(key.tenant, CALL) as tx:
        await tx[KeyStore].add(key)


@pytest.mark.parametrize("livemode", [True, False])
async def test_a_key_authenticates_its_principal(backend: Backend, livemode: bool) -> None:
    org = await backend.organisation()
    key = builders.api_key(
        Tenant(org.id, livemode),
        restricted=True,
        scopes=frozenset({"sources:read", "products:read"}),
        networks=("203.0.113.0/24", "2001:db8::/32"),
        expires_at=builders.MOMENT + timedelta(days=30),
    )
    await _add_key(backend, key)
    found = (await backend.credentials.find_keys([key.digest])).get(key.digest)
    assert found is not None
    kept, principal = found
    assert kept == key
    assert principal.tenant == key.tenant and principal.organisation == org
    assert principal.actor == Actor("api_key", key.id) and principal.via == "api"
    assert principal.scopes == key.scopes and principal.role == "owner"
    assert not principal.is_personal_token and not principal.is_console_session and principal.has_fixed_mode


async def test_an_unknown_digest_authenticates_nobody(backend: Backend) -> None:
    assert (await backend.credentials.find_keys([b"unknown"])).get(b"unknown") is None


async def test_a_key_has_no_more_scopes_than_its_member(backend: Backend) -> None:
    org = await backend.organisation()
    tenant, user = Tenant(org.id, True), new_id("usr")
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[OrgStore].add_member(Member(user, org.id, "vi@fjord.example", "viewer", builders.MOMENT))
    key = builders.api_key(tenant, member=user, role="viewer")
    await _add_key(backend, key)
    found = (await backend.credentials.find_keys([key.digest])).get(key.digest)
    assert found is not None and found[0].member == user
    assert found[1].role == "viewer" and found[1].scopes == ROLES["viewer"]


async def test_a_key_of_a_former_member_is_invalid(backend: Backend) -> None:
    key = builders.api_key(await backend.tenant(), member=new_id("usr"), role="viewer")
    await _add_key(backend, key)
    assert (await backend.credentials.find_keys([key.digest])).get(key.digest) is None


async def test_a_revoked_key_is_invalid(backend: Backend) -> None:
    tenant = await backend.tenant()
    key = builders.api_key(tenant)
    await _add_key(backend, key)
    for other in (replace(tenant, livemode=False), await backend.tenant()):
        async with backend.uow.begin(other, CALL) as tx:
            assert not await tx[KeyStore].revoke(key.id)
    async with backend.uow.begin(tenant, CALL) as tx:
        assert await tx[KeyStore].revoke(key.id)
        assert not await tx[KeyStore].revoke(key.id)
        assert not await tx[KeyStore].revoke("key_0000000000000000000000")
    found = (await backend.credentials.find_keys([key.digest])).get(key.digest)
    assert found is not None and found[0].revoked_at is not None


async def test_the_first_version_is_pinned(backend: Backend) -> None:
    org = await backend.organisation()
    assert await backend.credentials.pin_version(org.id, "2026-10-01") == "2026-10-01"
    assert await backend.credentials.pin_version(org.id, "2026-10-04") == "2026-10-01"
    found = await backend.registry.find(org.id)
    assert found is not None and found.api_version == "2026-10-01"


async def test_many_keys_are_verified_together(backend: Backend) -> None:
    org = await backend.organisation()
    keys = [builders.api_key(Tenant(org.id, livemode)) for livemode in (True, False, True)]
    for key in keys:
        await _add_key(backend, key)
    async with backend.uow.begin(keys[2].tenant, CALL) as tx:
        assert await tx[KeyStore].revoke(keys[2].id)
    left = builders.api_key(keys[0].tenant, member=new_id("usr"))
    await _add_key(backend, left)
    found = await backend.credentials.find_keys([*(key.digest for key in keys), left.digest, b"unknown"])
    assert set(found) == {key.digest for key in keys}
    for key in keys:
        assert found[key.digest] == (await backend.credentials.find_keys([key.digest])).get(key.digest)
    assert found[keys[2].digest][0].revoked_at is not None
    assert await backend.credentials.find_keys([]) == {}


async def test_keys_are_listed_by_mode(backend: Backend) -> None:
    org = await backend.organisation()
    tenant, user = Tenant(org.id, True), new_id("usr")
    keys = [builders.api_key(tenant, name=f"Key {n}") for n in range(3)]
    theirs = builders.api_key(tenant, member=user, role="viewer")
    others = [builders.api_key(Tenant(org.id, False)), builders.api_key(await backend.tenant())]
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[OrgStore].add_member(Member(user, org.id, "vi@fjord.example", "viewer", builders.MOMENT))
    for key in (*keys, theirs, *others):
        await _add_key(backend, key)
    async with backend.uow.begin(tenant, CALL) as tx:
        await tx[KeyStore].revoke(keys[0].id)

    async def fetch(page_request: PageRequest) -> Page[ApiKey]:
        async with backend.uow.begin_reading(tenant) as tx:
            return await tx[KeyStore].page(page_request)

    await check_pagination(fetch, [theirs, *keys[:0:-1]], lambda key: key.id)
    async with backend.uow.begin_reading(tenant) as tx:
        [ended] = (await tx[KeyStore].page(PageRequest(), revoked=True)).items
        assert ended.id == keys[0].id and ended.revoked_at is not None
        assert await tx[KeyStore].get(keys[1].id) == keys[1]
        assert [await tx[KeyStore].get(other.id) for other in others] == [None, None]


async def test_the_last_use_of_a_key_is_recorded(backend: Backend) -> None:
    tenant = await backend.tenant()
    used, unused = builders.api_key(tenant), builders.api_key(tenant)
    for key in (used, unused):
        await _add_key(backend, key)
    at = backend.now().replace(microsecond=0)
    for passed in (timedelta(), timedelta(minutes=5), timedelta(minutes=5, seconds=20)):
        log = builders.request_log(tenant, actor=Actor("api_key", used.id), created_at=at + passed)
        await backend.sink.write([log])
    await backend.sink.write([builders.request_log(tenant, actor=Actor("user", new_id("usr")), created_at=at)])
    async with backend.uow.begin_reading(tenant) as tx:
        found = await tx[KeyStore].get_last_uses([used.id, unused.id])
    assert list(found) == [used.id]
    assert timedelta(minutes=5) <= found[used.id] - at < timedelta(minutes=6)
    async with backend.uow.begin_reading(replace(tenant, livemode=False)) as tx:
        assert await tx[KeyStore].get_last_uses([used.id]) == {}


async def test_a_members_keys_are_revoked_in_both_modes(backend: Backend) -> None:
    org, user = await backend.organisation(), new_id("usr")
    own = [builders.api_key(Tenant(org.id, livemode), member=user) for livemode in (True, False)]
    others = [builders.api_key(Tenant(org.id, True)), builders.api_key(await backend.tenant(), member=user)]
    for key in (*own, *others):
        await _add_key(backend, key)
    async with backend.uow.begin(Tenant(org.id, True), CALL) as tx:
        assert list(await tx[KeyStore].revoke_by_member(user)) == sorted(key.id for key in own)
        assert list(await tx[KeyStore].revoke_by_member(user)) == []
    for key, ended in ((own[0], True), (own[1], True), (others[0], False)):
        async with backend.uow.begin_reading(key.tenant) as tx:
            found = await tx[KeyStore].get(key.id)
        assert found is not None and (found.revoked_at is not None) is ended
