"""Keys of DKIM signatures are bounded before the library computes with them."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from adapters.senders.dkim_check import _is_acceptable_key


def _build_record(key: bytes, kind: str = "rsa") -> bytes:
    return f"v=DKIM1; k={kind}; p={base64.b64encode(key).decode()}".encode()


def _encode_rsa_key(bits: int, exponent: int = 65537) -> bytes:
    """Return an RSA key of the size as a name server states it; its modulus is not a product of primes."""
    try:
        key = rsa.RSAPublicNumbers(exponent, 1 << (bits - 1) | 1).public_key()
    except ValueError:
        return _encode_der(0x30, _encode_integer(1 << (bits - 1) | 1) + _encode_integer(exponent))
    return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _encode_integer(value: int) -> bytes:
    return _encode_der(2, value.to_bytes(value.bit_length() // 8 + 1))


def _encode_der(tag: int, content: bytes) -> bytes:
    size = len(content).to_bytes((len(content).bit_length() + 7) // 8)
    return bytes([tag]) + (size if len(content) < 128 else bytes([0x80 | len(size)]) + size) + content


@pytest.mark.parametrize("bits", [1024, 2048, 4096, 8192])
def test_common_keys_are_accepted(bits: int) -> None:
    assert _is_acceptable_key(_build_record(_encode_rsa_key(bits)))


def test_other_kinds_of_keys_are_checked() -> None:
    key = ed25519.Ed25519PrivateKey.generate().public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert _is_acceptable_key(_build_record(key, "ed25519")) and _is_acceptable_key(b"v=DKIM1; p=")
    curve = ec.generate_private_key(ec.SECP256R1()).public_key()
    assert not _is_acceptable_key(_build_record(curve.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)))


@pytest.mark.parametrize(
    "record",
    [
        _build_record(_encode_rsa_key(8200)),
        _build_record(_encode_rsa_key(14_000)),
        _build_record(_encode_rsa_key(2048, (1 << 32) + 1)),
        _build_record(_encode_rsa_key(2048, (1 << 2047) + 1)),
        _build_record(_encode_rsa_key(2048, 65536)),
        _build_record(_encode_rsa_key(2048)) + b"; n=" + b"a" * 2048,
        b"v=DKIM1; p=" + b"A" * 1500,
        b"v=DKIM1; k=rsa",
        b"\xff" * 1000,
        b"",
    ],
)
def test_other_keys_are_refused(record: bytes) -> None:
    assert not _is_acceptable_key(record)
