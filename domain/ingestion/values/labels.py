"""What the words beside a figure say that it measures, in the languages vendors write.

    label     := modifier* side modifier*          ("Overall height", "hauteur d'assise", "Sitzhöhe", "heigth")
    modifier  := neutral | bound | seat | arm | free | part | noun

Neutral modifiers leave the side that of the piece; `min` names its lower figure and `max` its largest; seat, arm and
clearance make other measures; a part (drawer, mattress, cable) or what is no size (load, volume) makes it one that the
piece does not have; any other noun names the thing whose side it is. Side words of five letters or more are known with
one letter wrong, left out, doubled or swapped with its neighbour.
"""

import re
import unicodedata
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

_SIDE_WORDS: Final = {
    "width": "width widths wide widt wd wth wdth breite breit ancho anchura largeur larg breedte breed larghezza largura bredd "
    "bredde br leveys szerokosc szer ширина шир ш",
    "depth": "depth depths deep dept dp dpt dpth tiefe tief fondo profundidad profondeur prof diepte diep profondita profundidade "
    "djup dybde syvyys glebokosc gleb глубина г",
    "height": "height heights high tall alt ht hgt hght hohe hoehe hoch alto altura hauteur haut hoogte hoog altezza hojd hoyde "
    "hojde korkeus wysokosc wys высота выс в",
    "length": "length lengths long len lgth lng lange laenge largo longitud longueur lengte lang lunghezza lung comprimento langd "
    "lengde laengde langde pituus dlugosc dl длина дл д",
    "diameter": "diameter diam dia durchmesser diametro diametre doorsnede diametr diameters halkaisija srednica диаметр",
}
SIDES: Final = {word: side for side, words in _SIDE_WORDS.items() for word in words.split()}
LETTERS: Final = {"w": "width", "d": "depth", "h": "height", "l": "length", "b": "width", "t": "depth", "p": "depth"}
_LONG_ENOUGH: Final = 5
_NO_SLIPS: Final = frozenset(
    "large larger eight weight weights freight with lounge anchor anchors right light night bread alter".split()
)
"""Words by themselves that are one letter away from a side."""
_ROOTS: Final = tuple(
    (root, SIDES[root])
    for root in "breite tiefe hohe hoehe lange laenge breedte diepte hoogte lengte bredd bredde hojd hojde hoyde djup dybde "
    "langd lengde durchmesser".split()
)
"""Words that end German, Dutch and Nordic compounds (`Sitzhöhe`, `zithoogte`)."""
_GAPS: Final = frozenset(
    "nad ziemia ok okolo do da terra terreno suelo sol bodens grond vloer golv golvet gulv gulvet podlogi ziemi piso pavimento of the a an to from floor top bottom front back2 end foot head and or in de du des d l le la les del el los di della dello "
    "dell van der den dem het een vom von bis side is at on with as for per if2 y und et e".split()
)
NEUTRAL: Final = frozenset(
    "overall total product item assembled outer exterior external outside approx approximately about ca circa ungefahr rund2 env "
    "environ aprox gesamt gesamte gesamtes gesamter totale totaal totales tout hors unit furniture piece actual full body net "
    "produkt artikel article articulo producto prodotto dimension dimensions dim dims size sizes measurement measurements measure "
    "measures masse masze mass abmessung abmessungen grosse medidas medida dimensiones tamano taille mesures afmeting afmetingen "
    "maten maat dimensione dimensioni misure misura mal wymiary размеры размер габариты in inch inches cm mm inc incl including "
    "cushions pillows adjustable standard calkowita calkowity calkowite calkowitej ogolna ogolne gesamtmass totaler complessiva complessivo "
    "complessive ingombro totali globale globales generales general matt matten mobel mobeln meuble mobile mueble meubel meblem mebla nabytku "
    "produktu grundmal grundmatt basismasse totalt total samlet kokonais mitat rozmiar rozmiary wymiarow celkova celkovy rozmery ausser aussen imperial metric us hx specifications specs finished nominal".split()
)
_LOWER: Final = frozenset("min minimum minimal mini mindest minimo minima closed upright lowest smallest".split())
_UPPER: Final = frozenset("max maximum maximal maxi massimo massima maximo maxima highest largest upto".split())
SEAT: Final = frozenset(
    "seat seats seating sitz sitting asiento assise zit zitting seduta sitt sits sitte sede siedziska siedzisko siedzenia istuin istuimen "
    "saede sidde assento sedak sedaku sedu".split()
)
ARM: Final = frozenset(
    "arm arms armrest armrests armlehne armlehnen armleuning brazo brazos accoudoir accoudoirs bracciolo braccioli "
    "apoyabrazos reposabrazos armstod podlokietnik podlokietnika podlokietniki podlokietnikow armlaen armlene".split()
)
_FREE: Final = frozenset("clearance bodenfreiheit clearances".split())
_UNDER: Final = frozenset("under unter underneath sous bajo sotto onder pod beneath".split())
_PARTS: Final = frozenset(
    "mattress mattresses matratze matratzen matelas colchon matras materasso interior inside inner internal innen inneres drawer "
    "drawers schublade schubladen tiroir cajon lade cassetto shelf shelves boden fach einlegeboden cushion cushions cushion2 "
    "kissen opening openings backrest back rucken ruckenlehne dossier respaldo rugleuning schienale carton cartons karton package "
    "packages packaging packed packing box boxes shipping ship paket verpackung embalaje colis emballage canopy pole shade schirm "
    "lampenschirm leg legs bein beine pied pieds pata patas base bases plinth cable cord chain kabel screen tv monitor headboard "
    "kopfteil footboard fussteil siderail rail rails rollaway bed beds bett liegeflache liege chaise recamiere longue desk tabletop top "
    "platte plateau leaf leaves door doors tur turen knee toe tier pillow pillows filling storage compartment slat slats hanging "
    "left right links rechts wash stand built folded unfolded extended reclined open frame wall between gap thickness thick "
    "dicke starke epaisseur espesor dikte spessore plug mounting hole bracket shipped gross loft under without hook handle "
    "oparcie oparcia oparc ryglaen ryggstod selkanoja "
    "bulb lamp wattage watt glass mirror bezel lip edge border pile fringe recline reclining sleeper sleeping matress".split()
)
"""Parts of a piece, and what else has a size that is not the piece's."""
_THICKNESS: Final = frozenset(
    "thickness thick dicke starke epaisseur espesor grosor dikte spessore diagonal tykkelse grubosc".split()
)
_NO_SIZE: Final = frozenset(
    "load weight gewicht peso poids capacity volume volumen tested rating supports holds charge carga belastbarkeit "
    "traglast tragkraft draagkracht belastung portata capacidad inhalt contenance max2 rated limit supported people persons "
    "power voltage warranty garantie density lumens temperature angle rpm thread gsm".split()
)
_STRONG_POSES: Final = frozenset(
    "reclined extended unfolded expanded opened ausgezogen ausgeklappt aufgeklappt geoffnet ausgefahren deplie depliee allonge "
    "extendido abierto desplegado uitgeklapt uitgeschoven uitgetrokken aperto allungato esteso lying converted hoch2".split()
)
_WEAK_POSES: Final = frozenset("open folded flat recline extend extends fully folding ext leaf leaves bed-mode".split())
_REST: Final = frozenset(
    "closed upright geschlossen zusammengeklappt eingeklappt ferme plie replie cerrado plegado ingeklapt dicht chiuso retracted "
    "unextended normal sitting collapsed".split()
)
_INNER: Final = frozenset(
    "interior inside inner internal carton cartons package packages packaging packed packing box boxes shipping ship opening "
    "shipped karton verpackung paket gross shade canopy drawer drawers shelf shelves pole liegeflache couchage sleeping innen inneres interieur "
    "interieures interne internes interno interna interni interiores binnen".split()
)
_SEQUENCE_PARTS: Final = _INNER | frozenset(
    "mattress frame cushion cushions backrest base leg legs seat bed2 leaf leaves pillow pillows headboard2 top tabletop knee".split()
)
GENERAL_ENDS: Final = _PARTS | _LOWER | _UPPER | NEUTRAL | _FREE
"""Words whose axis stands right behind them: `Drawer W`, `Max H`."""
_SHORTEST_GLUED: Final = 9
_GLUED: Final = re.compile(
    r"(?:minimum|maximum)?(overall|total|product|assembled|item|seat|arm|armrest|clearance)(?:product)?"
    r"(width|depth|height|length|diameter|from|weight)?([a-z]*)"
)
_LIGATURES: Final = str.maketrans({"ß": "ss", "ł": "l", "ø": "o", "æ": "ae", "đ": "d", "œ": "oe", "ё": "е"})
_LETTER_RUNS: Final = re.compile(r"[^\W\d_]+")


