"""Vendor profiles, the directory and claims over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from adapters.dns import DnsRecords
from benchmarks.nameserver import running_name_server
from domain.audit.model import AuditFilter
from domain.audit.ports import AuditLog
from domain.brand.model import BrandClaim, VendorProfile
from domain.brand.ports import BrandClaimStore, VendorProfileStore
from domain.brand.usecases.checks import ClaimChecker
from domain.brand.usecases.claims import ClaimService
from domain.brand.usecases.invitations import ClaimInvitations
from domain.brand.usecases.profiles import ProfileService
from domain.kernel.errors import Conflict
from domain.kernel.ids import new_id
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Member
from domain.orgs.ports import OrgStore
from domain.people.model import User
from domain.probes.ports import Unreachable
from tests.http.application import OPERATOR, ApplicationHarness, create_plan, run_application
from tests.http.client import Client, Response
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio
SITE = "https://fjord.example/"
RECORD_NAME = "_joinery.fjord.example"


@dataclass
class Brands:
    """Application with two vendors and a website."""

    application: ApplicationHarness
    web: MemoryWeb
    client: Client
    rival: Client
    keys: int = field(default=0)

    @property
    def dependencies(self) -> Any:
        return self.application.dependencies

    def get_tenant(self, name: str = "Vendor", livemode: bool = True) -> Tenant:
        return Tenant(self.application.orgs[name].id, livemode)

    async def create_profile(self, livemode: bool = True, **values: Any) -> str:
        """Create a profile from gathered data; return its ID."""
        given = {"name": "Fjord Furniture", "brands": ("Fjord",), "website_domain": "fjord.example"} | values
        async with self.application.uow.begin(Tenant("", livemode), OPERATOR) as tx:
            return str((await self.dependencies[ProfileService].create_gathered(tx, given)).id)

    async def post(self, client: Client, path: str, body: Any = None) -> Response:
        self.keys += 1
        return await client.send_json("POST", f"/v1/brand/{path}", body or {}, idempotency_key=f"key {self.keys}")

    async def claim(self, profile: str, *kinds: str, client: Client | None = None, **values: str) -> Any:
        """Create a claim with evidence of these kinds; return its JSON."""
        evidence = [{"kind": kind} | ({"value": values[kind]} if kind in values else {}) for kind in kinds]
        answer = await self.post(client or self.client, "claims", {"profile": profile, "evidence": evidence})
        assert answer.status == 201, answer.body
        assert answer.headers["location"].endswith(f"/v1/brand/claims/{answer.json()['id']}")
        return answer.json()

    async def check(self, claim: Any, client: Client | None = None) -> Any:
        answer = await self.post(client or self.client, f"claims/{claim['id']}/check")
        assert answer.status == 200, answer.body
        return answer.json()

    async def read_profile(self, id: str) -> Any:
        answer = await self.client.get(f"/v1/vendor-profiles/{id}")
        assert answer.status == 200, answer.body
        return answer.json()

    def publish_record(self, claim: Any, kind: str = "dns_txt") -> None:
        [challenge] = [item["challenge"] for item in claim["evidence"] if item["kind"] == kind]
        self.application.name_records.put(challenge["name"], "TXT", "v=spf1 -all", challenge["value"])

    def publish_tag(self, claim: Any, url: str = SITE) -> None:
        [challenge] = [item["challenge"] for item in claim["evidence"] if item["kind"] == "site_tag"]
        self.web.serve(url, f"<!doctype html><html><head>{challenge['tag']}</head><body>Fjord</body></html>")

    async def decide(self, name: str, id: str, tenant: Tenant | None = None, **options: Any) -> Any:
        """Decide a claim as the operator: approve, reject or revoke."""
        async with self.application.uow.begin(tenant or self.get_tenant(), OPERATOR) as tx:
            return await getattr(self.dependencies[ClaimService], name)(tx, id, "Looked at.", **options)

    async def list_events(self, client: Client | None = None) -> list[tuple[str, str, Any]]:
        answer = await (client or self.client).get("/v1/changes")
        return [(event["type"], event["subject"], event["data"]) for event in answer.json()["data"]]

    async def create_person(self, email: str, *, verified: bool = True, role: str = "owner") -> Client:
        """Create a member with the address; return a client with the member's token."""
        application = self.application
        now = application.clock.now()
        user = await application.people.add(User(new_id("usr"), email, "Anna", now if verified else None, now))
        async with application.uow.begin(self.get_tenant(), OPERATOR) as tx:
            await tx[OrgStore].add_member(Member(user.id, self.get_tenant().org, email, role, now))
        _, secret = await application.sessions.create_token(user, self.get_tenant().org)
        return Client(application.app, secret)


