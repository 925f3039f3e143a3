"""What the pages of sources share: the choices of their forms, what forms say, and lists of what a source has."""

from typing import Any, Final

import msgspec

from entrypoints.console.asked import Values
from entrypoints.console.page import Answer
from entrypoints.console.visit import Visit

READ: Final = "sources:read"
WRITE: Final = "sources:write"
LICENCES: Final = (
    ("unknown", "Not settled yet"),
    ("vendor_agreement", "Agreement with the vendor"),
    ("own_data", "Our own data"),
    ("public_data", "Public data"),
    ("feed_terms", "The feed's terms"),
)
INTERVALS: Final = (
    ("", "Only when asked"),
    ("15", "Every 15 minutes"),
    ("60", "Every hour"),
    ("360", "Every 6 hours"),
    ("720", "Every 12 hours"),
    ("1440", "Once a day"),
    ("10080", "Once a week"),
)


class _Named(msgspec.Struct):
    """A source, as far as its name needs it."""

    id: str
    name: str


class _NamedSources(msgspec.Struct):
    """A list of them."""

    data: list[_Named]


_named: Final = msgspec.json.Decoder(_NamedSources).decode


async def source_names(visit: Visit) -> dict[str, str]:
    """The names of the organisation's sources, by id; of a role that may not see sources, none."""
    if not visit.may("sources:read"):
        return {}
    return {source.id: source.name for source in _named(await visit.api.body("/v1/sources", limit=100)).data}


async def listed(visit: Visit, part: str, template: str, limit: int, **more: Any) -> Answer:
    """A page of what the source in the address has: `runs`, `mappings`, `inbound-messages`."""
    source = await visit.api.get(f"/v1/sources/{visit.ids['id']}")
    cursor = visit.query.get("cursor") or None
    found = await visit.api.get(f"/v1/sources/{source['id']}/{part}", limit=limit, starting_after=cursor)
    return visit.render(template, source=source, found=found, cursor=cursor or "", **more)


def schedule_given(form: Values) -> dict[str, Any]:
    """The schedule as a form sends it; minutes that are no number go as they are, to be refused by the operation."""
    names = ("interval_minutes", "stock_interval_minutes")
    made: dict[str, Any] = {
        name: text if (number := form.number(name)) is None else number for name in names if (text := form.get(name))
    }
    if form.get("adaptive"):
        made["adaptive"] = True
    return made


def with_senders(config: dict[str, Any], text: str, *, asked: bool = True) -> dict[str, Any]:
    """The settings with the addresses of a text, one a line; without any it takes no mail."""
    if not asked:
        return config
    senders = [line.strip() for line in text.replace(",", "\n").splitlines() if line.strip()]
    rest = {name: value for name, value in config.items() if name != "inbound"}
    return rest | {"inbound": {"senders": senders}} if senders else rest
