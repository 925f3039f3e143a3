"""Compared words: titles folded, without endings, under one name for each thing."""

import re
import unicodedata
from functools import lru_cache
from typing import Final


def _table(text: str) -> dict[str, str]:
    """`canonical: other other` lines as a mapping from every other name to the canonical one."""
    found: dict[str, str] = {}
    for line in text.strip().splitlines():
        name, _, others = line.partition(":")
        found.update(dict.fromkeys(others.split(), name.strip()))
    return found


SHADES: Final = _table(
    """
    black: blk blck blackish ebony onyx jet noir noire schwarz negro nero zwart svart preto
    white: wht wh weiss blanc blanche blanco blanca bianco bianca wit vit snow snowy
    ivory: elfenbein avorio ivoire marfil
    cream: creme crema offwhite
    grey: gry gray grau gris grise grigio grijs grijze greyish
    silver: silber argent argento plata slvr
    brown: brn brwn braun brun marron marrone bruin brownish choc
    beige: beig bge sand oatmeal
    blue: blu blau bleu azul blauw azure
    dark grey: charcoal anthracite anthrazit graphite antracite
    dark blue: navy marineblau midnight
    dark brown: espresso wenge chocolate
    dark red: burgundy maroon bordeaux
    light brown: tan camel
    green: grn gruen grun vert verde groen emerald
    red: rot rouge rojo roja rosso rood crimson
    yellow: ylw yel gelb jaune amarillo giallo geel
    orange: orng org arancione naranja
    pink: pnk rosa rose blush
    purple: prpl lila violet viola violett plum lavender
    turquoise: teal tuerkis turkis aqua
    gold: gld golden oro dore
    bronze: brnz
    brass: messing laiton
    copper: kupfer cuivre rame
    transparent: clr trasparente
    oak: eiche chene roble rovere eiken
    walnut: wal wlnt nussbaum noyer nogal noce
    birch: birke bouleau
    pine: kiefer pino
    beech: buche hetre faggio
    ash: esche frassino
    maple: ahorn
    cherry: kirsche
    mahogany: mahagoni
    teak: tek
    bamboo: bambus bambou
    chrome: chrom chromed
    stainless: edelstahl inox
    dark: dk drk dunkel fonce oscuro scuro donker mork
    light: lt lgt hell clair claro chiaro licht ljus pale
    gloss: glossy hochglanz laque shiny glanz polished
    matte: matt mat
    brushed: brshd satin
    stained: stain gebeizt teinte
    """
)
"""Every name of a colour, wood, metal or finish with the one it is compared by."""


COLOURS: Final = frozenset(name for names in SHADES.values() for name in names.split()) | {
    *("multicolour", "champagne", "taupe", "smoked", "frosted", "olive"),
}

FILLERS: Final = frozenset(
    "colour color effect look tone wood veneer steel plated fabric finish high natural nat natur naturel naturale".split()
)
"""Words beside a colour that some leave out."""

FINISHES: Final = frozenset(
    "oak walnut birch pine beech ash maple cherry mahogany teak bamboo chrome stainless brass bronze copper gloss matte "
    "brushed stained".split()
)


NAMES: Final = _table(
    """
    chair: chr chrs stuhl chaise silla sedia stoel
    table: tbl tbls tisch mesa tavolo tafel
    sofa: couch settee canape divano soffa sofas
    bed: bett cama letto
    cabinet: cab cb cabs cbnt cabt
    wardrobe: armoire kleiderschrank armadio armario garderobe
    drawer: drw drwr drwrs drws schublade tiroir cajon cassetto
    footstool: ottoman pouf pouffe hocker
    bench: bnch
    tv: television
    shelf: shlf shelve shelves regal etagere estante scaffale hylla shelving
    bookcase: bkcs bookshelf bookcases bookshelve
    desk: dsk schreibtisch bureau escritorio scrivania
    lamp: lmp lampe lampara lampada
    mirror: mir mirr spiegel miroir espejo specchio
    rug: teppich tapis alfombra tappeto
    cushion: cush kissen coussin cojin cuscino
    cover: cvr bezug housse funda fodera slipcover
    frame: frm rahmen cadre
    front: frnt frnts fr fronts
    door: dr drs tuer porte puerta porta
    armrest: armr armrests
    storage: strg stor
    section: sect secs
    combination: combo comb kombination
    seat: seater sitzer plazas posti places
    headboard: hdbrd kopfteil
    mattress: matratze matelas materasso colchon
    leather: lthr ltr leder cuir piel pelle
    metal: mtl metall
    glass: gls glas verre vidrio vetro
    wood: wd wooden holz bois madera legno
    velvet: samt velours
    upholstered: uphol upholst
    high: hi hgh
    colour: color farbe couleur kleur
    medium: med md
    large: lg lrg
    small: sm sml
    double: dbl
    single: sgl
    round: rnd
    rectangular: rect
    adjustable: adj
    outdoor: outdr
    extendable: extending ext
    dining: din
    nightstand: nachttisch
    stool: stl
    sideboard: buffet
    and: und et y e og och en
    with: mit avec con met med w
    for: fur fuer pour para per voor
    """
)
"""Other names, abbreviations and other languages of words in titles."""