@pytest_asyncio.fixture
async def brands() -> AsyncIterator[Brands]:
    web = MemoryWeb()
    async with run_application(web=web) as application:
        for name in ("Vendor", "Rival"):
            await application.create_organisation(name, create_plan("standard", "standard"), "vendor")
        clients = [await application.create_client(name) for name in ("Vendor", "Rival")]
        yield Brands(application, web, *clients)


async def test_a_vendor_creates_and_changes_its_profile(brands: Brands) -> None:
    assert (await brands.client.get("/v1/brand")).status == 404
    made = await brands.client.send_json("PATCH", "/v1/brand", {"brands": ["Birk", "BIRK ", "Oak"]})
    assert (made.status, made.json()["name"], made.json()["brands"]) == (200, "Vendor", ["Birk", "Oak"])
    assert (made.json()["status"], made.json()["verified"]) == ("claimed", False)
    changes = {"name": "Birk & Oak", "website_domain": "Möbel.Example"}
    changed = (await brands.client.send_json("PATCH", "/v1/brand", changes)).json()
    assert changed == (await brands.client.get("/v1/brand")).json()
    assert (changed["website_domain"], changed["slug"]) == ("xn--mbel-5qa.example", "vendor")
    catalogue = brands.application.orgs["Vendor"].get_catalogue_id(True)
    assert (changed["catalogue"], changed["version"]) == (catalogue, 2)
    assert brands.get_tenant().org.encode() not in made.body
    removed = await brands.client.send_json("PATCH", "/v1/brand", {"website_domain": None})
    assert "website_domain" not in removed.json()
    entry = (await brands.client.get("/v1/audit-events?action=brand.update")).json()["data"][-1]
    undo = f"/v1/audit-events/{entry['id']}/undo"
    assert (await brands.client.send_json("POST", undo, {}, idempotency_key="u")).status in (200, 409, 422)


async def test_undo_deletes_a_created_profile(brands: Brands) -> None:
    await brands.client.send_json("PATCH", "/v1/brand", {"brands": ["Birk"]})
    [entry] = (await brands.client.get("/v1/audit-events")).json()["data"]
    undone = await brands.client.send_json("POST", f"/v1/audit-events/{entry['id']}/undo", {}, idempotency_key="u")
    assert undone.status == 200, undone.body
    assert (await brands.client.get("/v1/brand")).status == 404
    again = await brands.rival.send_json("PATCH", "/v1/brand", {"brands": ["Birk"]})
    assert again.status == 200, "the brand is free again"


async def test_retailers_have_no_profile(brands: Brands) -> None:
    retailer = await brands.application.create_client("Fjord")
    profile = await brands.create_profile()
    assert (await retailer.get("/v1/brand")).status == 404
    assert (await retailer.get(f"/v1/vendor-profiles/{profile}")).status == 200
    body = {"profile": profile, "evidence": [{"kind": "dns_txt"}]}
    for answer in (
        await retailer.send_json("PATCH", "/v1/brand", {"name": "X"}),
        await retailer.get("/v1/brand/claims"),
        await retailer.get(f"/v1/brand/claims/{new_id('vcl')}"),
        await brands.post(retailer, "claims", body),
        await brands.post(retailer, f"claims/{new_id('vcl')}/check"),
        await brands.post(retailer, f"claims/{new_id('vcl')}/withdraw"),
        await brands.post(retailer, "invitations/preview", {"token": "svc_claim_x"}),
    ):
        assert (answer.status, answer.code) == (403, "permission_denied")


async def test_a_brand_has_one_profile_whatever_its_spelling(brands: Brands) -> None:
    profile = await brands.create_profile(brands=("West Elm",), name="West Elm")
    taken = await brands.client.send_json("PATCH", "/v1/brand", {"brands": ["Oak", "WESTELM Ltd"]})
    assert (taken.status, taken.faults) == (409, {("brands.1", "invalid_value")})
    assert profile in taken.json()["detail"]
    sandbox = await brands.application.create_client("Vendor", livemode=False)
    assert (await sandbox.send_json("PATCH", "/v1/brand", {"brands": ["WestElm"]})).status == 200
    empty = await brands.client.send_json("PATCH", "/v1/brand", {"brands": ["—"]})
    assert empty.faults == {("brands.0", "invalid_value")}


