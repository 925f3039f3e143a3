"""The assistant's side panel in Chromium, with a scripted model: streams, decisions, undo, keyboard, phones and accessibility."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from adapters.pydantic_ai.assistant import PydanticAssistantEngine
from tests.browser.page_checks import check_page
from tests.browser.service import LiveService, run_service
from tests.browser.test_site import NARROW, OVERFLOW, WIDE
from tests.http.application import ApplicationHarness, create_plan
from tests.http.assistant import Call, ScriptedModels, Step, Thought, search
from tests.support.memory.limits import UnlimitedRates

pytestmark = pytest.mark.browser
ENDPOINT = {"url": "https://shop.example/orders", "event_types": ["*"], "description": "Old name"}
LAYOUTS = [(WIDE, "light"), (WIDE, "dark"), (NARROW, "light"), (NARROW, "dark")]
HOSTILE = "<img src=https://evil.test/x.png> ![a](https://evil.test/y.png) [open](https://evil.test)"
TEXT = "#assistant-text"


class AssistantPanel:
    """Service with a scripted model, and a signed-in person's browser."""

    def __init__(self, browser: Any, service: LiveService, models: ScriptedModels) -> None:
        self._browser, self.service, self.models = browser, service, models
        self.address, self.endpoint = service.address, service.prepared["endpoint"]

    def open(self, path: str = "/console", **options: Any) -> Any:
        """Open a page in a new context, which collects errors and requests of other origins."""
        context = self._browser.new_context(**{"viewport": WIDE, "reduced_motion": "reduce"} | options)
        context.add_cookies([{"name": "joinery", "value": self.service.prepared["cookie"], "url": self.address}])
        page = context.new_page()
        page.faults = []
        page.on("pageerror", lambda error: page.faults.append(str(error)))
        page.on(
            "request",
            lambda request: None if request.url.startswith(self.address) else page.faults.append(request.url),
        )
        page.on(
            "console",
            lambda message: page.faults.append(message.text) if "Content Security Policy" in message.text else None,
        )
        page.goto(self.address + path)
        return page

    def script(self, *steps: Step) -> None:
        """Set the answers of the model to the next requests."""
        self.models.steps = list(steps)

    def propose(self, *calls: Call, answer: str = "All done.") -> None:
        """Let the model propose changes, and then answer."""
        self.script(search("change a webhook endpoint"), list(calls), answer)

    def read_endpoint(self) -> Any:
        """Return the endpoint, as in the API."""
        path = f"/v1/webhook-endpoints/{self.endpoint}"
        return self.service.run(self.service.prepared["client"].get(path)).json()

    def describe(self, description: str, id: str = "") -> Call:
        """Return the call that changes the endpoint's description."""
        arguments = {
            "id": self.endpoint,
            "if_match": str(self.read_endpoint()["version"]),
            "body": {"description": description, "coalesce_seconds": 30},
        }
        return Call("webhooks_update", arguments, id)


async def _prepare(application: ApplicationHarness) -> dict[str, Any]:
    await application.create_organisation("Halden", create_plan("full", "standard", "assistant", "stream"))
    browser, client = await application.open_browser("Halden"), await application.create_client("Halden")
    made = await client.post("/v1/webhook-endpoints", ENDPOINT)
    return {"cookie": next(iter(browser.cookies.values())), "client": client, "endpoint": made.json()["id"]}


@pytest.fixture(scope="module")
def panel(browser: Any) -> Iterator[AssistantPanel]:
    models = ScriptedModels()
    with run_service(_prepare, engine=PydanticAssistantEngine(models), limits=UnlimitedRates()) as service:
        yield AssistantPanel(browser, service, models)


def send(page: Any, text: str) -> None:
    """Send a message from the open panel, and wait for the end of the turn."""
    page.locator(TEXT).fill(text)
    page.locator(TEXT).press("Enter")
    page.wait_for_selector("#conversation[aria-busy=true]")
    wait_for_end(page)


def wait_for_end(page: Any) -> None:
    page.wait_for_selector("#conversation[aria-busy=false] [data-conversation]")


def open_panel(page: Any) -> None:
    page.locator(".assistant-toggle").click()
    page.wait_for_selector(f"{TEXT}:focus")


def test_an_answer_is_streamed_as_plain_text(panel: AssistantPanel) -> None:
    page = panel.open()
    panel.script([Thought("Let me look."), "One moment.", Call("sources_list", {"limit": 5})], f"No sources. {HOSTILE}")
    open_panel(page)
    page.wait_for_selector("text=What would you like to know?")
    send(page, "Which <b>sources</b> are there?")
    answer = page.locator(".from-assistant")
    assert "No sources. < img" in answer.inner_text() and "Read: Sources" in answer.inner_text()
    assert page.locator(".from-user").inner_text().endswith("Which <b>sources</b> are there?")
    assert page.locator("#conversation img, .assistant-messages a").count() == 0
    assert page.locator(".assistant-reasoning p").is_hidden()
    page.locator(".assistant-reasoning summary").click()
    assert page.locator(".assistant-reasoning p").inner_text() == "Let me look."
    spoken = page.locator("#assistant-announcements p").all_inner_texts()
    assert spoken[0] == "One moment." and "No sources." in spoken and page.faults == []
    page.context.close()


