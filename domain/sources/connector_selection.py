"""Selection of a source's connector, and validation of settings by kind of source (docs/conventions.md#source)."""

from collections.abc import Mapping
from typing import Any

from domain.kernel.addresses import describe_url_refusal
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.sources import senders

PUSH_CONNECTOR = "push"
"""Connector name of sources of kind push, whose records the service reads itself."""

_DEFAULTS = {"api": "api", "url": "csv", "file": "csv", "mail": "csv", "push": PUSH_CONNECTOR}
_BY_SETTING = {
    ("url", "shopify"): "shopify",
    ("api", "shopify"): "shopify-admin",
    ("api", "woocommerce"): "woocommerce",
    ("api", "bigcommerce"): "bigcommerce",
    ("url", "json_ld"): "json_ld",
}
_PUSH_SETTINGS = frozenset({"currency", "decimal", "role", "warehouse", "price_code", "media_base_url"})
_NOT_PUSHED = f"A source of kind push has no such setting. Use only {', '.join(sorted(_PUSH_SETTINGS))}."


def select_default_connector(kind: str, config: Mapping[str, Any]) -> str:
    """Return the name of the default connector for the kind and for the platform or format in the settings."""
    chosen = _BY_SETTING.get((kind, str(config.get("platform")))) or _BY_SETTING.get((kind, str(config.get("format"))))
    return chosen or _DEFAULTS[kind]


def refuse_unknown_push_settings(config: Mapping[str, Any]) -> None:
    """Raise InvalidRequest if there are settings that sources of kind push do not have."""
    unknown = tuple(
        FieldError(f"config.{name}", "unknown_field", _NOT_PUSHED) for name in config if name not in _PUSH_SETTINGS
    )
    if unknown:
        raise InvalidRequest(_NOT_PUSHED, fields=unknown)


def refuse_forbidden_urls(config: Mapping[str, Any], allowed_hosts: frozenset[str]) -> None:
    """Raise Unprocessable if the settings contain a URL that the service must not request.

    Args:
        config: The settings.
        allowed_hosts: Hosts that are permitted although their addresses are private.
    """
    for name, value in config.items():
        if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
            reason = describe_url_refusal(value, allowed_hosts)
            if reason:
                raise Unprocessable.for_field(f"config.{name}", "invalid_value", reason)


def validate_required_settings(kind: str, config: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Return an error if the URL (kind `url`) or the allowed senders (kind `mail`) are missing.

    Otherwise, return an error for each invalid sender.
    """
    if kind == "url" and "url" not in config:
        return (
            FieldError(
                "config.url",
                "required",
                "A source of kind url needs the URL of its feed. Enter one, such as https://vendor.example/feed.csv.",
            ),
        )
    if kind == "mail" and "inbound" not in config:
        return (
            FieldError(
                "config.inbound",
                "required",
                'A source of kind mail needs allowed senders. Enter them, as {"senders": ["orders@vendor.example"]}.',
            ),
        )
    return senders.validate_senders(config)
