"""Reference model of record merges: the rules of docs/push.md and nothing else."""

from typing import Any

PARTS = ("compliance", "axes", "dimensions", "rug")
STOCK = ("quantity", "availability", "incoming", "lead_time_days")
Records = list[dict[str, Any]]


def merge_fields(held: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """Merge fields: null removes, objects merge by key, other values are replaced."""
    new = held | {
        name: merge_fields(held.get(name, {}), value) if name in PARTS and value is not None else value
        for name, value in stated.items()
    }
    return {name: value for name, value in new.items() if value not in (None, {}, [])}


def merge_offer(held: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """Merge an offer in minor units; a new currency drops old prices, a quantity resets the availability."""
    prices = {name: stated[name] for name in ("cost", "price") if name in stated}
    currency = next((price["currency"].lower() for price in prices.values() if price), held.get("currency"))
    kept = {n: v for n, v in held.items() if n not in ("cost", "price", "currency") or currency == held.get("currency")}
    minor = {name: price and round(price["amount"] * 100) for name, price in prices.items()}
    new = merge_fields(kept, {n: v for n, v in stated.items() if n in STOCK} | minor | {"currency": currency})
    if (
        "quantity" in stated
        and "availability" not in stated
        and new.get("availability") not in ("preorder", "backorder", "discontinued")
    ):
        new.pop("availability", None)
    if "quantity" in new:
        new.setdefault(
            "availability",
            "out_of_stock" if not new["quantity"] else "low_stock" if new["quantity"] < 6 else "in_stock",
        )
    return new if {"cost", "price"} & new.keys() else {n: v for n, v in new.items() if n != "currency"}


def has_offers_only(record: dict[str, Any]) -> bool:
    """Return whether the record contains offers only."""
    return record["product"].keys() == {"external_id"} and all(
        v.keys() <= {"external_id", "offers"} for v in record["variants"] or []
    )


class PushModel:
    """Stated products, variants and offers, including withdrawn offers."""

    def __init__(self) -> None:
        self.products: dict[str, Any] = {}

    def push(self, records: Records, complete: bool) -> None:
        """Apply the records of one run."""
        named: set[tuple[str, ...]] = set()
        full = {(r["product"]["external_id"],) for r in records if complete and not has_offers_only(r)}
        full |= {
            (*_get_key(r), v["external_id"])
            for r in records
            if complete and not has_offers_only(r)
            for v in r["variants"] or []
        }
        before = {key: (product["gone"], _are_all_discontinued(product)) for key, product in self.products.items()}
        for record in records:
            self._apply_record(record, full, named)
        for (key,) in [name for name in named if len(name) == 1]:
            product, discontinued = (
                self.products[key],
                [
                    r["product"]["discontinued"]
                    for r in records
                    if _get_key(r) == (key,) and "discontinued" in r["product"]
                ],
            )
            stated = {n: v for n, v in product["variants"].items() if (key,) not in full or (key, n) in named}
            was = (
                (key,) not in full
                and before.get(key, (False, False)) == (True, False)
                and not product.pop("absent", False)
            )
            product["gone"] = (
                (discontinued and discontinued[-1] is True)
                or _are_all_discontinued({"variants": stated})
                or (not discontinued and was)
            )
            product.pop("absent", None)
        for key, product in self.products.items() if complete else ():
            if (key,) not in named:
                product["absent"] = True
            self._withdraw(key, product, named)

    def _apply_record(self, record: dict[str, Any], full: set[tuple[str, ...]], named: set[tuple[str, ...]]) -> None:
        key = record["product"]["external_id"]
        if has_offers_only(record) and key not in self.products:
            return
        product = self.products.setdefault(key, {"data": {}, "gone": False, "variants": {}})
        stated = {
            name: value for name, value in record["product"].items() if name not in ("external_id", "discontinued")
        }
        if (key,) in full - named:
            product["data"] = {}
        named.add((key,))
        product["data"] = merge_fields(product["data"], stated)
        if "variants" in record and record["variants"] is None:
            self._withdraw(key, product, set())
            named -= {name for name in named if len(name) > 2 and name[0] == key}
        for variant in record["variants"] or []:
            self._apply_variant(key, product, variant, full, has_offers_only(record), named)

    def _apply_variant(
        self, key: str, product: Any, stated: Any, full: set[tuple[str, ...]], alone: bool, named: set[tuple[str, ...]]
    ) -> None:
        name = stated["external_id"]
        if alone and name not in product["variants"]:
            return
        held = product["variants"].setdefault(name, {"data": {}, "offers": {}})
        if (key, name) in full - named:
            held["data"] = {}
            for offer in held["offers"].values():
                offer["forgotten"] = True
        named.add((key, name))
        held["data"] = merge_fields(
            held["data"], {n: v for n, v in stated.items() if n not in ("external_id", "offers")}
        )
        if "offers" in stated and stated["offers"] is None:
            self._withdraw(key, {"variants": {name: held}}, set())
            named -= {one for one in named if one[:2] == (key, name) and len(one) > 2}
        for offer in [one for one in stated.get("offers") or [] if one.keys() - {"location"}]:
            place = offer.get("location", "default")
            old = held["offers"].get(place)
            base = (
                {}
                if old is None or old.get("forgotten")
                else {n: v for n, v in old.items() if n not in STOCK[:3] or "withdrawn" not in old}
            )
            new = merge_offer({n: v for n, v in base.items() if n != "withdrawn"}, offer)
            if new or (old is not None and "forgotten" not in old):
                held["offers"][place] = new
                named.add((key, name, place))

    @staticmethod
    def _withdraw(key: str, product: Any, named: set[tuple[str, ...]]) -> None:
        for name, variant in product["variants"].items():
            for place, offer in variant["offers"].items():
                offer.pop("forgotten", None)
                if (key, name, place) not in named and "withdrawn" not in offer:
                    offer.pop("incoming", None)
                    offer |= {"quantity": 0, "availability": "out_of_stock", "withdrawn": True}

    def build_contents(self) -> dict[str, Any]:
        """Return the contents in the format of `PushDesk.held`."""
        return {
            key: {
                "data": product["data"],
                "gone": product["gone"],
                "variants": {
                    name: {
                        "data": variant["data"],
                        "offers": {
                            place: {"availability": "unknown"} | offer for place, offer in variant["offers"].items()
                        },
                    }
                    for name, variant in product["variants"].items()
                },
            }
            for key, product in self.products.items()
        }


def _are_all_discontinued(product: Any) -> bool:
    ends = [variant["data"].get("discontinued") is True for variant in product["variants"].values()]
    return bool(ends) and all(ends)


def _get_key(record: dict[str, Any]) -> tuple[str]:
    return (record["product"]["external_id"],)
