"""Passkey ceremonies by py_webauthn: discoverable credentials, user verification, no attestation.

All CBOR is first decoded by cbor2 with tags refused, before py_webauthn decodes it with tags: these compile regular
expressions, build fractions and parse messages. Attestation statements hold certificates and tokens; only `none` is accepted.
"""

import io
import json
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import urlsplit

import cbor2
import webauthn
from webauthn.helpers import base64url_to_bytes, options_to_json
from webauthn.helpers.exceptions import WebAuthnException
from webauthn.helpers.structs import (
    AuthenticatorSelectionCriteria,
    PublicKeyCredentialDescriptor,
    ResidentKeyRequirement,
    UserVerificationRequirement,
)

from domain.people.factors import Passkey
from domain.people.model import User
from domain.people.ports import PasskeyRefused, Registration

NAME = "Joinery"
LONGEST_ANSWER = 16 << 10
_MAX_DEPTH = 4
"""Levels of nesting that a CTAP2 message may have (CTAP 2.1 §8)."""
_RSA = 3
"""RSA key type (RFC 8230 §4); the size of other keys is fixed by their curve."""
_MAX_MODULUS_BYTES = 1024
_MAX_EXPONENT_BYTES = 4
"""Maximum bytes of an RSA key's modulus and exponent."""
_ATTESTED = 0x40
_EXTENDED = 0x80
"""Flags of authenticator data: attested credential and extensions follow (WebAuthn Level 3 §6.1)."""
_VERIFIED = UserVerificationRequirement.REQUIRED
_SELECTION = AuthenticatorSelectionCriteria(
    resident_key=ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=_VERIFIED
)
_BROKEN = (WebAuthnException, ValueError, KeyError, TypeError)
"""Errors that the library raises for malformed or invalid responses."""


class WebauthnCeremonies:
    """Ceremonies (domain/people/ports.py) for the origin of `base_url`; its host is the relying party ID."""

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._origin, self._party = f"{parts.scheme}://{parts.netloc}", parts.hostname or "localhost"

    def registration(self, user: User, known: Sequence[Passkey], challenge: bytes) -> str:
        return options_to_json(
            webauthn.generate_registration_options(
                rp_id=self._party,
                rp_name=NAME,
                user_id=user.id.encode(),
                user_name=user.email,
                user_display_name=user.called,
                challenge=challenge,
                authenticator_selection=_SELECTION,
                exclude_credentials=_descriptors(known),
            )
        )

    def registered(self, answer: str, challenge: bytes) -> Registration:
        response = _parse(answer)
        _check_attestation(_bytes_of(response, "attestationObject"))
        try:
            verified = webauthn.verify_registration_response(
                credential=response,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                require_user_verification=True,
            )
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error
        return Registration(
            verified.credential_id,
            verified.credential_public_key,
            verified.sign_count,
            verified.credential_backed_up,
        )

    def sign_in(self, challenge: bytes, known: Sequence[Passkey] = ()) -> str:
        return options_to_json(
            webauthn.generate_authentication_options(
                rp_id=self._party,
                challenge=challenge,
                allow_credentials=_descriptors(known),
                user_verification=_VERIFIED,
            )
        )

    def credential(self, answer: str) -> bytes:
        try:
            return base64url_to_bytes(_parse(answer)["rawId"])
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error

    def signed(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        response = _parse(answer)
        _check_authenticator_data(_bytes_of(response, "authenticatorData"))
        _check_key(next(iter(_items(passkey.public_key)), None))
        try:
            verified = webauthn.verify_authentication_response(
                credential=response,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
            handle = response["response"].get("userHandle")
            if handle is not None and base64url_to_bytes(handle) != passkey.user.encode():
                raise PasskeyRefused("the passkey belongs to another user")
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error
        return verified.new_sign_count


def _descriptors(passkeys: Sequence[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=passkey.credential) for passkey in passkeys]


def _parse(answer: str) -> dict[str, Any]:
    """Parse the browser's response. Raises PasskeyRefused."""
    try:
        response = json.loads(answer) if len(answer) <= LONGEST_ANSWER else None
    except (ValueError, RecursionError) as error:
        raise PasskeyRefused("the response is not JSON") from error
    if not isinstance(response, dict):
        raise PasskeyRefused("the response is not an object")
    return response


def _bytes_of(answer: Mapping[str, Any], name: str) -> bytes:
    response = answer.get("response")
    text = response.get(name) if isinstance(response, dict) else None
    if not isinstance(text, str):
        raise PasskeyRefused(f"the response has no {name}")
    try:
        return base64url_to_bytes(text)
    except ValueError as error:
        raise PasskeyRefused(f"{name} is not base64url") from error


class _RefusedTags(dict[int, Any]):
    """Semantic decoders that refuse every tag; cbor2 prefers them to its own."""

    def __missing__(self, tag: int) -> NoReturn:
        raise cbor2.CBORDecodeError(f"tag {tag}")


def _items(data: bytes) -> list[Any]:
    """Decode consecutive items of CTAP2 canonical CBOR: no tags (hence no bignums), no indefinite lengths, few levels.

    Raises:
        PasskeyRefused: The bytes are anything else.

    """
    source = io.BytesIO(data)
    decoder = cbor2.CBORDecoder(
        source,
        semantic_decoders=_RefusedTags(),
        read_size=1,
        max_depth=_MAX_DEPTH,
        allow_indefinite=False,
        allow_duplicate_keys=False,
    )
    items = []
    try:
        while source.tell() < len(data):
            items.append(decoder.decode())
    except Exception as error:  # untrusted bytes: any error of the library means an invalid response
        raise PasskeyRefused("the response is not CTAP2 canonical CBOR") from error
    return items


def _check_attestation(data: bytes) -> None:
    """Raise PasskeyRefused unless the data is one attestation object of the format `none` with a well-formed credential."""
    items = _items(data)
    if len(items) != 1 or not isinstance(items[0], dict) or items[0].get("fmt") != "none":
        raise PasskeyRefused("the attestation format is not none")
    authenticator_data = items[0].get("authData")
    if not isinstance(authenticator_data, bytes):
        raise PasskeyRefused("the attestation has no authenticator data")
    _check_authenticator_data(authenticator_data)


def _check_authenticator_data(data: bytes) -> None:
    """Raise PasskeyRefused unless the CBOR after the fixed part matches the flags (WebAuthn Level 3 §6.1)."""
    attested, extended = (bool(data[32:33]) and data[32] & flag for flag in (_ATTESTED, _EXTENDED))
    start = 55 + int.from_bytes(data[53:55]) if attested else 37
    items = _items(data[start:])
    if len(items) != bool(attested) + bool(extended):
        raise PasskeyRefused("the authenticator data does not match its flags")
    if attested:
        _check_key(items[0])


def _check_key(key: Any) -> None:
    """Raise PasskeyRefused unless the key is a COSE key (RFC 9052 §7) with bounded numbers."""
    if not isinstance(key, dict):
        raise PasskeyRefused("the credential's public key is not a COSE key")
    if key.get(1) != _RSA:
        return
    modulus, exponent = key.get(-1), key.get(-2)
    if (
        not isinstance(modulus, bytes)
        or not isinstance(exponent, bytes)
        or len(modulus) > _MAX_MODULUS_BYTES
        or len(exponent) > _MAX_EXPONENT_BYTES
    ):
        raise PasskeyRefused("the credential's RSA key is too large")
