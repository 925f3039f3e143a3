"""Storage of OAuth (domain/oauth/ports.py): apps, consents, and single-use codes and tokens."""

import asyncio
from dataclasses import replace
from datetime import timedelta

import pytest

from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Actor, Tenant
from domain.oauth.model import (
    App,
    AppKind,
    AppOrigin,
    Audience,
    AuthorizationCode,
    ConsentReference,
    DeviceRequest,
    OAuthConsent,
    Token,
    TokenFamily,
    TokenKind,
)
from domain.oauth.ports import AppStore
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from tests.support import builders
from tests.support.backend import Backend

pytestmark = pytest.mark.asyncio
HOUR = timedelta(hours=1)
SCOPES = frozenset({"products:read", "sources:write"})


def _build_app(org: str | None, **changes: object) -> App:
    id_ = new_id("app")
    made = App(
        id_, id_, AppKind.WEB, AppOrigin.ORGANISATION if org else AppOrigin.REGISTERED, "Fjord's app",
        ("https://app.example/cb", "https://app.example/other"), SCOPES, builders.MOMENT, builders.MOMENT, org,
        digest=b"d" + id_.encode(), last4="9xYz", home="https://app.example",
    )  # fmt: skip
    return replace(made, **changes)  # type: ignore[arg-type]


async def _add_consent(backend: Backend, role: str = "editor") -> tuple[App, ConsentReference]:
    """Return an app of an organisation and a member's consent for it."""
    org = (await backend.organisation()).id
    app, user = _build_app(org), new_id("usr")
    grant = OAuthConsent(new_id("grt"), org, app.id, app.name, user, SCOPES, builders.MOMENT, builders.MOMENT)
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[OrgStore].add_member(Member(user, org, f"{user}@fjord.example", role, builders.MOMENT))
        await tx[AppStore].add(app)
        await tx[AppStore].save_consent(grant)
    return app, ConsentReference(user, org, grant.id)


def _build_family(backend: Backend, app: App, consent: ConsentReference | None, **changes: object) -> TokenFamily:
    now = backend.now()
    user, grant, org = (consent.user, consent.grant, consent.org) if consent else (None, None, app.org or "")
    return replace(TokenFamily(new_id("fam"), app.id, org, user, grant, now, now + HOUR), **changes)  # type: ignore[arg-type]


def _build_token(backend: Backend, family: TokenFamily, kind: TokenKind = TokenKind.ACCESS, **changes: object) -> Token:
    digest, now = (b"a" if kind is TokenKind.ACCESS else b"r") + new_id("req").encode(), backend.now()
    return replace(Token(digest, family.id, kind, SCOPES, Audience.API, now, now + HOUR), **changes)  # type: ignore[arg-type]


async def test_apps_belong_to_their_organisation(backend: Backend) -> None:
    org, other = (await backend.organisation()).id, (await backend.organisation()).id
    app, machine = _build_app(org), _build_app(org, kind=AppKind.MACHINE, redirect_uris=(), digest=None, home=None)
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[AppStore].add(app)
        await tx[AppStore].add(machine)
        assert list(await tx[AppStore].list_apps()) == [app, machine]
    async with backend.uow.begin(Tenant(other, True), builders.CALL) as tx:
        assert await tx[AppStore].get(app.id) is None and list(await tx[AppStore].list_apps()) == []
        await tx[AppStore].save(replace(app, name="Theirs"))
        assert not await tx[AppStore].remove(app.id)
    assert await backend.token_store.find_app(app.client_id) == app == await backend.token_store.get_app(app.id)
    renamed = replace(app, name="Renamed", redirect_uris=("https://app.example/new",), digest=b"other")
    async with backend.uow.begin(Tenant(org, False), builders.CALL) as tx:
        await tx[AppStore].save(renamed)
        assert await tx[AppStore].get(app.id) == renamed
        assert await tx[AppStore].remove(machine.id) and not await tx[AppStore].remove(machine.id)
    assert await backend.token_store.find_app(machine.id) is None


async def test_apps_without_an_organisation_are_stored_under_their_url(backend: Backend) -> None:
    url = f"https://{new_id('app').replace('_', '').lower()}.example/app.json"
    first = _build_app(None, client_id=url, kind=AppKind.NATIVE, origin=AppOrigin.DOCUMENT, digest=None, last4=None,
                 fresh_until=builders.MOMENT)  # fmt: skip
    assert await backend.token_store.save_app(first) == first
    again = await backend.token_store.save_app(
        replace(first, id=new_id("app"), name="Newer", fresh_until=backend.now())
    )
    assert (again.id, again.name) == (first.id, "Newer")
    assert await backend.token_store.find_app(url) == again == await backend.token_store.get_app(first.id)
    assert await backend.token_store.find_app(first.id) is None, "apps with a URL are found by the URL"