_PACKED: Final = re.compile(
    r"verpa[ck]k|emballa|embala|imball|packag|pakk?et|forpack|opakow|shipping|lieferma|versandma"
)


@dataclass(frozen=True, slots=True)
class Label:
    """What words say of a figure.

    `role` is `side` (of the piece, `side` says which, seat measures included), `largest` (its largest figure), `other` (of a part,
    or no size at all), `noun` (a side of the thing named by `noun`) or blank when no side is named.
    """

    role: str = ""
    side: str | None = None
    noun: str = ""


NO_LABEL: Final = Label()


@lru_cache(maxsize=16384)
def plain_word(word: str) -> str:
    """A word in lower case without accents: what words are compared by."""
    low = word.lower()
    if low.isascii():
        return low
    flat = "".join(c for c in unicodedata.normalize("NFKD", low.translate(_LIGATURES)) if not unicodedata.combining(c))
    # Composing again keeps Cyrillic й, whose mark is part of the letter, comparable in one form.
    return unicodedata.normalize("NFC", flat)


def words_in(text: str) -> list[str]:
    """The words of a text, plain, each run of letters one."""
    return [plain_word(word) for word in _LETTER_RUNS.findall(unicodedata.normalize("NFC", text))]


def _one_off(word: str) -> dict[str, None]:
    """Every spelling one slip away from `word`: a letter wrong (`?`), left out, doubled or swapped, in order."""
    slips: dict[str, None] = {}
    for at in range(len(word)):
        slips[word[:at] + word[at + 1 :]] = None
        slips[word[:at] + word[at] + word[at:]] = None
        slips[word[:at] + "?" + word[at + 1 :]] = None
        if at + 1 < len(word):
            slips[word[:at] + word[at + 1] + word[at] + word[at + 2 :]] = None
    return slips


