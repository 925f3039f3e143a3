"""Parsing of client metadata (RFC 7591), and metadata of the authorization server (RFC 8414)."""

from collections.abc import Mapping
from typing import Any

from authlib.oauth2.rfc6749.errors import OAuth2Error
from authlib.oauth2.rfc7591 import ClientMetadataClaims, ClientRegistrationEndpoint
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from adapters.authlib.grant_types import SUPPORTED_CLIENT_AUTH
from adapters.authlib.requests import MetadataRequest
from domain.access.model import SCOPES
from domain.kernel.json_values import replace_unstorable
from domain.oauth import redirects
from domain.oauth.errors import OAuthError
from domain.oauth.model import AUTHORIZATION_CODE, CLIENT_CREDENTIALS, DEVICE_CODE, REFRESH_TOKEN, AppKind, parse_scopes
from domain.oauth.requests import ClientMetadata

MAX_NAME_LENGTH = 100
_RETURNED_MEMBERS = ("client_name", "redirect_uris", "grant_types", "response_types", "scope", "client_uri")
_TEXT_MEMBERS = (
    "client_name",
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "scope",
    "token_endpoint_auth_method",
)
_LIST_MEMBERS = ("redirect_uris", "grant_types", "response_types")


def build_server_metadata(issuer: str) -> dict[str, Any]:
    """Return the metadata of the authorization server with the issuer URL (RFC 8414)."""
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
            "token_endpoint_auth_methods_supported": SUPPORTED_CLIENT_AUTH,
            "revocation_endpoint_auth_methods_supported": SUPPORTED_CLIENT_AUTH,
            "introspection_endpoint_auth_methods_supported": SUPPORTED_CLIENT_AUTH,
            "code_challenge_methods_supported": ["S256"],
            "authorization_response_iss_parameter_supported": True,
            "client_id_metadata_document_supported": True,
            "service_documentation": f"{issuer}/docs/guides/oauth",
        }
    )
    if issuer.startswith("https://"):  # the RFC requires https, which a local installation lacks
        document.validate()
    return dict(document)


class _ClientMetadataParser(ClientRegistrationEndpoint):  # type: ignore[misc]  # Authlib has no types
    """Parser of client metadata (RFC 7591), restricted to what the server supports."""

    def get_server_metadata(self) -> dict[str, Any]:
        return {
            "scopes_supported": sorted(SCOPES),
            "response_types_supported": ["code"],
            "grant_types_supported": [AUTHORIZATION_CODE, REFRESH_TOKEN, DEVICE_CODE],
            "token_endpoint_auth_methods_supported": SUPPORTED_CLIENT_AUTH,
        }


def parse_client_metadata(document: Mapping[str, Any], *, is_public: bool) -> ClientMetadata:
    """Parse and validate the metadata of an app.

    Args:
        document: The metadata.
        is_public: Whether the app cannot have a secret, because its metadata is a public document.

    Raises:
        OAuthError: The metadata is invalid.
    """
    data = {
        name: document[name] for name in (*_TEXT_MEMBERS, *_LIST_MEMBERS) if document.get(name) is not None
    }  # the rest is ignored (§2)
    _check_values(data)
    if is_public:
        data.setdefault("token_endpoint_auth_method", "none")
    _check_client_uri(data)
    endpoint = _ClientMetadataParser(None, [ClientMetadataClaims])
    try:
        claims = endpoint.extract_client_metadata(MetadataRequest(data))
    except (OAuth2Error, ValueError) as error:
        _validate_redirect_uris(data, is_confidential=False)
        raise OAuthError("invalid_client_metadata", "The metadata does not conform to RFC 7591.") from error
    is_confidential = claims["token_endpoint_auth_method"] != SUPPORTED_CLIENT_AUTH[-1]
    if is_public and is_confidential:
        raise OAuthError(
            "invalid_client_metadata",
            "An app with a metadata document cannot have a secret. Set token_endpoint_auth_method to none.",
        )
    uris = _validate_redirect_uris(claims, is_confidential=is_confidential)
    shown = {name: claims[name] for name in _RETURNED_MEMBERS if claims.get(name)}
    shown |= {"token_endpoint_auth_method": claims["token_endpoint_auth_method"]}
    shown.setdefault("grant_types", [AUTHORIZATION_CODE, REFRESH_TOKEN])
    shown.setdefault("response_types", ["code"])
    name = _make_printable(str(claims.get("client_name") or "")) or "An app without a name"
    return ClientMetadata(
        name=name[:MAX_NAME_LENGTH],
        redirect_uris=uris,
        scopes=parse_scopes(claims.get("scope") or "") or SCOPES,
        is_confidential=is_confidential,
        home=claims.get("client_uri"),
        response=shown,
    )


def _check_values(data: Mapping[str, Any]) -> None:
    """Raise OAuthError for a wrong type, a text of over 2000 characters, or a character that cannot be stored."""
    for name in (*_TEXT_MEMBERS, *_LIST_MEMBERS):
        texts = data.get(name) or ""
        if any(
            replace_unstorable(text) != text
            for text in (texts if isinstance(texts, list) else [texts])
            if isinstance(text, str)
        ):
            raise OAuthError(
                "invalid_client_metadata",
                f"{name} contains a character that cannot be stored, such as NUL. Remove the character.",
            )
    for name in _TEXT_MEMBERS:
        if not isinstance(data.get(name, ""), str) or len(data.get(name, "")) > 2000:
            raise OAuthError("invalid_client_metadata", f"{name} must be a string of at most 2000 characters.")
    for name in _LIST_MEMBERS:
        values = data.get(name, [])
        if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
            code = "invalid_redirect_uri" if name == "redirect_uris" else "invalid_client_metadata"
            raise OAuthError(code, f"{name} must be a list of strings.")


def _check_client_uri(data: Mapping[str, Any]) -> None:
    """Raise OAuthError if `client_uri` is not an http or https URL."""
    # Authlib's error would not name the member
    home = data.get("client_uri")
    if home is not None and not home.startswith(("https://", "http://")):
        raise OAuthError("invalid_client_metadata", "client_uri must be a URL of a web page.")


def _validate_redirect_uris(claims: Mapping[str, Any], *, is_confidential: bool) -> tuple[str, ...]:
    """Return the distinct redirect URIs of an app.

    Raises OAuthError if a URI is not permitted, there are more than MAX_REDIRECT_URIS, or a required URI is missing.

    Args:
        claims: Metadata of the app.
        is_confidential: Whether the app has a secret.
    """
    uris = claims.get("redirect_uris") or []
    grants = claims.get("grant_types") or [AUTHORIZATION_CODE]
    if (not uris and AUTHORIZATION_CODE in grants) or len(uris) > redirects.MAX_REDIRECT_URIS:
        raise OAuthError("invalid_redirect_uri", f"redirect_uris must contain 1 to {redirects.MAX_REDIRECT_URIS} URIs.")
    kind = AppKind.WEB if is_confidential else AppKind.NATIVE
    for uri in uris:
        if reason := redirects.describe_refusal(uri, kind):
            raise OAuthError("invalid_redirect_uri", reason)
    return tuple(dict.fromkeys(uris))


def _make_printable(text: str) -> str:
    """Return the text with a space for each sequence of unprintable characters and white space."""
    return " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