async def test_only_one_of_concurrent_profiles_of_a_brand_is_verified(brands: Brands) -> None:
    """Unproven profiles reserve no brands; the first one whose claim is approved does."""
    claims = []
    for client, brand, domain in (
        (brands.client, "West Elm", "westelm.example"),
        (brands.rival, "WestElm", "west-elm.shop"),
    ):
        changes = {"name": brand, "brands": [brand], "website_domain": domain}
        made = await client.send_json("PATCH", "/v1/brand", changes)
        assert made.status == 200, made.body
        claims.append((client, await brands.claim(made.json()["id"], "dns_txt", client=client)))
        brands.publish_record(claims[-1][1])
    await asyncio.gather(*(brands.post(client, f"claims/{claim['id']}/check") for client, claim in claims))
    statuses = {
        (await client.get(f"/v1/brand/claims/{claim['id']}")).json()["status"]: claim for client, claim in claims
    }
    assert statuses.keys() == {"approved", "pending"}
    second = next((client, claim) for client, claim in claims if claim is statuses["pending"])
    assert "Another profile" in (await brands.check(second[1], second[0]))["decision"]["reason"]
    tenant = brands.get_tenant("Vendor" if second[0] is brands.client else "Rival")
    with pytest.raises(Conflict, match="brand"):
        await brands.decide("approve", second[1]["id"], tenant)


@pytest.mark.parametrize("domain", ["co.uk", "myshopify.com", "localhost", "https://fjord.example", "192.0.2.1"])
async def test_domains_that_are_no_website_are_refused(brands: Brands, domain: str) -> None:
    answer = await brands.client.send_json("PATCH", "/v1/brand", {"website_domain": domain})
    assert (answer.status, {name for name, _ in answer.faults}) == (400, {"website_domain"})


async def test_the_directory_is_searched(brands: Brands) -> None:
    fjord = await brands.create_profile()
    elm = await brands.create_profile(name="West Elm", brands=("West Elm", "Elm Kids"), website_domain="shop.elm.co.uk")
    await brands.create_profile(livemode=False, name="Fjord", brands=("Fjord",))
    other = await brands.create_profile(name="Other Fjords", brands=(), website_domain=None)

    async def search(query: str) -> list[str]:
        answer = await brands.client.get(f"/v1/vendor-profiles{query}")
        assert answer.status == 200, answer.body
        return [row["id"] for row in answer.json()["data"]]

    assert await search("") == [other, elm, fjord]
    assert await search("?q=fjord") == [other, fjord]
    assert await search("?q=fjrod%20furnitrue") == [fjord]
    assert await search("?q=westelm") == await search("?q=wset%20elm") == [elm]
    assert await search("?q=--") == await search("?q=xx") == []
    assert await search("?domain=elm.co.uk") == await search("?domain=shop.elm.co.uk") == [elm]
    assert await search("?domain=co.uk") == await search("?domain=m.co.uk") == []
    assert await search("?q=kids&domain=elm.co.uk") == await search("?q=elmkids&domain=elm.co.uk") == [elm]
    assert await search("?q=fjord&domain=elm.co.uk") == await search("?q=--&domain=elm.co.uk") == []
    assert await search("?status=claimed") == await search("?verified=true") == []
    assert await search("?status=unclaimed&verified=false&q=fjord") == [other, fjord]
    first = (await brands.client.get("/v1/vendor-profiles?q=fjord&limit=1")).json()
    assert first["has_more"]
    assert await search(f"?q=fjord&limit=1&starting_after={first['next_cursor']}") == [fjord]
    backwards = (await brands.client.get("/v1/vendor-profiles?limit=1")).json()["next_cursor"]
    assert await search(f"?limit=2&starting_after={backwards}") == [elm, fjord]
    for query, code in (
        ("?q=x", "too_short"),
        ("?domain=Fjord.example", "invalid_format"),
        ("?status=x", "invalid_value"),
    ):
        assert {found for _, found in (await brands.client.get(f"/v1/vendor-profiles{query}")).faults} == {code}


