"""Credentials, modes, permissions (docs/conventions.md#authentication)."""

import asyncio
from collections.abc import Collection
from datetime import timedelta
from typing import Any

import pytest

from domain.access.model import KEY_PREFIXES, SCOPES, compute_checksum, is_well_formed_secret
from domain.access.ports import KeyStore
from domain.access.usecases import generate_api_key, parse_scopes
from domain.kernel.errors import InvalidRequest, Unavailable
from entrypoints.http.credentials import CredentialBatchLoader
from tests.http import example_area
from tests.http.application import BASE, ApplicationHarness, create_settings, run_application
from tests.http.client import Client

pytestmark = pytest.mark.asyncio
UNKNOWN = "src_0000000000000000000000"


async def _create_revoked_secret(application: ApplicationHarness) -> str:
    key, secret = await application.create_key(application.orgs["Fjord"])
    from tests.http.application import OPERATOR

    async with application.uow.begin(key.tenant, OPERATOR) as tx:
        assert await tx[KeyStore].revoke(key.id)
    return secret


async def test_all_401_responses_are_equal(application: ApplicationHarness) -> None:
    fjord = application.orgs["Fjord"]
    _, expired = await application.create_key(fjord, expires_at=application.clock.now() - timedelta(seconds=1))
    _, elsewhere = await application.create_key(fjord, networks=("192.0.2.0/24",))
    _, good = await application.create_key(fjord)
    unknown = generate_api_key(True, False)
    secrets = {
        "unknown": unknown,
        "malformed": "nonsense",
        "mistyped": good[:-1] + ("0" if good[-1] != "0" else "1"),
        "expired": expired,
        "revoked": await _create_revoked_secret(application),
        "outside": elsewhere,
        "non-ascii": "\xe4",
    }
    seen = set()
    same = {"request-id": "req_0000000000000000000001"}
    for secret in secrets.values():
        response = await application.build_client(secret).send("GET", "/v1/things", headers=same)
        seen.add((response.status, response.body, tuple(sorted(response.headers.items()))))
    for header in ("", "Bearer", "Bearer ", f"Basic {good}", good, f"Bearer {good}, Bearer {good}"):
        response = await application.build_client().send("GET", "/v1/things", headers=same | {"authorization": header})
        seen.add((response.status, response.body, tuple(sorted(response.headers.items()))))
    none = await application.build_client().send("GET", "/v1/things", headers=same)
    seen.add((none.status, none.body, tuple(sorted(none.headers.items()))))
    assert len(seen) == 1
    assert none.status == 401
    metadata = f"{BASE}/.well-known/oauth-protected-resource"
    assert none.headers["www-authenticate"] == f'Bearer resource_metadata="{metadata}"'
    assert "ratelimit" not in none.headers


async def test_a_401_explains_how_to_send_a_credential(application: ApplicationHarness) -> None:
    detail = (await application.build_client().get("/v1/things")).json()["detail"]
    assert "Authorization: Bearer <credential>" in detail and "svc_test_" in detail


async def test_the_challenge_names_the_resource_metadata(application: ApplicationHarness) -> None:
    challenge = (await application.build_client().get("/v1/things")).headers["www-authenticate"]
    address = challenge.partition('resource_metadata="')[2].rstrip('"')
    response = await application.build_client().get(address.removeprefix(BASE))
    assert (response.status, response.headers["content-type"]) == (200, "application/json")
    assert response.json() == {
        "resource": BASE,
        "authorization_servers": [BASE],
        "scopes_supported": sorted(SCOPES),
        "resource_name": "Joinery",
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{BASE}/docs/guides/oauth",
    }
    assert (await application.build_client().send("HEAD", address.removeprefix(BASE))).body == b""
    assert (await application.build_client().send("POST", address.removeprefix(BASE), body=b"")).status == 405


async def test_the_scheme_ignores_case(application: ApplicationHarness) -> None:
    _, secret = await application.create_key(application.orgs["Fjord"])
    assert (await application.build_client().get("/v1/things", authorization=f"bearer {secret}")).status == 200


async def test_address_policies(application: ApplicationHarness) -> None:
    _, secret = await application.create_key(application.orgs["Fjord"], networks=("203.0.113.0/24", "2001:db8::/32"))
    for address, status in (
        ("203.0.113.9", 200),
        ("2001:db8::1", 200),
        ("::ffff:203.0.113.9", 200),
        ("198.51.100.1", 401),
    ):
        assert (await Client(application.app, secret, address).get("/v1/things")).status == status
    spoofed = await Client(application.app, secret, "198.51.100.1").get("/v1/things", x_forwarded_for="203.0.113.9")
    assert spoofed.status == 401


