"""Outgoing mail by a real SMTP server."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from email import message_from_bytes, policy
from email.message import EmailMessage
from typing import Any

import pytest
from aiosmtpd.smtp import SMTP, AuthResult

from adapters.smtp import MailServer, SmtpMailer
from domain.outbox.ports import MailMessage, MailRefused, MailUnsent
from entrypoints.errors import SettingsError
from entrypoints.settings import read_settings
from tests.support.memory.clock import SettableClock

pytestmark = pytest.mark.asyncio
MESSAGE = MailMessage(
    "mail_1", "ingrid@fjord.example", "Willkommen – Möbel", "Grüße,\nhttps://joinery.test/console/link/svc_link_x"
)


@dataclass
class RecordingSmtpHandler:
    """Handler for aiosmtpd that records messages, or replies with `reply`."""

    reply: str = ""
    messages: list[EmailMessage] = field(default_factory=list)
    contents: list[bytes] = field(default_factory=list)
    """The messages as they were received."""
    envelopes: list[Any] = field(default_factory=list)

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if self.reply:
            return self.reply
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        self.envelopes.append((envelope.mail_from, envelope.rcpt_tos, session.auth_data))
        self.contents.append(envelope.content)
        self.messages.append(message_from_bytes(envelope.content, policy=policy.default))  # type: ignore[arg-type]
        return "250 taken"


def _authenticate(server: Any, session: Any, envelope: Any, mechanism: str, data: Any) -> AuthResult:
    good = (data.login, data.password) == (b"joinery", b"s:cret")
    return AuthResult(success=good, handled=False, auth_data=data.login if good else None)


@asynccontextmanager
async def run_smtp_server(taken: RecordingSmtpHandler) -> AsyncIterator[int]:
    """Run an SMTP server; return its port."""

    def protocol() -> SMTP:
        return SMTP(
            taken, authenticator=_authenticate, auth_require_tls=False, enable_SMTPUTF8=True, hostname="mx.test"
        )

    server = await asyncio.get_running_loop().create_server(protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


def create_mailer(port: int, user: str | None = None, password: str | None = None, **changes: Any) -> SmtpMailer:
    clock = SettableClock()
    clock.set(datetime(2026, 11, 20, 13, 8, tzinfo=UTC))
    options: dict[str, Any] = {
        "sender": "joinery@shop.example",
        "uses_implicit_tls": False,
        "requires_start_tls": False,
    }
    return SmtpMailer(MailServer("127.0.0.1", port, user=user, password=password, **options | changes), clock)


async def test_a_message_arrives_as_it_was_written() -> None:
    taken = RecordingSmtpHandler()
    async with run_smtp_server(taken) as port:
        await create_mailer(port, "joinery", "s:cret").send(MESSAGE)
    (message,), (envelope,) = taken.messages, taken.envelopes
    assert envelope == ("joinery@shop.example", ["ingrid@fjord.example"], b"joinery")
    assert message["Subject"] == MESSAGE.subject and message.get_content().splitlines() == MESSAGE.text.splitlines()
    assert message["Message-ID"] == "<mail_1@shop.example>" and message["Auto-Submitted"] == "auto-generated"


async def test_the_headers_of_one_click_unsubscription_are_not_folded_or_encoded() -> None:
    """Mail programs read the URL from one line (RFC 8058); folding would encode one that is longer than a line."""
    url = f"https://joinery.test/console/unsubscribe/{'WyJvcmdf' * 20}.{'a' * 43}"
    taken = RecordingSmtpHandler()
    async with run_smtp_server(taken) as port:
        await create_mailer(port).send(replace(MESSAGE, unsubscribe_url=url))
        await create_mailer(port).send(MESSAGE)
    first, second = taken.contents
    assert f"\r\nList-Unsubscribe: <{url}>\r\n".encode() in first
    assert b"\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n" in first
    assert b"List-Unsubscribe" not in second
    assert taken.messages[0]["Subject"] == MESSAGE.subject, "all other headers are encoded as usual"


async def test_refusals_are_temporary_or_permanent() -> None:
    taken = RecordingSmtpHandler(reply="451 later")
    async with run_smtp_server(taken) as port:
        with pytest.raises(MailUnsent, match="451") as later:
            await create_mailer(port).send(MESSAGE)
        taken.reply = "550 nobody"
        with pytest.raises(MailRefused, match="550"):
            await create_mailer(port).send(MESSAGE)
        with pytest.raises(MailUnsent) as denied:
            await create_mailer(port, "joinery", "wrong").send(MESSAGE)
        with pytest.raises(MailUnsent) as open_line:
            await create_mailer(port, requires_start_tls=True).send(MESSAGE)
    with pytest.raises(MailUnsent) as gone:
        await create_mailer(port).send(MESSAGE)
    for error in (later, denied, open_line, gone):
        assert not isinstance(error.value, MailRefused) and "wrong" not in str(error.value)
    assert taken.messages == [], "nothing goes over an open line where STARTTLS is missing"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("smtp://joinery:s%3Acret@mx.example?from=a@b.example", ("mx.example", 587, "a@b.example", False, True, "joinery", "s:cret")),
        ("smtps://mx.example", ("mx.example", 465, "joinery@api.example", True, False, None, None)),
        ("smtp://127.0.0.1:2525", ("127.0.0.1", 2525, "joinery@api.example", False, False, None, None)),
    ],
)  # fmt: skip
async def test_the_setting_is_parsed(url: str, expected: tuple[Any, ...]) -> None:
    found = read_settings(_build_env(url)).smtp
    assert found is not None
    assert (
        found.host,
        found.port,
        found.sender,
        found.uses_implicit_tls,
        found.requires_start_tls,
        found.user,
        found.password,
    ) == expected
    assert "cret" not in repr(found)


@pytest.mark.parametrize(
    "url", ["http://a", "smtp://", "smtp://a?b=c", "smtp://a:x", "smtp://u:geheim@a?from=x", "smtp://a/b"]
)
async def test_an_invalid_setting_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read_settings(_build_env(url))
    assert "geheim" not in str(refused.value)


def _build_env(url: str) -> dict[str, str]:
    settings = {"JOINERY_DATABASE_URL": "postgresql:///x", "JOINERY_SECRET": "s" * 32, "JOINERY_SMTP_URL": url}
    return settings | {"JOINERY_BASE_URL": "https://api.example"}
