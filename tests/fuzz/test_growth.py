"""Cost of parsers of untrusted bytes (docs/threat-model.md#parsers): at most six times the cost for four times the input."""

import gc
import json
import random
import re
import time
import tracemalloc
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest
from yarl import URL

from adapters.http.resolver import AddressVetting
from adapters.markup import documents, page
from adapters.mime import reader
from adapters.oidc.discovery import decode_json_object
from adapters.oidc.keys import import_public_keys
from adapters.senders.checks import verify_sender
from adapters.webauthn import WebauthnCeremonies
from connectors.sdk.readers import json_ld
from domain.brand.domains import normalise_domain
from domain.kernel import addresses, charsets, names
from domain.kernel.suggestions import WordSuggester
from domain.mail.model import Envelope
from domain.people.factors import Passkey
from domain.people.passwords import normalise_password
from domain.probes import files
from domain.probes.facts import ProbeResponse
from domain.sources.senders import normalise_address
from domain.sso.ports import DnsRecord, RecordKind
from domain.webhooks.model import parse_retry_after
from entrypoints import oauth_endpoints as endpoints
from entrypoints.console.products import mark_differences
from entrypoints.console.request import parse_cookies, parse_query
from entrypoints.http import body as json_body
from entrypoints.http import fast_path
from entrypoints.http import representations as content_coding
from entrypoints.http.addresses import TrustedProxies
from entrypoints.http.checks import parse_if_match
from tests.fuzz.exploration import Effort, parametrize_effort

FLOOR = 0.005
"""Seconds of processor time that are too short to measure."""
MEMORY_FLOOR = 4 << 20
GROWTH, MAX_RATIO = 4, 6.0
KIB = 1024
ORIGIN = "https://joinery.example"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
CEREMONIES = WebauthnCeremonies(ORIGIN)
PROXIES = TrustedProxies(["192.0.2.0/24"])
PASSKEY = Passkey("pky_1", "usr_1", b"x", b"\xa0", 0, "Key", False, NOW)
UNITS = (
    b"a", b"1", b" ", b"\t", b"\n", b"\r\n ", b"\0", b"\xff", b"\xc3\xa9", b"\xcc\x81", b"a\xcc\x81\xcc\xa3", b"\\", b'"', b'\\"', b"'", b";", b"=", b",",
    b".", b"-", b"_", b"%", b"%41", b"%C3", b"&a=b", b"a;", b"a=b;", b"[", b"[]", b"]", b"{", b'{"a":', b'"a",', b"[1],", b"1e9,", b"(", b"()", b"(a)", b"<", b"<a>",
    b"</a>", b"<b><i>", b"<!--", b"<![CDATA[", b"<a b='c' ", b"&amp;", b"&#1;", b"charset=", b"A: b\r\n", b"Allow: /*a\n", b"Disallow: *$*\n", b"User-agent: *\n",
    b"=?utf-8?q?a?= ", b"=?punycode?q?a-b?= ", b"--x\n\n", b"l = ", b"a b ", b"<url><loc>http://a.example/p/1</loc></url>", b"\x81", b"\xd8\x23", b"\xa1\x61a",
    b"\xc2\x41\x01", b"\x9f", b"include:a.example ", b"exists:%{ir}.a ", b"ip4:1.2.3.4 ",
)  # fmt: skip


@dataclass(frozen=True)
class ParserTarget:
    """Parser as the service calls it, with its maximum input and its rows of the table."""

    max_bytes: int
    rows: tuple[str, ...]
    call: Callable[[bytes], object]
    frame: tuple[bytes, bytes] = (b"", b"")
    """Bytes before and after the repeated part."""


