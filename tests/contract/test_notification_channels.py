"""Notifications over a real SMTP server, and to a receiver over HTTP that checks messages as Slack does."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from adapters.http.sender import HttpSender
from domain.kernel.clock import CLOCK
from domain.outbox.usecases import OutgoingMail
from tests.mail.test_outgoing_mail import RecordingSmtpHandler, create_mailer, run_smtp_server
from tests.support.backend import Backend
from tests.support.notifications import NotificationHarness, create_harness

pytestmark = pytest.mark.asyncio
HOSTILE_TITLES = (
    "<!channel> <@U123> <https://evil.example|Free>",
    "Oak & Ash > Pine < Elm",
    "Chair\r\nBcc: all@fjord.test\r\n\r\nhttps://evil.example/login",
    "visit www.evil.example or mail me@evil.example",
    "\u202etxet\u202c \0 \x1b[31m",
    "😀" * 4000,
    "*bold* _it_ ~no~ `code` @here #general",
)
_REFERENCE = re.compile(r"<([^>|]*)(?:\|[^>]*)?>")


def find_slack_refusal(message: Any) -> str | None:
    """Return why Slack would refuse a message (limits of docs.slack.dev/reference/block-kit/blocks), or None."""
    blocks = message.get("blocks", [])
    if not isinstance(message.get("text"), str) or not blocks or len(blocks) > 50:
        return "invalid_blocks"
    for block in blocks:
        match block["type"]:
            case "header":
                texts, limit, kinds = [block["text"]], 150, {"plain_text"}
            case "section":
                texts, limit, kinds = [block["text"]], 3000, {"mrkdwn", "plain_text"}
            case "context":
                texts, limit, kinds = block["elements"], 3000, {"mrkdwn", "plain_text"}
            case _:
                return "invalid_blocks"
        for text in texts:
            if text["type"] not in kinds or not 0 < len(text["text"]) <= limit or len(texts) > 10:
                return "invalid_blocks"
    return None


@dataclass
class SlackServer:
    """Slack-compatible receiver: refuses invalid messages as Slack does."""

    port: int = 0
    messages: list[Any] = field(default_factory=list)
    refusals: list[tuple[int, str, dict[str, str]]] = field(default_factory=list)

    async def receive(self, request: web.Request) -> web.Response:
        body = await request.read()
        if self.refusals:
            status, text, headers = self.refusals.pop(0)
            return web.Response(status=status, text=text, headers=headers)
        message = json.loads(body)
        if request.content_type != "application/json" or (error := find_slack_refusal(message)):
            return web.Response(status=400, text=error)
        self.messages.append(message)
        return web.Response(text="ok")


@asynccontextmanager
async def run_slack_server() -> AsyncIterator[SlackServer]:
    server, application = SlackServer(), web.Application()
    application.router.add_post("/services/{path:.*}", server.receive)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_slack_harness(backend: Backend) -> AsyncIterator[tuple[NotificationHarness, SlackServer]]:
    """Run a Slack-compatible server on a port that the operator permits."""
    async with run_slack_server() as server:
        allowed = frozenset({f"127.0.0.1:{server.port}"})
        sender = HttpSender(allowed_hosts=allowed)
        harness = await create_harness(backend, sender=sender, allowed_hosts=allowed)
        try:
            yield harness, server
        finally:
            await sender.close()


async def test_slack_accepts_the_longest_message_with_hostile_titles(backend: Backend) -> None:
    async with open_slack_harness(backend) as (harness, server):
        rule = await harness.create_rule(f"http://127.0.0.1:{server.port}/services/T/B/x", channel="slack")
        products = []
        for number in range(120):
            title = HOSTILE_TITLES[number % len(HOSTILE_TITLES)].replace("\0", "")
            products += await harness.add_catalogue(title=title, brand=title)
        await harness.append(*(harness.build_change(one, price=(100, 200 + n)) for n, one in enumerate(products)))
        await harness.run()
        [message] = server.messages
        [notification] = await harness.list_notifications(rule)
        assert notification.status == "sent"
        texts = [block["text"]["text"] for block in message["blocks"] if block["type"] == "section"]
        texts += [element["text"] for block in message["blocks"] for element in block.get("elements", ())]
        targets = [target for text in texts for target in _REFERENCE.findall(text)]
        assert len(targets) == 51 and all(target.startswith("https://joinery.test/console/") for target in targets)
        assert "and 70 more" in texts[-1]


@pytest.mark.parametrize(
    ("refusal", "status", "is_enabled"),
    [
        ((404, "no_service", {}), "failed", False),
        ((410, "channel_is_archived", {}), "failed", False),
        ((429, "rate_limited", {"Retry-After": "30"}), "pending", True),
        ((500, "rollup_error", {}), "pending", True),
        ((302, "", {"Location": "http://169.254.169.254/"}), "pending", True),
    ],
)
async def test_answers_of_slack_stop_or_delay(
    backend: Backend, refusal: tuple[int, str, dict[str, str]], status: str, is_enabled: bool
) -> None:
    async with open_slack_harness(backend) as (harness, server):
        rule = await harness.create_rule(f"http://127.0.0.1:{server.port}/services/T/B/x", channel="slack")
        [product] = await harness.add_catalogue()
        server.refusals.append(refusal)
        await harness.change_offer(product, price=(100, 200))
        await harness.run()
        [notification] = await harness.list_notifications(rule)
        assert (notification.status, (await harness.load(rule)).enabled) == (status, is_enabled)
        assert (notification.failure or "").startswith(str(refusal[0]))


async def test_an_address_that_is_not_public_is_not_connected(backend: Backend) -> None:
    """The address is permitted when the rule is created, and no longer when the notification is sent."""
    async with open_slack_harness(backend) as (harness, server):
        await harness.create_rule(f"http://127.0.0.1:{server.port}/services/T/B/x", channel="slack")
        [product] = await harness.add_catalogue()
        strict = HttpSender()
        harness.set_sender(strict)
        await harness.change_offer(product, price=(100, 200))
        await harness.run()
        await strict.close()
        assert server.messages == []


async def test_an_email_arrives_with_the_headers_of_one_click_unsubscription(backend: Backend) -> None:
    harness = await create_harness(backend)
    products = [(await harness.add_catalogue(title=title.replace("\0", "")))[0] for title in HOSTILE_TITLES]
    await harness.create_rule(name="Prices\tin Berlin")
    await harness.append(*(harness.build_change(one, price=(100, 200)) for one in products))
    await harness.run()
    received = RecordingSmtpHandler()
    async with run_smtp_server(received) as port:
        mail = OutgoingMail(backend.outbox, harness.vault, CLOCK, create_mailer(port))
        while not any(one["To"] == harness.user.email for one in received.messages):
            assert await mail.send_due(), "the message is due"
    [message] = [one for one in received.messages if one["To"] == harness.user.email]
    assert message["Subject"] == "7 price changes: Prices in Berlin" and message["Bcc"] is None
    [url] = re.findall(r"<(https://joinery\.test/console/unsubscribe/[\w.-]+)>", message["List-Unsubscribe"])
    assert message["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = message.get_content()
    assert url in text and message.get_content_type() == "text/plain"
    links = re.findall(r"(?:https?://|www\.)\S+|\S+@\S+\.\S+", text.replace("\u200b", " "))
    assert all(link.startswith("https://joinery.test/console") for link in links), links
    assert "\nBcc" not in text and "\x1b" not in text and "\u202e" not in text
    assert max(map(len, text.splitlines())) < 400


async def test_an_email_is_in_the_language_of_the_person(backend: Backend) -> None:
    harness = await create_harness(backend, language="de")
    [product] = await harness.add_catalogue()
    await harness.create_rule()
    await harness.change_offer(product, price=(123400, 99900))
    await harness.run()
    [message] = await harness.list_mail()
    text = harness.mail.decrypt_text(message)
    assert "1.234,00" in text and "-19%" in text
