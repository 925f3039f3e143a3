"""Agreements: standing, acceptance with evidence, permissions, publication with notices, and the page of the console."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import pytest_asyncio

from domain.agreements.model import Agreement, AgreementKind, AgreementStanding
from domain.agreements.usecases.publication import AgreementPublisher
from domain.agreements.usecases.service import AgreementService
from domain.kernel.errors import Conflict, InvalidRequest
from domain.kernel.ids import new_id
from domain.kernel.tenancy import Tenant
from domain.outbox.usecases import OutgoingMail
from domain.people.model import User
from tests.http.application import OPERATOR, ApplicationHarness, create_plan, list_audit_entries, run_application
from tests.http.client import Client, Response
from tests.http.oauth import OAuthHarness
from tests.http.test_console_pages import check_markup
from tests.support.memory.hosts import MemoryWeb

pytestmark = pytest.mark.asyncio
PATH = "/v1/agreements/vendor_data"
PAGE = "/console/organisation/agreement"
TEXT = b"# Data agreement\r\n\r\nYou permit us to publish **your data**. <script>evil()</script>\r\n"


@dataclass
class Vendor:
    """Vendor with an owner."""

    application: ApplicationHarness
    owner: Client
    user: User

    @property
    def tenant(self) -> Tenant:
        return Tenant(self.application.orgs["Lindgren"].id, True)

    async def publish(self, text: bytes = TEXT, grace_days: int = 30) -> Agreement:
        """Publish the text and notify the vendors."""
        publisher = self.application.dependencies[AgreementPublisher]
        made: Agreement = await publisher.publish(AgreementKind.VENDOR_DATA, "Data agreement", text, grace_days)
        await publisher.notify_vendors(made, OPERATOR)
        return made

    async def create_member(self, role: str) -> Client:
        """Return a client with the token of a new member."""
        return (await create_token_client(self.application, "Lindgren", role))[0]

    async def read(self) -> Any:
        """Read the agreement."""
        response = await self.owner.get(PATH)
        assert response.status == 200, response.body
        return response.json()


async def create_token_client(application: ApplicationHarness, name: str, role: str) -> tuple[Client, User]:
    """Create a member of the organisation; return a client with the member's token, and the user."""
    now = application.clock.now()
    user = await application.people.add(User(new_id("usr"), f"{new_id('usr')[4:]}@lindgren.test", "Ada", now, now))
    await application.add_member(user, name, role)
    _, token = await application.sessions.create_token(user, application.orgs[name].id)
    return Client(application.app, token), user


@pytest_asyncio.fixture
async def vendor() -> AsyncIterator[Vendor]:
    async with run_application(web=MemoryWeb()) as application:
        await application.create_organisation("Lindgren", create_plan("standard", "standard"), "vendor")
        yield Vendor(application, *await create_token_client(application, "Lindgren", "owner"))


def build_body(agreement: Agreement, **changes: Any) -> dict[str, Any]:
    return {
        "version": agreement.version,
        "sha256": agreement.sha256,
        "signer_name": " Ada  Moreau ",
        "signer_title": "CEO / founder",
        "authority_confirmed": True,
    } | changes


async def sign(client: Client, agreement: Agreement, **changes: Any) -> Response:
    return await client.post(
        f"{PATH}/acceptances", build_body(agreement, **changes), user_agent="Safari/1 svc_live_" + "a" * 38
    )


async def test_versions_are_signed_and_replaced(vendor: Vendor) -> None:
    assert await vendor.read() == {"object": "agreement", "kind": "vendor_data", "standing": "unpublished"}
    first = await vendor.publish()
    shown = await vendor.read()
    assert shown["standing"] == "required" and "accept_by" not in shown and "acceptance" not in shown
    assert shown["text"] == TEXT.decode().replace("\r\n", "\n") and shown["sha256"] == first.sha256
    signed = await sign(vendor.owner, first)
    assert signed.status == 201, signed.body
    shown = await vendor.read()
    assert (shown["standing"], shown["acceptance"]) == ("accepted", signed.json())
    vendor.application.clock.advance(timedelta(days=400))
    assert (await vendor.owner.get("/v1/agreement-acceptances")).status == 401, "the token has expired"
    vendor.owner = await vendor.create_member("admin")
    assert (await vendor.read())["standing"] == "accepted"
    second = await vendor.publish(TEXT + b"More.", grace_days=1)
    shown = await vendor.read()
    deadline = (vendor.application.clock.now() + timedelta(days=1)).isoformat(timespec="milliseconds")
    assert (shown["standing"], shown["version"], shown["accept_by"]) == ("grace", 2, deadline.replace("+00:00", "Z"))
    assert shown["acceptance"]["version"] == 1
    vendor.application.clock.advance(timedelta(days=1))
    vendor.owner = await vendor.create_member("admin")
    shown = await vendor.read()
    assert shown["standing"] == "required" and "accept_by" not in shown
    async with vendor.application.uow.begin_reading(vendor.tenant) as tx:
        assert await AgreementService().get_standing(tx, AgreementKind.VENDOR_DATA) is AgreementStanding.REQUIRED
    assert (await sign(vendor.owner, first)).code == "conflict"
    assert (await sign(vendor.owner, second)).status == 201
    listed = (await vendor.owner.get("/v1/agreement-acceptances")).json()["data"]
    assert [row["version"] for row in listed] == [2, 1] and (await vendor.read())["standing"] == "accepted"


