"""Words of rugs: their shapes, how they are made, where they may lie."""

import re
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, unreadable
from domain.ingestion.values.text import stated

SHAPES: Final = (
    (re.compile(r"half[ -]?(?:round|moon|circle)|demi ?lune|semi[ -]?circ", re.I), "half_round"),
    (re.compile(r"\bhearth\b", re.I), "hearth"),
    (re.compile(r"\b(?:cow|sheep|calf)?[ -]?(?:hide|skin)\b|\banimal\b|\bpelt\b", re.I), "animal"),
    (re.compile(r"octagon(?:al)?|\boct\b", re.I), "octagon"),
    (
        re.compile(
            r"runner|\brnr\b|(?<=\d)\s?rnr\b|läufer|\bpasillo\b|\bpasillera\b|\bcouloir\b|\bloper\b|\bpassatoia\b", re.I
        ),
        "runner",
    ),
    (re.compile(r"(?:\b|(?<=\d))(?:oval[eo]?|ovaal|ovl|ov)\b", re.I), "oval"),
    (re.compile(r"(?:\b|(?<=\d))(?:square|sqr|sq)\b|quadrat|cuadrad|\bcarr[ée]e?\b|\bvierkant", re.I), "square"),
    (
        re.compile(
            r"(?:\b|(?<=\d))(?:round|rnd|rd|ro|circle|circular)\b|(?:\b|(?<=\d))rund\w{0,2}\b|redond|\bronde?\b|rotond|(?:\b|(?<=\d))dia(?:m|meter)?\b|kreis",
            re.I,
        ),
        "round",
    ),
    (
        re.compile(r"\b(?:heart|he|kidney|star|scalloped?|irregular|freeform|shaped|wedge|novelty|blob)\b", re.I),
        "irregular",
    ),
    (
        re.compile(r"\brect(?:ang(?:le|ular))?\b|rechteck|rectángul|rechthoek|rettangol|rectangulaire", re.I),
        "rectangle",
    ),
)
CONSTRUCTIONS: Final = (
    (re.compile(r"hand[ -]?knot|knüpf|anudad", re.I), "hand_knotted"),
    (re.compile(r"hand[ -]?tuft|handgetuftet", re.I), "hand_tufted"),
    (re.compile(r"hand[ -]?hook", re.I), "hand_hooked"),
    (re.compile(r"hand[ -]?loom", re.I), "hand_loomed"),
    (re.compile(r"flat[ -]?w(?:eave|oven)|dhurrie|kilim|soumak|flachgewebe", re.I), "flat_woven"),
    (re.compile(r"hand[ -]?w(?:oven|eave)|handgewebt", re.I), "hand_woven"),
    (re.compile(r"power[ -]?loom", re.I), "power_loomed"),
    (re.compile(r"machine|maschin", re.I), "machine_made"),
    (re.compile(r"braid", re.I), "braided"),
    (re.compile(r"print", re.I), "printed"),
    (re.compile(r"\bhide\b|\bcowhide\b|\bskin\b", re.I), "hide"),
)


def shape_in(text: str) -> str | None:
    """The shape that a text names, or None."""
    return next((shape for pattern, shape in SHAPES if pattern.search(text)), None)


@lru_cache(maxsize=4096)
def parse_construction(text: str) -> Parsed[str]:
    """How a rug was made (one of CONSTRUCTIONS). Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    found = next((value for pattern, value in CONSTRUCTIONS if pattern.search(given.replace("_", " "))), None)
    return Parsed(found) if found else unreadable(text, "is no construction of rugs that is known")


@lru_cache(maxsize=4096)
def parse_shape(text: str) -> Parsed[str]:
    """A rug's shape from its own column. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    found = shape_in(given.replace("_", " "))
    return Parsed(found) if found else unreadable(text, "is no shape of rugs that is known")


@lru_cache(maxsize=4096)
def parse_indoor_outdoor(text: str) -> Parsed[str]:
    """`indoor`, `outdoor` or `indoor_outdoor`. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    low = given.lower()
    inside, outside = "indoor" in low or "innen" in low, "outdoor" in low or "außen" in low or "aussen" in low
    if inside or outside:
        return Parsed("indoor_outdoor" if inside and outside else "indoor" if inside else "outdoor")
    return unreadable(text, "says neither indoor nor outdoor")
