"""Responses of passkeys are decoded without CBOR tags, within bounds, before py_webauthn decodes them."""

import hashlib
import json
import struct
from base64 import urlsafe_b64encode
from datetime import UTC, datetime
from fractions import Fraction
from typing import Any

import cbor2
import pytest

from adapters import webauthn as passkeys
from adapters.webauthn import MAX_RESPONSE_CHARS, WebauthnCeremonies
from domain.people.factors import Passkey
from domain.people.model import User
from domain.people.ports import PasskeyRefused
from tests.support.authenticator import SoftAuthenticator

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ORIGIN = "https://joinery.example"
USER = User("usr_1", "ada@fjord.example", "Ada", NOW, NOW)
CHALLENGE = b"c" * 32
CEREMONIES = WebauthnCeremonies(ORIGIN)


def _encode_base64(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _encode_response(**response: bytes) -> str:
    fields = {name: _encode_base64(value) for name, value in response.items()}
    return json.dumps({"id": "AA", "rawId": "AA", "type": "public-key", "response": fields})


def _build_authenticator_data(flags: int, *, key: bytes = b"", extensions: bytes = b"") -> bytes:
    credential = bytes(16) + b"\0\1x" + key if flags & 0x40 else b""
    return hashlib.sha256(b"joinery.example").digest() + bytes([flags]) + bytes(4) + credential + extensions


def _encode_cbor_text(size: int) -> bytes:
    return b"\x7a" + struct.pack(">I", size) + b"a" * size


KEY = cbor2.dumps({1: 2, 3: -7, -1: 1, -2: bytes(32), -3: bytes(32)})
HOSTILE = {
    "regular expression": b"\xd8\x23" + _encode_cbor_text(4000),
    "fraction": cbor2.dumps(Fraction(3**200, 7**200)),
    "bignum": cbor2.dumps(1 << 20_000),
    "decimal": b"\xc4\x82\x00" + cbor2.dumps(1 << 2000),
    "mail": b"\xd8\x24" + _encode_cbor_text(4000),
    "time": b"\xc0\x74" + b"2026-01-01T00:00:00Z",
    "unknown tag": b"\xd9\xff\xff\x00",
    "nested tag": b"\x81" + b"\xc1" * 3000 + b"\x00",
    "shared value": b"\xd8\x1c\x81\xd8\x1d\x00",
    "indefinite": b"\x9f\x00\xff",
    "indefinite text": b"\x7f\x61a\xff",
    "nested": b"\x81" * 3000 + b"\x00",
    "duplicate key": b"\xa2\x01\x02\x01\x03",
    "cut short": b"\x9b" + b"\xff" * 8,
    "break": b"\xff",
}


@pytest.fixture
def library_calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the functions of py_webauthn that are called."""
    calls: list[str] = []

    def record_call(name: str) -> Any:
        def call(**_: Any) -> None:
            calls.append(name)
            raise ValueError(name)

        return call

    for name in ("verify_registration_response", "verify_authentication_response"):
        monkeypatch.setattr(passkeys.webauthn, name, record_call(name))
    return calls


@pytest.mark.parametrize("item", HOSTILE.values(), ids=HOSTILE)
def test_hostile_registrations_never_reach_the_library(library_calls: list[str], item: bytes) -> None:
    in_format = b"\xa1\x63fmt" + item
    in_statement = (
        b"\xa3\x63fmt\x64none\x67attStmt\xa1\x61a"
        + item
        + b"\x68authData"
        + cbor2.dumps(_build_authenticator_data(0x45, key=KEY))
    )
    in_key = cbor2.dumps(
        {"fmt": "none", "attStmt": {}, "authData": _build_authenticator_data(0x45, key=b"\xa1\x01" + item)}
    )
    in_extension = cbor2.dumps(
        {
            "fmt": "none",
            "attStmt": {},
            "authData": _build_authenticator_data(0xC5, key=KEY, extensions=b"\xa1\x61a" + item),
        }
    )
    for attestation in (item, in_format, in_statement, in_key, in_extension):
        with pytest.raises(PasskeyRefused):
            CEREMONIES.verify_registration(
                _encode_response(attestationObject=attestation, clientDataJSON=b"{}"), CHALLENGE
            )
    assert library_calls == []


@pytest.mark.parametrize("item", HOSTILE.values(), ids=HOSTILE)
def test_hostile_signatures_never_reach_the_library(library_calls: list[str], item: bytes) -> None:
    passkey = Passkey("pky_1", USER.id, b"x", KEY, 0, "Key", False, NOW)
    for data in (
        _build_authenticator_data(0x85, extensions=b"\xa1\x61a" + item),
        _build_authenticator_data(0x05, extensions=item),
        _build_authenticator_data(0x45, key=item),
    ):
        with pytest.raises(PasskeyRefused):
            CEREMONIES.verify_signature(
                _encode_response(authenticatorData=data, clientDataJSON=b"{}", signature=b""), CHALLENGE, passkey
            )
    assert library_calls == []


def test_hostile_stored_keys_never_reach_the_library(library_calls: list[str]) -> None:
    passkey = Passkey("pky_1", USER.id, b"x", b"\xa1\x01" + HOSTILE["regular expression"], 0, "Key", False, NOW)
    with pytest.raises(PasskeyRefused):
        CEREMONIES.verify_signature(
            _encode_response(authenticatorData=_build_authenticator_data(0x05), clientDataJSON=b"{}", signature=b""),
            CHALLENGE,
            passkey,
        )
    assert library_calls == []


@pytest.mark.parametrize("numbers", [(bytes(1025), b"\1\0\1"), (bytes(256), bytes(5)), (7, b"\3"), (bytes(256), None)])
def test_large_rsa_keys_never_reach_the_library(library_calls: list[str], numbers: tuple[Any, Any]) -> None:
    key = cbor2.dumps({1: 3, 3: -257, -1: numbers[0], -2: numbers[1]})
    attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": _build_authenticator_data(0x45, key=key)})
    with pytest.raises(PasskeyRefused):
        CEREMONIES.verify_registration(_encode_response(attestationObject=attestation, clientDataJSON=b"{}"), CHALLENGE)
    assert library_calls == []


@pytest.mark.parametrize("format", ["packed", "tpm", "android-safetynet", "fido-u2f", "apple", None, ["none"]])
def test_attestation_statements_are_refused(library_calls: list[str], format: Any) -> None:
    attestation = cbor2.dumps(
        {"fmt": format, "attStmt": {"x5c": [b"x"]}, "authData": _build_authenticator_data(0x45, key=KEY)}
    )
    with pytest.raises(PasskeyRefused):
        CEREMONIES.verify_registration(_encode_response(attestationObject=attestation, clientDataJSON=b"{}"), CHALLENGE)
    assert library_calls == []


@pytest.mark.parametrize(
    "answer",
    [
        "[" * MAX_RESPONSE_CHARS,
        "1" * MAX_RESPONSE_CHARS,
        '{"a":' * 3000,
        json.dumps({"response": "x"}),
        json.dumps({"response": {"attestationObject": 5, "authenticatorData": 5}}),
        json.dumps({"response": {"attestationObject": "é", "authenticatorData": "é"}}),
        _encode_response(attestationObject=bytes(MAX_RESPONSE_CHARS), authenticatorData=b""),
        _encode_response(attestationObject=b"", authenticatorData=b""),
    ],
)
def test_malformed_responses_are_refused(answer: str) -> None:
    passkey = Passkey("pky_1", USER.id, b"x", KEY, 0, "Key", False, NOW)
    with pytest.raises(PasskeyRefused):
        CEREMONIES.verify_registration(answer, CHALLENGE)
    with pytest.raises(PasskeyRefused):
        CEREMONIES.verify_signature(answer, CHALLENGE, passkey)


def test_a_valid_device_is_accepted() -> None:
    device = SoftAuthenticator(ORIGIN)
    registration = CEREMONIES.verify_registration(
        device.create(CEREMONIES.build_registration_options(USER, (), CHALLENGE)), CHALLENGE
    )
    passkey = Passkey(
        "pky_1",
        USER.id,
        registration.credential_id,
        registration.public_key,
        registration.sign_count,
        "Key",
        registration.backed_up,
        NOW,
    )
    assert CEREMONIES.verify_signature(device.get(CEREMONIES.build_sign_in_options(CHALLENGE)), CHALLENGE, passkey) == 1