def _slips() -> dict[str, str]:
    """Misspelt side words; a spelling that two sides share, or that is a word by itself, is none."""
    found: dict[str, str | None] = {}
    for word, side in SIDES.items():
        for slip in _one_off(word) if len(word) >= _LONG_ENOUGH else ():
            if slip not in _KNOWN and len(slip) >= _LONG_ENOUGH:
                found[slip] = side if found.get(slip, side) == side else None
    return {slip: side for slip, side in found.items() if side}


_KNOWN: Final = _NO_SLIPS | NEUTRAL | _PARTS | SEAT | ARM | _GAPS | _NO_SIZE | _REST | _STRONG_POSES | frozenset(SIDES)
_SLIPS: Final = _slips()


@lru_cache(maxsize=16384)
def side_word(word: str) -> str | None:
    """The side that one plain word names (`length` included), slips of the pen allowed, or None."""
    side = SIDES.get(word)
    if side or not _LONG_ENOUGH <= len(word) < 20 or word in _KNOWN:
        return side
    if side := _SLIPS.get(word):
        return side
    for at in range(len(word)):
        if masked := _SLIPS.get(word[:at] + "?" + word[at + 1 :]):
            return masked
        shorter = word[:at] + word[at + 1 :]
        if len(shorter) >= _LONG_ENOUGH and shorter in SIDES:
            return SIDES[shorter]
    return None


def _split_compound(word: str) -> tuple[str, str] | None:
    """A compound's first part and side (`sitzhohe` is `sitz` and height), or None."""
    return next(
        ((word[: -len(root)].rstrip("s") or "", side) for root, side in _ROOTS if word.endswith(root) and word != root),
        None,
    )


def _unlinked(word: str) -> str:
    """A compound's first part without the letters that link it to the second (`ruckenlehnen` is `ruckenlehne`)."""
    return next((stem for link in ("", "n", "s", "en", "es") if (stem := word.removesuffix(link)) in _KNOWN), word)


