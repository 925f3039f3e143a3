"""Key sets of identity providers: public keys of bounded size are imported; others are refused before a library reads them."""

import itertools
from typing import Any

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey
from joserfc.util import int_to_base64

from adapters.oidc import keys
from adapters.oidc.keys import UnusableKeySet, import_public_keys


def build_rsa_key(bits: int, exponent: int = 65537) -> dict[str, Any]:
    return {"kty": "RSA", "kid": "k", "n": int_to_base64(1 << (bits - 1) | 1), "e": int_to_base64(exponent)}


@pytest.fixture
def imported_keys(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Record the keys that reach the library."""
    keys_seen: list[Any] = []
    original = keys.import_key

    def record(value: Any) -> Any:
        keys_seen.append(value)
        return original(value)

    monkeypatch.setattr(keys, "import_key", record)
    return keys_seen


def test_public_keys_of_every_type_are_imported() -> None:
    private_keys = [
        ECKey.generate_key("P-256"),
        ECKey.generate_key("P-521"),
        OKPKey.generate_key("Ed25519"),
        RSAKey.generate_key(2048),
    ]
    document = {"keys": [key.as_dict(private=False) for key in private_keys]}
    assert [key.key_type for key in import_public_keys(document)] == ["EC", "EC", "OKP", "RSA"]


@pytest.mark.parametrize("member", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
@pytest.mark.parametrize("kty", ["RSA", "EC", "oct", "unknown"])
def test_a_private_member_refuses_the_set(imported_keys: list[Any], kty: str, member: str) -> None:
    with pytest.raises(UnusableKeySet, match="private"):
        import_public_keys({"keys": [build_rsa_key(2048), {**build_rsa_key(2048), "kty": kty, member: "AQAB"}]})
    assert imported_keys == []


@pytest.mark.parametrize(
    "key",
    [
        build_rsa_key(1024),
        build_rsa_key(8200),
        build_rsa_key(12_000),
        build_rsa_key(48_000),
        build_rsa_key(2048, exponent=2),
        build_rsa_key(2048, exponent=65536),
        build_rsa_key(2048, exponent=2**32 + 1),
        build_rsa_key(2048, exponent=2**2000 + 1),
        {**build_rsa_key(2048), "n": 5},
        {**build_rsa_key(2048), "n": "é" * 342},
        {**build_rsa_key(2048), "kid": "k" * 501},
        {**build_rsa_key(2048), "use": "enc"},
        {**build_rsa_key(2048), "kty": ["RSA"]},
        {"kty": "EC", "crv": "P-521", "x": "A" * 5000, "y": "A" * 5000},
        {"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "Ed25519", "x": 7},
        {"kid": "without a type"},
        {},
        {"kty": "ML-DSA-44", "pub": "A" * 4000},
        "key",
        None,
    ],
    ids=itertools.count(),
)
def test_keys_out_of_bounds_never_reach_the_library(imported_keys: list[Any], key: Any) -> None:
    usable = build_rsa_key(2048)
    assert len(list(import_public_keys({"keys": [key, usable]}))) == 1
    assert imported_keys == [usable]


@pytest.mark.parametrize(
    "key",
    [
        {"kty": "RSA", "n": build_rsa_key(2048)["n"]},
        {"kty": "EC", "crv": "P-256"},
        {"kty": "EC", "crv": "P-256", "x": "é", "y": "AA"},
        {"kty": "EC", "crv": "P-256", "x": "AA", "y": "AA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AA"},
    ],
    ids=itertools.count(),
)
def test_a_key_that_cannot_be_read_leaves_the_others(key: Any) -> None:
    usable = build_rsa_key(2048)
    assert [found.kid for found in import_public_keys({"keys": [key, usable]})] == ["k"]


@pytest.mark.parametrize(
    "document", [{}, {"keys": None}, {"keys": {}}, {"keys": []}, {"keys": [build_rsa_key(2048)] * 51}]
)
def test_sets_without_usable_keys_are_refused(document: Any) -> None:
    with pytest.raises(UnusableKeySet):
        import_public_keys(document)
