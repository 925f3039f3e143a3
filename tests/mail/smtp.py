"""Sender of mail: messages like those of vendors' systems, signed and sent over a real socket."""

import asyncio
import smtplib
import socket
from base64 import b64encode
from dataclasses import dataclass
from datetime import UTC, datetime
from email.message import EmailMessage
from email.utils import format_datetime
from typing import Any

import dkim
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

SENDER = "feeds@vendor.example"
CSV = b"SKU,Title,Price,Quantity\r\nOAK-1,Oak chair,120.00,4\r\nOAK-2,Oak table,480.00,0\r\n"


def build_message(*files: tuple[str, bytes], sender: str = SENDER, **headers: str) -> EmailMessage:
    """Build a daily mail with attachments of a generic content type."""
    made = EmailMessage()
    made["From"] = f"Vendor Feeds <{sender}>"
    made["To"] = "shop@in.joinery.example"
    made["Subject"] = headers.pop("subject", "Daily inventory")
    made["Date"] = format_datetime(datetime.now(UTC))
    made["Message-ID"] = headers.pop("message_id", f"<{len(files)}.{id(made)}@vendor.example>")
    for name, value in headers.items():
        made[name.replace("_", "-")] = value
    made.set_content("Please see the attached inventory.\n")
    for filename, content in files:
        made.add_attachment(content, maintype="application", subtype="octet-stream", filename=filename)
    return made


def serialise_message(made: EmailMessage) -> bytes:
    """Serialise the message with CRLF line ends."""
    return made.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


@dataclass(frozen=True)
class DkimKey:
    """DKIM key of a domain, with its DNS record."""

    private: bytes
    record: bytes

    @classmethod
    def generate(cls) -> "DkimKey":
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        private = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = made.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return cls(private, b"v=DKIM1; k=rsa; p=" + b64encode(public))

    def sign(self, raw: bytes, domain: str = "vendor.example", **options: Any) -> bytes:
        """Return the message with a DKIM signature of the domain."""
        return bytes(dkim.sign(raw, b"feeds", domain.encode(), self.private, **options)) + raw


class SmtpConnection:
    """SMTP connection under the test's control."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._file = self._socket.makefile("rb")

    def read_reply(self) -> str:
        """Read a reply; return its last line."""
        while (line := self._file.readline().decode()) and line[3:4] == "-":
            pass
        return line.strip()

    def exchange(self, text: str | bytes) -> str:
        """Send the text unchanged; return the reply."""
        self.send(text)
        return self.read_reply()

    def send(self, text: str | bytes) -> None:
        """Send the text unchanged."""
        self._socket.sendall(text.encode() if isinstance(text, str) else text)

    def close(self) -> None:
        """Close the connection without QUIT."""
        self._file.close()
        self._socket.close()

    def begin_message(self, address: str, sender: str = SENDER) -> "SmtpConnection":
        """Send all commands up to the start of the message."""
        assert self.read_reply().startswith("220")
        for line in ("EHLO mta.vendor.example", f"MAIL FROM:<{sender}>", f"RCPT TO:<{address}>", "DATA"):
            reply = self.exchange(line + "\r\n")
            assert reply[:3] in ("250", "354"), (line, reply)
        return self


async def send_message(port: int, address: str, raw: bytes | EmailMessage, sender: str = SENDER, **options: Any) -> str:
    """Send a message as a mail server does; return the reply to it or to the refused command."""
    return await asyncio.to_thread(_send_message, port, address, raw, sender, options)


def _send_message(port: int, address: str, raw: bytes | EmailMessage, sender: str, options: dict[str, Any]) -> str:
    content = serialise_message(raw) if isinstance(raw, EmailMessage) else raw
    with smtplib.SMTP("127.0.0.1", port, local_hostname="mta.vendor.example", timeout=30) as server:
        server.ehlo()
        if forwarded := options.get("xforward"):
            code, text = server.docmd(f"XFORWARD {forwarded}")
            assert code == 250, text
        for command, argument in (
            (server.mail, (sender, ["BODY=8BITMIME", f"size={len(content)}"])),
            (server.rcpt, (address,)),
        ):
            code, text = command(*argument)
            if code != 250:
                return f"{code} {text.decode()}"
        code, text = server.data(content)
        return f"{code} {text.decode()}"
