"""Client metadata (RFC 7591) and authorization server metadata (RFC 8414), validated by Authlib."""

from collections.abc import Mapping
from typing import Any

from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc7591 import ClientMetadataClaims, ClientRegistrationEndpoint
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from adapters.authlib.grants import METHODS
from adapters.authlib.requests import MetadataRequest
from domain.access.model import SCOPES
from domain.kernel.plain import storable
from domain.oauth import redirects
from domain.oauth.asking import Metadata
from domain.oauth.errors import OAuthError
from domain.oauth.model import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN, AppKind, scopes_of

LONGEST_NAME = 100
_SHOWN = ("client_name", "redirect_uris", "grant_types", "response_types", "scope", "client_uri")
_TEXTS = (
    "client_name",
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "scope",
    "token_endpoint_auth_method",
)
_LISTS = ("redirect_uris", "grant_types", "response_types")


def server_metadata(issuer: str) -> dict[str, Any]:
    """Return the metadata document of RFC 8414, validated."""
    document = AuthorizationServerMetadata(
        {
            "issuer": issuer,
            "authorization_endpoint": f"{issuer}/oauth/authorize",
            "token_endpoint": f"{issuer}/oauth/token",
            "device_authorization_endpoint": f"{issuer}/oauth/device",
            "revocation_endpoint": f"{issuer}/oauth/revoke",
            "introspection_endpoint": f"{issuer}/oauth/introspect",
            "registration_endpoint": f"{issuer}/oauth/register",
            "scopes_supported": sorted(SCOPES),
            "response_types_supported": ["code"],
            "response_modes_supported": ["query"],
            "grant_types_supported": [AUTHORIZATION_CODE, REFRESH_TOKEN, CLIENT_CREDENTIALS, DEVICE_CODE],
            "token_endpoint_auth_methods_supported": METHODS,
            "revocation_endpoint_auth_methods_supported": METHODS,
            "introspection_endpoint_auth_methods_supported": METHODS,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "service_documentation": f"{issuer}/docs/guides/oauth",
        }
    )
    if issuer.startswith("https://"):  # the RFC requires https, which a local installation lacks
        document.validate()
    return dict(document)


class _Registration(ClientRegistrationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Parser of client metadata (RFC 7591), restricted to what the server supports."""

    def get_server_metadata(self) -> dict[str, Any]:
        return {
            "scopes_supported": sorted(SCOPES),
            "response_types_supported": ["code"],
            "grant_types_supported": [AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE],
            "token_endpoint_auth_methods_supported": METHODS,
        }


def read(said: Mapping[str, Any], *, public: bool) -> Metadata:
    """Parse and validate an app's metadata; a `public` app cannot have a secret. Raises OAuthError."""
    data = {name: said[name] for name in (*_TEXTS, *_LISTS) if said.get(name) is not None}  # the rest is ignored (§2)
    _check_types(data)
    if public:
        data.setdefault("token_endpoint_auth_method", "none")
    _check_home(data)
    endpoint = _Registration(None, [ClientMetadataClaims])
    try:
        claims = endpoint.extract_client_metadata(MetadataRequest(data))
    except (OAuth2Error, ValueError) as error:
        _redirect_uris(data, confidential=False)
        raise OAuthError("invalid_client_metadata", "The metadata does not conform to RFC 7591.") from error
    confidential = claims["token_endpoint_auth_method"] != METHODS[-1]
    if public and confidential:
        raise OAuthError(
            "invalid_client_metadata",
            "An app with a metadata document cannot have a secret. Set token_endpoint_auth_method to none.",
        )
    uris = _redirect_uris(claims, confidential=confidential)
    shown = {name: claims[name] for name in _SHOWN if claims.get(name)}
    shown |= {"token_endpoint_auth_method": claims["token_endpoint_auth_method"]}
    shown.setdefault("grant_types", [AUTHORIZATION_CODE, REFRESH_TOKEN])
    shown.setdefault("response_types", ["code"])
    name = _printable(str(claims.get("client_name") or "")) or "An app without a name"
    return Metadata(
        name=name[:LONGEST_NAME],
        redirect_uris=uris,
        scopes=scopes_of(claims.get("scope") or "") or SCOPES,
        confidential=confidential,
        home=claims.get("client_uri"),
        said=shown,
    )


def _check_types(data: Mapping[str, Any]) -> None:
    """Raise OAuthError for a value of the wrong type, or one with NUL or a lone surrogate, which cannot be stored."""
    for name in (*_TEXTS, *_LISTS):
        texts = data.get(name) or ""
        if any(
            storable(text) != text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)
        ):
            raise OAuthError("invalid_client_metadata", f"{name} contains a character that cannot be stored.")
    for name in _TEXTS:
        if not isinstance(data.get(name, ""), str) or len(data.get(name, "")) > 2000:
            raise OAuthError("invalid_client_metadata", f"{name} must be a string of at most 2000 characters.")
    for name in _LISTS:
        values = data.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            code = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OAuthError(code, f"{name} must be a list of strings.")


def _check_home(data: Mapping[str, Any]) -> None:
    """Raise OAuthError for an invalid `client_uri`; Authlib's error would not name the member."""
    home = data.get("client_uri")
    if home is not None and not home.startswith(("https://", "http://")):
        raise OAuthError("invalid_client_metadata", "client_uri must be a URL of a web page.")


def _redirect_uris(claims: Mapping[str, Any], *, confidential: bool) -> tuple[str, ...]:
    uris = claims.get("redirect_uris") or []
    grants = claims.get("grant_types") or [AUTHORIZATION_CODE]
    if (not uris and AUTHORIZATION_CODE in grants) or len(uris) > redirects.MOST:
        raise OAuthError("invalid_redirect_uri", f"Send 1 to {redirects.MOST} redirect_uris.")
    kind = AppKind.WEB if confidential else AppKind.NATIVE
    for uri in uris:
        if reason := redirects.refused(uri, kind):
            raise OAuthError("invalid_redirect_uri", reason)
    return tuple(dict.fromkeys(uris))


def _printable(text: str) -> str:
    """Replace unprintable characters (controls, text directions, joiners) and collapse white space."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
