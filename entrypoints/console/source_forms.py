"""Forms for sources: fields from the JSON Schemas of a connector's settings and credentials, and the parsing of forms."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from entrypoints.console.rendering import find_label, format_names
from entrypoints.console.request import FormData, parse_number_or_text, parse_whole_number
from entrypoints.console.translation import gettext

_FIRST_SETTINGS = ("url", "currency", "decimal", "warehouse", "price_code", "media_base_url")
"""Settings at the start of forms, in this order, if the connector has them."""
_HIDDEN_SETTINGS = ("inbound", "platform", "role", "format")
"""Settings that forms do not contain."""
_UNMASKED_CREDENTIALS = frozenset({"username", "shop", "store", "header", "query", "consumer_key"})
"""Names of the credential fields that are not secret; the inputs for all other fields are masked."""
_WORKING_DAYS = ("mon", "tue", "wed", "thu", "fri")
"""Weekdays from Monday to Friday, as in the API."""
_DEFAULT_INTERVAL = 60
_DEFAULT_TIMES = ("06:30",)


class FormField(NamedTuple):
    """Form field.

    Attributes:
        name: The name in the form, such as `config.currency`.
        title: The label.
        type: The type of the HTML input, or `choice` for a selection.
        hint: The description.
        required: Whether a value is required.
        value: The current value.
        options: Values and labels of a selection.
    """

    name: str
    title: str
    type: str
    hint: str
    required: bool
    value: str = ""
    options: Sequence[tuple[str, str]] = ()


class SignInMethod(NamedTuple):
    """Method by which a connector signs in to a vendor's system, with the form fields for the credentials.

    `key` identifies the method in the form.
    """

    key: str
    title: str
    fields: Sequence[FormField]


def build_settings_fields(
    schema: Mapping[str, Any], values: Mapping[str, Any], selected: Iterable[str] = ()
) -> list[FormField]:
    """Return form fields for a connector's settings, except objects and lists, which only the API can set.

    Args:
        schema: The JSON Schema of the settings.
        values: The current values.
        selected: The names of the settings to include; empty for all.
    """
    properties, required, selected_names = schema.get("properties", {}), schema.get("required", ()), tuple(selected)
    names = [*_FIRST_SETTINGS, *(name for name in properties if name not in (*_FIRST_SETTINGS, *_HIDDEN_SETTINGS))]
    return [
        _build_field(f"config.{name}", properties[name], values.get(name), required=name in required)
        for name in names
        if name in (selected_names or names)
        and properties.get(name, {"type": "object"}).get("type") not in ("object", "array")
    ]


def build_sign_in_methods(schema: Mapping[str, Any] | None) -> list[SignInMethod]:
    """Return the sign-in methods that the schema of a connector's credentials allows; none if `schema` is None."""
    methods = []
    for key, branch in enumerate(schema.get("oneOf", (schema,)) if schema else ()):
        properties, required = branch.get("properties", {}), branch.get("required", ())
        fields = [
            _build_field(
                f"credentials.{key}.{name}",
                part,
                None,
                required=name in required,
                secret=name not in _UNMASKED_CREDENTIALS,
            )
            for name, part in properties.items()
        ]
        titles = [find_label(name, "settings") for name in properties]
        methods.append(SignInMethod(str(key), format_names(titles), fields))
    return methods


def _build_field(
    name: str, schema: Mapping[str, Any], value: Any, *, required: bool, secret: bool = False
) -> FormField:
    """Return the form field for a property of a JSON Schema; the input of a secret is masked."""
    options: list[tuple[str, str]] = []
    kind = {"integer": "number", "boolean": "checkbox"}.get(str(schema.get("type")), "text")
    if "enum" in schema:
        kind = "choice"
        options = [] if required else [("", gettext("Connector default"))]
        options += [(str(choice), find_label(str(choice), "settings")) for choice in schema["enum"]]
    elif secret:
        kind = "password"
    elif schema.get("format") == "uri":
        kind = "url"
    title = find_label(name.rpartition(".")[2], "settings")
    text = "" if value is None else str(value)
    return FormField(name, title, kind, str(schema.get("description", "")), required, text, options)


