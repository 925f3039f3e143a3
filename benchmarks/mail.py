"""Throughput of a mail listener, waiting times of senders, and response times of the API meanwhile (`make bench-mail`).

Each message has a DKIM signature (RSA 2048), a domain with the DMARC policy `reject`, and a unique CSV file. The name server,
the senders, the API and PostgreSQL run on the same machine.
"""

import argparse
import asyncio
import http.client
import smtplib
import threading
import time
from base64 import b64encode
from dataclasses import dataclass, field
from email.message import EmailMessage
from queue import Queue

import dkim
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from adapters.postgres.nodes.pool import Pool
from benchmarks.nameserver import running_name_server
from benchmarks.stack import AUDIT_CONTEXT, Stack, read_cpu_seconds, running_stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.resource import with_changes
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork

SENDER = "feeds@vendor.example"
MAIL_PORT = 18925
_STORED_SQL = """SELECT (SELECT count(*) FROM inbound_messages WHERE status = 'accepted'),
    (SELECT count(*) FROM runs WHERE trigger = 'mail')"""


@dataclass
class SendingResult:
    """Result of sending messages.

    Attributes:
        seconds: Seconds of each message from connecting to the final response.
        refused: Errors of the refused messages.
    """

    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class SignedMessageFactory:
    """Factory of messages that are signed with a new DKIM key of the vendor."""

    def __init__(self, kibibytes: int) -> None:
        private_key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._private = private_key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = private_key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.record = "v=DKIM1; k=rsa; p=" + b64encode(public).decode()
        self._bytes = kibibytes * 1024

    def create_message(self, number: int) -> bytes:
        """Create a signed message of the configured size, different from all others."""
        message = EmailMessage()
        message["From"], message["To"], message["Subject"] = SENDER, "shop@in.joinery.example", f"Inventory {number}"
        message["Message-ID"] = f"<{number}.{time.time_ns()}@vendor.example>"
        message.set_content("Please see the attached inventory.\n")
        rows = [b"SKU,Title,Price,Quantity"]
        while sum(map(len, rows[-1:])) * len(rows) * 4 / 3 < self._bytes:
            rows.append(b"OAK-%07d-%05d,Oak chair in natural finish,120.00,%05d" % (number, len(rows), number % 90000))
        message.add_attachment(b"\r\n".join(rows), maintype="text", subtype="csv", filename="inventory.csv")
        raw = message.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        options = {"canonicalize": (b"relaxed", b"relaxed")}
        return bytes(dkim.sign(raw, b"feeds", b"vendor.example", self._private, **options)) + raw


def _send_messages(queue: "Queue[tuple[float, str, bytes] | None]", result: SendingResult) -> None:
    while (message := queue.get()) is not None:
        due, address, content = message
        time.sleep(max(0.0, due - time.perf_counter()))
        started = time.perf_counter()
        try:
            with smtplib.SMTP("127.0.0.1", MAIL_PORT, local_hostname="mta.vendor.example", timeout=60) as server:
                server.sendmail(SENDER, [address], content)
        except (smtplib.SMTPException, OSError) as error:
            result.refused.append(str(error))
        result.seconds.append(time.perf_counter() - started)