async def test_one_consent_is_in_force(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    async with backend.uow.begin(Tenant(consent.org, True), builders.CALL) as tx:
        grant = await tx[AppStore].find_consent(app.id, consent.user)
        assert grant is not None and list(await tx[AppStore].list_consents()) == [grant]
        assert list(await tx[AppStore].list_consents(new_id("usr"))) == []
        await tx[AppStore].save_consent(replace(grant, revoked_at=tx.now))
        assert await tx[AppStore].find_consent(app.id, consent.user) is None
        await tx[AppStore].save_consent(again := replace(grant, id=new_id("grt")))
    with pytest.raises(Conflict):
        async with backend.uow.begin(Tenant(consent.org, True), builders.CALL) as tx:
            await tx[AppStore].save_consent(replace(again, id=new_id("grt")))
    async with backend.uow.begin_reading(Tenant((await backend.organisation()).id, True)) as tx:
        assert list(await tx[AppStore].list_consents()) == []


async def test_a_code_is_used_once(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    now, family = backend.now(), _build_family(backend, app, consent)
    code = AuthorizationCode(b"c" + family.id.encode(), app.id, consent, "https://app.example/cb", "ch", SCOPES, None, now, now + HOUR,
                family.id)  # fmt: skip
    await backend.token_store.add_code(code)
    assert await backend.token_store.find_code(code.digest) == code
    tries = [backend.token_store.redeem_code(code, family, [_build_token(backend, family)]) for _ in range(3)]
    assert sorted(await asyncio.gather(*tries)) == [False, False, True]
    kept = await backend.token_store.find_code(code.digest)
    assert kept is not None and kept.used_at is not None


async def test_a_refresh_token_has_one_successor(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    family = _build_family(backend, app, consent)
    first = _build_token(backend, family, TokenKind.REFRESH)
    await backend.token_store.add_family(family, [first])
    held = await backend.token_store.find_token(first.digest)
    assert held is not None and (held.token, held.family, held.has_used_successor) == (first, family, False)

    def heir() -> Token:
        return _build_token(backend, family, TokenKind.REFRESH, parent=first.digest)

    second, third = heir(), heir()
    assert await backend.token_store.redeem_refresh_token(held, [second], backend.now())
    assert not await backend.token_store.redeem_refresh_token(held, [heir()], backend.now()), (
        "the stored value has changed"
    )
    again = await backend.token_store.find_token(first.digest)
    assert again is not None and again.token.used_at is not None and again.can_be_refreshed(backend.now())
    assert await backend.token_store.redeem_refresh_token(again, [third], backend.now())
    replaced, newest = (
        await backend.token_store.find_token(second.digest),
        await backend.token_store.find_token(third.digest),
    )
    assert replaced is not None and replaced.is_reuse(backend.now())
    assert newest is not None and newest.is_active(backend.now())
    assert await backend.token_store.redeem_refresh_token(
        newest, [_build_token(backend, family, TokenKind.REFRESH, parent=third.digest)], backend.now()
    )
    late = await backend.token_store.find_token(first.digest)
    assert late is not None and late.has_used_successor and late.is_reuse(backend.now())
    assert not await backend.token_store.redeem_refresh_token(late, [heir()], backend.now())
    assert await backend.token_store.revoke_family(family.id, "reuse", backend.now())
    assert not await backend.token_store.revoke_family(family.id, "reuse", backend.now())
    over = await backend.token_store.find_token(third.digest)
    assert over is not None and over.family.ended == "reuse" and not over.is_active(backend.now())


async def test_a_token_has_the_members_current_permissions(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    family = _build_family(backend, app, consent)
    token, refresh = _build_token(backend, family), _build_token(backend, family, TokenKind.REFRESH)
    await backend.token_store.add_family(family, [token, refresh])
    proofs = await backend.token_proofs.find_tokens([token.digest, refresh.digest, b"a unknown"])
    assert list(proofs) == [token.digest]
    credential, principal = proofs[token.digest]
    assert credential.revoked_at is None and credential.expires_at == token.expires_at and credential.networks == ()
    assert principal.tenant == Tenant(consent.org, True) and principal.actor == Actor("app", app.id, consent.user)
    assert (principal.via, principal.role, principal.scopes) == ("oauth", "editor", SCOPES)
    assert (
        principal.is_personal_token,
        principal.is_console_session,
        principal.has_fixed_mode,
        principal.audience,
    ) == (True, False, False, "v1")
    await backend.token_store.revoke_token(token.digest, backend.now())
    assert (await backend.token_proofs.find_tokens([token.digest]))[token.digest][0].revoked_at is not None


async def test_a_machine_app_authenticates_itself(backend: Backend) -> None:
    org = (await backend.organisation()).id
    app = _build_app(org, kind=AppKind.MACHINE, redirect_uris=())
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[AppStore].add(app)
    family = _build_family(backend, app, None)
    token = _build_token(backend, family, audience=None)
    await backend.token_store.add_family(family, [token])
    _, principal = (await backend.token_proofs.find_tokens([token.digest]))[token.digest]
    assert principal.actor == Actor("app", app.id) and not principal.is_personal_token and principal.role == "admin"
    async with backend.uow.begin(Tenant(org, True), builders.CALL) as tx:
        await tx[AppStore].remove(app.id)
    assert await backend.token_proofs.find_tokens([token.digest]) == {}


@pytest.mark.parametrize("what", ["grant", "app", "nobody"])
async def test_a_token_ends_with_its_app_consent_or_member(backend: Backend, what: str) -> None:
    app, consent = await _add_consent(backend)
    if what == "nobody":
        consent = replace(consent, user=new_id("usr"))
    family = _build_family(backend, app, consent)
    token = _build_token(backend, family, TokenKind.REFRESH)
    access = _build_token(backend, family)
    await backend.token_store.add_family(family, [token, access])
    async with backend.uow.begin(Tenant(consent.org, True), builders.CALL) as tx:
        if what == "app":
            await tx[AppStore].remove(app.id)
        elif what == "grant" and (grant := await tx[AppStore].find_consent(app.id, consent.user)):
            await tx[AppStore].save_consent(replace(grant, revoked_at=tx.now))
    held = await backend.token_store.find_token(token.digest)
    assert held is not None and not held.can_be_refreshed(backend.now())
    proof = (await backend.token_proofs.find_tokens([access.digest])).get(access.digest)
    assert proof is None or proof[0].revoked_at is not None


async def test_a_device_waits_for_one_decision(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    now, family = backend.now(), _build_family(backend, app, consent)
    device = DeviceRequest(b"v" + family.id.encode(), b"u" + family.id.encode(), app.id, SCOPES, Audience.MCP, now, now + HOUR,
                    family.id)  # fmt: skip
    assert await backend.token_store.add_device(device)
    assert not await backend.token_store.add_device(replace(device, digest=b"w" + family.id.encode()))
    assert await backend.token_store.find_device(device.digest) == device
    assert await backend.token_store.find_device_by_user_code(device.user_code, now) == device
    assert await backend.token_store.find_device_by_user_code(device.user_code, now + 2 * HOUR) is None
    await backend.token_store.save_poll(polled := device.with_poll(now))
    assert not await backend.token_store.redeem_device(device, family, [], now), "nobody approved the device"
    assert await backend.token_store.save_decision(agreed := replace(polled, approved=True, consent=consent))
    assert not await backend.token_store.save_decision(replace(polled, approved=False))
    assert await backend.token_store.find_device(device.digest) == agreed
    assert await backend.token_store.redeem_device(agreed, family, [_build_token(backend, family)], now)
    assert not await backend.token_store.redeem_device(agreed, family, [], now)


async def test_expired_tokens_are_deleted(backend: Backend) -> None:
    app, consent = await _add_consent(backend)
    now = backend.now()
    old = _build_family(backend, app, consent, expires_at=now - HOUR)
    young = _build_family(backend, app, consent)
    over, good = _build_token(backend, young, expires_at=now - HOUR), _build_token(backend, young)
    await backend.token_store.add_family(old, [of_old := _build_token(backend, old)])
    await backend.token_store.add_family(young, [over, good])
    registered = await backend.token_store.save_app(_build_app(None, created_at=now - 3 * HOUR))
    used = await backend.token_store.save_app(_build_app(None, created_at=now - 3 * HOUR))
    await backend.token_store.record_sign_in(used, now)
    assert await backend.token_store.delete_expired(now, now - 2 * HOUR) >= 3
    for digest, there in ((of_old.digest, False), (over.digest, False), (good.digest, True)):
        assert (await backend.token_store.find_token(digest) is not None) == there
    assert (
        await backend.token_store.find_app(registered.id) is None
        and await backend.token_store.find_app(used.id) is not None
    )