def read_settings_form(schema: Mapping[str, Any], form: FormData, previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings `previous`, updated with those in the form. A setting that is empty in the form is removed."""
    config = dict(previous)
    for field in build_settings_fields(schema, {}):
        name, text = field.name.removeprefix("config."), form.get(field.name)
        if text:
            config[name] = _parse_setting(field, text)
        elif field.name in form or field.type == "checkbox":
            config.pop(name, None)
    return config


def _parse_setting(field: FormField, text: str) -> Any:
    """Convert the text of a form field to the setting's value; an invalid number remains text, which the API rejects."""
    if field.type == "number":
        number = parse_whole_number(text.removeprefix("-"))
        return text if number is None else -number if text.startswith("-") else number
    return True if field.type == "checkbox" else text.lower() if field.name == "config.currency" else text


def read_credentials_form(methods: Sequence[SignInMethod], form: FormData) -> dict[str, Any]:
    """Return the credentials in the form for the selected sign-in method, without empty ones."""
    method = next(
        (candidate for candidate in methods if candidate.key == form.get("method", "0")),
        methods[0] if methods else None,
    )
    fields = method.fields if method else ()
    return {field.name.rpartition(".")[2]: form[field.name] for field in fields if form[field.name]}


def fill_fields(fields: Iterable[FormField], form: FormData) -> list[FormField]:
    """Return the form fields with the values in the form; fields for secrets remain unchanged."""
    return [field if field.type == "password" else field._replace(value=form[field.name]) for field in fields]


class ScheduleForm(NamedTuple):
    """Values of the form for a schedule.

    Attributes:
        frequency: Key of `schedule_frequencies` in labels.toml.
        interval_minutes: Interval of the catalogue; the default if the frequency is another one.
        times: Clock times, separated by commas.
        weekdays: Weekdays of the frequency `custom`.
        time_zone: Name of the time zone; None if it is not known.
        stock_interval_minutes: Interval of stock; empty without one.
        adaptive: Whether the intervals are adaptive.
    """

    frequency: str
    interval_minutes: str
    times: str
    weekdays: Sequence[str]
    time_zone: str | None
    stock_interval_minutes: str
    adaptive: bool

    @classmethod
    def from_schedule(cls, schedule: Mapping[str, Any]) -> "ScheduleForm":
        """Return the values for a schedule of the API."""
        days = schedule.get("weekdays", ())
        frequency = "interval" if "interval_minutes" in schedule else "request"
        if "at" in schedule:
            is_workweek = sorted(days) == sorted(_WORKING_DAYS)
            frequency = "weekdays" if is_workweek else "custom" if days else "daily"
        return cls(
            frequency,
            str(schedule.get("interval_minutes", _DEFAULT_INTERVAL)),
            ", ".join(schedule.get("at", _DEFAULT_TIMES)),
            days or _WORKING_DAYS,
            schedule.get("time_zone", "UTC" if "at" in schedule else None),
            str(schedule.get("stock_interval_minutes", "")),
            schedule["adaptive"],
        )

    @classmethod
    def from_form(cls, form: FormData) -> "ScheduleForm":
        """Return the values in a submitted form."""
        return cls(
            form["frequency"],
            form["interval_minutes"],
            form["times"],
            form.get_all("weekdays"),
            form["time_zone"],
            form["stock_interval_minutes"],
            bool(form["adaptive"]),
        )


def read_schedule_form(form: FormData) -> dict[str, Any]:
    """Return the schedule in a form. Minutes that are not a number remain text, so that the API rejects them.

    Without a field `frequency`, the form has only intervals.
    """
    frequency = form.get("frequency", "interval")
    names = ("interval_minutes", "stock_interval_minutes") if frequency == "interval" else ("stock_interval_minutes",)
    given = form.select(*names)
    schedule: dict[str, Any] = {name: parse_number_or_text(text) for name, text in given.items()}
    if frequency in ("daily", "weekdays", "custom"):
        times = form["times"].replace(";", ",").replace(" ", ",").split(",")
        schedule |= {"at": [time.zfill(5) for time in times if time], "time_zone": form["time_zone"]}
        if frequency != "daily":
            schedule["weekdays"] = list(_WORKING_DAYS if frequency == "weekdays" else form.get_all("weekdays"))
    return schedule | ({"adaptive": True} if form.get("adaptive") else {})


def read_currency_form(form: FormData) -> dict[str, Any]:
    """Return the setting `currency` with the value in a form; no setting if the field is empty."""
    return {name: text.lower() for name, text in form.select("currency").items()}


def set_allowed_senders(config: Mapping[str, Any], form: FormData) -> dict[str, Any]:
    """Return the settings with the allowed email senders in the form; if the form lists none, the setting is removed."""
    senders = form.split_values("senders")
    other_settings = {name: value for name, value in config.items() if name != "inbound"}
    return other_settings | ({"inbound": {"senders": senders}} if senders else {})


def build_source_request(form: FormData, kind: str, config: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """Return the body of the API request that creates a source, with the name and usage rights in a form.

    Args:
        form: The form.
        kind: The kind of source, such as `file` or `push`.
        config: The settings of the source.
        **fields: Further properties of the body.
    """
    attributes = {"name": form.get("name"), "kind": kind, "licence_basis": form.get("licence_basis", "unknown")}
    return attributes | {"config": dict(config)} | fields