class SourceLister:
    """API client that lists sources about twenty times a second."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}"}

    def measure_response_times(self, seconds: float) -> list[float]:
        """Return the seconds of each response."""
        response_times: list[float] = []
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            started = time.perf_counter()
            connection.request("GET", "/v1/sources?limit=20", headers=self._headers)
            response = connection.getresponse()
            response.read()
            assert response.status == 200, response.status
            response_times.append(time.perf_counter() - started)
            time.sleep(0.05)
        connection.close()
        return response_times


def _print_percentiles(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    percentiles = " ".join(
        f"p{percentage:g} {ordered[min(len(ordered) - 1, int(len(ordered) * percentage / 100))] * 1000:.0f} ms"
        for percentage in (50, 95, 99)
    )
    print(f"{name:34} {len(ordered):6} requests  {percentiles}  max {ordered[-1] * 1000:.0f} ms")


async def _wait_for_port(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise SystemExit(f"no process listens on port {port}")


async def _create_mail_sources(stack: Stack, organisation: Organisation, count: int) -> list[str]:
    addresses = []
    for number in range(count):
        source = await stack.create_source(organisation, kind="mail", inbound={"senders": ["vendor.example"]})
        address = f"{number:020d}@in.joinery.example"
        async with stack.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
            await tx[SourceStore].save(with_changes(source, tx.now, inbound_address=address))
        addresses.append(address)
    return addresses


async def _measure(
    stack: Stack, options: argparse.Namespace, message_factory: SignedMessageFactory, resolver_port: int
) -> None:
    organisation = await stack.create_organisation()
    addresses = await _create_mail_sources(stack, organisation, options.sources)
    async with stack.dependencies[UnitOfWork].begin(Tenant(organisation.id, True), AUDIT_CONTEXT) as tx:
        key = (await stack.dependencies[AccessService].create_key(tx, KeyRequest("bench")))[1]
    environment = {
        "JOINERY_MAIL_PORT": str(MAIL_PORT), "JOINERY_MAIL_RESOLVER": f"127.0.0.1:{resolver_port}",
        "JOINERY_MAIL_EACH_MINUTE": "100000", "JOINERY_MAIL_CONNECTIONS_EACH": "64",
    }  # fmt: skip
    mail, api = stack.start_process("mail", environment), stack.start_process("api")
    try:
        await _wait_for_port(MAIL_PORT)
        await _wait_for_port(stack.settings.port)
        lister = SourceLister(stack.settings.port, key)
        await asyncio.to_thread(lister.measure_response_times, 1)
        _print_percentiles("API response, without mail", await asyncio.to_thread(lister.measure_response_times, 5))
        messages = [message_factory.create_message(number) for number in range(options.rate * options.seconds)]
        print(f"messages of {len(messages[0]) / 1024:.0f} KiB, {options.rate} a second for {options.seconds} s")
        cpu_before = read_cpu_seconds(mail.pid)
        during, sent, elapsed = await _send_at_rate(options, addresses, messages, lister)
        _print_percentiles("API response, with mail", during)
        _print_percentiles("mail, connection to response", sent.seconds)
        cpu_used = read_cpu_seconds(mail.pid) - cpu_before
        print(f"accepted {len(messages) - len(sent.refused)} in {elapsed:.1f} s: {len(messages) / elapsed:.1f} a second, "
              f"{cpu_used / len(messages) * 1000:.1f} ms CPU per message; refused {len(sent.refused)} {sent.refused[:1]}")  # fmt: skip
        await _measure_maximum_rate(options, addresses, message_factory, mail.pid)
        async with stack.dependencies[Pool].connect_as_owner() as pooled:
            stored = await (await pooled.driver_connection.execute(_STORED_SQL)).fetchone()
        print(f"stored {stored[0]} accepted messages, {stored[1]} runs" if stored else "stored nothing")
    finally:
        for process in (mail, api):
            process.terminate()
            process.wait()


async def _send_at_rate(
    options: argparse.Namespace, addresses: list[str], messages: list[bytes], lister: SourceLister
) -> tuple[list[float], SendingResult, float]:
    queue: Queue[tuple[float, str, bytes] | None] = Queue()
    started = time.perf_counter() + 0.2
    for number, content in enumerate(messages):
        queue.put((started + number / options.rate, addresses[number % len(addresses)], content))
    result, during = (
        SendingResult(),
        asyncio.create_task(asyncio.to_thread(lister.measure_response_times, options.seconds)),
    )
    await asyncio.to_thread(_run_senders, queue, result, options.senders)
    elapsed = time.perf_counter() - started
    return await during, result, elapsed


async def _measure_maximum_rate(
    options: argparse.Namespace, addresses: list[str], message_factory: SignedMessageFactory, pid: int
) -> None:
    messages = [message_factory.create_message(1_000_000 + number) for number in range(options.rate * 10)]
    queue: Queue[tuple[float, str, bytes] | None] = Queue()
    for number, content in enumerate(messages):
        queue.put((0.0, addresses[number % len(addresses)], content))
    result, started, cpu_before = SendingResult(), time.perf_counter(), read_cpu_seconds(pid)
    await asyncio.to_thread(_run_senders, queue, result, options.senders)
    elapsed = time.perf_counter() - started
    print(f"maximum rate: {len(messages) / elapsed:.1f} a second with {options.senders} senders, "
          f"{(read_cpu_seconds(pid) - cpu_before) / elapsed * 100:.0f}% of a core; refused {len(result.refused)} {result.refused[:1]}")  # fmt: skip


def _run_senders(queue: "Queue[tuple[float, str, bytes] | None]", result: SendingResult, senders: int) -> None:
    threads = [threading.Thread(target=_send_messages, args=(queue, result)) for _ in range(senders)]
    for thread in threads:
        queue.put(None)
        thread.start()
    for thread in threads:
        thread.join()


async def main() -> None:
    """Run all measurements."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=20, help="messages a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--kib", type=int, default=100, help="size of a message in KiB")
    parser.add_argument("--senders", type=int, default=16, help="concurrent connections")
    parser.add_argument("--sources", type=int, default=20)
    options = parser.parse_args()
    message_factory = SignedMessageFactory(options.kib)
    dkim_record = " ".join(
        f'"{message_factory.record[start : start + 200]}"' for start in range(0, len(message_factory.record), 200)
    )
    records = {
        ("_dmarc.vendor.example", "TXT"): ['"v=DMARC1; p=reject"'],
        ("vendor.example", "TXT"): ['"v=spf1 -all"'],
        ("feeds._domainkey.vendor.example", "TXT"): [dkim_record],
    }
    with running_name_server(records) as resolver_port:
        async with running_stack() as stack:
            await _measure(stack, options, message_factory, resolver_port)


if __name__ == "__main__":
    asyncio.run(main())