def _decode(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def _verify_passkey(data: bytes) -> object:
    encoded = urlsafe_b64encode(data).decode()
    answer = {"clientDataJSON": encoded, "attestationObject": encoded, "authenticatorData": encoded, "signature": ""}
    whole = json.dumps({"id": "AA", "rawId": "AA", "type": "public-key", "response": answer})
    with suppress(Exception):
        CEREMONIES.verify_registration(whole, b"c")
    return CEREMONIES.verify_signature(whole, b"c", PASSKEY)


def _import_keys(data: bytes) -> object:
    number = b64encode(data).decode()[:1366]
    every = [{"kty": "RSA", "kid": str(at), "n": number, "e": "AQAB"} for at in range(min(50, len(data) // 200))]
    with suppress(ValueError):
        import_public_keys({"keys": every})
    return import_public_keys(decode_json_object(data, "keys"))


def _verify_message(data: bytes) -> object:
    """Check the bytes as a message's signature and as DNS records."""

    def look_up(name: str, kind: RecordKind, seconds: float) -> tuple[DnsRecord, ...]:
        return (DnsRecord(b"v=spf1 " + data[:4096]), DnsRecord(b"v=DKIM1; p=" + data[:2048])) if kind == "TXT" else ()

    signature = b"DKIM-Signature: v=1; a=rsa-sha256; d=a.example; s=s; h=from; bh=YQ==; b=" + data[:8192] + b"\r\n"
    raw = signature + b"From: a@a.example\r\nSubject: " + data[8192:60_000] + b"\r\n\r\n" + data
    return verify_sender(look_up, raw, "a@a.example", Envelope("a@a.example", "192.0.2.1", "a.example"))


def _decode_charsets(data: bytes) -> object:
    return [charsets.decode(data, label, len(data)) for label in ("utf-8", "utf-16", "gb18030", "big5", "sjis", "euc-jp", "iso-2022-jp", "euc-kr", "cp1255", "koi8-r", "punycode")]  # fmt: skip


def _parse_mail(data: bytes) -> object:
    head = (
        b"From: a@a.example\r\nSubject: "
        + data[:16_000].replace(b"\r\n", b"")
        + b"\r\nContent-Type: multipart/mixed; boundary=x"
    )
    parts = (
        b"\r\n--x\r\nContent-Disposition: attachment; filename*=punycode''"
        + data[:2000]
        + b"\r\nContent-Type: text/csv; "
        + data[:60_000]
        + b"\r\n\r\n"
    )
    return reader.parse_message(head + b"\r\n\r\n" + parts + data + b"\r\n--x--\r\n")


TARGETS: dict[str, ParserTarget] = {
    "cookies": ParserTarget(8 * KIB, (), lambda data: parse_cookies(_decode(data)), (b'a="', b'"')),
    "query": ParserTarget(8 * KIB, ("urllib.parse",), lambda data: parse_query(_decode(data))),
    "oauth form": ParserTarget(64 * KIB, ("urllib.parse",), lambda data: endpoints.parse_parameters(_decode(data))),
    "host": ParserTarget(64 * KIB, ("werkzeug", "h11", "hypercorn"), fast_path._HOST.fullmatch),
    "json body": ParserTarget(512 * KIB, ("json", "mcp"), lambda data: json_body.decode_body(data, 400_000)),
    "json text": ParserTarget(512 * KIB, ("json",), lambda data: json_body.decode_body(data, 400_000), (b'{"a":"', b'"}')),
    "passkey": ParserTarget(8 * KIB, ("cbor2", "webauthn"), _verify_passkey),
    "passkey key": ParserTarget(8 * KIB, ("cbor2", "webauthn"), _verify_passkey, (bytes(32) + b"\x45" + bytes(22), b"")),
    "provider's keys": ParserTarget(64 * KIB, ("joserfc", "authlib"), _import_keys),
    "page": ParserTarget(1024 * KIB, ("lxml",), lambda data: page.parse_page(data, ORIGIN, "text/html"), (b"<html><body>", b"")),
    "page of another encoding": ParserTarget(1024 * KIB, ("lxml", "bytes.decode (named)"), lambda data: page.parse_page(data, ORIGIN, "text/html; charset=punycode")),
    "encodings": ParserTarget(256 * KIB, ("bytes.decode (named)",), _decode_charsets),
    "scripts of a page": ParserTarget(1024 * KIB, ("html.parser",), lambda data: list(json_ld.extract_scripts(_decode(data))), (b'<script type="application/ld+json">', b"")),
    "sitemap": ParserTarget(1024 * KIB, ("xml", "zlib"), lambda data: documents.parse_probe_sitemap(ProbeResponse(ORIGIN, 200, body=data)), (b"<urlset>", b"")),
    "robots.txt": ParserTarget(500 * KIB, ("protego",), lambda data: documents.is_allowed(data, ORIGIN + "/a" * 500), (b"User-agent: *\n", b"")),
    "pattern of robots.txt": ParserTarget(4 * KIB, ("protego",), lambda data: documents.is_allowed(data, ORIGIN + "/a" * 1000), (b"User-agent: *\nDisallow: /", b"$\n")),
    "JSON document": ParserTarget(1024 * KIB, ("json",), documents.decode_json_or_none),
    "file of a website": ParserTarget(256 * KIB, ("csv", "json"), lambda data: files.detect_file(ProbeResponse(ORIGIN, 200, {}, body=data))),
    "mail": ParserTarget(256 * KIB, ("email", "re (composed)", "zipfile"), _parse_mail),
    "sender": ParserTarget(64 * KIB, ("dkim", "spf", "dns", "cryptography.hazmat.primitives.serialization"), _verify_message),
    "mail address": ParserTarget(4 * KIB, ("idna (codec)",), lambda data: normalise_address("a@" + _decode(data))),
    "domain": ParserTarget(4 * KIB, ("idna",), lambda data: normalise_domain(_decode(data))),
    "name": ParserTarget(4 * KIB, ("unicodedata",), lambda data: names.displayable_name(_decode(data))),
    "agent": ParserTarget(8 * KIB, (), lambda data: names.extract_product_names(_decode(data))),
    "password": ParserTarget(4 * KIB, ("unicodedata",), lambda data: normalise_password(_decode(data))),
    "wrong name": ParserTarget(4 * KIB, ("difflib",), lambda data: WordSuggester().find_similar(_decode(data[:40]), [_decode(data[at : at + 40]) for at in range(0, len(data), 7)])),
    "pair": ParserTarget(4 * KIB, (), lambda data: mark_differences(_decode(data), _decode(data[::-1]))),
    "forwarded addresses": ParserTarget(64 * KIB, ("ipaddress",), lambda data: PROXIES.find_client("192.0.2.1", {"x-forwarded-for": _decode(data)})),
    "accepted codings": ParserTarget(64 * KIB, (), lambda data: content_coding.find_compression_threshold(_decode(data))),
    "preconditions": ParserTarget(64 * KIB, (), lambda data: parse_if_match(_decode(data))),
    "date of a header": ParserTarget(8 * KIB, ("email",), lambda data: parse_retry_after(_decode(data), NOW), (b"Fri, ", b" GMT")),
    "address": ParserTarget(8 * KIB, ("ipaddress",), lambda data: addresses.describe_url_refusal("https://" + _decode(data), frozenset())),
    "URL": ParserTarget(2 * KIB, ("yarl",), lambda data: AddressVetting().vet(URL("https://" + _decode(data)))),
}  # fmt: skip
ELSEWHERE = {
    "PIL": "tests/processes/test_images.py", "aiosmtpd": "tests/mail/test_inbound_mail.py", "argon2": "tests/unit/people/test_argon2.py",
    "codecs": "tests/fuzz/test_parsers.py", "csv": "tests/fuzz/test_parsers.py", "fractions": "tests/unit/ingestion/test_linear_text.py",
    "isal": "tests/http/test_content_coding.py", "jsonschema_rs": "tests/fuzz/test_operations.py", "msgspec": "tests/processes/test_calls.py",
    "asyncssh": "tests/contract/test_export_targets.py", "anthropic": "tests/contract/test_model_providers.py", "openai": "tests/contract/test_model_providers.py",
    "python_calamine": "tests/fuzz/test_parsers.py", "zxcvbn": "tests/unit/people/test_passwords.py",
}  # fmt: skip
"""Rows whose cost other tests limit."""
ROOT = Path(__file__).parents[2]


def _build_inputs(target: ParserTarget, unit: bytes) -> tuple[bytes, bytes]:
    """Return a quarter of the maximum input, and the maximum input."""
    before, behind = target.frame
    sizes = (target.max_bytes // GROWTH, target.max_bytes)
    small, large = ((unit * (size // len(unit) + 1))[: size - len(before) - len(behind)] for size in sizes)
    return before + small + behind, before + large + behind


def _measure_seconds(call: Callable[[bytes], object], data: bytes) -> float:
    gc.disable()  # the cost depends on the process's other objects
    begun = time.thread_time()
    try:
        with suppress(Exception):  # refusals count as well; their callers are tested with the service
            call(data)
        return time.thread_time() - begun
    finally:
        gc.enable()


def _measure_memory(call: Callable[[bytes], object], data: bytes) -> int:
    tracemalloc.start()
    try:
        with suppress(Exception):
            call(data)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _check_time(target: ParserTarget, unit: bytes) -> None:
    small, large = _build_inputs(target, unit)
    # Results near the limit are rare and are measured again; only repeated ones count.
    for tries in (1, 3, 9):
        base = max(FLOOR, min(_measure_seconds(target.call, small) for _ in range(tries)))
        cost = min(_measure_seconds(target.call, large) for _ in range(tries))
        if cost <= MAX_RATIO * base:
            return
    pytest.fail(f"{unit!r}: {base * 1000:.1f} ms, then {cost * 1000:.1f} ms")


def _check_memory(target: ParserTarget, unit: bytes) -> None:
    small, large = (_measure_memory(target.call, data) for data in _build_inputs(target, unit))
    assert large <= MAX_RATIO * max(small, MEMORY_FLOOR), f"{unit!r}: {small >> 10} KiB, then {large >> 10} KiB"


def _choose_units(effort: Effort) -> Iterator[bytes]:
    if effort.seconds is None:
        yield from UNITS
        return
    until, chance = time.monotonic() + effort.seconds, random.Random()
    while time.monotonic() < until:
        yield b"".join(chance.choices(UNITS, k=chance.randint(1, 6)))[: chance.randint(1, 40)]


@pytest.mark.parametrize("name", TARGETS)
@parametrize_effort(examples=len(UNITS), parts=len(TARGETS))
def test_costs_grow_linearly_with_the_input(name: str, effort: Effort) -> None:
    target = TARGETS[name]
    for at, unit in enumerate(_choose_units(effort)):
        _check_time(target, unit)
        if at % 20 == 0:
            _check_memory(target, unit)


def test_every_row_of_the_table_is_covered() -> None:
    text = (
        (ROOT / "docs" / "threat-model.md")
        .read_text(encoding="utf-8")
        .partition("\n## Parsers\n")[2]
        .partition("\n## ")[0]
    )
    rows = set(re.findall(r"^\| `([^`]+)` \|", text, re.MULTILINE))
    tried = {row for target in TARGETS.values() for row in target.rows}
    assert rows == tried | set(ELSEWHERE)
    assert all((ROOT / path).is_file() for path in ELSEWHERE.values())