def test_a_change_is_approved_by_its_difference_and_undone(panel: AssistantPanel) -> None:
    page = panel.open(f"/console/developers/webhooks/{panel.endpoint}")
    before = panel.read_endpoint()["description"]
    panel.propose(panel.describe("New name"))
    open_panel(page)
    assert page.locator("text=About this page: Webhook endpoint").count() == 1
    send(page, "Rename the endpoint.")
    card = page.locator("[data-approval]")
    assert before in card.locator("del").all_inner_texts() and "New name" in card.locator("ins").all_inner_texts()
    assert panel.read_endpoint()["description"] == before
    check_page(page, "approval")
    card.locator("[data-decision-button=approve]").click()
    page.wait_for_selector("text=Changes made")
    assert panel.read_endpoint()["description"] == "New name" and page.locator("[data-approval]").count() == 0
    page.locator(".assistant-changes a", has_text="Undo").click()
    page.locator("main button", has_text="Undo").click()
    page.wait_for_selector("text=Change undone")
    assert panel.read_endpoint()["description"] == before
    page.wait_for_selector(".assistant-changes .badge:has-text('Undone')")
    assert page.faults == []
    page.context.close()


def test_a_person_edits_a_change_before_approving(panel: AssistantPanel) -> None:
    page = panel.open()
    panel.propose(panel.describe("From the model"))
    open_panel(page)
    send(page, "Rename the endpoint.")
    page.locator("[data-approval] button", has_text="Edit").click()
    field = page.get_by_label("description", exact=True)
    assert field.input_value() == "From the model" and field.evaluate("each => each.offsetParent !== null")
    field.fill("From the person")
    page.get_by_label("coalesce_seconds").fill("45")
    page.locator("[data-decision-button=approve]").click()
    page.wait_for_selector("text=Changes made")
    endpoint = panel.read_endpoint()
    assert endpoint["description"] == "From the person" and endpoint["coalesce_seconds"] == 45
    assert page.faults == []
    page.context.close()


def test_all_changes_are_decided_before_they_are_sent(panel: AssistantPanel) -> None:
    page, before = panel.open(), panel.read_endpoint()
    panel.propose(panel.describe("First"), panel.describe("Second"), answer="As you wish.")
    open_panel(page)
    send(page, "Propose two names.")
    first, second = page.locator("[data-approval]").all()
    first.locator("button", has_text="Reject…").click()
    page.keyboard.type("Too short.")
    first.locator("[data-decision-button=reject]").click()
    assert second.locator("[data-decision-button=approve]").evaluate("each => each === document.activeElement")
    assert first.locator("[data-decision-button=reject]").get_attribute("aria-pressed") == "true"
    second.locator("button", has_text="Reject…").click()
    second.locator("[data-decision-button=reject]").click()
    page.wait_for_selector("text=As you wish.")
    wait_for_end(page)
    assert page.locator(".assistant-tool.bad").count() == 2 and panel.read_endpoint() == before
    assert "Too short." in str(panel.models.requests[-1][0]) and page.faults == []
    page.context.close()


def test_the_panel_is_used_by_keyboard(panel: AssistantPanel) -> None:
    page = panel.open()
    panel.script("Hello.")
    page.keyboard.press("a")
    page.wait_for_selector(f"{TEXT}:focus")
    page.keyboard.type("Hello, assistant")
    page.keyboard.press("Shift+Enter")
    page.keyboard.type("a")
    page.keyboard.press("Enter")
    wait_for_end(page)
    assert page.locator(".from-user p").inner_text() == "Hello, assistant\na"
    page.keyboard.press("Escape")
    assert page.locator("#assistant").is_hidden()
    assert page.evaluate("document.activeElement.matches('.assistant-toggle[aria-expanded=false]')")
    page.keyboard.press("Enter")
    page.wait_for_selector(f"{TEXT}:focus")
    assert page.locator(".assistant-message").count() == 2
    page.context.close()


def test_the_panel_resumes_after_a_reload(panel: AssistantPanel) -> None:
    released = panel.service.run(_create_event())
    page = panel.open()
    panel.script(["Part one.", released.wait, "Part two."])
    open_panel(page)
    page.locator(TEXT).fill("Count to two.")
    page.locator(TEXT).press("Enter")
    page.wait_for_selector("text=Part one.")
    page.reload()
    page.wait_for_selector("text=Part one.")
    assert page.locator(".from-user").count() == 1
    panel.service.loop.call_soon_threadsafe(released.set)
    wait_for_end(page)
    assert page.locator(".from-assistant").inner_text().split() == ["Assistant:", *"Part one. Part two.".split()]
    assert page.faults == []
    page.context.close()


