"""What apps say of themselves, and what this server says of itself, by Authlib's rules for both (RFC 7591, RFC 8414)."""

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
    """The document of RFC 8414, checked as that says."""
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
    if issuer.startswith("https://"):  # else this is a machine of one's own, which the RFC does not think of
        document.validate()
    return dict(document)


class _Registration(ClientRegistrationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Reads metadata by the claims of RFC 7591; what it says of the server narrows them."""

    def get_server_metadata(self) -> dict[str, Any]:
        return {
            "scopes_supported": sorted(SCOPES),
            "response_types_supported": ["code"],
            "grant_types_supported": [AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE],
            "token_endpoint_auth_methods_supported": METHODS,
        }


def read(said: Mapping[str, Any], *, public: bool) -> Metadata:
    """Judge what an app says; `public`: it can have no secret. Raises OAuthError."""
    data = {name: said[name] for name in (*_TEXTS, *_LISTS) if said.get(name) is not None}  # the rest is ignored (§2)
    _must_be_typed(data)
    if public:
        data.setdefault("token_endpoint_auth_method", "none")
    _must_be_known(data)
    endpoint = _Registration(None, [ClientMetadataClaims])
    try:
        claims = endpoint.extract_client_metadata(MetadataRequest(data))
    except (OAuth2Error, ValueError) as error:
        _must_redirect(data, confidential=False)
        raise OAuthError("invalid_client_metadata", "Some of the metadata is not as RFC 7591 wants it.") from error
    confidential = claims["token_endpoint_auth_method"] != METHODS[-1]
    if public and confidential:
        raise OAuthError("invalid_client_metadata", "An app with a document can have no secret: use none.")
    uris = _must_redirect(claims, confidential=confidential)
    shown = {name: claims[name] for name in _SHOWN if claims.get(name)}
    shown |= {"token_endpoint_auth_method": claims["token_endpoint_auth_method"]}
    shown.setdefault("grant_types", [AUTHORIZATION_CODE, REFRESH_TOKEN])
    shown.setdefault("response_types", ["code"])
    name = _plain(str(claims.get("client_name") or "")) or "An app without a name"
    return Metadata(
        name=name[:LONGEST_NAME],
        redirect_uris=uris,
        scopes=scopes_of(claims.get("scope") or "") or SCOPES,
        confidential=confidential,
        home=claims.get("client_uri"),
        said=shown,
    )


def _must_be_typed(data: Mapping[str, Any]) -> None:
    """Raise OAuthError for a value of another type, or one with NUL or a lone surrogate, which cannot be stored."""
    for name in (*_TEXTS, *_LISTS):
        texts = data.get(name) or ""
        if any(
            storable(text) != text for text in (texts if isinstance(texts, list) else [texts]) if isinstance(text, str)
        ):
            raise OAuthError("invalid_client_metadata", f"{name} contains a character that cannot be stored.")
    for name in _TEXTS:
        if not isinstance(data.get(name, ""), str) or len(data.get(name, "")) > 2000:
            raise OAuthError("invalid_client_metadata", f"{name} is a text of at most 2000 characters.")
    for name in _LISTS:
        listed = data.get(name, [])
        if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
            code = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OAuthError(code, f"{name} is a list of texts.")


def _must_be_known(data: Mapping[str, Any]) -> None:
    """Authlib takes what is missing for what the RFC says; the answer names what is meant."""
    home = data.get("client_uri")
    if home is not None and not home.startswith(("https://", "http://")):
        raise OAuthError("invalid_client_metadata", "client_uri is the address of a page.")


def _must_redirect(claims: Mapping[str, Any], *, confidential: bool) -> tuple[str, ...]:
    uris = claims.get("redirect_uris") or []
    grants = claims.get("grant_types") or [AUTHORIZATION_CODE]
    if (not uris and AUTHORIZATION_CODE in grants) or len(uris) > redirects.MOST:
        raise OAuthError("invalid_redirect_uri", f"Name 1 to {redirects.MOST} redirect_uris.")
    kind = AppKind.WEB if confidential else AppKind.NATIVE
    for uri in uris:
        if why := redirects.refused(uri, kind):
            raise OAuthError("invalid_redirect_uri", why)
    return tuple(dict.fromkeys(uris))


def _plain(text: str) -> str:
    """A name without anything that would not show, or turn the rest around (controls, directions, joiners)."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
