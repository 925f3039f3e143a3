"""The ceremonies of passkeys by py_webauthn: discoverable credentials, the person verified by the device, no attestation.

Every byte of CBOR is decoded by cbor2 without its tags before py_webauthn decodes it with them: tags compile regular
expressions, build fractions and parse messages. Attestation statements hold certificates and tokens; only `none` is taken.
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
_DEEPEST = 4
"""Levels of nesting that a CTAP2 message may have (CTAP 2.1 §8)."""
_RSA = 3
"""The key type of RFC 8230 §4; keys of other types have a size by their curve."""
_LONGEST_MODULUS = 1024
_LONGEST_EXPONENT = 4
"""Bytes of an RSA key's numbers."""
_ATTESTED = 0x40
_EXTENDED = 0x80
"""Flags of authenticator data: a credential and extensions follow (WebAuthn Level 3 §6.1)."""
_VERIFIED = UserVerificationRequirement.REQUIRED
_SELECTION = AuthenticatorSelectionCriteria(
    resident_key=ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=_VERIFIED
)
_BROKEN = (WebAuthnException, ValueError, KeyError, TypeError)
"""What the library raises for answers that are malformed or do not hold."""


class WebauthnCeremonies:
    """Ceremonies (domain/people/ports.py) for the origin of `base_url`; its host is the relying party's id."""

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
                exclude_credentials=_described(known),
            )
        )

    def registered(self, answer: str, challenge: bytes) -> Registration:
        read = _read(answer)
        _check_attestation(_bytes_of(read, "attestationObject"))
        try:
            found = webauthn.verify_registration_response(
                credential=read,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                require_user_verification=True,
            )
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error
        return Registration(
            found.credential_id, found.credential_public_key, found.sign_count, found.credential_backed_up
        )

    def sign_in(self, challenge: bytes, known: Sequence[Passkey] = ()) -> str:
        return options_to_json(
            webauthn.generate_authentication_options(
                rp_id=self._party,
                challenge=challenge,
                allow_credentials=_described(known),
                user_verification=_VERIFIED,
            )
        )

    def credential(self, answer: str) -> bytes:
        try:
            return base64url_to_bytes(_read(answer)["rawId"])
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error

    def signed(self, answer: str, challenge: bytes, passkey: Passkey) -> int:
        read = _read(answer)
        _check_authenticator_data(_bytes_of(read, "authenticatorData"))
        _check_key(next(iter(_items(passkey.public_key)), None))
        try:
            found = webauthn.verify_authentication_response(
                credential=read,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
            handle = read["response"].get("userHandle")
            if handle is not None and base64url_to_bytes(handle) != passkey.user.encode():
                raise PasskeyRefused("the passkey was made for somebody else")
        except _BROKEN as error:
            raise PasskeyRefused(str(error)) from error
        return found.new_sign_count


def _described(known: Sequence[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=one.credential) for one in known]


def _read(answer: str) -> dict[str, Any]:
    """The browser's answer. Raises PasskeyRefused."""
    try:
        found = json.loads(answer) if len(answer) <= LONGEST_ANSWER else None
    except (ValueError, RecursionError) as error:
        raise PasskeyRefused("the answer is no JSON") from error
    if not isinstance(found, dict):
        raise PasskeyRefused("the answer is no object")
    return found


def _bytes_of(answer: Mapping[str, Any], name: str) -> bytes:
    response = answer.get("response")
    text = response.get(name) if isinstance(response, dict) else None
    if not isinstance(text, str):
        raise PasskeyRefused(f"the answer has no {name}")
    try:
        return base64url_to_bytes(text)
    except ValueError as error:
        raise PasskeyRefused(f"{name} is not base64url") from error


class _RefusedTags(dict[int, Any]):
    """Semantic decoders that refuse every tag; cbor2 prefers them to its own."""

    def __missing__(self, tag: int) -> NoReturn:
        raise cbor2.CBORDecodeError(f"tag {tag}")


def _items(data: bytes) -> list[Any]:
    """Decode consecutive items in CTAP2 canonical CBOR: no tags, so no bignums, no indefinite lengths, few levels.

    Raises:
        PasskeyRefused: The bytes are anything else.

    """
    source = io.BytesIO(data)
    decoder = cbor2.CBORDecoder(
        source,
        semantic_decoders=_RefusedTags(),
        read_size=1,
        max_depth=_DEEPEST,
        allow_indefinite=False,
        allow_duplicate_keys=False,
    )
    found = []
    try:
        while source.tell() < len(data):
            found.append(decoder.decode())
    except Exception as error:  # untrusted bytes: any error of the library means an invalid answer
        raise PasskeyRefused("the answer is not in CTAP2 canonical CBOR") from error
    return found


def _check_attestation(data: bytes) -> None:
    """Raise PasskeyRefused unless it is one attestation object of the format `none`, with a well-formed credential."""
    found = _items(data)
    if len(found) != 1 or not isinstance(found[0], dict) or found[0].get("fmt") != "none":
        raise PasskeyRefused("the attestation is not of the format none")
    authenticator_data = found[0].get("authData")
    if not isinstance(authenticator_data, bytes):
        raise PasskeyRefused("the attestation has no authenticator data")
    _check_authenticator_data(authenticator_data)


def _check_authenticator_data(data: bytes) -> None:
    """Raise PasskeyRefused unless the CBOR behind the fixed part is what the flags announce (WebAuthn Level 3 §6.1)."""
    attested, extended = (bool(data[32:33]) and data[32] & flag for flag in (_ATTESTED, _EXTENDED))
    start = 55 + int.from_bytes(data[53:55]) if attested else 37
    found = _items(data[start:])
    if len(found) != bool(attested) + bool(extended):
        raise PasskeyRefused("the authenticator data holds something else than its flags say")
    if attested:
        _check_key(found[0])


def _check_key(key: Any) -> None:
    """Raise PasskeyRefused unless it is a COSE key (RFC 9052 §7) whose numbers are bounded."""
    if not isinstance(key, dict):
        raise PasskeyRefused("the credential's public key is not a COSE key")
    if key.get(1) != _RSA:
        return
    modulus, exponent = key.get(-1), key.get(-2)
    if (
        not isinstance(modulus, bytes)
        or not isinstance(exponent, bytes)
        or len(modulus) > _LONGEST_MODULUS
        or len(exponent) > _LONGEST_EXPONENT
    ):
        raise PasskeyRefused("the credential's RSA key is out of bounds")