async def test_a_dns_record_approves_a_claim(brands: Brands) -> None:
    profile = await brands.create_profile(website_domain="www.fjord.example")
    await brands.client.send_json("PATCH", "/v1/brand", {"name": "Own", "brands": ["Unproven"]})
    claim = await brands.claim(profile, "dns_txt")
    [evidence] = claim["evidence"]
    assert (claim["status"], evidence["grade"], evidence["value"]) == ("pending", "none", "www.fjord.example")
    assert (evidence["challenge"]["record"], evidence["challenge"]["name"]) == ("TXT", RECORD_NAME)
    assert "decision" not in claim
    assert "checked_at" not in evidence
    assert brands.application.name_records.queries == [], "a missing record would be remembered by name servers"
    assert (await brands.check(claim))["status"] == "pending"
    brands.publish_record(claim)
    approved = await brands.check(claim)
    assert (approved["status"], approved["decision"]["outcome"], approved["decision"]["by"]) == (
        "approved", "approved", "rules",
    )  # fmt: skip
    held = await brands.read_profile(profile)
    catalogue = brands.application.orgs["Vendor"].get_catalogue_id(True)
    assert (held["status"], held["verified"], held["catalogue"]) == ("claimed", True, catalogue)
    assert "verified_at" in held
    assert (await brands.client.get("/v1/brand")).json()["id"] == profile, "the own profile is absorbed"
    for query, count in (
        ("", 1),
        ("?status=claimed&verified=true", 1),
        ("?status=unclaimed", 0),
        ("?verified=false", 0),
    ):
        rows = (await brands.client.get(f"/v1/vendor-profiles{query}")).json()["data"]
        assert [row["brands"] for row in rows] == [["Fjord"]] * count, "unproven brands are not moved"
    refused = await brands.client.send_json("PATCH", "/v1/brand", {"name": "Ikea"})
    assert (refused.status, refused.code) == (409, "conflict")
    assert await brands.list_events() == [
        ("catalogue.verified", catalogue, {"id": catalogue, "profile": profile, "claim": claim["id"], "version": 2})
    ]
    entry = (await brands.client.get(f"/v1/audit-events?target={claim['id']}")).json()["data"][0]
    assert entry["after"]["status"] == "approved"
    assert entry["after"]["evidence"][0]["detail"] == "The DNS record was found."
    again = await brands.post(brands.client, f"claims/{claim['id']}/check")
    assert (again.status, again.code) == (409, "conflict")
    second = {"profile": await brands.create_profile(name="B", brands=("B",)), "evidence": [{"kind": "dns_txt"}]}
    assert (await brands.post(brands.client, "claims", second)).status == 409


