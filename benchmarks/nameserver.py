"""A name server on a real socket, whose records are given."""

import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import dns.flags
import dns.message
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset


@contextmanager
def nameserver(records: Mapping[tuple[str, str], list[str]]) -> Iterator[int]:
    """Serve until the context ends; answers the port. A record `SERVFAIL` is an answer of that kind, `SILENT` none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=(server, records), daemon=True)
        thread.start()
        yield server.getsockname()[1]


def _serve(server: socket.socket, records: Mapping[tuple[str, str], list[str]]) -> None:
    while True:
        try:
            packet, peer = server.recvfrom(4096)
        except OSError:
            return
        asked = dns.message.from_wire(packet)
        answer = _answer(asked, records)
        if answer is not None:
            server.sendto(answer.to_wire(), peer)


def _answer(asked: dns.message.Message, records: Mapping[tuple[str, str], list[str]]) -> dns.message.Message | None:
    [question] = asked.question
    name, kind = question.name.to_text(omit_final_dot=True).lower(), dns.rdatatype.to_text(question.rdtype)
    answer = dns.message.make_response(asked)
    answer.flags |= dns.flags.RA
    found = records.get((name, kind))
    if found == ["SILENT"]:
        return None
    if found == ["SERVFAIL"]:
        answer.set_rcode(dns.rcode.SERVFAIL)
    elif found:
        answer.answer.append(dns.rrset.from_text(question.name, 60, dns.rdataclass.IN, kind, *found))
    elif not any(name == known for known, _ in records):
        answer.set_rcode(dns.rcode.NXDOMAIN)
    return answer
