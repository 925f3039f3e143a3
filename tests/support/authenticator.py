"""Software authenticator that creates passkeys and signs with them, correctly or with manipulated values."""

import hashlib
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from secrets import token_bytes
from typing import Any

import cbor2
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec


def _text(value: bytes) -> str:
    return urlsafe_b64encode(value).decode().rstrip("=")


def _bytes(text: str) -> bytes:
    return urlsafe_b64decode(text + "=" * (-len(text) % 4))


class SoftAuthenticator:
    """One discoverable credential (ES256) for one origin."""

    def __init__(self, origin: str) -> None:
        self.origin, self.key, self.id, self.count = origin, ec.generate_private_key(ec.SECP256R1()), token_bytes(32), 0
        self.handle = b""

    def create(self, options: str) -> str:
        """Return the result of `navigator.credentials.create`."""
        parameters = json.loads(options)
        self.handle = _bytes(parameters["user"]["id"])
        numbers = self.key.public_key().public_numbers()
        public = {1: 2, 3: -7, -1: 1, -2: numbers.x.to_bytes(32, "big"), -3: numbers.y.to_bytes(32, "big")}
        credential = bytes(16) + len(self.id).to_bytes(2, "big") + self.id + cbor2.dumps(public)
        data = self._data(parameters["rp"]["id"], 0x45) + credential
        attestation = cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": data})
        client = self._client("webauthn.create", parameters["challenge"], self.origin)
        return self._answer({"attestationObject": _text(attestation), "clientDataJSON": _text(client)})

    def get(
        self,
        options: str,
        *,
        origin: str = "",
        party: str = "",
        verified: bool = True,
        present: bool = True,
        count: int | None = None,
        type_: str = "webauthn.get",
        challenge: bytes | None = None,
        handle: bytes | None = None,
        signature: bytes | None = None,
    ) -> str:
        """Return the result of `navigator.credentials.get`; arguments override the correct values."""
        parameters = json.loads(options)
        self.count += 1
        client = self._client(type_, _text(challenge) if challenge else parameters["challenge"], origin or self.origin)
        data = self._data(
            party or parameters["rpId"], 0x01 * present | 0x04 * verified, self.count if count is None else count
        )
        signed = self.key.sign(data + hashlib.sha256(client).digest(), ec.ECDSA(hashes.SHA256()))
        response = {
            "authenticatorData": _text(data),
            "clientDataJSON": _text(client),
            "signature": _text(signature or signed),
        }
        return self._answer(response | {"userHandle": _text(handle or self.handle)})

    @staticmethod
    def _client(type_: str, challenge: str, origin: str) -> bytes:
        return json.dumps({"type": type_, "challenge": challenge, "origin": origin, "crossOrigin": False}).encode()

    @staticmethod
    def _data(party: str, flags: int, count: int = 0) -> bytes:
        return hashlib.sha256(party.encode()).digest() + bytes([flags]) + count.to_bytes(4, "big")

    def _answer(self, response: dict[str, Any]) -> str:
        return json.dumps(
            {
                "id": _text(self.id),
                "rawId": _text(self.id),
                "type": "public-key",
                "response": response,
                "clientExtensionResults": {},
            }
        )