async def test_records_of_a_real_name_server_are_read(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    value = claim["evidence"][0]["challenge"]["value"]
    checker = brands.dependencies[ClaimChecker]
    records = {(RECORD_NAME, "TXT"): ['"v=spf1 -all"', f'"{value[:20]}" "{value[20:]}"']}
    with running_name_server({(RECORD_NAME, "TXT"): ["SERVFAIL"]}) as port:
        observed = await _look_up(checker, port)
        assert observed is None
    with running_name_server(records) as port:
        assert await _look_up(checker, port) == {"v=spf1 -all", value}


async def _look_up(checker: ClaimChecker, port: int) -> Any:
    from dataclasses import replace

    return await replace(checker, dns=DnsRecords(f"127.0.0.1:{port}"))._look_up(RECORD_NAME)


async def test_a_tag_needs_corroboration(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "site_tag", "email_domain")
    brands.publish_tag(claim)
    checked = await brands.check(claim)
    assert [item["grade"] for item in checked["evidence"]] == ["strong", "none"]
    assert (checked["status"], checked["decision"]["outcome"]) == ("pending", "review")
    await brands.create_person("eve@fjord.example", verified=False)
    await brands.create_person("bob@fjord.example", role="viewer")
    assert (await brands.check(claim))["status"] == "pending", "neither unverified nor a manager"
    await brands.create_person("Anna@Fjord.example")
    assert (await brands.check(claim))["status"] == "approved"


async def test_redirects_stay_within_the_domain(brands: Brands) -> None:
    claim = await brands.claim(await brands.create_profile(), "site_tag")
    brands.web.serve(SITE, status=301, location="https://www.fjord.example/home")
    brands.publish_tag(claim, "https://www.fjord.example/home")
    assert (await brands.check(claim))["evidence"][0]["grade"] == "strong"
    other = await brands.claim(
        await brands.create_profile(name="B", brands=("B",), website_domain="birk.example"), "site_tag"
    )
    brands.publish_tag(other, "https://evil.example/")
    for target in ("https://evil.example/", "http://birk.example/", "https://birk.example/"):
        brands.web.serve("https://birk.example/", status=302, location=target)
        found = (await brands.check(other))["evidence"][0]
        assert (found["grade"], "redirects" in found["detail"]) == ("none", True)
    brands.web.pages["https://birk.example/"] = Unreachable("The server did not respond in time.")
    assert (await brands.check(other))["evidence"][0]["detail"] == "The server did not respond in time."


async def test_an_invitation_is_useless_to_another_address(brands: Brands) -> None:
    profile = await brands.create_profile()
    invited = await brands.create_person("anna@agency.example")
    thief = await brands.create_person("eve@agency.example")
    unverified = await brands.create_person("bob@agency.example", verified=False)
    invitations = brands.dependencies[ClaimInvitations]
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        invitation, code = await invitations.create(tx, profile, "Anna@agency.example", 14)
    for client, usable in ((invited, True), (thief, False), (unverified, False), (brands.client, False)):
        shown = await client.send_json("POST", "/v1/brand/invitations/preview", {"token": code})
        assert (shown.status, shown.json()["usable"], shown.json()["profile"]["id"]) == (200, usable, profile)
        assert shown.json()["id"] == invitation.id
    claim = await brands.claim(profile, "invitation", client=thief, invitation=code)
    assert (claim["status"], claim["evidence"][0]["grade"]) == ("pending", "none")
    assert code not in str(brands.application.database.fetch_contents()), "the code is not stored"
    assert (await brands.check(claim, invited))["status"] == "approved"
    used = await invited.send_json("POST", "/v1/brand/invitations/preview", {"token": code})
    assert (used.status, used.code) == (404, "not_found")


async def test_codes_that_are_not_open_are_unknown(brands: Brands) -> None:
    profile, other = await brands.create_profile(), await brands.create_profile(name="B", brands=("B",))
    anna = await brands.create_person("anna@fjord.example")
    invitations = brands.dependencies[ClaimInvitations]
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        _, expired = await invitations.create(tx, profile, "anna@fjord.example", 1)
        revoked, revoked_code = await invitations.create(tx, profile, "anna@fjord.example", 14)
        _, foreign = await invitations.create(tx, other, "anna@fjord.example", 14)
        from domain.brand.ports import ClaimInvitationStore

        assert await tx[ClaimInvitationStore].revoke_invitation(revoked.id, tx.now)
    brands.application.clock.advance(timedelta(hours=25))
    anna = await brands.create_person("anna2@fjord.example")
    for code in (expired, revoked_code, foreign[:-1] + "0", "nonsense", "svc_claim_" + "0" * 38):
        shown = await anna.send_json("POST", "/v1/brand/invitations/preview", {"token": code})
        assert (shown.status, shown.code) == (404, "not_found")
    for code in (expired, revoked_code, foreign, "nonsense"):
        claim = await brands.claim(profile, "invitation", client=anna, invitation=code)
        assert (claim["status"], claim["evidence"][0]["grade"]) == ("pending", "none")
        await brands.post(anna, f"claims/{claim['id']}/withdraw")


async def test_rival_claims_are_reviewed(brands: Brands) -> None:
    profile = await brands.create_profile()
    mine, theirs = (
        await brands.claim(profile, "dns_txt"),
        await brands.claim(profile, "site_tag", client=brands.rival),
    )
    brands.publish_record(mine)
    brands.publish_tag(theirs)
    await brands.check(theirs, brands.rival)
    checked = await brands.check(mine)
    assert (checked["status"], checked["decision"]["outcome"]) == ("pending", "review")
    assert "Another organisation claims" in checked["decision"]["reason"]
    assert brands.get_tenant("Rival").org not in str(checked)
    await brands.post(brands.rival, f"claims/{theirs['id']}/withdraw")
    assert (await brands.check(mine))["status"] == "approved"
    late = await brands.claim(profile, "dns_txt", client=brands.rival)
    brands.publish_record(late)
    assert "holds this profile" in (await brands.check(late, brands.rival))["decision"]["reason"]
    with pytest.raises(Conflict, match="Revoke"):
        await brands.decide("approve", late["id"], brands.get_tenant("Rival"))


async def test_concurrent_rivals_are_never_both_approved(brands: Brands) -> None:
    profile = await brands.create_profile()
    claims = await asyncio.gather(
        brands.claim(profile, "dns_txt"), brands.claim(profile, "dns_txt", client=brands.rival)
    )
    values = [claim["evidence"][0]["challenge"]["value"] for claim in claims]
    brands.application.name_records.put(RECORD_NAME, "TXT", *values)
    checked = await asyncio.gather(brands.check(claims[0]), brands.check(claims[1], brands.rival))
    assert sorted(claim["status"] for claim in checked) == ["approved", "pending"]
    [pending] = [claim for claim in checked if claim["status"] == "pending"]
    assert "holds this profile" in pending["decision"]["reason"]


async def test_one_claim_is_pending_for_each_profile(brands: Brands) -> None:
    profile = await brands.create_profile()
    body = {"profile": profile, "evidence": [{"kind": "dns_txt"}]}
    answers = await asyncio.gather(*(brands.post(brands.client, "claims", body) for _ in range(4)))
    assert sorted(answer.status for answer in answers) == [201, 409, 409, 409]
    [claim] = (await brands.client.get("/v1/brand/claims")).json()["data"]
    withdrawn = await brands.post(brands.client, f"claims/{claim['id']}/withdraw")
    assert (withdrawn.json()["status"], "withdrawn_at" in withdrawn.json()) == ("withdrawn", True)
    assert (await brands.post(brands.client, f"claims/{claim['id']}/withdraw")).status == 409
    assert (await brands.post(brands.client, "claims", body)).status == 201


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"evidence": [{"kind": "dns_txt"}]}, (400, {("profile", "required")})),
        ({"profile": "?", "evidence": []}, (400, {("evidence", "too_few")})),
        ({"profile": "?", "evidence": [{"kind": "dns_txt"}] * 2}, (400, {("evidence.1.kind", "duplicate")})),
        ({"profile": "?", "evidence": [{"kind": "document"}]}, (400, {("evidence.0.value", "required")})),
        ({"profile": "?", "evidence": [{"kind": "invitation"}]}, (400, {("evidence.0.value", "required")})),
        ({"profile": "?", "evidence": [{"kind": "dns_txt", "value": "evil.example"}]}, (422, {("evidence.0.value", "invalid_value")})),
        ({"profile": "vnd_" + "0" * 22, "evidence": [{"kind": "dns_txt"}]}, (422, {("profile", "invalid_value")})),
    ],
)  # fmt: skip
async def test_invalid_claims_are_refused(brands: Brands, body: Any, expected: Any) -> None:
    profile = await brands.create_profile()
    given = body | ({"profile": profile} if body.get("profile") == "?" else {})
    answer = await brands.post(brands.client, "claims", given)
    assert (answer.status, answer.faults) == expected


