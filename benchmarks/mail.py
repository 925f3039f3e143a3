"""How many messages a second one mail listener takes, how long their senders wait, and what the API notices of it.

Each message is signed (DKIM, RSA 2048), its domain asks to refuse what fails (DMARC), and it brings one CSV file of its own. The name
server, the senders, the API and PostgreSQL run on the same machine.
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
from benchmarks.nameserver import nameserver
from benchmarks.stack import CALL, Stack, cpu_seconds, stack
from domain.access.usecases import AccessService, KeyRequest
from domain.kernel.resource import changed
from domain.kernel.tenancy import Tenant
from domain.orgs.model import Organisation
from domain.sources.ports import SourceStore
from ports.unit_of_work import UnitOfWork

SENDER = "feeds@vendor.example"
MAIL_PORT = 18925
_NOTED = """SELECT (SELECT count(*) FROM inbound_messages WHERE status = 'accepted'),
    (SELECT count(*) FROM runs WHERE trigger = 'mail')"""


@dataclass
class Sent:
    """How long each sender waited, from connecting to the answer, and what was answered."""

    seconds: list[float] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)


class Signer:
    """A key of the vendor's, and messages under it."""

    def __init__(self, kibibytes: int) -> None:
        made = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        self._private = made.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
        public = made.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        self.record = "v=DKIM1; k=rsa; p=" + b64encode(public).decode()
        self._bytes = kibibytes * 1024

    def message(self, number: int) -> bytes:
        """One of that size, unlike every other."""
        made = EmailMessage()
        made["From"], made["To"], made["Subject"] = SENDER, "shop@in.joinery.example", f"Inventory {number}"
        made["Message-ID"] = f"<{number}.{time.time_ns()}@vendor.example>"
        made.set_content("Please see the attached inventory.\n")
        rows = [b"SKU,Title,Price,Quantity"]
        while sum(map(len, rows[-1:])) * len(rows) * 4 / 3 < self._bytes:
            rows.append(b"OAK-%07d-%05d,Oak chair in natural finish,120.00,%05d" % (number, len(rows), number % 90000))
        made.add_attachment(b"\r\n".join(rows), maintype="text", subtype="csv", filename="inventory.csv")
        raw = made.as_bytes().replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
        options = {"canonicalize": (b"relaxed", b"relaxed")}
        return bytes(dkim.sign(raw, b"feeds", b"vendor.example", self._private, **options)) + raw


def _send(work: "Queue[tuple[float, str, bytes] | None]", sent: Sent) -> None:
    while (task := work.get()) is not None:
        due, address, raw = task
        time.sleep(max(0.0, due - time.perf_counter()))
        start = time.perf_counter()
        try:
            with smtplib.SMTP("127.0.0.1", MAIL_PORT, local_hostname="mta.vendor.example", timeout=60) as server:
                server.sendmail(SENDER, [address], raw)
        except (smtplib.SMTPException, OSError) as error:
            sent.refused.append(str(error))
        sent.seconds.append(time.perf_counter() - start)


class Asking:
    """A client that lists sources again and again, some twenty times a second."""

    def __init__(self, port: int, key: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Bearer {key}"}

    def run(self, seconds: float) -> list[float]:
        """How long each answer took."""
        took: list[float] = []
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=30)
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            start = time.perf_counter()
            connection.request("GET", "/v1/sources?limit=20", headers=self._headers)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, answer.status
            took.append(time.perf_counter() - start)
            time.sleep(0.05)
        connection.close()
        return took


def _told(name: str, seconds: list[float]) -> None:
    ordered = sorted(seconds)
    marks = " ".join(
        f"p{share:g} {ordered[min(len(ordered) - 1, int(len(ordered) * share / 100))] * 1000:.0f} ms"
        for share in (50, 95, 99)
    )
    print(f"{name:34} {len(ordered):6} times  {marks}  longest {ordered[-1] * 1000:.0f} ms")


async def _until_listening(port: int) -> None:
    for _ in range(600):
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.05)
        else:
            writer.close()
            return
    raise SystemExit(f"nobody listens on {port}")


async def _addresses(parts: Stack, organisation: Organisation, count: int) -> list[str]:
    found = []
    for number in range(count):
        source = await parts.source(organisation, kind="mail", inbound={"senders": ["vendor.example"]})
        address = f"{number:020d}@in.joinery.example"
        async with parts.container[UnitOfWork].begin(Tenant(organisation.id, True), CALL) as tx:
            await tx[SourceStore].save(changed(source, tx.now, inbound_address=address))
        found.append(address)
    return found