async def test_an_acceptance_records_the_evidence(vendor: Vendor) -> None:
    agreement = await vendor.publish()
    acceptance = (await sign(vendor.owner, agreement)).json()
    assert acceptance == {
        "object": "agreement_acceptance",
        "id": acceptance["id"],
        "agreement": agreement.id,
        "kind": "vendor_data",
        "version": 1,
        "sha256": agreement.sha256,
        "signer": {"user": vendor.user.id, "name": "Ada Moreau", "title": "CEO / founder"},
        "authority_confirmed": True,
        "method": "click",
        "ip": "203.0.113.7",
        "user_agent": "Safari/1 svc_live_…",
        "accepted_at": "2026-11-20T13:08:00.000Z",
    }
    [entry] = await list_audit_entries(vendor.application, vendor.tenant, acceptance["id"])
    assert entry.context.operation == "agreements.accept" and not entry.context.is_reversible
    assert entry.change.after == {name: value for name, value in acceptance.items() if name not in ("object", "id")}
    undone = await vendor.owner.post(f"/v1/audit-events/{entry.id}/undo")
    assert (undone.status, undone.code) == (422, "undo_unavailable")


async def test_a_version_is_accepted_once(vendor: Vendor) -> None:
    agreement, admin = await vendor.publish(), await vendor.create_member("admin")
    signatures = await asyncio.gather(*(sign(client, agreement) for client in (vendor.owner, admin) * 4))
    assert {one.status for one in signatures} == {201} and len({one.json()["id"] for one in signatures}) == 1
    assert (await sign(admin, agreement, signer_name="Bo")).json() == signatures[0].json()
    assert len((await admin.get("/v1/agreement-acceptances")).json()["data"]) == 1


@pytest.mark.parametrize(
    ("changes", "status", "field"),
    [
        ({"version": 2}, 409, None),
        ({"sha256": "0" * 64}, 409, None),
        ({"sha256": ""}, 400, ("sha256", "too_short")),
        ({"authority_confirmed": False}, 400, ("authority_confirmed", "invalid_value")),
        ({"signer_name": " \t "}, 400, ("signer_name", "invalid_value")),
        ({"signer_title": "Chief\u202eOfficer"}, 400, ("signer_title", "invalid_value")),
        ({"signer_name": "a" * 201}, 400, ("signer_name", "too_long")),
    ],
)
async def test_other_signatures_are_refused(
    vendor: Vendor, changes: dict[str, Any], status: int, field: tuple[str, str] | None
) -> None:
    refused = await sign(vendor.owner, await vendor.publish(), **changes)
    assert refused.status == status and (field is None or refused.faults == {field})
    assert (await vendor.read())["standing"] == "required"


async def test_nothing_is_signed_before_the_publication(vendor: Vendor) -> None:
    body = {"version": 1, "sha256": "0", "signer_name": "A", "signer_title": "B", "authority_confirmed": True}
    refused = await vendor.owner.post(f"{PATH}/acceptances", body)
    assert (refused.status, refused.code) == (409, "conflict") and "No version" in refused.json()["detail"]


async def test_only_owners_and_admins_of_vendors_sign(vendor: Vendor) -> None:
    agreement, application = await vendor.publish(), vendor.application
    for role in ("developer", "editor", "viewer", "billing"):
        refused = await sign(await vendor.create_member(role), agreement)
        assert (refused.status, refused.code) == (403, "permission_denied"), role
    key = await application.create_client("Lindgren")
    assert (await key.get(PATH)).json()["standing"] == "required"
    assert (await sign(key, agreement)).status == 403
    retailer, _ = await create_token_client(application, "Fjord", "owner")
    for refused in (await retailer.get(PATH), await retailer.post(f"{PATH}/acceptances", {})):
        assert (refused.status, refused.code) == (403, "permission_denied"), "before the body is read"
    assert (await retailer.get("/v1/agreement-acceptances")).json()["data"] == []
    for response in (await vendor.owner.get("/v1/agreements/other"), await vendor.owner.get("/v1/agreements/a%2Fb")):
        assert response.status == 404
    other = await vendor.owner.post("/v1/agreements/other/acceptances", build_body(agreement))
    assert other.status == 404


async def test_an_app_signs_with_the_current_role_of_its_person(vendor: Vendor) -> None:
    harness, agreement = OAuthHarness(vendor.application), await vendor.publish()
    app = await harness.create_app(org="Lindgren")
    clients = []
    for _ in range(2):
        person = await harness.create_member("Lindgren", role="owner")
        issued = await harness.sign_in(app, person, org="Lindgren", scope="agreements:read agreements:write")
        clients.append((person.user, harness.build_client(issued["access_token"])))
    (demoted, former), (user, client) = clients
    assert (await former.get(PATH)).status == 200
    await harness.set_role(demoted, "Lindgren", "viewer")
    refused = await sign(former, agreement)
    assert (refused.status, refused.code) == (403, "permission_denied")
    signed = await sign(client, agreement)
    assert (signed.status, signed.json()["signer"]["user"]) == (201, user.id)