async def _create_event() -> asyncio.Event:
    return asyncio.Event()


def test_a_turn_is_stopped(panel: AssistantPanel) -> None:
    endless = panel.service.run(_create_event())
    page = panel.open()
    panel.script(["Part one.", endless.wait, "Part two."])
    open_panel(page)
    page.locator(TEXT).fill("Count.")
    page.locator(TEXT).press("Enter")
    page.wait_for_selector("text=Part one.")
    page.locator("[data-stop]").click()
    wait_for_end(page)
    assert "Part two." not in page.locator("#conversation").inner_text()
    assert page.locator("[data-stop]").is_hidden() and page.locator("[data-composer] .primary").is_visible()
    page.context.close()


def test_conversations_are_listed_opened_and_deleted(panel: AssistantPanel) -> None:
    page = panel.open()
    panel.script("Hello.", "Hello again.")
    open_panel(page)
    send(page, "A first conversation")
    page.locator("[data-new]").click()
    page.wait_for_selector("text=What would you like to know?")
    send(page, "A second conversation")
    page.locator("button[title=Conversations]").click()
    page.locator("[data-conversation-link]", has_text="A first conversation").click()
    page.wait_for_selector(".from-user:has-text('A first conversation')")
    page.locator("button[title=Conversations]").click()
    page.on("dialog", lambda dialog: dialog.accept())
    page.get_by_role("button", name="Delete: A first conversation").click()
    page.wait_for_selector("[data-conversation-link]:has-text('A first conversation')", state="detached")
    assert page.locator("[data-conversation-link]", has_text="A second conversation").count() == 1
    assert page.faults == []
    page.context.close()


def test_refusals_state_a_remedy_and_keep_the_message(panel: AssistantPanel) -> None:
    page = panel.open()
    open_panel(page)
    panel.models.priced = False
    page.locator(TEXT).fill("Hello?")
    page.locator(TEXT).press("Enter")
    page.wait_for_selector("#assistant_problem .notice")
    panel.models.priced = True
    assert "Try again in a minute." in page.locator("#assistant_problem").inner_text()
    page.wait_for_function("document.getElementById('assistant-text').value === 'Hello?'")
    panel.script(RuntimeError("internal detail"), "Better now.")
    send(page, "Hello?")
    assert "could not be reached" in page.locator("#assistant_problem").inner_text()
    assert "internal detail" not in page.content()
    page.context.close()


def test_the_panel_is_a_sheet_on_a_phone(panel: AssistantPanel) -> None:
    page = panel.open(viewport=NARROW, locale="de-DE")
    panel.propose(panel.describe("Auf dem Telefon"), answer="Fertig.")
    open_panel(page)
    box = page.locator("#assistant").bounding_box()
    assert (box["x"], box["width"], box["height"]) == (0, NARROW["width"], NARROW["height"])
    assert page.locator("#assistant").get_attribute("aria-modal") == "true" and page.evaluate(
        "document.querySelector('main').inert"
    )
    send(page, "Benenne den Endpunkt um.")
    assert page.locator("button", has_text="Freigeben").is_visible() and page.evaluate(OVERFLOW) == []
    check_page(page, "phone")
    page.locator("[data-close]").click()
    assert not page.evaluate("document.querySelector('main').inert")
    assert page.evaluate("document.activeElement.matches('.assistant-toggle')")
    page.reload()
    assert page.locator("#assistant").is_hidden() and page.faults == []
    page.context.close()


@pytest.mark.parametrize(
    ("size", "scheme"), LAYOUTS, ids=["wide, light", "wide, dark", "narrow, light", "narrow, dark"]
)
def test_the_panel_is_accessible(panel: AssistantPanel, size: dict[str, int], scheme: str) -> None:
    page = panel.open(viewport=size, color_scheme=scheme, bypass_csp=True)
    name = f"{'wide' if size is WIDE else 'narrow'}-{scheme}"
    panel.propose(panel.describe("Accessible"))
    open_panel(page)
    page.wait_for_selector("text=What would you like to know?")
    check_page(page, f"start-{name}")
    send(page, "Rename the endpoint.")
    page.locator("[data-approval] button", has_text="Edit").click()
    page.locator("[data-approval] button", has_text="Reject…").click()
    check_page(page, f"approval-{name}")
    page.locator("button[title=Conversations]").click()
    page.wait_for_selector(".assistant-list")
    check_page(page, f"list-{name}")
    page.context.close()
