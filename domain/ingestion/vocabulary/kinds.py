"""What kinds of furniture are called in vendors' category paths, with their category of the taxonomy and GPC brick."""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.vocabulary.headings import plain_words

_LONGEST: Final = 300
_BRICKS: Final = {
    "sofa": "10002195",
    "seat": "10002193",
    "pouf": "10002197",
    "sofa bed": "10002196",
    "table": "10002202",
    "desk": "10002203",
    "bed": "10002207",
    "mattress": "10002210",
    "drawers": "10002117",
    "wardrobe": "10002118",
    "shelving": "10002184",
    "cupboard": "10005199",
    "filing": "10002185",
    "media": "10002186",
    "divider": "10002190",
    "mirror": "10002245",
    "rug": "10002218",
    "lamp": "10005641",
    "fixed light": "10005639",
    "vase": "10002233",
    "cot": "10000789",
    "changing": "10000501",
    "high chair": "10000787",
    "garden chair": "10003242",
    "garden table": "10003245",
    "garden bench": "10003248",
    "lounger": "10003243",
    "swing": "10003249",
    "hammock": "10003250",
    "parasol": "10005219",
}
"""GPC bricks by a short name of our own. Powered seats have bricks of their own, and none here."""
_KINDS: Final = """\
sofa,couch | sofas | sofa
loveseat,love seat | loveseats | sofa
sectional,sectional sofa | sectionals | sofa
sofa bed,sleeper sofa,sleeper | sleeper-sofas | sofa bed
futon | futons | sofa bed
chair,armchair,arm chair | chairs | seat
accent chair | accent-chairs | seat
rocking chair,rocker | rocking-chairs | seat
chaise,chaise lounge | chaises |
recliner | recliners |
folding chair | folding-chairs | seat
bean bag | bean-bags | pouf
dining chair,side chair,kitchen chair | dining-chairs | seat
bar stool,barstool,counter stool,counter height stool | stools | seat
bench | benches |
dining bench | dining-benches |
storage bench | storage-benches |
ottoman,pouf,pouffe | ottomans | pouf
table | tables | table
dining table,kitchen table | dining-tables | table
coffee table,cocktail table | coffee-tables | table
end table,side table | end-tables | table
console table,sofa table | console-tables | table
nightstand,night stand,bedside table | nightstands |
bar table,pub table,counter height table,counter ht table | bar-tables | table
accent table | accent-tables | table
bed,bed frame,platform bed,bedroom bed | beds | bed
bunk bed,loft bed | bunk-beds | bed
daybed,day bed | daybeds |
murphy bed,wall bed | murphy-beds |
headboard,footboard | headboards |
mattress | mattresses | mattress
box spring,mattress foundation,foundation,bunkie board | mattress-foundations |
dresser,chest of drawers | dressers | drawers
chest,bedroom chest | dressers |
armoire,wardrobe | armoires | wardrobe
bedroom vanity | vanities |
bedroom set | bedroom-sets |
bookcase,bookshelf,shelving unit | bookcases | shelving
wall shelf | wall-shelves | shelving
cabinet | cabinets |
buffet,sideboard,credenza,dining server | buffets | cupboard
china cabinet,curio,curio cabinet,hutch | china-cabinets | cupboard
tv stand,tv console,media console,entertainment center | tv-stands | media
room divider | room-dividers | divider
dining set,dining table set,dinette set,dinette | dining-sets |
living room set,upholstery set | living-room-sets |
desk,writing desk,computer desk | desks | desk
office chair,desk chair,task chair | office-chairs | seat
file cabinet,filing cabinet | file-cabinets | filing
outdoor sofa,outdoor loveseat | outdoor-sofas |
outdoor sectional | outdoor-sectionals |
outdoor chair,outdoor arm chair,outdoor dining chair | outdoor-chairs | garden chair
outdoor bench | outdoor-benches | garden bench
outdoor lounger,sun lounger,outdoor chaise lounge,outdoor chaise | loungers | lounger
outdoor table,outdoor dining table,outdoor coffee table,outdoor side table | outdoor-tables | garden table
outdoor set,patio set,conversation set | outdoor-sets |
outdoor ottoman | outdoor-ottomans |
umbrella,outdoor umbrella,patio umbrella,parasol | umbrellas | parasol
hammock | outdoor-seating | hammock
outdoor swing,garden swing,porch swing | outdoor-seating | swing
crib,baby crib,cot | cribs | cot
changing table | changing-tables | changing
high chair | high-chairs | high chair
rug,area rug | rugs | rug
outdoor rug | outdoor-rugs | rug
table lamp,desk lamp | table-lamps | lamp
floor lamp | floor-lamps | lamp
chandelier | chandeliers | fixed light
pendant light,ceiling light | ceiling-lights | fixed light
mirror,wall mirror,floor mirror | mirrors | mirror
vase | vases | vase
"""
"""Names in the singular, parted by commas; slug of the taxonomy; short name of the brick, blank where it depends."""
_POWERED: Final = re.compile(r"\b(?:power(?:ed)?|electric|massage|motion|lift|heated)\b", re.I)
_SEATS: Final = frozenset((_BRICKS["sofa"], _BRICKS["seat"], _BRICKS["sofa bed"]))
_OPEN_AIR: Final = re.compile(r"\b(?:outdoor|patio|garden|poolside)s?\b", re.I)
_IRREGULAR: Final = {
    "mattresses": "mattress",
    "benches": "bench",
    "couches": "couch",
    "shelves": "shelf",
    "bookshelves": "bookshelf",
}


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of furniture: slug of the taxonomy, and GPC brick where one is sure."""

    slug: str
    brick: str | None


def _read() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for line in _KINDS.splitlines():
        names, slug, brick = (part.strip() for part in line.split("|"))
        kinds |= dict.fromkeys((name.strip() for name in names.split(",")), Kind(slug, _BRICKS.get(brick)))
    return kinds


_BY_NAME: Final = _read()


def _singular(words: str) -> str:
    head, blank, last = words.rpartition(" ")
    return (
        head + blank + (_IRREGULAR.get(last) or (last[:-1] if last.endswith("s") and not last.endswith("ss") else last))
    )


@lru_cache(maxsize=4096)
def kind_in_path(path: tuple[str, ...]) -> Kind | None:
    """The kind that a category path ends in; None where its last level means several things, or none that is known."""
    if not path:
        return None
    leaf = _singular(plain_words(path[-1][:_LONGEST]))
    above = [plain_words(level[:_LONGEST]) for level in path[:-1]]
    if any(map(_OPEN_AIR.search, above)):
        return _BY_NAME.get(leaf if _OPEN_AIR.search(leaf) else f"outdoor {leaf}")
    near = f"{_singular(above[-1])} {leaf}" if above else leaf
    return _BY_NAME.get(near) or _BY_NAME.get(leaf)


def brick_of(kind: Kind, title: str) -> str | None:
    """The kind's brick; none for seats that a title calls powered."""
    return None if kind.brick in _SEATS and _POWERED.search(title[:_LONGEST]) else kind.brick
