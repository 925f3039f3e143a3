"""Price and stock of a variant's offers over time, out of the events that the log keeps of its product."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from domain.events.model import LoggedEvent
from entrypoints.console.charts import Plot, Series, plot
from entrypoints.console.formatting import minor_places, money
from entrypoints.console.product_lines import ASKED, asked_of

Json = Mapping[str, Any]
KEPT: Final = timedelta(days=30)
"""For how long events are kept."""
_TOLD: Final = 15
_POINTS: Final = 40
"""Changes that a chart draws, of all of its lines together."""


@dataclass(frozen=True, slots=True)
class Change:
    """One changed field of one offer."""

    at: datetime
    offer: str
    field: str
    old: str | None
    new: str | None


@dataclass(frozen=True, slots=True)
class OfferHistory:
    """What the log tells of offers: two charts, where there is something to draw, and the newest changes."""

    price: Plot | None
    stock: Plot | None
    currency: str
    changes: Sequence[Change]
    whole: bool
    thinned: bool
    since: datetime

    def priced(self, value: float) -> str:
        """A value of the price chart as money."""
        places = minor_places(self.currency)
        return money({"amount": round(value * 10**places), "currency": self.currency}).removesuffix(".00")


def history_of(
    offers: Sequence[Json], events: Sequence[LoggedEvent], names: Mapping[str, str], now: datetime, *, whole: bool
) -> OfferHistory:
    """The history of these offers; `names` tells what to call each, by id."""
    told = {offer["id"]: [] for offer in offers}  # type: dict[str, list[tuple[datetime, Json]]]
    for event in events:
        if event.subject in told:
            fields = msgspec.json.decode(event.body)["data"].get("fields", ())
            told[event.subject] += [(event.time, one) for one in fields if not one.get("omitted")]
    since = _beginning(told.values(), now)
    currency = _currency(offers)
    places = minor_places(currency)
    prices, stocks = [], []
    for offer in offers:
        name, own = names[offer["id"]], told[offer["id"]]
        path = next((path for path in ASKED if offer.get(path) is not None), ASKED[0])
        if asked_of(offer) and offer["currency"] == currency:
            prices.append(Series(name, _points(own, path, offer.get(path), since, 10**places)))
        if offer.get("quantity") is not None:
            stocks.append(Series(name, _points(own, "quantity", offer["quantity"], since, 1)))
    room = max(6, _POINTS // max(len(prices), len(stocks), 1))
    return OfferHistory(
        price=plot(_thinned(prices, room), since, now),
        stock=plot(_thinned(stocks, room), since, now, whole=True),
        currency=currency,
        changes=_changes(told, names, currency),
        whole=whole,
        thinned=any(len(line.points) > room for line in (*prices, *stocks)),
        since=since,
    )


def _beginning(told: Iterable[Sequence[tuple[datetime, Json]]], now: datetime) -> datetime:
    """Where the charts begin: a little before the first that is told, an hour ago at the latest."""
    first = min((changes[0][0] for changes in told if changes), default=now - KEPT)
    first = max(first, now - KEPT)
    return min(first - (now - first) * 0.03, now - timedelta(hours=1))


def _currency(offers: Sequence[Json]) -> str:
    codes = [offer["currency"] for offer in offers if asked_of(offer)]
    return max(dict.fromkeys(codes), key=codes.count) if codes else "usd"


def _points(
    told: Sequence[tuple[datetime, Json]], path: str, present: Any, since: datetime, unit: int
) -> list[tuple[datetime, float | None]]:
    """The values of a field: before the first change, with each, and now."""
    own = [(at, one) for at, one in told if one["path"] == path]
    if not own:
        return [(since, _number(present, unit))]
    found: list[tuple[datetime, float | None]] = []
    if (before := _number(own[0][1].get("old"), unit)) is not None:
        found.append((since, before))
    found += [(at, _number(one.get("new"), unit)) for at, one in own]
    return found


def _thinned(lines: Sequence[Series], room: int) -> list[Series]:
    """The lines with so many points at most: the first, the last, and some between at even distances."""
    found = []
    for line in lines:
        count = len(line.points)
        places = range(count) if count <= room else [round(at * (count - 1) / (room - 1)) for at in range(room)]
        found.append(Series(line.name, [line.points[place] for place in places]))
    return found


def _number(value: Any, unit: int) -> float | None:
    return value / unit if isinstance(value, int | float) else None


def _changes(
    told: Mapping[str, Sequence[tuple[datetime, Json]]], names: Mapping[str, str], currency: str
) -> list[Change]:
    found = [
        Change(at, names[offer], one["path"], _written(one, "old", currency), _written(one, "new", currency))
        for offer, changes in told.items()
        for at, one in changes
    ]
    return sorted(found, key=lambda change: change.at, reverse=True)[:_TOLD]


def _written(field: Json, which: str, currency: str) -> str | None:
    value = field.get(which)
    if value is None:
        return None
    if field["path"] in (*ASKED, "compare_at") and isinstance(value, int):
        return money({"amount": value, "currency": currency})
    if isinstance(value, list):
        return ", ".join(
            " ".join(str(part) for part in one.values()) if isinstance(one, Mapping) else str(one) for one in value
        )
    return str(value).replace("_", " ")
