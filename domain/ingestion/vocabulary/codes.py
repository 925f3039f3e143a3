"""Field codes of ERP systems and exchange formats, which are no words."""

from typing import Final

ENTRIES: Final[tuple[tuple[str, int, str], ...]] = (
    ("sku", 100, "matnr|supplier pid|supplier aid|artnr|art nr"),
    ("title", 100, "maktx|description short"),
    ("description", 100, "description long"),
    ("gtin", 100, "ean11|international pid|international aid"),
    ("mpn", 100, "mfrpn|manufacturer pid|manufacturer aid"),
    ("weight", 100, "ntgew"),
    ("cartons.0.weight", 100, "brgew"),
    ("dimensions.length", 90, "laeng"),
    ("dimensions.width", 90, "breit"),
    ("dimensions.height", 90, "hoehe"),
    ("dimensions", 80, "groes"),
    ("quantity", 100, "labst"),
    ("cost", 100, "stprs|netpr|net customer|net list"),
    ("msrp", 100, "nrp"),
    ("currency", 100, "waers"),
    ("location", 90, "lgort"),
    ("category_path", 80, "matkl|wgbez"),
    ("lead_time_days", 100, "plifz|delivery time"),
    ("compliance.country_of_origin", 100, "herkl"),
    ("media", 100, "mime source"),
    ("media_position", 100, "mime order"),
    ("product_key", 100, "pair code|itemgroup"),
    (
        "ignore",
        100,
        "meins|mtart|ekgrp|volum|voleh|gewei|mandt|spart|bismt|mime type|mime purpose|mime descr|order unit",
    ),
)