def _parts_of(words: list[str]) -> tuple[list[str], list[str]]:
    """The sides that words name and the words beside them; compounds are taken apart."""
    if len(words) == 2 and min(map(len, words)) <= 2 and (joined := SIDES.get("".join(words))):
        # A blank that slipped into a word: `dept h`.
        return [joined], []
    sides: list[str] = []
    others: list[str] = []
    for word in words:
        if side := side_word(word):
            sides.append(side)
        elif compound := _split_compound(word):
            sides.append(compound[1])
            others.append(_unlinked(compound[0]))
        else:
            others.append(word)
    if sides or len(words) > 3:
        return sides, others
    letters = [LETTERS[word] for word in others if word in LETTERS]
    return letters, [word for word in others if word not in LETTERS]


def _glued(words: list[str]) -> Label | None:
    """Names of attributes that machines ran together: `overallheight-toptobottom`, `clearancefromfloortoundersideofbed`."""
    match = _GLUED.fullmatch("".join(words)) if words and len(words[0]) >= _SHORTEST_GLUED else None
    if match is None or not (match[2] or match[1] == "clearance"):
        return None
    if match[1] == "clearance":
        return Label("side", "clearance")
    extra = {"seat": "seat", "arm": "arm", "armrest": "arm"}.get(match[1])
    if extra is None:
        return Label("side", match[2]) if match[2] not in ("from", "weight") else Label("other")
    return _extra(extra, match[2])


def _extra(kind: str, side: str) -> Label:
    if kind == "seat" and side in ("height", "depth"):
        return Label("side", f"seat_{side}")
    return Label("side", "arm_height") if kind == "arm" and side == "height" else Label("other")


def _of_side(side: str, others: list[str]) -> Label:
    """The label of one side among other words."""
    kinds = set(others)
    if kinds & _NO_SIZE:
        return Label("other")
    if kinds & _FREE or (kinds & _UNDER and side == "height" and not kinds & _PARTS - {"under"} - ({"free"} | _UNDER)):
        return Label("other") if kinds & {"wall", "knee", "recline"} else Label("side", "clearance")
    # A single letter beside a word is the mark of a drawing: `A Overall height`.
    idle = NEUTRAL | _GAPS | _LOWER | _UPPER
    rest = [word for word in others if word not in idle and len(word) > 1]
    if kinds & SEAT or (kinds & ARM and side == "height"):
        kind, of_it = ("seat", SEAT) if kinds & SEAT else ("arm", ARM | {"rest"})
        strange = [word for word in rest if word not in of_it and word not in ("height", "adjustable")]
        return Label("other") if strange or kinds & _UPPER else _extra(kind, side)
    if "back" in kinds and kinds & {"front"}:
        rest = [word for word in rest if word != "back"]
    if any(map(_PACKED.match, rest)):
        return Label("other")
    if any(word in _PARTS or word in ARM for word in rest) and not kinds & {"including", "incl", "inc"}:
        return Label("other")
    if rest and not kinds & {"including", "incl", "inc"}:
        return Label("noun", side, " ".join(rest))
    return Label("largest" if kinds & _UPPER else "side", side)


_AT: Final = re.compile(r"(?:\bà|\bat|\bauf|\bop)\s*$", re.I)
"""`Assise à 49 cm`: how high the seat is."""
_SHORT: Final = {"sh": "seat_height", "sd": "seat_depth", "ah": "arm_height"}


@lru_cache(maxsize=16384)
def label_of(text: str) -> Label:
    """What a label says (`SEAT HT`, `Frame, depth`, `Min. height`, `hauteur d'assise`)."""
    words = words_in(text)
    if not words:
        return NO_LABEL
    if len(words) == 1 and words[0] in _SHORT:
        return Label("side", _SHORT[words[0]])
    if glued := _glued(words):
        return glued
    sides, others = _parts_of(words)
    if len(set(sides)) == 1:
        return _of_side(sides[0], others)
    if not sides and _AT.search(text) and (kind := seat_or_arm(text)):
        return Label("side", f"{kind}_height")
    if not sides and set(others) & _FREE:
        return Label("other") if set(others) & {"wall", "knee", "recline"} else Label("side", "clearance")
    if set(others) & (_NO_SIZE | _THICKNESS) or (sides and not set(others) <= NEUTRAL | _GAPS):
        return Label("other")
    return NO_LABEL


