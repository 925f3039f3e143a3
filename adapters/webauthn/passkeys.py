"""The ceremonies of passkeys by py_webauthn: discoverable credentials, the person verified by the device, no attestation asked."""

import json
from collections.abc import Sequence
from typing import Any, Final
from urllib.parse import urlsplit

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
from ports.passkeys import PasskeyRefused, Registration

NAME: Final = "Joinery"
LONGEST_ANSWER: Final = 64 << 10
_VERIFIED: Final = UserVerificationRequirement.REQUIRED
_SELECTION: Final = AuthenticatorSelectionCriteria(
    resident_key=ResidentKeyRequirement.REQUIRED, require_resident_key=True, user_verification=_VERIFIED
)
_BROKEN: Final = (WebAuthnException, ValueError, KeyError, TypeError)
"""What the library raises for answers that are malformed or do not hold."""


class WebauthnCeremonies:
    """Ceremonies (ports/passkeys.py) for the origin of `base_url`; its host is the relying party's id."""

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
        try:
            found = webauthn.verify_registration_response(
                credential=_read(answer),
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
