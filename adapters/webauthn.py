"""Passkey ceremonies by py_webauthn: discoverable credentials, user verification, no attestation.

py_webauthn decodes CBOR with tags, which compile regular expressions, build fractions and parse messages. All CBOR is therefore first
decoded by cbor2, which refuses tags here. Attestation statements contain certificates and tokens; only the format `none` is accepted.
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
from domain.people.ports import PasskeyRefused, RegisteredCredential

RELYING_PARTY_NAME = "Joinery"
"""Name of the service that browsers show."""
MAX_RESPONSE_CHARS = 16 << 10
"""Maximum characters of a browser's response."""
_MAX_DEPTH = 4
"""Maximum levels of nesting of a CTAP2 message (CTAP 2.1 §8)."""
_RSA_KEY_TYPE = 3
"""Type of RSA keys (RFC 8230 §4)."""
_MAX_MODULUS_BYTES = 1024
_MAX_EXPONENT_BYTES = 4
_ATTESTED_FLAG = 0x40
"""Flag of authenticator data: attested credential data follows (WebAuthn Level 3 §6.1)."""
_EXTENSIONS_FLAG = 0x80
"""Flag of authenticator data: extensions follow (WebAuthn Level 3 §6.1)."""
_VERIFIED = UserVerificationRequirement.REQUIRED
_SELECTION = AuthenticatorSelectionCriteria(
    resident_key=ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=_VERIFIED
)
_LIBRARY_ERRORS = (WebAuthnException, ValueError, KeyError, TypeError)
"""Errors that the library raises for malformed or invalid responses."""


class WebauthnCeremonies:
    """Passkey ceremonies (port PasskeyCeremonies in domain/people/ports.py) for the origin of `base_url`.

    The host of `base_url` is the relying party ID.
    """

    def __init__(self, base_url: str) -> None:
        parts = urlsplit(base_url)
        self._origin, self._party = f"{parts.scheme}://{parts.netloc}", parts.hostname or "localhost"

    def build_registration_options(self, user: User, existing: Sequence[Passkey], challenge: bytes) -> str:
        return options_to_json(
            webauthn.generate_registration_options(
                rp_id=self._party,
                rp_name=RELYING_PARTY_NAME,
                user_id=user.id.encode(),
                user_name=user.email,
                user_display_name=user.display_name,
                challenge=challenge,
                authenticator_selection=_SELECTION,
                exclude_credentials=_describe_passkeys(existing),
            )
        )

    def verify_registration(self, response: str, challenge: bytes) -> RegisteredCredential:
        parsed = _parse_response(response)
        _check_attestation(_decode_member(parsed, "attestationObject"))
        try:
            verified = webauthn.verify_registration_response(
                credential=parsed,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                require_user_verification=True,
            )
        except _LIBRARY_ERRORS as error:
            raise PasskeyRefused(str(error)) from error
        return RegisteredCredential(
            verified.credential_id,
            verified.credential_public_key,
            verified.sign_count,
            verified.credential_backed_up,
        )

    def build_sign_in_options(self, challenge: bytes, permitted: Sequence[Passkey] = ()) -> str:
        return options_to_json(
            webauthn.generate_authentication_options(
                rp_id=self._party,
                challenge=challenge,
                allow_credentials=_describe_passkeys(permitted),
                user_verification=_VERIFIED,
            )
        )

    def parse_credential_id(self, response: str) -> bytes:
        try:
            return base64url_to_bytes(_parse_response(response)["rawId"])
        except _LIBRARY_ERRORS as error:
            raise PasskeyRefused(str(error)) from error

    def verify_signature(self, response: str, challenge: bytes, passkey: Passkey) -> int:
        parsed = _parse_response(response)
        _check_authenticator_data(_decode_member(parsed, "authenticatorData"))
        _check_key(next(iter(_decode_cbor(passkey.public_key)), None))
        try:
            verified = webauthn.verify_authentication_response(
                credential=parsed,
                expected_challenge=challenge,
                expected_rp_id=self._party,
                expected_origin=self._origin,
                credential_public_key=passkey.public_key,
                credential_current_sign_count=passkey.sign_count,
                require_user_verification=True,
            )
            handle = parsed["response"].get("userHandle")
            if handle is not None and base64url_to_bytes(handle) != passkey.user.encode():
                raise PasskeyRefused("the passkey belongs to another user")
        except _LIBRARY_ERRORS as error:
            raise PasskeyRefused(str(error)) from error
        return verified.new_sign_count


