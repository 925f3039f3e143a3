"""Console pages of members and of invitations."""

import asyncio
import re
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from domain.outbox.usecases import OutgoingMail
from tests.http.application import ApplicationHarness, run_application
from tests.http.browser import COOKIE, BrowserPage, ConsoleBrowser

pytestmark = pytest.mark.asyncio
MEMBERS = "/console/organisation/members"
SPITE = "<img src=x onerror=alert(1)>"
NEW = {"name": f"Bo {SPITE}", "password": "four walnut drawers and a lamp"}


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application() as application:
        yield application


async def _invite(application: ApplicationHarness, browser: ConsoleBrowser, email: str, role: str = "editor") -> str:
    """Invite by the form; return the path of the link in the mail."""
    page = await browser.submit(await browser.get(MEMBERS), f"{MEMBERS}/invite", email=email, role=role)
    assert page.status == 303, page.text
    return await _read_mails(application, email)


async def _read_mails(application: ApplicationHarness, email: str) -> str:
    mail = application.dependencies[OutgoingMail]
    message = next(one for one in await mail.list_latest(50) if one.to == email)
    [place] = re.findall(r"https://api\.joinery\.test(/console/invitations/\S+)", mail.decrypt_text(message))
    return str(place)


async def test_members_are_shown_to_all_and_changed_by_managers(application: ApplicationHarness) -> None:
    owner = await application.open_browser(person=f"Ada {SPITE}")
    viewer = await application.open_browser(role="viewer", person="Vi")
    seen = await viewer.get(MEMBERS)
    assert "Ada &lt;img" in seen.text and "<img" not in seen.text and "Invite a member" not in seen.text
    assert f"/{viewer.user.id}/remove" in seen.text and f"/{owner.user.id}/remove" not in seen.text
    place = f"{MEMBERS}/{viewer.user.id}/role"
    assert (await viewer.submit(seen, place, role="owner")).status == 403
    shown = await owner.get(MEMBERS)
    assert (await owner.post(place, role="developer")).status == 403, "without the form's token"
    changed = await owner.follow(await owner.submit(shown, place, role="developer"))
    await _wait_for_cache()
    assert "changed to Developer" in changed.text and (await viewer.get("/console/developers/keys")).status == 200
    assert (await owner.submit(shown, f"{MEMBERS}/{owner.user.id}/role", role="viewer")).status == 409
    admin = await application.open_browser(role="admin")
    form = await admin.get(MEMBERS)
    assert 'value="owner"' not in form.text
    assert (await admin.submit(form, f"{MEMBERS}/{owner.user.id}/role", role="viewer")).status == 403
    assert (await admin.submit(form, f"{MEMBERS}/{viewer.user.id}/role", role="owner")).status == 403
    outsider = await application.open_browser("Oak")
    assert (await outsider.submit(await outsider.get(MEMBERS), place, role="viewer")).status == 404
    assert (await outsider.get(f"{MEMBERS}/{viewer.user.id}/remove")).status == 404
    assert (await (await application.open_browser(role="billing")).get(MEMBERS)).status == 200


async def test_former_members_have_no_access(application: ApplicationHarness) -> None:
    owner, editor = await application.open_browser(), await application.open_browser(role="editor")
    place = f"{MEMBERS}/{editor.user.id}/remove"
    question = await owner.get(place)
    assert "at once" in question.text and (await editor.get("/console")).status == 200
    assert "removed" in (await owner.follow(await owner.submit(question, place))).text
    await _wait_for_cache()
    assert (await editor.get("/console")).status == 403
    own = f"{MEMBERS}/{owner.user.id}/remove"
    kept = await owner.submit(await owner.get(own), own)
    assert kept.status == 409 and "needs an owner" in kept.text
    viewer = await application.open_browser(role="viewer")
    own = f"{MEMBERS}/{viewer.user.id}/remove"
    assert "Leave Fjord?" in (await viewer.get(own)).text
    assert (await viewer.submit(await viewer.get(own), own)).header("location") == "/console/organisations"


async def _wait_for_cache() -> None:
    """Wait half a second, until cached sessions expire."""
    await asyncio.sleep(0.6)


async def test_an_invited_person_creates_an_account_and_joins(application: ApplicationHarness) -> None:
    owner = await application.open_browser(person="Ada")
    place = await _invite(application, owner, "bo@oak.test")
    assert (
        "bo@oak.test" in (await owner.get(MEMBERS)).text
        and place.rpartition("/")[2] not in (await owner.get(MEMBERS)).text
    )
    newcomer = ConsoleBrowser(application.app)
    form = await newcomer.get(place)
    assert "Ada invited bo@oak.test to Fjord. Role: Editor." in form.text
    weak = await newcomer.submit(form, place, **NEW | {"password": "short"})
    assert weak.status == 400 and "at least 10" in weak.text and COOKIE not in newcomer.cookies
    nameless = await newcomer.submit(form, place, **NEW | {"name": " "})
    assert nameless.status == 400 and COOKIE not in newcomer.cookies
    joined = await newcomer.submit(form, place, **NEW)
    home = await newcomer.follow(joined)
    assert home.status == 200 and "Welcome to Fjord. Your role: Editor." in home.text and "<img" not in home.text
    user = await application.people.find_by_email("bo@oak.test")
    assert user is not None and user.verified_at is not None
    assert (await ConsoleBrowser(application.app).get(place)).status == 404, "it was used"
    assert "bo@oak.test" in (await owner.get(MEMBERS)).text


async def test_an_invited_person_signs_in_and_joins(application: ApplicationHarness) -> None:
    owner, oak = await application.open_browser(), await application.open_browser("Oak")
    place = await _invite(application, owner, oak.user.email.upper(), "admin")
    signed_out = ConsoleBrowser(application.app)
    shown = await signed_out.get(place)
    assert "already has an account" in shown.text and "Password" not in shown.text.split("<main")[1]
    assert f"/console/sign-in?next={place}" in shown.text
    other = await application.open_browser("Elm")
    wrong = await other.get(place)
    assert "for another address" in wrong.text
    assert (await other.submit(wrong, place)).status == 403
    form = await oak.get(place)
    home = await oak.follow(await oak.submit(form, place))
    assert "Welcome to Fjord. Your role: Admin." in home.text and "Fjord" in home.text
    again: BrowserPage = await oak.submit(form, place)
    assert again.status == 404


async def test_an_invitation_is_revoked(application: ApplicationHarness) -> None:
    owner = await application.open_browser()
    place = await _invite(application, owner, "bo@oak.test")
    shown = await owner.get(MEMBERS)
    [back] = re.findall(rf'action="({MEMBERS}/invitations/mbi_\w+/revoke)"', shown.text)
    editor = await application.open_browser(role="editor")
    assert (await editor.submit(await editor.get(MEMBERS), back)).status == 403
    oak = await application.open_browser("Oak")
    assert (await oak.submit(await oak.get(MEMBERS), back)).status == 404
    gone = await owner.follow(await owner.submit(shown, back))
    assert "Invitation revoked" in gone.text and "bo@oak.test" not in gone.text
    assert (await ConsoleBrowser(application.app).get(place)).status == 404
    assert (await owner.submit(shown, f"{MEMBERS}/invite", email="nonsense", role="viewer")).status == 400
    assert (await ConsoleBrowser(application.app).get("/console/invitations/svc_invite_nonsense")).status == 404
