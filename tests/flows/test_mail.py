"""The mail listener as a separate process: from a message to products, and crashes between the steps."""

import signal
import smtplib
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from benchmarks.nameserver import running_name_server
from tests.flows.feeds import build_catalogue
from tests.flows.service_processes import ServiceProcesses, Tenancy, free_port, wait_until
from tests.mail.smtp import SENDER, DkimKey, SmtpConnection, build_message, serialise_message

KEY = DkimKey.generate()
RECORDS = {
    ("_dmarc.vendor.example", "TXT"): ['"v=DMARC1; p=reject"'],
    ("vendor.example", "TXT"): ['"v=spf1 -all"'],
    ("feeds._domainkey.vendor.example", "TXT"): [
        " ".join(f'"{KEY.record.decode()[at : at + 200]}"' for at in range(0, len(KEY.record), 200))
    ],
}
TRAPPED = """
import os, signal, sys
from domain.mail.usecases.intake import MessageIntake
from domain.mail.usecases.attachments import AttachmentStaging
from entrypoints.cli.main import main

def trap(kind, name):
    real = getattr(kind, name)
    async def dying(*given):
        await real(*given)
        os.kill(os.getpid(), signal.SIGKILL)
    setattr(kind, name, dying)

trap(*{"staged": (AttachmentStaging, "store_files"), "committed": (MessageIntake, "_commit_acceptance")}[sys.argv[1]])
sys.exit(main(["mail"]))
"""
PROGRAM = "import sys; from entrypoints.cli.main import main; sys.exit(main(['mail']))"


@contextmanager
def run_listener(services: ServiceProcesses, resolver: int, place: str | None = None) -> Iterator[int]:
    """Run a listener, which crashes at `place` if given; return its port."""
    port = free_port()
    argv = ("-c", TRAPPED, place) if place else ("-c", PROGRAM)
    settings = {"JOINERY_MAIL_PORT": str(port), "JOINERY_MAIL_RESOLVER": f"127.0.0.1:{resolver}"}
    process = services.start("mail", argv, **settings)

    def answers() -> bool:
        assert process.poll() is None, services.log_path("mail").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(answers, "the listener accepts connections")
    try:
        yield port
        if place:
            assert process.wait(20) == -signal.SIGKILL
    finally:
        services.stop(process)


def _create_source(tenancy: Tenancy) -> tuple[str, str]:
    source = tenancy.api.create_source("mail", config={"currency": "usd", "inbound": {"senders": ["vendor.example"]}})
    return source, tenancy.api.get(f"/v1/sources/{source}")["inbound_address"]


def _send_message(port: int, address: str, raw: bytes) -> tuple[int, bytes]:
    with smtplib.SMTP("127.0.0.1", port, timeout=30) as server:
        server.ehlo("mta.vendor.example")
        server.mail(SENDER)
        server.rcpt(address)
        return server.data(raw)


def test_a_signed_message_becomes_products(services: ServiceProcesses, fjord: Tenancy) -> None:
    source, address = _create_source(fjord)
    with running_name_server(RECORDS) as names, run_listener(services, names) as port:
        raw = serialise_message(build_message(("prices.csv", build_catalogue(12))))
        assert _send_message(port, address, raw)[0] == 550
        assert _send_message(port, address, KEY.sign(raw))[0] == 250
        accepted, refused = fjord.api.list_all(f"/v1/sources/{source}/inbound-messages")
        assert (refused["reason"], accepted["authentication"]["dmarc"]) == ("dmarc_rejected", "pass")
        run = fjord.api.wait_for_end(accepted["attachments"][0]["run"])
        assert (run["status"], run["trigger"]) == ("succeeded", "mail")
        assert len(fjord.api.list_all("/v1/products", source=source)) == 12


@pytest.mark.parametrize("place", ["staged", "committed"])
def test_a_message_without_response_is_sent_again_and_imported_once(
    services: ServiceProcesses, fjord: Tenancy, place: str
) -> None:
    """The sender repeats a message without response, which is imported once."""
    source, address = _create_source(fjord)
    raw = KEY.sign(
        serialise_message(build_message(("prices.csv", build_catalogue(3)), message_id=f"<{place}@vendor.example>"))
    )
    with running_name_server(RECORDS) as names:
        with run_listener(services, names, place) as port:
            with pytest.raises((smtplib.SMTPServerDisconnected, ConnectionError)):
                _send_message(port, address, raw)
        runs = fjord.api.list_all(f"/v1/sources/{source}/runs")
        assert len(runs) == len(fjord.api.list_all(f"/v1/sources/{source}/inbound-messages")) == (place == "committed")
        with run_listener(services, names) as port:
            code, text = _send_message(port, address, raw)
    assert code == 250 and (b"Duplicate message" in text) == (place == "committed")
    [run] = fjord.api.list_all(f"/v1/sources/{source}/runs")
    assert fjord.api.wait_for_end(run["id"])["status"] == "succeeded"
    assert len(fjord.api.list_all("/v1/products", source=source)) == 3


def test_a_stop_waits_for_the_current_message(services: ServiceProcesses, fjord: Tenancy) -> None:
    """The response waits some seconds for a name server that does not respond."""
    source, address = _create_source(fjord)
    slow = RECORDS | {("_dmarc.vendor.example", "TXT"): ["SILENT"]}
    with running_name_server(slow) as names, run_listener(services, names) as port:
        dialogue = SmtpConnection(port).begin_message(address)
        dialogue.send(KEY.sign(serialise_message(build_message(("prices.csv", build_catalogue(2))))) + b".\r\n")
        time.sleep(0.5)
        services.processes[-1].send_signal(signal.SIGTERM)
        assert dialogue.read_reply().startswith("250")
        assert services.processes[-1].wait(15) == 0
    assert len(fjord.api.list_all(f"/v1/sources/{source}/runs")) == 1