async def test_the_profile_needs_a_domain_for_proofs_of_it(brands: Brands) -> None:
    profile = await brands.create_profile(website_domain=None)
    for kind in ("dns_txt", "site_tag", "email_domain"):
        answer = await brands.post(brands.client, "claims", {"profile": profile, "evidence": [{"kind": kind}]})
        assert (answer.status, answer.code) == (422, "unprocessable")


async def test_a_self_declared_profile_is_approved_only_for_its_own_name(brands: Brands) -> None:
    own = (
        await brands.client.send_json(
            "PATCH", "/v1/brand", {"name": "Fjord", "website_domain": "fjord.example", "brands": ["Ikea"]}
        )
    ).json()
    claim = await brands.claim(own["id"], "dns_txt")
    brands.publish_record(claim)
    checked = await brands.check(claim)
    assert (checked["status"], checked["decision"]["outcome"]) == ("pending", "review")
    await brands.client.send_json("PATCH", "/v1/brand", {"brands": ["Fjord Ltd"]})
    assert (await brands.check(claim))["status"] == "approved"


async def test_a_changed_domain_voids_its_evidence(brands: Brands) -> None:
    own = (
        await brands.client.send_json("PATCH", "/v1/brand", {"name": "Fjord", "website_domain": "fjord.example"})
    ).json()
    claim = await brands.claim(own["id"], "dns_txt")
    brands.publish_record(claim)
    await brands.client.send_json("PATCH", "/v1/brand", {"name": "Birk", "website_domain": "birk.example"})
    checked = await brands.check(claim)
    assert (checked["status"], checked["evidence"][0]["grade"]) == ("pending", "none")


async def test_homographs_are_reviewed(brands: Brands) -> None:
    profile = await brands.create_profile(brands=("Fjоrd",), website_domain="fjоrd.example")
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    checked = await brands.check(claim)
    assert (checked["status"], checked["decision"]["outcome"]) == ("pending", "review")
    assert (await brands.decide("approve", claim["id"]))[0].status == "approved"


