"""Form fields from the JSON Schemas of a connector's settings and credentials, and the parsing of such forms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from entrypoints.console.rendering import label, listing
from entrypoints.console.request import FormData, number_or_text, whole_number
from entrypoints.console.translation import gettext

_FIRST = ("url", "currency", "decimal", "warehouse", "price_code", "media_base_url")
"""Settings at the start of forms, in this order, if the connector has them."""
_HIDDEN = ("inbound", "platform", "role", "format")
_OPEN = frozenset({"username", "shop", "store", "header", "query", "consumer_key"})
"""Credentials that are not secret; inputs for all others are masked."""


class FormField(NamedTuple):
    """A form field: `options` of a choice, otherwise the `type` of the input."""

    name: str
    title: str
    type: str
    hint: str
    required: bool
    value: str = ""
    options: Sequence[tuple[str, str]] = ()


class SignInMethod(NamedTuple):
    """A sign-in method with its fields."""

    key: str
    title: str
    fields: Sequence[FormField]


def settings_fields(schema: Mapping[str, Any], given: Mapping[str, Any], only: Iterable[str] = ()) -> list[FormField]:
    """Return fields for the connector's settings; objects and lists can be set only by the API."""
    properties, required, chosen = schema.get("properties", {}), schema.get("required", ()), tuple(only)
    names = [*_FIRST, *(name for name in properties if name not in (*_FIRST, *_HIDDEN))]
    return [
        _field(f"config.{name}", properties[name], given.get(name), required=name in required)
        for name in names
        if name in (chosen or names) and properties.get(name, {"type": "object"}).get("type") not in ("object", "array")
    ]


def sign_in_methods(schema: Mapping[str, Any] | None) -> list[SignInMethod]:
    """Return the sign-in methods of the connector's schema, if any."""
    found = []
    for key, one in enumerate(schema.get("oneOf", (schema,)) if schema else ()):
        properties, required = one.get("properties", {}), one.get("required", ())
        fields = [
            _field(f"credentials.{key}.{name}", part, None, required=name in required, secret=name not in _OPEN)
            for name, part in properties.items()
        ]
        titles = [label(name, "settings") for name in properties]
        found.append(SignInMethod(str(key), listing(titles), fields))
    return found


def _field(name: str, schema: Mapping[str, Any], value: Any, *, required: bool, secret: bool = False) -> FormField:
    options: list[tuple[str, str]] = []
    kind = {"integer": "number", "boolean": "tick"}.get(str(schema.get("type")), "text")
    if "enum" in schema:
        kind = "choice"
        options = [] if required else [("", gettext("Connector default"))]
        options += [(str(one), label(str(one), "settings")) for one in schema["enum"]]
    elif secret:
        kind = "password"
    elif schema.get("format") == "uri":
        kind = "url"
    title = label(name.rpartition(".")[2], "settings")
    text = "" if value is None else str(value)
    return FormField(name, title, kind, str(schema.get("description", "")), required, text, options)


def settings_given(schema: Mapping[str, Any], form: FormData, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the previous settings, updated with those of the form."""
    config = dict(before)
    for field in settings_fields(schema, {}):
        name, text = field.name.removeprefix("config."), form.get(field.name)
        if text:
            config[name] = _typed(field, text)
        elif field.name in form or field.type == "tick":
            config.pop(name, None)
    return config


def _typed(field: FormField, text: str) -> Any:
    if field.type == "number":
        number = whole_number(text.removeprefix("-"))
        return text if number is None else -number if text.startswith("-") else number
    return True if field.type == "tick" else text.lower() if field.name == "config.currency" else text


def credentials_given(methods: Sequence[SignInMethod], form: FormData) -> dict[str, Any]:
    """Return the credentials of the selected method; empty if none were entered."""
    method = next((one for one in methods if one.key == form.get("way", "0")), methods[0] if methods else None)
    fields = method.fields if method else ()
    return {field.name.rpartition(".")[2]: form[field.name] for field in fields if form[field.name]}


def filled(fields: Iterable[FormField], given: FormData) -> list[FormField]:
    """Return the fields with the values of the form, except secrets."""
    return [field if field.type == "password" else field._replace(value=given[field.name]) for field in fields]


def schedule_given(form: FormData) -> dict[str, Any]:
    """Return the schedule of a form; minutes that are not a number remain text for the operation to refuse."""
    given = form.given("interval_minutes", "stock_interval_minutes")
    schedule: dict[str, Any] = {name: number_or_text(text) for name, text in given.items()}
    return schedule | ({"adaptive": True} if form.get("adaptive") else {})


def currency_given(form: FormData) -> dict[str, Any]:
    """Return the currency of a form as a setting, if any."""
    return {name: text.lower() for name, text in form.given("currency").items()}


def with_senders(config: Mapping[str, Any], form: FormData) -> dict[str, Any]:
    """Return the settings with the allowed senders of emails; none are allowed if the form lists none."""
    senders = form.entries("senders")
    rest = {name: value for name, value in config.items() if name != "inbound"}
    return rest | ({"inbound": {"senders": senders}} if senders else {})


def source_given(form: FormData, kind: str, config: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body of a new source from a form."""
    named = {"name": form.get("name"), "kind": kind, "licence_basis": form.get("licence_basis", "unknown")}
    return named | {"config": dict(config)} | more
