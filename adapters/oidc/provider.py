"""The relying party's part of OpenID Connect: where the browser is sent, and what is made of what it brings back."""

import hmac
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import quote_plus, urlencode

from authlib.oauth2.auth import ClientAuth
from authlib.oauth2.base import OAuth2Error
from authlib.oauth2.rfc6749.parameters import (
    parse_authorization_code_response,
    prepare_grant_uri,
    prepare_token_request,
)
from authlib.oauth2.rfc7636 import create_s256_code_challenge
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import InvalidKeyIdError, JoseError
from joserfc.jws import JWSRegistry

from adapters.oidc.metadata import ProviderDocuments, algorithms, decoded
from domain.kernel.clock import CLOCK
from domain.kernel.names import displayable_name
from domain.sso.model import Attempt, Client, Identity
from domain.sso.ports import ProviderFault
from ports.outbound import Outbound, OutboundFailed

SCOPE = "openid email profile"
LEEWAY = 60
"""Seconds by which clocks may differ."""
_LONGEST = 8192
"""Characters of a parameter that comes back."""
_LONGEST_SUBJECT = 255
_ANEW: Final[Mapping[str, str]] = {"prompt": "login", "max_age": "0"}
"""Who is remembered is asked all the same; with `max_age`, providers have to tell when that was (OpenID Connect Core §3.1.2.1)."""
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_REFUSALS = {
    "access_denied": "The provider did not let you in.",
    "login_required": "The provider wants you to sign in there first.",
    "temporarily_unavailable": "The provider is busy; try again.",
}


