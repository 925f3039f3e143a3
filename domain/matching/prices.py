"""The one price that an item goes by, out of all its offers: what it is compared and judged by."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple


class Price(NamedTuple):
    """Minor units of a currency; None where nothing is stated."""

    amount: int | None = None
    currency: str | None = None


def going_price(offers: Iterable[tuple[str, Mapping[str, Any]]]) -> Price:
    """Of offers that stand, by id and data: the lowest that is asked, else the lowest that is recommended (MSRP, else MAP)."""
    least = min(offers, key=_place, default=None)
    if least is None:
        return Price()
    data = least[1]
    asked = data.get("price")
    return Price(_recommended(data) if asked is None else asked, data.get("currency"))


def _place(offer: tuple[str, Mapping[str, Any]]) -> tuple[float, float, str]:
    """What states nothing comes last."""
    id, data = offer
    never = float("inf")
    asked, recommended = data.get("price"), _recommended(data)
    return never if asked is None else asked, never if recommended is None else recommended, id


def _recommended(data: Mapping[str, Any]) -> int | None:
    recommended: int | None = data.get("msrp")
    return data.get("map") if recommended is None else recommended