async def test_a_revocation_is_an_event(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    revoked: BrandClaim = await brands.decide("revoke", claim["id"])
    assert (revoked.status, revoked.decision and revoked.decision.by) == ("revoked", "operator")
    held = await brands.read_profile(profile)
    assert (held["status"], held["verified"], "verified_at" in held) == ("claimed", False, False)
    assert [type for type, *_ in await brands.list_events()] == ["catalogue.verified", "catalogue.unverified"]
    with pytest.raises(Conflict):
        await brands.decide("revoke", claim["id"])
    assert (await brands.client.send_json("PATCH", "/v1/brand", {"name": "Fjord"})).status == 200


async def test_a_domain_that_changed_hands_releases_the_profile(brands: Brands) -> None:
    profile = await brands.create_profile()
    before = await brands.read_profile(profile)
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await brands.decide("revoke", claim["id"], is_released=True)
    released = await brands.read_profile(profile)
    assert (released["status"], released["verified"]) == ("unclaimed", False)
    assert released["catalogue"] == before["catalogue"]
    assert (await brands.client.get("/v1/brand")).status == 404
    theirs = await brands.claim(profile, "dns_txt", client=brands.rival)
    brands.publish_record(theirs)
    assert (await brands.check(theirs, brands.rival))["status"] == "approved"


async def test_undo_changes_no_released_profile(brands: Brands) -> None:
    profile = await brands.create_profile()
    first = await brands.claim(profile, "dns_txt")
    brands.publish_record(first)
    await brands.check(first)
    await brands.decide("revoke", first["id"])
    before = (await brands.client.get("/v1/brand")).json()["name"]
    assert (await brands.client.send_json("PATCH", "/v1/brand", {"name": "Fjord of Oslo"})).status == 200
    [entry] = (await brands.client.get("/v1/audit-events?action=brand.update&limit=1")).json()["data"]
    second = await brands.claim(profile, "dns_txt")
    brands.publish_record(second)
    await brands.check(second)
    await brands.decide("approve", second["id"])
    await brands.decide("revoke", second["id"], is_released=True)
    released = await brands.read_profile(profile)
    assert released["name"] == "Fjord of Oslo" != before
    undone = await brands.client.send_json("POST", f"/v1/audit-events/{entry['id']}/undo", {}, idempotency_key="undo")
    assert undone.status in (404, 409, 422), undone.body
    assert await brands.read_profile(profile) == released


async def test_lost_evidence_is_reviewed_and_never_revoked(brands: Brands) -> None:
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    checker, records = brands.dependencies[ClaimChecker], brands.application.name_records

    async def recheck() -> Any:
        brands.application.clock.advance(timedelta(hours=25))
        await checker.recheck_due()
        async with brands.application.uow.begin_reading(brands.get_tenant()) as tx:
            return await tx[BrandClaimStore].get(claim["id"])

    records.down.add("*")
    assert (await recheck()).decision.outcome == "approved"
    records.down.clear()
    records.put(RECORD_NAME, "TXT")
    for _ in range(2):
        lost = await recheck()
        assert (lost.status, lost.decision.outcome, lost.decision.by) == ("approved", "review", "rules")
        assert "not found" in lost.decision.reason
        assert (await brands.read_profile(profile))["verified"]
    brands.publish_record(claim)
    assert (await recheck()).decision.outcome == "approved"
    async with brands.application.uow.begin_reading(brands.get_tenant()) as tx:
        page = await tx[AuditLog].page(PageRequest(100), AuditFilter(target=claim["id"]))
    assert [entry.change.after["decision"]["outcome"] for entry in page.items if "decision" in entry.change.after] == [
        "approved", "review", "approved",
    ]  # fmt: skip


async def test_claims_without_evidence_are_rejected_after_a_month(brands: Brands) -> None:
    claim = await brands.claim(await brands.create_profile(), "dns_txt")
    checker = brands.dependencies[ClaimChecker]
    for days, status in ((29, "pending"), (2, "rejected")):
        brands.application.clock.advance(timedelta(days=days))
        await checker.recheck_due()
        async with brands.application.uow.begin_reading(brands.get_tenant()) as tx:
            found = await tx[BrandClaimStore].get(claim["id"])
        assert found is not None and found.status == status


async def test_an_approval_takes_an_unverified_profile_over(brands: Brands) -> None:
    squatted = (
        await brands.rival.send_json("PATCH", "/v1/brand", {"name": "Fjord", "website_domain": "fjord.example"})
    ).json()
    claim = await brands.claim(squatted["id"], "dns_txt")
    brands.publish_record(claim)
    assert (await brands.check(claim))["decision"]["outcome"] == "review"
    approved, former = await brands.decide("approve", claim["id"])
    assert (approved.status, former) == ("approved", brands.get_tenant("Rival").org)
    assert (await brands.rival.get("/v1/brand")).status == 404
    assert (await brands.read_profile(squatted["id"]))["catalogue"] != squatted["catalogue"]


async def test_merged_profiles_are_separated_again(brands: Brands) -> None:
    into = await brands.create_profile()
    duplicate = await brands.create_profile(name="Fjord GmbH", brands=("Fjord Living",), website_domain="fjord.test")
    before = await brands.read_profile(into)
    profiles = brands.dependencies[ProfileService]
    claim = await brands.claim(duplicate, "dns_txt")
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        with pytest.raises(Conflict, match="pending"):
            await profiles.merge(tx, duplicate, into)
    await brands.post(brands.client, f"claims/{claim['id']}/withdraw")
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        await profiles.merge(tx, duplicate, into)
    assert (await brands.client.get(f"/v1/vendor-profiles/{duplicate}")).status == 404
    assert (await brands.client.get("/v1/vendor-profiles?domain=fjord.test")).json()["data"] == []
    assert (await brands.read_profile(into))["brands"] == ["Fjord", "Fjord Living"]
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        restored: VendorProfile = (await profiles.unmerge(tx, duplicate))[0]
    assert restored.brands == ("Fjord Living",)
    assert (await brands.read_profile(into))["brands"] == before["brands"]
    assert (await brands.client.get(f"/v1/vendor-profiles/{duplicate}")).status == 200


async def test_tenants_cannot_write_profiles(brands: Brands) -> None:
    """Only the named statements of the store write, as the owner."""
    import psycopg

    profile = await brands.create_profile()
    for table in ("vendor_profiles", "vendor_profile_terms", "brand_claims", "claim_invitations"):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            async with brands.application.uow.begin(brands.get_tenant(), OPERATOR) as tx:
                await tx.session.run(f"DELETE FROM {table}".encode())
    async with brands.application.uow.begin_reading(brands.get_tenant(livemode=False)) as tx:
        assert await tx[VendorProfileStore].get(profile) is None
        assert await tx.session.fetch_rows(b"SELECT id FROM vendor_profiles") == []


async def test_a_changed_profile_counts_as_self_declared(brands: Brands) -> None:
    """Otherwise a holder whose approval was revoked could prove a domain of its choice for a known brand."""
    profile = await brands.create_profile()
    claim = await brands.claim(profile, "dns_txt")
    brands.publish_record(claim)
    await brands.check(claim)
    await brands.decide("revoke", claim["id"])
    await brands.client.send_json("PATCH", "/v1/brand", {"website_domain": "evil.example"})
    again = await brands.claim(profile, "dns_txt")
    brands.publish_record(again)
    checked = await brands.check(again)
    assert (checked["status"], checked["decision"]["outcome"]) == ("pending", "review")
    await brands.client.send_json("PATCH", "/v1/brand", {"website_domain": "other.example"})
    assert "decision" not in await brands.check(again), "without evidence, nothing is to be reviewed"


async def test_an_unverified_profile_can_be_merged_from_its_holder(brands: Brands) -> None:
    into = await brands.create_profile(brands=())
    squatted = (await brands.rival.send_json("PATCH", "/v1/brand", {"brands": ["Fjord"]})).json()
    async with brands.application.uow.begin(Tenant("", True), OPERATOR) as tx:
        await brands.dependencies[ProfileService].merge(tx, squatted["id"], into)
    assert (await brands.rival.get("/v1/brand")).status == 404
    assert (await brands.read_profile(into))["brands"] == ["Fjord"]


async def test_a_failed_check_does_not_affect_others(brands: Brands, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = [
        await brands.claim(await brands.create_profile(name=name, brands=(name,)), "site_tag", client=client)
        for name, client in (("Birk", brands.client), ("Nordlys", brands.rival))
    ]
    checker, observe = brands.dependencies[ClaimChecker], ClaimChecker._observe

    async def fail_first(self: ClaimChecker, tenant: Tenant, id: str, user: str | None, **more: Any) -> Any:
        if id == claims[0]["id"]:
            raise OSError
        return await observe(self, tenant, id, user, **more)

    monkeypatch.setattr(ClaimChecker, "_observe", fail_first)
    brands.application.clock.advance(timedelta(days=31))
    await checker.recheck_due()
    states = [
        (await client.get(f"/v1/brand/claims/{claim['id']}")).json()["status"]
        for claim, client in zip(claims, (brands.client, brands.rival), strict=True)
    ]
    assert states == ["pending", "rejected"]