def _describe_passkeys(passkeys: Sequence[Passkey]) -> list[PublicKeyCredentialDescriptor]:
    return [PublicKeyCredentialDescriptor(id=passkey.credential) for passkey in passkeys]


def _parse_response(text: str) -> dict[str, Any]:
    """Parse the browser's response. Raises PasskeyRefused."""
    try:
        response = json.loads(text) if len(text) <= MAX_RESPONSE_CHARS else None
    except (ValueError, RecursionError) as error:
        raise PasskeyRefused("the response is not JSON") from error
    if not isinstance(response, dict):
        raise PasskeyRefused("the response is not a JSON object")
    return response


def _decode_member(parsed: Mapping[str, Any], name: str) -> bytes:
    """Return the bytes of a base64url member of the response. Raises PasskeyRefused."""
    members = parsed.get("response")
    text = members.get(name) if isinstance(members, dict) else None
    if not isinstance(text, str):
        raise PasskeyRefused(f"the response has no {name}")
    try:
        return base64url_to_bytes(text)
    except ValueError as error:
        raise PasskeyRefused(f"{name} is not base64url") from error


class _RefusedTags(dict[int, Any]):
    """Mapping of all CBOR tags to a decoder that raises CBORDecodeError; cbor2 prefers it to its built-in decoders."""

    def __missing__(self, tag: int) -> NoReturn:
        raise cbor2.CBORDecodeError(f"tag {tag}")


def _decode_cbor(data: bytes) -> list[Any]:
    """Decode consecutive items of CTAP2 canonical CBOR.

    Raises:
        PasskeyRefused: An item is invalid, has a tag or an indefinite length, or exceeds _MAX_DEPTH.
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
    """Raise PasskeyRefused unless the data is an attestation object of the format `none` with a valid credential."""
    items = _decode_cbor(data)
    if len(items) != 1 or not isinstance(items[0], dict) or items[0].get("fmt") != "none":
        raise PasskeyRefused('the attestation format must be "none"')
    authenticator_data = items[0].get("authData")
    if not isinstance(authenticator_data, bytes):
        raise PasskeyRefused("the attestation has no authenticator data")
    _check_authenticator_data(authenticator_data)


def _check_authenticator_data(data: bytes) -> None:
    """Raise PasskeyRefused unless authenticator data contains what its flags state, and nothing else (WebAuthn Level 3 §6.1)."""
    attested, extended = (bool(data[32:33]) and data[32] & flag for flag in (_ATTESTED_FLAG, _EXTENSIONS_FLAG))
    start = 55 + int.from_bytes(data[53:55]) if attested else 37
    items = _decode_cbor(data[start:])
    if len(items) != bool(attested) + bool(extended):
        raise PasskeyRefused("the authenticator data does not match its flags")
    if attested:
        _check_key(items[0])


def _check_key(key: Any) -> None:
    """Raise PasskeyRefused unless the key is a COSE key (RFC 9052 §7), and an RSA key is within the size limits."""
    if not isinstance(key, dict):
        raise PasskeyRefused("the credential's public key is not a COSE key")
    if key.get(1) != _RSA_KEY_TYPE:  # the curve of any other key fixes its size
        return
    modulus, exponent = key.get(-1), key.get(-2)
    if (
        not isinstance(modulus, bytes)
        or not isinstance(exponent, bytes)
        or len(modulus) > _MAX_MODULUS_BYTES
        or len(exponent) > _MAX_EXPONENT_BYTES
    ):
        raise PasskeyRefused("the credential's RSA key is too large")