STOP: Final = frozenset("with and in the of a an to by from or on as de la le der die das le new".split())

DRESSING: Final = frozenset(
    "classic modern contemporary stylish premium versatile farmhouse scandinavian rustic elegant traditional luxury "
    "beautiful space saving spacesaving finish color colour colore style brand genuine original".split()
)
"""Words that sellers add to any title, which tell nothing apart."""


CORPORATE: Final = frozenset(
    "inc co ltd llc corp company gmbh ag sa spa srl ab home furniture furnishing furnishings living electronics "
    "electronic technologies technology computer computers products international usa us group the unknown".split()
)
"""Words of a brand that its bearers leave out at will."""


ACCESSORIES: Final = frozenset(
    "cover cushion leg pad protector bracket mount hinge knob handle insert lid case bag charger cable adapter battery "
    "remote refill liner topper headrest headcover pillowcase pillow caster filter cartridge kit extension".split()
)
"""What is sold beside a main thing, and names it: `cover for sofa`."""


NUMBERS: Final = {
    name: number
    for number, names in enumerate(
        ("one single", "two twin pair", "three triple", "four", "five", "six", "seven", "eight"), start=1
    )
    for name in names.split()
}

QUANTITY_UNITS: Final = frozenset(
    "gb mb tb kb ghz mhz hz khz w watt watts kw v volt volts a amp amps mah ah mp megapixel megapixels oz floz lb lbs kg g ml l "
    "qt gal gallon cu cuft sqft port ports disc discs disk cd dvd seat seats seater drawer drawers door doors shelf shelves "
    "channel channels band button buttons ch ct count sheet sheets page pages pack packs pk piece pieces pc pcs x k rpm "
    "fps min minute minutes hour hours hr hrs year years tier tiers step steps light lights person persons cup cups bit way "
    "outlet outlets ft feet foot in inch inches cm mm m yd section sections front fronts quart ounce ounces pound pounds gram "
    "grams gramm gr liter liters litre litres mg bags bag".split()
)
"""What follows a number and makes it a quantity instead of a part of a name."""

UNITS: Final = _table(
    """
    w: watt
    v: volt
    a: amp
    mp: megapixel
    disc: disk
    min: minute
    hr: hour
    qt: quart
    gal: gallon
    cuft: cu
    lb: pound
    oz: ounce
    l: liter litre
    g: gram gramm gr
    """
)
"""Other names of units."""

SCALES: Final = {"floz": (29.57, "ml"), "kg": (1000, "g"), "l": (1000, "ml"), "tb": (1000, "gb"), "ghz": (1000, "mhz")}
"""Units that others write as so many of a smaller one."""

SPACED: Final = frozenset(unit for unit in QUANTITY_UNITS if len(unit) > 1) - {"in", "ch"} | {"g", "l", "v"}
"""Units that make one quantity with a number before them, a blank between: a single letter is mostly something else."""


LONGEST: Final = 200
"""Characters of a word that it is compared by, at most."""

_ALIKE: Final = 40
"""Characters of the longest word that may be written otherwise."""

_CHUNK: Final = re.compile(r"[^\W_]+(?:[-/.'’][^\W_]+)*")

_PART: Final = re.compile(r"\d+(?:\.\d+)?(?=[^\W\d_]*(?:[^\w.]|$))|[^\W_]+")

_COUNTED: Final = re.compile(r"(\d+(?:\.\d+)?)([^\W\d_]+)")

_SCALED: Final = 6
"""Characters of a number that is brought to another unit, at most."""

_WORD: Final = re.compile(r"[^\W_]+")

_LETTERS: Final = str.maketrans({"ø": "o", "æ": "a", "œ": "o", "ß": "ss", "ł": "l", "đ": "d", "þ": "th", "ð": "d"})

_UMLAUTS: Final = re.compile("ae|oe|ue")

_VOWEL: Final = re.compile("[aeiouy]")


def folded(text: str) -> str:
    """The text in lower case without accents, quotes and dashes in their plain forms."""
    text = text.lower()
    if text.isascii():
        return text
    plain = unicodedata.normalize("NFKD", text.translate(_LETTERS)).replace("⁄", "/")
    plain = "".join(char for char in plain if not unicodedata.combining(char))
    return (
        plain.replace("×", "x")
        .replace("”", '"')
        .replace("“", '"')
        .replace("″", '"')
        .replace("′", "'")
        .replace("–", "-")
    )


