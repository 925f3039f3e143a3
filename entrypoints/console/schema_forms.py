"""Forms made of a connector's JSON Schemas: its settings, and what it signs in with."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from entrypoints.console.asked import Values, whole_number

APART: Final = ("url", "currency", "decimal", "warehouse", "price_code", "media_base_url")
"""Settings that forms ask for first, in this order, where the connector takes them."""
HIDDEN: Final = ("inbound", "platform", "role", "format")
_OPEN: Final = frozenset({"username", "shop", "store", "header", "query", "consumer_key"})
"""What is no secret among credentials; everything else is typed unseen."""
TITLES: Final[Mapping[str, str]] = {
    "url": "Address",
    "stock_url": "Address of the stock feed",
    "decimal": "Decimal mark",
    "warehouse": "Warehouse",
    "price_code": "Price level",
    "media_base_url": "Folder of the pictures",
    "shop": "Shop",
    "store": "Store hash",
    "api_version": "API version",
    "auth": "How the key is sent",
}


@dataclass(frozen=True, slots=True)
class FormField:
    """One field: `options` for a choice, `type` of the input otherwise."""

    name: str
    title: str
    type: str = "text"
    hint: str = ""
    required: bool = False
    value: str = ""
    options: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Way:
    """One way to sign in, with its fields."""

    key: str
    title: str
    fields: tuple[FormField, ...]


def title_of(name: str) -> str:
    """What a setting is called."""
    return TITLES.get(name) or name.replace("_", " ").replace(".", " ").capitalize()


def _field(name: str, schema: Mapping[str, Any], value: Any, prefix: str, *, required: bool, secret: bool) -> FormField:
    hint = str(schema.get("description", ""))
    text = "" if value is None else str(value)
    if "enum" in schema:
        nothing = () if required else (("", "As the connector has it"),)
        options = (*nothing, *((str(one), title_of(str(one))) for one in schema["enum"]))
        return FormField(prefix + name, title_of(name), "choice", hint, required, text, options)
    kind = {"integer": "number", "boolean": "tick"}.get(str(schema.get("type")), "text")
    if schema.get("format") == "uri":
        kind = "url"
    return FormField(prefix + name, title_of(name), "password" if secret else kind, hint, required, text)


def settings_fields(schema: Mapping[str, Any], given: Mapping[str, Any], only: Iterable[str] = ()) -> list[FormField]:
    """The connector's settings that a form can ask for; objects and lists are left to the API."""
    properties, required = schema.get("properties", {}), schema.get("required", ())
    names = [name for name in APART if name in properties]
    names += [name for name in properties if name not in (*APART, *HIDDEN)]
    chosen = tuple(only)
    return [
        _field(name, properties[name], given.get(name), "config.", required=name in required, secret=False)
        for name in names
        if (not chosen or name in chosen) and properties[name].get("type") not in ("object", "array")
    ]


def ways_of(schema: Mapping[str, Any]) -> list[Way]:
    """The ways to sign in that the connector's schema has, one or several."""
    found = []
    for number, one in enumerate(schema.get("oneOf", (schema,))):
        names = list(one.get("properties", {}))
        fields = tuple(
            _field(
                name,
                one["properties"][name],
                None,
                f"credentials.{number}.",
                required=name in one.get("required", ()),
                secret=name not in _OPEN,
            )
            for name in names
        )
        found.append(Way(str(number), " and ".join(title_of(name).lower() for name in names).capitalize(), fields))
    return found


def settings_given(schema: Mapping[str, Any], form: Values, before: Mapping[str, Any]) -> dict[str, Any]:
    """The settings as a form sends them, over those of before that it does not ask for."""
    config = dict(before)
    for field in settings_fields(schema, {}):
        name = field.name.removeprefix("config.")
        text = form.get(field.name)
        if not text and (field.name in form or field.type == "tick"):
            config.pop(name, None)
        elif text:
            config[name] = _typed(field, text)
    return config


def _typed(field: FormField, text: str) -> Any:
    if field.type == "number":
        number = whole_number(text.removeprefix("-"))
        return text if number is None else -number if text.startswith("-") else number
    if field.type == "tick":
        return True
    return text.lower() if field.name == "config.currency" else text


def credentials_given(ways: Sequence[Way], form: Values) -> dict[str, Any]:
    """The credentials as a form sends them, by the way that was chosen; empty when none were typed."""
    chosen = form.get("way", "0")
    way = next((one for one in ways if one.key == chosen), ways[0] if ways else None)
    if way is None:
        return {}
    return {field.name.rpartition(".")[2]: form[field.name] for field in way.fields if form[field.name]}