async def _measure(parts: Stack, options: argparse.Namespace, signer: Signer, resolver: int) -> None:
    organisation = await parts.organisation()
    addresses = await _addresses(parts, organisation, options.sources)
    async with parts.container[UnitOfWork].begin(Tenant(organisation.id, True), CALL) as tx:
        key = (await parts.container[AccessService].issue_key(tx, KeyRequest("bench")))[1]
    extra = {
        "JOINERY_MAIL_PORT": str(MAIL_PORT), "JOINERY_MAIL_RESOLVER": f"127.0.0.1:{resolver}",
        "JOINERY_MAIL_EACH_MINUTE": "100000", "JOINERY_MAIL_CONNECTIONS_EACH": "64",
    }  # fmt: skip
    mail, api = parts.process("mail", extra), parts.process("api")
    try:
        await _until_listening(MAIL_PORT)
        await _until_listening(parts.settings.port)
        asking = Asking(parts.settings.port, key)
        await asyncio.to_thread(asking.run, 1)
        _told("API, nothing else", await asyncio.to_thread(asking.run, 5))
        made = [signer.message(number) for number in range(options.rate * options.seconds)]
        print(f"messages of {len(made[0]) / 1024:.0f} KiB, {options.rate} a second for {options.seconds} s")
        before = cpu_seconds(mail.pid)
        during, sent, took = await _at_pace(options, addresses, made, asking)
        _told("API, while mail comes", during)
        _told("mail, from connecting to the answer", sent.seconds)
        used = cpu_seconds(mail.pid) - before
        print(f"taken {len(made) - len(sent.refused)} in {took:.1f} s: {len(made) / took:.1f} a second, "
              f"{used / len(made) * 1000:.1f} ms of CPU each; refused {len(sent.refused)} {sent.refused[:1]}")  # fmt: skip
        await _flat_out(options, addresses, signer, mail.pid)
        async with parts.container[Pool].owner() as link:
            noted = await (await link.connection.execute(_NOTED)).fetchone()
        print(f"noted {noted[0]} accepted messages, {noted[1]} runs" if noted else "noted nothing")
    finally:
        for process in (mail, api):
            process.terminate()
            process.wait()


async def _at_pace(
    options: argparse.Namespace, addresses: list[str], made: list[bytes], asking: Asking
) -> tuple[list[float], Sent, float]:
    work: Queue[tuple[float, str, bytes] | None] = Queue()
    start = time.perf_counter() + 0.2
    for number, raw in enumerate(made):
        work.put((start + number / options.rate, addresses[number % len(addresses)], raw))
    sent, during = Sent(), asyncio.create_task(asyncio.to_thread(asking.run, options.seconds))
    await asyncio.to_thread(_crowd, work, sent, options.senders)
    took = time.perf_counter() - start
    return await during, sent, took


async def _flat_out(options: argparse.Namespace, addresses: list[str], signer: Signer, pid: int) -> None:
    made = [signer.message(1_000_000 + number) for number in range(options.rate * 10)]
    work: Queue[tuple[float, str, bytes] | None] = Queue()
    for number, raw in enumerate(made):
        work.put((0.0, addresses[number % len(addresses)], raw))
    sent, start, before = Sent(), time.perf_counter(), cpu_seconds(pid)
    await asyncio.to_thread(_crowd, work, sent, options.senders)
    took = time.perf_counter() - start
    print(f"as fast as it goes: {len(made) / took:.1f} a second with {options.senders} senders, "
          f"{(cpu_seconds(pid) - before) / took * 100:.0f}% of a core; refused {len(sent.refused)} {sent.refused[:1]}")  # fmt: skip


def _crowd(work: "Queue[tuple[float, str, bytes] | None]", sent: Sent, senders: int) -> None:
    threads = [threading.Thread(target=_send, args=(work, sent)) for _ in range(senders)]
    for thread in threads:
        work.put(None)
        thread.start()
    for thread in threads:
        thread.join()


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=20, help="messages a second")
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--kib", type=int, default=100, help="KiB of a message")
    parser.add_argument("--senders", type=int, default=16, help="connections at a time")
    parser.add_argument("--sources", type=int, default=20)
    options = parser.parse_args()
    signer = Signer(options.kib)
    quoted = " ".join(f'"{signer.record[at : at + 200]}"' for at in range(0, len(signer.record), 200))
    records = {
        ("_dmarc.vendor.example", "TXT"): ['"v=DMARC1; p=reject"'],
        ("vendor.example", "TXT"): ['"v=spf1 -all"'],
        ("feeds._domainkey.vendor.example", "TXT"): [quoted],
    }
    with nameserver(records) as resolver:
        async with stack() as parts:
            await _measure(parts, options, signer, resolver)


if __name__ == "__main__":
    asyncio.run(main())
