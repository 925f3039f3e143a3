"""Fields of forms made of a connector's JSON Schemas, its settings and what it signs in with, and what such forms send."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from entrypoints.console.formatting import label
from entrypoints.console.request import FormData, whole_number

_FIRST: Final = ("url", "currency", "decimal", "warehouse", "price_code", "media_base_url")
"""Settings that forms ask for first, in this order, where the connector takes them."""
_HIDDEN: Final = ("inbound", "platform", "role", "format")
_OPEN: Final = frozenset({"username", "shop", "store", "header", "query", "consumer_key"})
"""What is no secret among credentials; everything else is typed unseen."""


class FormField(NamedTuple):
    """One field: `options` for a choice, `type` of the input otherwise."""

    name: str
    title: str
    type: str
    hint: str
    required: bool
    value: str = ""
    options: Sequence[tuple[str, str]] = ()


class SignInMethod(NamedTuple):
    """One way to sign in, with its fields."""

    key: str
    title: str
    fields: Sequence[FormField]


def settings_fields(schema: Mapping[str, Any], given: Mapping[str, Any], only: Iterable[str] = ()) -> list[FormField]:
    """Return the connector's settings that a form can ask for; objects and lists are left to the API."""
    properties, required, chosen = schema.get("properties", {}), schema.get("required", ()), tuple(only)
    names = [*_FIRST, *(name for name in properties if name not in (*_FIRST, *_HIDDEN))]
    return [
        _field(f"config.{name}", properties[name], given.get(name), required=name in required)
        for name in names
        if name in (chosen or names) and properties.get(name, {"type": "object"}).get("type") not in ("object", "array")
    ]


def sign_in_methods(schema: Mapping[str, Any] | None) -> list[SignInMethod]:
    """Return the ways to sign in that the connector's schema has, if any."""
    found = []
    for key, one in enumerate(schema.get("oneOf", (schema,)) if schema else ()):
        properties, required = one.get("properties", {}), one.get("required", ())
        fields = [
            _field(f"credentials.{key}.{name}", part, None, required=name in required, secret=name not in _OPEN)
            for name, part in properties.items()
        ]
        titles = [label(name, "settings").lower() for name in properties]
        found.append(SignInMethod(str(key), " and ".join(titles).capitalize(), fields))
    return found


def _field(name: str, schema: Mapping[str, Any], value: Any, *, required: bool, secret: bool = False) -> FormField:
    options: list[tuple[str, str]] = []
    kind = {"integer": "number", "boolean": "tick"}.get(str(schema.get("type")), "text")
    if "enum" in schema:
        kind = "choice"
        options = [] if required else [("", "As the connector has it")]
        options += [(str(one), label(str(one), "settings")) for one in schema["enum"]]
    elif secret:
        kind = "password"
    elif schema.get("format") == "uri":
        kind = "url"
    title = label(name.rpartition(".")[2], "settings")
    text = "" if value is None else str(value)
    return FormField(name, title, kind, str(schema.get("description", "")), required, text, options)


def settings_given(schema: Mapping[str, Any], form: FormData, before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings as a form sends them, over those of before that it does not ask for."""
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
    """Return the credentials as a form sends them, by the way that was chosen; empty when none were typed."""
    method = next((one for one in methods if one.key == form.get("way", "0")), methods[0] if methods else None)
    fields = method.fields if method else ()
    return {field.name.rpartition(".")[2]: form[field.name] for field in fields if form[field.name]}


def schedule_given(form: FormData) -> dict[str, Any]:
    """Return the schedule as a form sends it; minutes that are no number stay, to be refused by the operation."""
    names = ("interval_minutes", "stock_interval_minutes")
    schedule: dict[str, Any] = {
        name: text if (number := form.number(name)) is None else number for name in names if (text := form.get(name))
    }
    return schedule | ({"adaptive": True} if form.get("adaptive") else {})


def with_senders(config: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the settings with the addresses of a text, one a line; without any it takes no mail."""
    senders = [line.strip() for line in text.replace(",", "\n").splitlines() if line.strip()]
    rest = {name: value for name, value in config.items() if name != "inbound"}
    return rest | ({"inbound": {"senders": senders}} if senders else {})


def source_given(form: FormData, kind: str, config: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return a new source as a form names it."""
    named = {"name": form.get("name"), "kind": kind, "licence_basis": form.get("licence_basis", "unknown")}
    return named | {"config": dict(config)} | more
