"""Name server on a local socket with configured records."""

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
def running_name_server(records: Mapping[tuple[str, str], list[str]]) -> Iterator[int]:
    """Run a name server; yield its port.

    Args:
        records: Records by name and type. `["SERVFAIL"]` causes that error, `["SILENT"]` no response.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=_serve, args=(server, records), daemon=True)
        thread.start()
        yield server.getsockname()[1]


def _serve(server: socket.socket, records: Mapping[tuple[str, str], list[str]]) -> None:
    while True:
        try:
            packet, client = server.recvfrom(4096)
        except OSError:
            return
        query = dns.message.from_wire(packet)
        response = _build_response(query, records)
        if response is not None:
            server.sendto(response.to_wire(), client)


def _build_response(
    query: dns.message.Message, records: Mapping[tuple[str, str], list[str]]
) -> dns.message.Message | None:
    [question] = query.question
    name, record_type = question.name.to_text(omit_final_dot=True).lower(), dns.rdatatype.to_text(question.rdtype)
    response = dns.message.make_response(query)
    response.flags |= dns.flags.RA
    values = records.get((name, record_type))
    if values == ["SILENT"]:
        return None
    if values == ["SERVFAIL"]:
        response.set_rcode(dns.rcode.SERVFAIL)
    elif values:
        response.answer.append(dns.rrset.from_text(question.name, 60, dns.rdataclass.IN, record_type, *values))
    elif not any(name == known_name for known_name, _ in records):
        response.set_rcode(dns.rcode.NXDOMAIN)
    return response