@lru_cache(maxsize=4096)
def bound_of(text: str) -> str:
    """`largest` of words that only say so of the figure behind them (`max.`, `up to`), `least` of `min.`, `from`, else blank."""
    words = set(words_in(text))
    told = words - NEUTRAL - _GAPS | words & {"from", "de", "von"}
    if told and told <= _UPPER | {"up"}:
        return "largest"
    return "least" if told and told <= _LOWER | {"from", "ab", "de", "von", "da", "desde", "vanaf"} else ""


def _stem(word: str) -> str:
    """What a German or Dutch compound of sizes is of: `innen` of `Innenmaße`, `sitz` of `Sitzmaß`; other words as they are."""
    for ending in ("masse", "mass", "abmessungen", "abmessung", "afmetingen", "maten"):
        stem = word.removesuffix(ending)
        if stem != word and (known := {stem, stem.rstrip("s")} & (NEUTRAL | _PARTS | SEAT | ARM | {"stell", "liege"})):
            return "total" if "stell" in known else "sleeping" if "liege" in known else min(known)
    return word


def seat_or_arm(name: str) -> str:
    """`seat` or `arm` of a name that says nothing else (`Misure seduta`, `Sitzmaße`, `Armrest`), else blank."""
    told = set(map(_stem, words_in(name))) - NEUTRAL - _GAPS
    if told and told <= SEAT:
        return "seat"
    return "arm" if told and told <= ARM | {"rest"} else ""


def only_parts(text: str) -> bool:
    """Whether a name says nothing but parts: `Frame`, `Drawer interior`."""
    return set(words_in(text)) <= _PARTS | _GAPS | NEUTRAL


def of_a_part(text: str) -> bool:
    """Whether a name is of a part, or of what is no size, whatever else it says."""
    return bool(set(words_in(text)) & (_PARTS | _NO_SIZE))


@lru_cache(maxsize=16384)
def name_role(text: str) -> str:
    """What a name before a whole size says.

    `whole` (nothing, or general words), `rest` (the piece closed, upright), `pose` (reclined, extended), `inner` (what is in or
    around it, the shade of a lamp), `part` (a part that may be sold by itself) or `piece` (a thing of its own).
    """
    words = [_stem(word) for word in words_in(text) if word not in _GAPS]
    if any(map(_PACKED.match, words)):
        return "inner"
    told = [word for word in words if word not in NEUTRAL]
    if not told:
        return "whole"
    kinds = set(told)
    if kinds & _STRONG_POSES or (
        kinds & _WEAK_POSES and (told[-1] in _WEAK_POSES or kinds <= _WEAK_POSES | {"when", "position"})
    ):
        return "pose"
    if "up" in kinds and re.search(r"\bup to\W*$", text, re.I):
        return "pose"
    if kinds <= _REST | _LOWER | {"position", "when"}:
        return "rest"
    if kinds & _UPPER and kinds <= _UPPER | _LOWER:
        return "pose"
    if kinds & _INNER and (told[-1] in _INNER or kinds <= _INNER | _SEQUENCE_PARTS):
        return "inner"
    return "part" if told[-1] in _SEQUENCE_PARTS or told[0] in _INNER else "piece"


_WITH_ABBREVIATED: Final = re.compile(r"(?<![^\W_])w/", re.I)
_SAID_OF_SIZE: Final = re.compile(r"\s(?:dimensions?|dims?|measurements?|measures|maße)(?:\s(?:are|is|in))?$", re.I)
"""`Chair dimensions are:` names the chair."""


def piece_name(name: str, text: str) -> str:
    """How a piece is called: without words that only say that sizes follow, and with `w/` where `text` had it so."""
    abbreviated = _WITH_ABBREVIATED.search(text)
    return _SAID_OF_SIZE.sub("", re.sub(r"\bwith\b", abbreviated[0], name) if abbreviated else name)