async def test_test_mode_has_acceptances_of_its_own(vendor: Vendor) -> None:
    agreement = await vendor.publish()
    assert (await sign(vendor.owner, agreement)).status == 201
    sandbox = await vendor.owner.get(PATH, service_mode="test")
    assert sandbox.json()["standing"] == "required" and sandbox.json()["id"] == agreement.id
    assert (await vendor.owner.get("/v1/agreement-acceptances", service_mode="test")).json()["data"] == []


async def test_a_publication_is_recorded_and_mailed_to_managers_of_vendors(vendor: Vendor) -> None:
    await vendor.create_member("admin")
    await vendor.create_member("viewer")
    await create_token_client(vendor.application, "Fjord", "owner")
    first = await vendor.publish()
    mail: OutgoingMail = vendor.application.dependencies[OutgoingMail]
    messages = await mail.list_latest()
    assert len(messages) == 2 and vendor.user.email in {message.to for message in messages}
    text = mail.decrypt_text(messages[0])
    assert f"https://api.joinery.test{PAGE}" in text and "Lindgren" in text and " by " not in text
    [entry] = await list_audit_entries(vendor.application, vendor.tenant, first.id)
    assert entry.change.after["sha256"] == first.sha256 and entry.context.actor.id == "operator"
    await vendor.publish(b"Changed")
    assert "by 20 December 2026 13:08 UTC" in mail.decrypt_text((await mail.list_latest())[0])


async def test_unchanged_texts_are_not_published_again(vendor: Vendor) -> None:
    await vendor.publish()
    for text in (TEXT, TEXT.replace(b"\r\n", b"\n"), b"\xef\xbb\xbf" + TEXT + b"\n\n"):
        with pytest.raises(Conflict, match="same text"):
            await vendor.publish(text)
    publisher = vendor.application.dependencies[AgreementPublisher]
    for title, days in (("", 30), ("a\u202eb", 30), ("a" * 201, 30), ("Title", -1), ("Title", 366)):
        with pytest.raises(InvalidRequest):
            await publisher.publish(AgreementKind.VENDOR_DATA, title, b"Other", days)
    await vendor.publish(b"Changed")
    assert (await vendor.publish(TEXT)).version == 3, "an earlier text may return"


async def test_a_vendor_signs_in_the_console(vendor: Vendor) -> None:
    application = vendor.application
    owner, viewer = await application.open_browser("Lindgren"), await application.open_browser("Lindgren", "viewer")
    assert "There is no agreement to accept yet." in (await owner.get(PAGE)).text
    agreement = await vendor.publish()
    page = await owner.get(PAGE)
    assert "<strong>your data</strong>" in page.text and "<script>evil" not in page.text
    fields = {"version": "1", "sha256": agreement.sha256, "signer_name": "Ada <Moreau>", "signer_title": "CEO"}
    refused = await owner.submit(page, PAGE, **fields)
    assert refused.status == 400 and "you may accept" in refused.text and "Ada &lt;Moreau&gt;" in refused.text
    signed = await owner.follow(await owner.submit(page, PAGE, **fields, authority_confirmed="true"))
    assert (
        "Agreement accepted" in signed.text
        and "Ada &lt;Moreau&gt;" in signed.text
        and f"{PAGE}/versions/1" in signed.text
    )
    assert 'name="signer_name"' not in signed.text
    for shown_page in (page, refused, signed):
        check_markup(shown_page.text)
    await vendor.publish(b"# Second\n\n1 < 2")
    stale = await owner.submit(page, PAGE, **fields, authority_confirmed="true", submission_id=new_id("key"))
    assert stale.status == 409 and "<h2>Second</h2>" in stale.text and 'name="signer_name"' in stale.text
    shown = await viewer.get(PAGE)
    assert "Accept by Dec 20, 2026." in shown.text and 'name="signer_name"' not in shown.text
    version = await viewer.get(f"{PAGE}/versions/1")
    assert agreement.sha256 in version.text and "<strong>your data</strong>" in version.text
    for unknown in ("3", "0", "x", "9" * 30):
        assert (await viewer.get(f"{PAGE}/versions/{unknown}")).status == 404
    assert (await viewer.submit(shown, PAGE, **fields, authority_confirmed="true")).status == 403


async def test_retailers_have_no_page(vendor: Vendor) -> None:
    await vendor.publish()
    retailer = await vendor.application.open_browser("Fjord")
    assert PAGE not in (await retailer.get("/console/organisation/members")).text
    assert PAGE in (await (await vendor.application.open_browser("Lindgren")).get("/console/organisation/members")).text
    for path in (PAGE, f"{PAGE}/versions/1"):
        assert (await retailer.get(path)).status == 403
