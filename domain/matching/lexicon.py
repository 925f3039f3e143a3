"""What words of titles stand for: abbreviations, other names and other languages of furniture words, colours and finishes."""

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
