"""OpenID Connect relying party: authorization requests, token exchange and verification of identities."""

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
"""Tolerated difference of clocks in seconds."""
_MAX_PARAMETER_LENGTH = 8192
"""Maximum characters of a response parameter."""
_MAX_SUBJECT_LENGTH = 255
_REAUTHENTICATE: Final[Mapping[str, str]] = {"prompt": "login", "max_age": "0"}
"""Parameters that force reauthentication; with `max_age`, providers must return `auth_time` (OpenID Connect Core §3.1.2.1)."""
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_REFUSALS = {
    "access_denied": "The provider denied access.",
    "login_required": "The provider requires you to sign in there first.",
    "temporarily_unavailable": "The provider is temporarily unavailable. Try again.",
}


class OidcProviders:
    """IdentityProviders (domain/sso/ports.py) by OpenID Connect."""

    def __init__(
        self, outbound: Outbound, documents: ProviderDocuments | None = None, now: Callable[[], float] | None = None
    ) -> None:
        self._outbound, self._documents = outbound, documents or ProviderDocuments(outbound)
        self._now = lambda: int(now() if now else CLOCK.unix_ms() // 1000)

    async def issuer(self, issuer: str) -> str:
        document = await self._documents.fresh(issuer)
        canonical: str = document["issuer"]
        await self._documents.keys(canonical)
        return canonical

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
            **(_REAUTHENTICATE if attempt.again_since is not None else {}),
        )
        return url

    async def identity(self, client: Client, attempt: Attempt, answer: Mapping[str, str]) -> Identity:
        document = await self._documents.find(client.issuer)
        code = _code(document, client, attempt, answer)
        tokens = await self._exchange(document, client, attempt, code)
        claims = await self._claims(document, client, attempt, tokens)
        _check_reauthentication(attempt, claims)
        if "email" in claims:
            return _identity(client.issuer, claims, claims)
        userinfo = {**await self._userinfo(document, claims, tokens), "sub": claims["sub"]}
        return _identity(client.issuer, claims, userinfo)

    async def _exchange(
        self, document: Mapping[str, Any], client: Client, attempt: Attempt, code: str
    ) -> Mapping[str, Any]:
        """Exchange the code for tokens, with the client's secret and the PKCE verifier."""
        methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
        basic = isinstance(methods, list) and "client_secret_basic" in methods
        credentials = (
            (quote_plus(client.client_id), quote_plus(client.secret)) if basic else (client.client_id, client.secret)
        )
        body = prepare_token_request(
            "authorization_code", redirect_uri=client.redirect_uri, code=code, code_verifier=attempt.verifier
        )
        method = "client_secret_basic" if basic else "client_secret_post"
        auth = ClientAuth(*credentials, method)
        url, headers, form = auth.prepare("POST", document["token_endpoint"], dict(_FORM), body)
        try:
            answer = await self._outbound.ask("POST", url, headers, form.encode())
        except OutboundFailed as error:
            raise ProviderFault(f"The provider did not answer: {error}") from None
        if answer.status != 200:
            raise ProviderFault(_token_refusal(answer.body))
        return decoded(answer.body, "token response")

    async def _claims(
        self, document: Mapping[str, Any], client: Client, attempt: Attempt, tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Verify the id_token (signature, issuer, audience, nonce, expiry) and return its claims."""
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
            raise ProviderFault(f"The provider's id_token is invalid ({_reason(error)}).") from None
        return dict(claims)

    async def _userinfo(
        self, document: Mapping[str, Any], claims: Mapping[str, Any], tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Fetch the same subject's userinfo; return an empty mapping if the provider has no such endpoint."""
        url, bearer = document.get("userinfo_endpoint"), tokens.get("access_token")
        if not isinstance(url, str) or not isinstance(bearer, str) or not bearer.isascii():
            return {}
        try:
            answer = await self._outbound.ask(
                "GET", url, {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
            )
        except OutboundFailed as error:
            raise ProviderFault(f"The provider's userinfo cannot be fetched: {error}") from None
        if answer.status != 200:
            raise ProviderFault(f"The provider's userinfo cannot be fetched: the status is {answer.status}.")
        userinfo = decoded(answer.body, "userinfo")
        if userinfo.get("sub") != claims["sub"]:
            raise ProviderFault("The provider's userinfo describes another user.")
        return userinfo


def _code(document: Mapping[str, Any], client: Client, attempt: Attempt, answer: Mapping[str, str]) -> str:
    """Return the code if state and issuer (RFC 9207) match the attempt. Raises ProviderFault."""
    parameters = {name: answer.get(name, "")[:_MAX_PARAMETER_LENGTH] for name in ("state", "iss", "error", "code")}
    if not hmac.compare_digest(parameters["state"].encode(), attempt.state.encode()):
        raise ProviderFault("The response does not belong to the sign-in that this browser started. Start again.")
    has_issuer = document.get("authorization_response_iss_parameter_supported") is True
    if (has_issuer or parameters["iss"]) and parameters["iss"] != client.issuer:
        raise ProviderFault("The response comes from another provider.")
    if parameters["error"]:
        raise ProviderFault(_REFUSALS.get(parameters["error"], "The provider refused the sign-in."))
    try:
        query = "?" + urlencode({name: value for name, value in parameters.items() if value})
        response = parse_authorization_code_response(query, attempt.state)
    except OAuth2Error:
        raise ProviderFault("The provider sent no code.") from None
    return str(response["code"])


def _check_reauthentication(attempt: Attempt, claims: Mapping[str, Any]) -> None:
    """Raise ProviderFault if reauthentication was requested but `auth_time` is older.

    The user may have removed `prompt` from the URL, so only `auth_time` counts, if the provider returns it.
    """
    since, authenticated_at = attempt.again_since, claims.get("auth_time")
    if (
        since is not None
        and isinstance(authenticated_at, int | float)
        and authenticated_at < since.timestamp() - LEEWAY
    ):
        raise ProviderFault("The provider did not authenticate you again. Sign in there again.")


def _token_refusal(body: bytes) -> str:
    try:
        error = decoded(body, "token response").get("error")
    except ProviderFault:
        error = None
    if error == "invalid_client":
        return "The provider does not accept the client ID and secret. An owner must enter them again."
    if error == "invalid_grant":
        return "The sign-in has expired or was already used. Start again."
    return "The provider did not accept the code."


def _reason(error: Exception) -> str:
    code = getattr(error, "error", "") or type(error).__name__
    claim = getattr(error, "claim", "")
    return f"{code}: {claim}" if claim else str(code)


def _identity(issuer: str, claims: Mapping[str, Any], profile: Mapping[str, Any]) -> Identity:
    subject, email, name = claims["sub"], profile.get("email"), profile.get("name", "")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT_LENGTH:
        raise ProviderFault("The provider returned no valid subject.")
    if not isinstance(email, str):
        raise ProviderFault("The provider returned no email address. Permit the scope `email` for this client there.")
    verified = profile.get("email_verified")
    display_name = displayable_name(name) if isinstance(name, str) else ""
    return Identity(issuer, subject, email.strip(), verified is True or verified == "true", display_name)
