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

from adapters.oidc.discovery import ProviderDocuments, decode_json_object, select_algorithms
from domain.kernel.clock import CLOCK
from domain.kernel.names import displayable_name
from domain.sso.model import Identity, OidcClient, SsoAttempt
from domain.sso.ports import ProviderFault
from ports.outbound import OutboundClient, OutboundFailed

REQUESTED_SCOPES = "openid email profile"
LEEWAY_SECONDS = 60
"""Tolerated difference of clocks in seconds."""
_MAX_PARAMETER_LENGTH = 8192
"""Maximum characters of a response parameter."""
_MAX_SUBJECT_LENGTH = 255
_REAUTHENTICATE: Final[Mapping[str, str]] = {"prompt": "login", "max_age": "0"}
"""Parameters that force reauthentication; with `max_age`, providers must return `auth_time` (OpenID Connect Core §3.1.2.1)."""
_FORM = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
_REFUSALS = {
    "access_denied": "The provider denied access.",
    "login_required": "Sign in at the provider first, then start again.",
    "temporarily_unavailable": "The provider is temporarily unavailable. Try again.",
}


class OidcProviders:
    """OpenID Connect relying party for all identity providers (port IdentityProviders in domain/sso/ports.py).

    Args:
        outbound: The HTTP client.
        documents: The cache of discovery documents and keys; None for a new one.
        now: Returns the time in Unix seconds; None for the service's clock.
    """

    def __init__(
        self,
        outbound: OutboundClient,
        documents: ProviderDocuments | None = None,
        now: Callable[[], float] | None = None,
    ) -> None:
        self._outbound, self._documents = outbound, documents or ProviderDocuments(outbound)
        self._now = lambda: int(now() if now else CLOCK.unix_ms() // 1000)

    async def check_issuer(self, issuer: str) -> str:
        document = await self._documents.fetch_document(issuer)
        canonical: str = document["issuer"]
        await self._documents.get_keys(canonical)
        return canonical

    async def build_authorization_url(self, client: OidcClient, attempt: SsoAttempt, email: str) -> str:
        document = await self._documents.get_document(client.issuer)
        url: str = prepare_grant_uri(
            document["authorization_endpoint"],
            client.client_id,
            "code",
            redirect_uri=client.redirect_uri,
            scope=REQUESTED_SCOPES,
            state=attempt.state,
            nonce=attempt.nonce,
            code_challenge=create_s256_code_challenge(attempt.verifier),
            code_challenge_method="S256",
            login_hint=email or None,
            **(_REAUTHENTICATE if attempt.min_auth_time is not None else {}),
        )
        return url

    async def verify_identity(
        self, client: OidcClient, attempt: SsoAttempt, response_params: Mapping[str, str]
    ) -> Identity:
        document = await self._documents.get_document(client.issuer)
        code = _extract_code(document, client, attempt, response_params)
        tokens = await self._exchange_code(document, client, attempt, code)
        claims = await self._verify_claims(document, client, attempt, tokens)
        _check_reauthentication(attempt, claims)
        if "email" in claims:
            return _build_identity(client.issuer, claims, claims)
        userinfo = {**await self._fetch_userinfo(document, claims, tokens), "sub": claims["sub"]}
        return _build_identity(client.issuer, claims, userinfo)

    async def _exchange_code(
        self, document: Mapping[str, Any], client: OidcClient, attempt: SsoAttempt, code: str
    ) -> Mapping[str, Any]:
        """Exchange the authorization code for tokens, with the client's secret and the PKCE verifier; return the response."""
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
            response = await self._outbound.request("POST", url, headers, form.encode())
        except OutboundFailed as error:
            raise ProviderFault(f"The provider did not respond: {error}") from None
        if response.status != 200:
            raise ProviderFault(_describe_token_refusal(response.body))
        return decode_json_object(response.body, "token response")

    async def _verify_claims(
        self, document: Mapping[str, Any], client: OidcClient, attempt: SsoAttempt, tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Verify signature, issuer, audience, nonce and expiry of the id_token; return the claims. Raises ProviderFault."""
        text = tokens.get("id_token")
        if not isinstance(text, str):
            raise ProviderFault("The provider sent no id_token.")
        registry = JWSRegistry(algorithms=select_algorithms(document), strict_check_header=False)
        try:
            try:
                token = jwt.decode(text, await self._documents.get_keys(client.issuer), registry=registry)
            except InvalidKeyIdError:
                token = jwt.decode(text, await self._documents.get_keys(client.issuer, refresh=True), registry=registry)
            expected: Any = {
                "iss": {"essential": True, "value": client.issuer},
                "aud": {"essential": True, "value": client.client_id},
                "sub": {"essential": True},
            }
            params = {"nonce": attempt.nonce, "client_id": client.client_id, "access_token": tokens.get("access_token")}
            claims = CodeIDToken(token.claims, token.header, expected, params)
            claims.validate(now=self._now(), leeway=LEEWAY_SECONDS)  # type: ignore[no-untyped-call,unused-ignore]
        except (JoseError, ValueError, TypeError, KeyError) as error:
            raise ProviderFault(f"The provider's id_token is invalid ({_describe_error(error)}).") from None
        return dict(claims)

    async def _fetch_userinfo(
        self, document: Mapping[str, Any], claims: Mapping[str, Any], tokens: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Fetch the userinfo of the user in `claims`; return an empty mapping if the provider has no userinfo endpoint."""
        url, bearer = document.get("userinfo_endpoint"), tokens.get("access_token")
        if not isinstance(url, str) or not isinstance(bearer, str) or not bearer.isascii():
            return {}
        try:
            response = await self._outbound.request(
                "GET", url, {"Authorization": f"Bearer {bearer}", "Accept": "application/json"}
            )
        except OutboundFailed as error:
            raise ProviderFault(f"The provider's userinfo cannot be fetched: {error}") from None
        if response.status != 200:
            raise ProviderFault(f"The provider's userinfo cannot be fetched: the status is {response.status}.")
        userinfo = decode_json_object(response.body, "userinfo")
        if userinfo.get("sub") != claims["sub"]:
            raise ProviderFault("The provider's userinfo describes another user.")
        return userinfo


def _extract_code(
    document: Mapping[str, Any], client: OidcClient, attempt: SsoAttempt, response_params: Mapping[str, str]
) -> str:
    """Return the authorization code in the parameters of an authorization response.

    Raises:
        ProviderFault: The response is an error, or its state or issuer (RFC 9207) does not match the attempt.
    """
    parameters = {
        name: response_params.get(name, "")[:_MAX_PARAMETER_LENGTH] for name in ("state", "iss", "error", "code")
    }
    if not hmac.compare_digest(parameters["state"].encode(), attempt.state.encode()):
        raise ProviderFault("The response does not belong to the sign-in that this browser started. Start again.")
    has_issuer = document.get("authorization_response_iss_parameter_supported") is True
    if (has_issuer or parameters["iss"]) and parameters["iss"] != client.issuer:
        raise ProviderFault("The response comes from another provider. Start again.")
    if parameters["error"]:
        raise ProviderFault(_REFUSALS.get(parameters["error"], "The provider refused the sign-in. Start again."))
    try:
        query = "?" + urlencode({name: value for name, value in parameters.items() if value})
        response = parse_authorization_code_response(query, attempt.state)
    except OAuth2Error:
        raise ProviderFault("The provider sent no code.") from None
    return str(response["code"])


def _check_reauthentication(attempt: SsoAttempt, claims: Mapping[str, Any]) -> None:
    """Raise ProviderFault if reauthentication was requested, and the claim `auth_time` is older than the request."""
    # the user may have removed the parameter `prompt` from the URL, so only `auth_time` proves the reauthentication
    since, authenticated_at = attempt.min_auth_time, claims.get("auth_time")
    if (
        since is not None
        and isinstance(authenticated_at, int | float)
        and authenticated_at < since.timestamp() - LEEWAY_SECONDS
    ):
        raise ProviderFault("The provider did not authenticate you again. Sign in at the provider again.")


def _describe_token_refusal(body: bytes) -> str:
    """Return the message for an error response of the token endpoint."""
    try:
        error = decode_json_object(body, "token response").get("error")
    except ProviderFault:
        error = None
    if error == "invalid_client":
        return "The provider does not accept the client ID and secret. An owner must enter them again."
    if error == "invalid_grant":
        return "The sign-in has expired or was already used. Start again."
    return "The provider did not accept the authorization code. Start again."


def _describe_error(error: Exception) -> str:
    """Return the error code, or the type if there is no code, followed by the invalid claim if the error names one."""
    code = getattr(error, "error", "") or type(error).__name__
    claim = getattr(error, "claim", "")
    return f"{code}: {claim}" if claim else str(code)


def _build_identity(issuer: str, claims: Mapping[str, Any], profile: Mapping[str, Any]) -> Identity:
    """Return the identity with the subject in `claims` and the email address and name in `profile`. Raises ProviderFault."""
    subject, email, name = claims["sub"], profile.get("email"), profile.get("name", "")
    if not isinstance(subject, str) or not 0 < len(subject) <= _MAX_SUBJECT_LENGTH:
        raise ProviderFault("The provider returned no valid user ID in the claim `sub`.")
    if not isinstance(email, str):
        raise ProviderFault(
            "The provider returned no email address. Permit the scope `email` for this client at the provider."
        )
    verified = profile.get("email_verified")
    display_name = displayable_name(name) if isinstance(name, str) else ""
    return Identity(issuer, subject, email.strip(), verified is True or verified == "true", display_name)
