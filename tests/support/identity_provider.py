"""Fake identity provider, which responds correctly unless configured otherwise."""

import hmac
import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.parse import parse_qs, parse_qsl, urlsplit

from authlib.oauth2.rfc7636 import create_s256_code_challenge
from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from ports.outbound import OutboundFailed, OutboundResponse

ISSUER = "https://id.fjord.example"
CLIENT, SECRET = "joinery-client", "s3cret +/%"
_NOW = 1_795_000_000


@dataclass
class FakeProvider:
    """`ports.outbound.Outbound` with one provider. `claims` override the correct claims (None removes one).

    `sign_with` is another algorithm, `metadata` overrides the discovery document, `userinfo` is the response of that endpoint.
    """

    issuer: str = ISSUER
    person: dict[str, Any] = field(
        default_factory=lambda: {
            "sub": "u-1",
            "email": "ada@fjord.example",
            "email_verified": True,
            "name": "Ada Moreau",
        }
    )
    claims: dict[str, Any] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    sign_with: str = "RS256"
    publish_keys: bool = True
    by_userinfo: bool = False
    userinfo: dict[str, Any] = field(default_factory=dict)
    down: bool = False
    now: int = _NOW
    requests: list[str] = field(default_factory=list)
    seen: list[dict[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._key = _key("one")
        self._rotated = 0
        self._published = [self._key]
        self._codes: dict[str, dict[str, str]] = {}

    def rotate_key(self) -> None:
        """Sign with another key from now on."""
        self._rotated += 1
        self._key = _key(f"key-{self._rotated}")
        if self.publish_keys:
            self._published = [self._key]

    def permits(self, url: str) -> bool:
        return url.startswith("https://")

    def authorize(self, url: str) -> dict[str, str]:
        """Return the parameters of the callback after a sign-in at the authorisation URL."""
        parameters = dict(parse_qsl(urlsplit(url).query))
        self.seen.append(parameters)
        code = f"code-{len(self._codes)}"
        self._codes[code] = parameters
        return {"code": code, "state": parameters["state"], "iss": self.issuer}

    async def request(
        self, method: str, url: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> OutboundResponse:
        self.requests.append(f"{method} {url}")
        if self.down or not url.startswith(self.issuer):
            raise OutboundFailed("No connection could be made.")
        path = url.removeprefix(self.issuer)
        if path == "/.well-known/openid-configuration":
            return _json(self._document() | self.metadata)
        if path == "/jwks":
            return _json({"keys": [key.as_dict(private=False) for key in self._published]})
        if path == "/token":
            return self._token(dict(headers or {}), body or b"")
        if path == "/userinfo":
            return _json(self.person | self.userinfo)
        return OutboundResponse(404, b"", "text/html")

    def _document(self) -> dict[str, Any]:
        ends = {f"{name}_endpoint": f"{self.issuer}/{name}" for name in ("authorization", "token", "userinfo")}
        return ends | {
            "issuer": self.issuer,
            "jwks_uri": f"{self.issuer}/jwks",
            "id_token_signing_alg_values_supported": ["RS256", "ES256", "HS256", "none"],
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }

    def _token(self, headers: dict[str, str], body: bytes) -> OutboundResponse:
        form = {name: values[-1] for name, values in parse_qs(body.decode()).items()}
        parameters = self._codes.pop(form.get("code", ""), None)
        if parameters is None or parameters["code_challenge"] != create_s256_code_challenge(
            form.get("code_verifier", "")
        ):
            return OutboundResponse(400, b'{"error":"invalid_grant"}', "application/json")
        if "Authorization" not in headers or form["redirect_uri"] != parameters["redirect_uri"]:
            return OutboundResponse(401, b'{"error":"invalid_client"}', "application/json")
        about = {"sub": self.person["sub"]} if self.by_userinfo else self.person
        claims = {"iss": self.issuer, "aud": parameters["client_id"], "iat": self.now, "exp": self.now + 300}
        claims |= (
            {"nonce": parameters["nonce"]}
            | ({"auth_time": self.now} if "max_age" in parameters else {})
            | about
            | self.claims
        )
        stated = {name: value for name, value in claims.items() if value is not None}
        return _json({"access_token": "at-1", "token_type": "Bearer", "id_token": self._signed(stated)})

    def _signed(self, claims: dict[str, Any]) -> str:
        header = {"alg": self.sign_with, "kid": self._key.kid}
        if self.sign_with == "none":
            return ".".join((_part({"alg": "none"}), _part(claims), ""))
        if self.sign_with == "HS256":  # the trick with the public key as the secret
            text = f"{_part(header)}.{_part(claims)}"
            return f"{text}.{_encoded(hmac.digest(self._key.as_pem(private=False), text.encode(), sha256))}"
        key = ECKey.generate_key("P-256", {"kid": str(self._key.kid)}) if self.sign_with == "ES256" else self._key
        return jwt.encode(header, claims, key, algorithms=[self.sign_with])


def _part(value: Any) -> str:
    return _encoded(json.dumps(value).encode())


def _encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@cache
def _key(kid: str) -> RSAKey:
    """Created once, because it is slow."""
    return RSAKey.generate_key(2048, {"kid": kid, "use": "sig"})


def _json(value: Any) -> OutboundResponse:
    return OutboundResponse(200, json.dumps(value).encode(), "application/json")
