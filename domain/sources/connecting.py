"""Selection of a source's connector, and its required settings (docs/conventions.md#source)."""

from collections.abc import Mapping
from typing import Any

from domain.kernel.addresses import refusal
from domain.kernel.errors import FieldError, InvalidRequest, Unprocessable
from domain.sources import senders

PUSH = "push"
"""The connector name of sources of kind push, whose records the service itself receives."""

_DEFAULTS = {"api": "api", "url": "csv", "file": "csv", "mail": "csv", "push": PUSH}
_BY_SETTING = {
    ("url", "shopify"): "shopify",
    ("api", "shopify"): "shopify-admin",
    ("api", "woocommerce"): "woocommerce",
    ("api", "bigcommerce"): "bigcommerce",
    ("url", "json_ld"): "json_ld",
}
_PUSH_SETTINGS = frozenset({"currency", "decimal", "role", "warehouse", "price_code", "media_base_url"})
_NOT_PUSHED = f"A source of kind push has no such setting; it takes {', '.join(sorted(_PUSH_SETTINGS))}."


def default_connector(kind: str, config: Mapping[str, Any]) -> str:
    """Return the default connector of a source by its kind, platform or format."""
    chosen = _BY_SETTING.get((kind, str(config.get("platform")))) or _BY_SETTING.get((kind, str(config.get("format"))))
    return chosen or _DEFAULTS[kind]


def refuse_push_settings(config: Mapping[str, Any]) -> None:
    """Raise InvalidRequest for settings that do not apply to a pushed source."""
    unknown = tuple(
        FieldError(f"config.{name}", "unknown_field", _NOT_PUSHED) for name in config if name not in _PUSH_SETTINGS
    )
    if unknown:
        raise InvalidRequest(_NOT_PUSHED, fields=unknown)


def refuse_addresses(config: Mapping[str, Any], allowed: frozenset[str]) -> None:
    """Raise Unprocessable for a URL in the settings that the service must not request; `allowed` as in `refusal`."""
    for name, value in config.items():
        if isinstance(value, str) and value.lower().startswith(("http://", "https://")):
            reason = refusal(value, allowed)
            if reason:
                raise Unprocessable.of(f"config.{name}", "invalid_value", reason)


def missing_settings(kind: str, config: Mapping[str, Any]) -> tuple[FieldError, ...]:
    """Return an error for each missing required setting of the kind."""
    if kind == "url" and "url" not in config:
        return (
            FieldError(
                "config.url",
                "required",
                "A source of kind url needs the address that is pulled, such as https://vendor.example/feed.csv.",
            ),
        )
    if kind == "mail" and "inbound" not in config:
        return (
            FieldError(
                "config.inbound",
                "required",
                'A source of kind mail needs its senders, such as {"senders": ["orders@vendor.example"]}.',
            ),
        )
    return senders.faults(config)