@lru_cache(maxsize=1 << 17)
def word(text: str) -> str:
    """What a folded word is compared by: `chairs` and `chr` as `chair`, `boerje` as `borje`, `navy` as `dark blue`."""
    if found := SHADES.get(text) or NAMES.get(text):
        return found
    if text in COLOURS:
        return text
    if text.isdigit():
        return text.lstrip("0") or "0"
    bare = text
    if len(text) > 3 and text.endswith("s") and not text.endswith("ss"):
        bare = text[:-3] + "y" if text.endswith("ies") and len(text) > 4 else text[:-1]
        if text.endswith(("ches", "shes", "xes", "sses")):
            bare = text[:-2]
        if found := SHADES.get(bare) or NAMES.get(bare):
            return found
    return _UMLAUTS.sub(lambda pair: pair[0][0], bare)


def chunks(text: str) -> list[str]:
    """The pieces of a folded text as they are written, punctuation inside kept: `dsc-w150`, `2-seat`."""
    return _CHUNK.findall(text)


def words(text: str) -> list[str]:
    """The compared words of a folded text in their order."""
    return [one for found in _WORD.findall(text) for one in word(found[:LONGEST]).split()]


@lru_cache(maxsize=1 << 17)
def code(text: str) -> str:
    """A code without case and punctuation; leading zeros stay."""
    return "".join(_WORD.findall(folded(text)))


@lru_cache(maxsize=1 << 17)
def parts(chunk: str) -> tuple[str, ...]:
    """The compared words of one chunk; a number and its unit stay together: `8gb`, `2seat`."""
    made: list[str] = []
    for found in _PART.findall(chunk):
        part = found[:LONGEST]
        counted = _COUNTED.fullmatch(part)
        if counted and counted[2] in QUANTITY_UNITS:
            made.append(quantity(counted[1], counted[2]))
        elif part in QUANTITY_UNITS and made and made[-1].replace(".", "").isdigit():
            made[-1] = quantity(made[-1], part)
        elif part.replace(".", "").isdigit():
            made.append(part)
        else:
            made.extend(word(part).split())
    return tuple(made)


def quantity(number: str, unit: str) -> str:
    """A number and its unit as one word, whichever of its names the unit goes by: `0.5 kg` and `500 g` as `500g`."""
    named = UNITS.get(plain := word(unit), plain)
    if named in SCALES and len(number) <= _SCALED:
        factor, named = SCALES[named]
        return f"{float(number) * factor:.0f}{named}"
    return (number.rstrip("0").rstrip(".") if "." in number else number) + named


def stem(made: str) -> str | None:
    """A code without the letters at its end, which mostly say the colour: `rxv663bk` is `rxv663`; None if too little is left."""
    bare = made.rstrip("abcdefghijklmnopqrstuvwxyz")
    if len(made) - len(bare) > 4:
        bare = made
    return bare if len(bare) >= 4 and sum(map(str.isdigit, bare)) >= 2 else None


def number_of(made: str) -> str | None:
    """The one number of six digits or more within a code, which brands write with and without letters around it."""
    bare = made.strip("abcdefghijklmnopqrstuvwxyz")
    return bare if len(bare) >= 6 and bare.isdigit() and len(made) - len(bare) <= 7 else None


@lru_cache(maxsize=1 << 18)
def alike(one: str, other: str) -> bool:
    """Whether two different words are likely one: an abbreviation, the beginning, or one slip of the keys."""
    short, long = (one, other) if len(one) <= len(other) else (other, one)
    if not short or len(long) > _ALIKE or short[0].isdigit() or long[0].isdigit():
        return False
    if short[0] != long[0] and short[-1] != long[-1]:
        return False
    if short[0] == long[0] and len(short) >= 2:
        if len(short) >= 4 and long.startswith(short):
            return True
        if len(long) >= 4 and not _VOWEL.search(short[1:]) and _within(short, long):
            return True
    return len(short) >= 5 and len(long) - len(short) <= 1 and _one_slip(short, long)


def _within(short: str, long: str) -> bool:
    letters = iter(long)
    return all(letter in letters for letter in short)


def _one_slip(short: str, long: str) -> bool:
    at = next((i for i, letter in enumerate(short) if letter != long[i]), len(short))
    if len(short) < len(long):
        return short[at:] == long[at + 1 :]
    swapped = short[at + 1 : at + 2] + short[at : at + 1] + short[at + 2 :]
    return short[at + 1 :] == long[at + 1 :] or swapped == long[at:]