async def test_trusted_proxies() -> None:
    async with run_application(settings=create_settings(trusted_proxies=frozenset({"10.0.0.0/8"}))) as application:
        _, secret = await application.create_key(application.orgs["Fjord"], networks=("203.0.113.0/24",))
        behind = Client(application.app, secret, "10.0.0.1")
        assert (await behind.get("/v1/things", x_forwarded_for="203.0.113.9")).status == 200
        assert (await behind.get("/v1/things", x_forwarded_for="203.0.113.9, 10.1.1.1")).status == 200
        assert (await behind.get("/v1/things", x_forwarded_for="203.0.113.9, 198.51.100.1")).status == 401
        assert (await behind.get("/v1/things")).status == 401
        assert (await behind.get("/v1/things", x_forwarded_for="203.0.113.9, unknown")).status == 401


async def test_credentials_are_looked_up_once_in_half_a_second(
    application: ApplicationHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = await application.create_client()
    for _ in range(5):
        assert (await client.get("/v1/things")).status == 200
    assert application.credentials.lookups == 1
    unknown = application.build_client(generate_api_key(True, False))
    for _ in range(5):
        assert (await unknown.get("/v1/things")).status == 401
    assert application.credentials.lookups == 2


async def test_the_cache_is_bounded_and_loads_each_key_once() -> None:
    import asyncio

    from entrypoints.http import credentials as remembered
    from entrypoints.http.credentials import TtlCache

    now, lookups = [0.0], []

    async def find(response: str | None) -> str | None:
        lookups.append(response)
        await asyncio.sleep(0)
        return response

    known: TtlCache[str] = TtlCache(lambda: now[0])
    assert await asyncio.gather(*(known.get_or_find(b"a", lambda: find("x")) for _ in range(9))) == ["x"] * 9
    assert lookups == ["x"]
    assert known.find_entry(b"a") == ("x", remembered.CACHE_SECONDS)
    for number in range(remembered.MAX_CACHED_MISSING + 50):
        await known.get_or_find(str(number).encode(), lambda: find(None))
    assert known.find_entry(b"a") is not None, "guesses do not push out what is known"
    assert len(known._missing_entries) == remembered.MAX_CACHED_MISSING
    now[0] = remembered.CACHE_SECONDS
    assert known.find_entry(b"a") is None


async def test_failed_lookups_are_not_cached() -> None:
    from domain.kernel.errors import Unavailable
    from entrypoints.http.credentials import TtlCache

    known: TtlCache[str] = TtlCache()

    async def fail() -> str | None:
        raise Unavailable

    async def find() -> str | None:
        return "x"

    with pytest.raises(Unavailable):
        await known.get_or_find(b"a", fail)
    assert await known.get_or_find(b"a", find) == "x"


async def test_revocation_takes_effect_within_a_second(application: ApplicationHarness) -> None:
    import asyncio

    from tests.http.application import OPERATOR

    key, secret = await application.create_key(application.orgs["Fjord"])
    client = Client(application.app, secret)
    assert (await client.get("/v1/things")).status == 200
    async with application.uow.begin(key.tenant, OPERATOR) as tx:
        await tx[KeyStore].revoke(key.id)
    await asyncio.sleep(0.55)
    assert (await client.get("/v1/things")).status == 401


async def test_expiry_takes_effect_immediately(application: ApplicationHarness) -> None:
    client = await application.create_client(expires_at=application.clock.now() + timedelta(seconds=10))
    assert (await client.get("/v1/things")).status == 200
    application.clock.advance(timedelta(seconds=10))
    assert (await client.get("/v1/things")).status == 401


async def test_keys(application: ApplicationHarness) -> None:
    key, secret = await application.create_key(
        application.orgs["Fjord"], livemode=False, restricted=True, scopes=frozenset({"products:read"})
    )
    assert secret.startswith("svc_rk_test_")
    assert is_well_formed_secret(secret, KEY_PREFIXES.values())
    assert secret.endswith(compute_checksum(secret[:-6]))
    assert secret not in repr(application.database.fetch_contents())
    assert key.last4 == secret[-4:]
    assert parse_scopes(["all"]) >= {"products:read", "billing:write"}
    with pytest.raises(InvalidRequest):
        await application.create_key(application.orgs["Fjord"], scopes=frozenset({"nonsense:read"}))


async def test_a_key_has_at_most_the_scopes_of_its_role(application: ApplicationHarness) -> None:
    viewer = await application.create_client(role="viewer")
    assert (await viewer.get("/v1/things")).status == 200
    assert (await viewer.post("/v1/things", {"name": "oak"})).code == "permission_denied"


@pytest.mark.parametrize(
    ("livemode", "named", "status"),
    [
        (True, "live", 200),
        (True, "test", 400),
        (False, "test", 200),
        (False, "live", 400),
        (True, "Live", 400),
        (True, "", 400),
    ],
)
async def test_modes_of_keys(application: ApplicationHarness, livemode: bool, named: str, status: int) -> None:
    response = await (await application.create_client(livemode=livemode)).get("/v1/things", service_mode=named)
    assert response.status == status
    if status == 400:
        assert response.faults == {("header.Service-Mode", "invalid_value")}


async def test_a_token_chooses_its_mode(application: ApplicationHarness) -> None:
    key, secret = await application.create_key(application.orgs["Fjord"])
    application.credentials.changed[key.id] = {"has_fixed_mode": False}
    client, thing = (
        Client(application.app, secret),
        example_area.add_thing(application.orgs["Fjord"].id, livemode=False),
    )
    assert (await client.get(f"/v1/things/{thing.id}")).status == 404
    assert (await client.get(f"/v1/things/{thing.id}", service_mode="test")).status == 200


async def test_the_mode_is_read_after_the_credential(application: ApplicationHarness) -> None:
    assert (await application.build_client("nonsense").get("/v1/things", service_mode="nonsense")).status == 401


async def test_versions(application: ApplicationHarness) -> None:
    client = await application.create_client()
    assert (await client.get("/v1/things", service_version="2026-10-01")).headers["service-version"] == "2026-10-01"
    import asyncio

    await asyncio.sleep(0.55)
    assert (await client.get("/v1/things")).headers["service-version"] == "2026-10-01", "pinned by the first request"
    assert (await client.get("/v1/things", service_version="2026-10-04")).headers["service-version"] == "2026-10-04"
    refused = await client.get("/v1/things", service_version="2025-01-01")
    assert refused.faults == {("header.Service-Version", "invalid_value")}
    other = await application.create_client("Oak")
    assert (await other.get("/v1/things")).headers["service-version"] == "2026-10-04"


async def test_caller_kind_precedes_scope_and_feature(application: ApplicationHarness) -> None:
    key, secret = await application.create_key(application.orgs["Fjord"])
    client = Client(application.app, secret)
    for path in ("owner", "person", "session"):
        assert (await client.post(f"/v1/{path}")).code == "permission_denied"
    application.credentials.changed[key.id] = {"is_personal_token": True}
    again = await application.create_key(application.orgs["Fjord"])
    application.credentials.changed[again[0].id] = {"is_personal_token": True}
    person = Client(application.app, again[1])
    assert (await person.post("/v1/owner")).status == 200
    assert (await person.post("/v1/person")).status == 200
    assert (await person.post("/v1/session")).status == 403
    admin = await application.create_key(application.orgs["Fjord"], role="admin")
    application.credentials.changed[admin[0].id] = {"is_personal_token": True, "role": "admin"}
    assert (await Client(application.app, admin[1]).post("/v1/owner")).status == 403


async def test_scope_precedes_feature(application: ApplicationHarness) -> None:
    assert (await (await application.create_client(scopes=frozenset())).post("/v1/bulk")).code == "permission_denied"
    assert (await (await application.create_client()).post("/v1/bulk")).code == "feature_unavailable"
    assert (await (await application.create_client("Elm")).post("/v1/bulk")).status == 200


def _generate_secrets(count: int) -> list[str]:
    """Generate well-formed secrets of no key."""
    return [generate_api_key(True, False) for _ in range(count)]


async def test_unknown_keys_are_looked_up_in_batches(application: ApplicationHarness) -> None:
    """Three hundred concurrent guesses need a few statements and do not delay others."""
    known, statements = await application.create_client(), application.credentials.lookups
    assert (await known.get("/v1/things")).status == 200
    guessing = [Client(application.app, text).get("/v1/things") for text in _generate_secrets(300)]
    responses = await asyncio.gather(*guessing, *[known.get("/v1/things") for _ in range(20)])
    assert [response.status for response in responses] == [401] * 300 + [200] * 20
    assert application.credentials.lookups - statements <= 6


async def test_a_new_key_works_while_others_are_guessed(application: ApplicationHarness) -> None:
    async def guess() -> None:
        for text in _generate_secrets(400):
            assert (await Client(application.app, text).get("/v1/things")).status == 401

    guessing = [asyncio.create_task(guess()) for _ in range(3)]
    for _ in range(5):
        assert (await (await application.create_client()).get("/v1/things")).status == 200
    for task in guessing:
        task.cancel()
    await asyncio.gather(*guessing, return_exceptions=True)


async def test_sequential_guesses_are_limited() -> None:
    lookups: list[int] = []

    async def find(digest: bytes) -> None:
        lookups.append(1)

    async def find_all(digests: Collection[bytes]) -> dict[bytes, None]:
        lookups.append(len(digests))
        return {}

    loader: CredentialBatchLoader[None] = CredentialBatchLoader(find, find_all)
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(75):
        await loader.load(str(number).encode())
    assert len(lookups) == 75 and loop.time() - began > 0.4, "25 more than there are at a stretch"


async def test_a_failed_lookup_raises_for_every_waiter() -> None:
    async def find(_: Any) -> Any:
        raise Unavailable

    loader: CredentialBatchLoader[Any] = CredentialBatchLoader(find, find)
    results = await asyncio.gather(*[loader.load(name) for name in (b"a", b"b", b"c")], return_exceptions=True)
    assert [type(error) for error in results] == [Unavailable] * 3