class OidcProviders:
    """ports.identity_providers.IdentityProviders."""

    def __init__(
        self, outbound: Outbound, documents: ProviderDocuments | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self._outbound, self._documents = outbound, documents or ProviderDocuments(outbound)
        self._now = lambda: int(now() if now else CLOCK.unix_ms() // 1000)

    async def issuer(self, issuer: str) -> str:
        document = await self._documents.fresh(issuer)
        told: str = document["issuer"]
        await self._documents.keys(told)
        return told

    async def authorization_url(self, client: Client, attempt: Attempt, hint: str) -> str:
        document = await self._documents.find(client.issuer)
        url: str = prepare_grant_uri(
            document["authorization_endpoint"],
            client.client_id,
            "code",
            redirect_uri=client.redirect_uri,
            scope=SCOPE,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
            login_hint=hint or None,
            **(_ANEW if attempt.again_since is not None else {}),
        )
        return url

    async def identity(self, client: Client, attempt: Attempt, answer: Mapping[str, str]) -> Identity:
        document = await self._documents.find(client.issuer)
        code = _code(document, client, attempt, answer)
        tokens = await self._exchange(document, client, attempt, code)
        claims = await self._claims(document, client, attempt, tokens)
        _must_be_anew(attempt, claims)
        told = claims if "email" in claims else {**await self._userinfo(document, claims, tokens), "sub": claims["sub"]}
        return _identity(client.issuer, claims, told)

    async def _exchange(
        self, document: Mapping[str, Any], client: Client, attempt: Attempt, code: str
    ) -> Mapping[str, Any]:
        """The code against tokens; the client proves itself by its secret, the browser by what the challenge was made of."""
        ways = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        basic = isinstance(ways, list) and "client_secret_basic" in ways
        named = (
            (quote_plus(client.client_id), quote_plus(client.secret)) if basic else (client.client_id, client.secret)
        )
        body = prepare_token_request(
            "authorization_code", redirect_uri=client.redirect_uri, code=code, code_verifier=attempt.verifier
        )
        way = "client_secret_basic" if basic else "client_secret_post"
        url, headers, sent = ClientAuth(*named, way).prepare("POST", document["token_endpoint"], dict(_FORM), body)
        try:
            answer = await self._outbound.ask("POST", url, headers, sent.encode())
        except OutboundFailed as error:
            raise ProviderFault(f"The provider did not answer: {error}") from None
        if answer.status != 200:
            raise ProviderFault(_token_refusal(answer.body))
        return decoded(answer.body, "answer")

    async def _claims(
        self, document: Mapping[str, Any], client: Client, attempt: Attempt, tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """The id_token's claims: signed by a key of the issuer, for this client and this attempt, and still good."""
        text = tokens.get("id_token")
        if not isinstance(text, str):
            raise ProviderFault("The provider sent no id_token.")
        registry = JWSRegistry(algorithms=algorithms(document), strict_check_header=False)
        try:
            try:
                token = jwt.decode(text, await self._documents.keys(client.issuer), registry=registry)
            except InvalidKeyIdError:
                token = jwt.decode(text, await self._documents.keys(client.issuer, again=True), registry=registry)
            expected: Any = {
                "iss": {"essential": True, "value": client.issuer},
                "aud": {"essential": True, "value": client.client_id},
                "sub": {"essential": True},
            }
            params = {"nonce": attempt.nonce, "client_id": client.client_id, "access_token": tokens.get("access_token")}
            claims = CodeIDToken(token.claims, token.header, expected, params)
            claims.validate(now=self._now(), leeway=LEEWAY)  # type: ignore[no-untyped-call,unused-ignore]
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise ProviderFault(f"The provider's id_token does not hold ({_reason(error)}).") from None
        return dict(claims)

    async def _userinfo(
        self, document: Mapping[str, Any], claims: Mapping[str, Any], tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """What it tells of the same person with the access token; nothing where it has no such place."""
        url, bearer = document.get("userinfo_endpoint"), tokens.get("access_token")
        if not isinstance(url, str) or not isinstance(bearer, str) or not bearer.isascii():
            return {}
        try:
            answer = await self._outbound.ask(
                "GET", url, {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
            )
        except OutboundFailed as error:
            raise ProviderFault(f"The provider did not tell the address: {error}") from None
        if answer.status != 200:
            raise ProviderFault(f"The provider did not tell the address: it answers {answer.status}.")
        found = decoded(answer.body, "userinfo")
        if found.get("sub") != claims["sub"]:
            raise ProviderFault("The provider's userinfo is about somebody else.")
        return found


def _code(document: Mapping[str, Any], client: Client, attempt: Attempt, answer: Mapping[str, str]) -> str:
    """The code, when the answer belongs to this attempt and comes from this issuer (RFC 9207)."""
    given = {name: answer.get(name, "")[:_LONGEST] for name in ("state", "iss", "error", "code")}
    if not hmac.compare_digest(given["state"].encode(), attempt.state.encode()):
        raise ProviderFault("The answer does not belong to the sign-in that this browser began.")
    must_tell = document.get("authorization_response_iss_parameter_supported") is True
    if (must_tell or given["iss"]) and given["iss"] != client.issuer:
        raise ProviderFault("The answer comes from another provider than was asked.")
    if given["error"]:
        raise ProviderFault(_REFUSALS.get(given["error"], "The provider refused the sign-in."))
    try:
        found = parse_authorization_code_response("?" + urlencode({k: v for k, v in given.items() if v}), attempt.state)
    except OAuth2Error:
        raise ProviderFault("The provider sent no code.") from None
    return str(found["code"])


def _must_be_anew(attempt: Attempt, claims: Mapping[str, Any]) -> None:
    """Somebody may have taken `prompt` out of the address: what counts is when the provider has asked, where it tells."""
    since, shown = attempt.again_since, claims.get("auth_time")
    if since is not None and isinstance(shown, int | float) and shown < since.timestamp() - LEEWAY:
        raise ProviderFault("The provider has not asked who you are this time. Sign in there anew.")


def _token_refusal(body: bytes) -> str:
    try:
        error = decoded(body, "answer").get("error")
    except ProviderFault:
        error = None
    if error == "invalid_client":
        return "The provider does not take the client id and secret; an owner has to set them anew."
    if error == "invalid_grant":
        return "The sign-in took too long, or was used already; begin again."
    return "The provider did not take the code."


def _reason(error: Exception) -> str:
    told = getattr(error, "error", "") or type(error).__name__
    claim = getattr(error, "claim", "")
    return f"{told}: {claim}" if claim else str(told)


def _identity(issuer: str, claims: Mapping[str, Any], told: Mapping[str, Any]) -> Identity:
    subject, email, name = claims["sub"], told.get("email"), told.get("name", "")
    if not isinstance(subject, str) or not 0 < len(subject) <= _LONGEST_SUBJECT:
        raise ProviderFault("The provider names nobody.")
    if not isinstance(email, str):
        raise ProviderFault("The provider does not tell the address; let it tell the scope `email`.")
    verified = told.get("email_verified")
    shown = displayable_name(name) if isinstance(name, str) else ""
    return Identity(issuer, subject, email.strip(), verified is True or verified == "true", shown)
