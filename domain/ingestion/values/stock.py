"""How much there is, and what that means for a buyer.

    stock    := word | [about] number [unit] [word] | word [":"] number | "only" number "left" | word date (told)
    about    := "ca." | "~" | "approx." …                     the number is taken
    number   := ["-"] digits ["+"] | ">" digits               below zero is oversold: 0, and told; `20+` and `>20` are 20
    bound    := "<" digits | "less than" digits               no quantity: low stock up to ten, and told
    phrase   := none noun | few noun                          words of `_NONE`, `_FEW`, `_NOUNS` and `_IDLE` alone
    shipped  := word ("-" | "," | ":" …) "ships" …            a word for stock before how long it takes to ship

One number at most: a second one, a date, a formula or a fraction is told.
"""

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Fault, Parsed, overlong, quoted, refused, unreadable
from domain.ingestion.values.text import stated
from domain.kernel.problems import ProblemKind

LOW_STOCK_MOST: Final = 5
_LONGEST: Final = 200
_MAX: Final = 2_000_000_000
_WORDS: Final[dict[str, tuple[str, int | None]]] = {
    **dict.fromkeys(
        "in stock|instock|stocked|available|available now|yes|y|in stock now|ready to ship|onlineonly|online "
        "only|auf lager"
        "|lieferbar|sofort lieferbar|vorrätig|verfügbar|en stock|disponible|in store|instoreonly|stock|active"
        "|lager|ja|si|sí|lagernd|ab lager|ab lager lieferbar|sofort verfügbar|auf lager verfügbar|disponible en stock|en existencia"
        "|hay existencias|disponible inmediatamente|op voorraad|voorradig|leverbaar|direct leverbaar|uit voorraad leverbaar"
        "|voorraad|beschikbaar|disponibile|in magazzino|disponibilità immediata|disponibile subito|i lager|finns i lager|på lager"
        "|dostępny|dostępne|w magazynie|varastossa|em estoque|disponível|в наличии|есть|oui|available immediately|available to ship"
        "|good stock|full stock|en tienda|good availability"
        "|true|deep stock|plenty|high|ample".split("|"),
        ("in_stock", None),
    ),
    **dict.fromkeys(
        "low stock|low|limited|limited availability|limitedavailability|limited stock|few left|geringer bestand"
        "|pocas unidades"
        "|almost gone|low inventory|last pieces|nur noch wenige|wenige verfügbar|begrenzter bestand|letzte stücke|stock faible"
        "|stock limité|dernières pièces|plus que quelques pièces|últimas unidades|stock limitado|stock bajo|beperkte voorraad"
        "|bijna uitverkocht|laatste stuks|ultimi pezzi|scorte limitate|quasi esaurito|few remaining|running low|selling fast|very low|low qty".split(
            "|"
        ),
        ("low_stock", None),
    ),
    **dict.fromkeys(
        "out of stock|outofstock|oos|not available|unavailable|sold out|soldout|no stock|nicht vorrätig|nicht lieferbar"
        "|ausverkauft|agotado|sin stock|no disponible|not in stock|out|no|n|none in stock|nicht verfügbar|false"
        "|temporarily "
        "out of stock|temporarily unavailable|nein|not sellable|nicht auf lager|derzeit nicht verfügbar|zurzeit nicht lieferbar"
        "|momentan nicht lieferbar|vergriffen|leer|rupture|rupture de stock|en rupture|en rupture de stock|épuisé|indisponible"
        "|sin existencias|fuera de stock|no hay|niet op voorraad|niet leverbaar|uitverkocht|niet beschikbaar|esaurito|non disponibile"
        "|non disponible|non in stock|slut|slutsåld|slut i lager|utsolgt|udsolgt|ikke på lager|brak|niedostępny|loppu|esgotado"
        "|нет в наличии|нет|non|nee|zero|nil stock|currently unavailable|stock out|stockout".split("|"),
        ("out_of_stock", 0),
    ),
    **dict.fromkeys(
        "backorder|back order|backordered|back ordered|on back order|on backorder|bo|b/o|nachbestellt|available "
        "to order"
        "|on order|pedido pendiente|onbackorder|in nachlieferung|nachlieferung|réapprovisionnement en cours"
        "|en commande|bajo pedido|in bestelling|nabestelling|in arrivo|in riordino|awaiting stock|restocking".split(
            "|"
        ),
        ("backorder", None),
    ),
    **dict.fromkeys(
        "preorder|pre order|presale|pre sale|coming soon|made to order|madetoorder|mto|vorbestellung"
        "|vorbestellbar|preventa"
        "|new arrival soon|special order|auf bestellung|in kürze verfügbar|demnächst|sur commande|précommande|bientôt disponible"
        "|por encargo|próximamente|op bestelling|binnenkort|voorverkoop|su ordinazione|preordine|prossimamente|förhandsbokning".split(
            "|"
        ),
        ("preorder", None),
    ),
    **dict.fromkeys(
        "discontinued|disc|disco|discontinue|d|dc|obsolete|phased out|eingestellt|auslaufartikel|descontinuado"
        "|no longer available|retired|ended|drop|dropped|nicht mehr lieferbar|nicht mehr verfügbar|ausgelaufen|arrêté|supprimé"
        "|fin de série|plus disponible|descatalogado|fuera de catálogo|niet meer leverbaar|uit assortiment|uit productie|fuori produzione"
        "|non più disponibile|utgått|wycofany|end of life|eol".split("|"),
        ("discontinued", None),
    ),
    **dict.fromkeys(
        "call|unknown|call for availability|ask|auf anfrage|consultar|inquire|please call|check|contact us"
        "|sur demande|nous consulter|a consultar|op aanvraag|su richiesta|please inquire|call us".split("|"),
        ("unknown", None),
    ),
}
_NUMBER: Final = re.compile(r"\d{1,3}(?:[ ,.'\u00a0\u202f]\d{3})+(?![\d.,])|\d[\d.,]*\d|\d")
_GROUPS: Final = re.compile(r"\d{1,3}(?:[ ,'\u00a0\u202f]\d{3})+|\d{1,3}(?:\.\d{3}){2,}")
_WHOLE: Final = re.compile(r"(\d+)(?:[.,](?:0|00|0{4,}))?")
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_NEUTRAL: Final = frozenset(
    "in stock pcs pc pieces piece units unit ea each available left stück stücke stk sets set ctn ctns pairs pair uds ud unidades "
    "qty quantity on hand or more plus now only just still noch nur que il ne n en reste quedan queda restantes nog slechts solo unidad "
    "rimasti rimasto auf lager bestand menge verfügbar lagernd verfügbare vorrätig disponible disponibles existencias op voorraad "
    "stuks disponibili disponibile pezzi pz magazzino pièces pièce ca circa approx approximately about around ungefähr env environ "
    "aprox etwa rund remaining remain items item total actual last the atp szt шт st styck kpl exemplaires de ready to ship "
    "inventory level count min at least minimum mindestens au moins al menos".split()
)
_MORE: Final = re.compile(r"^\W*(?:more than|over|above|mehr als|über|plus de|más de|meer dan|più di|oltre)\b", re.I)
_LESS: Final = re.compile(
    r"<|≤|\b(?:less than|fewer than|under|below|up to|max\.?|weniger als|unter|bis zu|moins de|menos de|minder dan|meno di)\b",
    re.I,
)
_LOW_BOUND: Final = 10
_POSSIBLE: Final = re.compile(r"\b(?:möglich|possible|posible|possibile|mogelijk|możliwe|erhältlich)\b", re.I)
_SHIPPED: Final = re.compile(
    r"([^\d:;,|–—-]{2,40}?)\s*[:;,|–—-]\s*(?:usually |typically )?(?:ships?|lieferbar in|available in|delivery|dispatch\w*|lieferung|lieferzeit|versand\w*|livraison|expédi\w*"
    r"|levering|levertijd|entrega|envío|spedi\w*|consegna|leverans)\b.{0,80}",
    re.I,
)
_NOUNS: Final = frozenset(
    "stock lager bestand vorrat vorrätig verfügbar lieferbar magazynie magazynu magazyn stanie stanu voorraad leverbaar beschikbaar "
    "disponible disponibles disponibile disponibili dispo magazzino scorta scorte giacenza existencias almacén estoque disponível lagret "
    "lagerhållen varastossa складе наличии остатке dostępny dostępne dostępna ilość ilości mängd antal menge quantité cantidad quantità "
    "aantal available availability inventory skladem sklade".split()
)
_NONE: Final = frozenset(
    "no not none nicht kein keine keinen nie brak niet geen non pas plus sin ikke inte ej ei нет не não není out ohne zonder senza "
    "temporarily vorübergehend tijdelijk tymczasowo tillfälligt".split()
)
_FEW: Final = frozenset(
    "limited few low last begrenzt begrenzte begrenzter wenige geringe geringer knapp restbestand limité limitée faible dernières beperkt "
    "beperkte weinig laatste limitado limitada pocas últimas bajo limitata limitate poche ultimi ograniczona ograniczony mała małe "
    "ostatnie begränsat begränsad få begrænset ограничено ограничен мало последние".split()
)
_IDLE: Final = frozenset(
    "in on the at auf ab im am w na i på op en de à a di da в на mehr more currently derzeit zurzeit momentan aktuell actuellement "
    "attualmente actualmente obecnie momenteel nu just now is are we have unser unserem product item produkt artikel hay está y "
    "quantity stück".split()
)
_MINUS_BEFORE: Final = re.compile(r"(?:^|[\s:(])[-−–]\s?$")
_STRANGE: Final = re.compile(r"[/=*%$€£]")
_CODE: Final = re.compile(r"\d[^\W\d_]{1,2}\d|[^\W\d_]\d|\d[kKeE](?![^\W\d_])")
_BRACKET: Final = re.compile(r"[\[(] ?([A-Za-z][A-Za-z _-]{0,40}?) ?[\])]$")


@dataclass(frozen=True, slots=True)
class Stock:
    """A quantity, a word for it, or both; None what is not stated."""

    quantity: int | None = None
    availability: str | None = None


def availability_of(quantity: int) -> str:
    """What a quantity means: none out_of_stock, one to five low_stock, more in_stock."""
    if quantity <= 0:
        return "out_of_stock"
    return "low_stock" if quantity <= LOW_STOCK_MOST else "in_stock"


def word_meaning(text: str) -> Stock | None:
    """What a stock word says (`NOT AVAILABLE`, `https://schema.org/InStock`), or None."""
    low = text.strip().lower().rsplit("/", 1)[-1] if "schema.org" in text.lower() else text.strip().lower()
    if len(low) > _LONGEST:
        return None
    found = _WORDS.get(re.sub(r"[_\s-]+", " ", low).strip(" .!*?:"))
    return Stock(found[1], found[0]) if found else None


def _count(number: str) -> int | None:
    """A number of pieces, or None for fractions and for marks that may part thousands or decimals (`1.000`)."""
    if _GROUPS.fullmatch(number):
        return int(re.sub(r"\D", "", number)[:15])
    whole = _WHOLE.fullmatch(number)
    return int(whole[1][:15]) if whole else None


def _bounded(text: str, count: int) -> Parsed[Stock]:
    fault = Fault(ProblemKind.CONFLICT, f"{quoted(text)} names only a bound of the quantity.")
    return Parsed(Stock(None, "low_stock") if count <= _LOW_BOUND else None, (fault,))


def _oversold(before: str, after: str) -> bool:
    """Whether a number stands below zero: `-3`, `3-`, `(3)`."""
    bracketed = before.strip() == "(" and after.strip() == ")"
    return bool(_MINUS_BEFORE.search(before)) or bracketed or after.strip() in ("-", "−")


def _numbered(text: str, given: str, found: re.Match[str]) -> Parsed[Stock]:
    """A cell with one number: all its words have to be known ones."""
    before, after = given[: found.start()], given[found.end() :]
    words = {word.lower() for word in _LETTERS.findall(f"{before} {after}")}
    count = _count(found[0])
    less = bool(_LESS.search(before))
    meaning = word_meaning(re.sub(r"[\W_]+", " ", f"{before} {after}"))
    understood = words <= _NEUTRAL or less or _MORE.match(before) or meaning
    if count is None or not understood or _STRANGE.search(before + after):
        return unreadable(text, "is no quantity")
    if less:
        return _bounded(text, count)
    if count == 0 and (_MORE.match(before) or before.strip().endswith((">", "≥")) or after.strip().startswith("+")):
        return Parsed(Stock(None, "in_stock"))  # more than none
    if count > _MAX:
        return refused(ProblemKind.OUT_OF_RANGE, text, "is more than any stock")
    if _oversold(before, after):
        fault = Fault(ProblemKind.OUT_OF_RANGE, f"{quoted(text)} is below zero: oversold, taken as none.")
        return Parsed(Stock(0), (fault,) if count else ())
    return Parsed(Stock(count)) if meaning is None or words <= _NEUTRAL else _worded(text, meaning, count)


def _worded(text: str, meaning: Stock, count: int) -> Parsed[Stock]:
    """A number beside a word that is no mere unit: both where they agree, else the word, and it is told."""
    if meaning.availability in ("in_stock", "low_stock") or (meaning.quantity == 0 and count == 0):
        return Parsed(Stock(count, meaning.availability if count else None))
    fault = Fault(ProblemKind.CONFLICT, f"{quoted(text)} states a word and a number that disagree.")
    return Parsed(meaning, (fault,))


def _said(given: str) -> Stock | None:
    """What the words of a phrase come to (`nicht mehr auf Lager`, `brak w magazynie`); None where one is not known."""
    words = {word.lower() for word in _LETTERS.findall(given)}
    if not words & _NOUNS or not words <= _NOUNS | _NONE | _FEW | _IDLE:
        return None
    if words & _NONE:
        return None if words & _FEW else Stock(0, "out_of_stock")
    return Stock(None, "low_stock") if words & _FEW else None


def _led(text: str, given: str) -> Parsed[Stock] | None:
    """A word for stock with a date or more behind it (`Backorder until 12/05`): the word is taken, the rest told."""
    head = re.match(r"[^\W\d_]{2,30}(?:[ -][^\W\d_]{1,30}){0,3}", given)
    words = re.split(r"[ -]", head[0]) if head else []
    for count in range(len(words), 0, -1):
        meaning = word_meaning(" ".join(words[:count]))
        if meaning and meaning.availability not in ("in_stock", "low_stock", "unknown") and len(words[0]) > 2:
            return Parsed(
                meaning, (Fault(ProblemKind.UNREADABLE, f"{quoted(text)} says more than its word for stock."),)
            )
    return None


@lru_cache(maxsize=16384)
def parse_stock(text: str) -> Parsed[Stock]:
    """A quantity, a stock word, or both, from one cell (`12`, `20+`, `0 in stock`, `In Stock`, `Only 3 left`).

    `20+` is 20; a negative quantity is oversold, means 0 and is told. Problems: unreadable, out_of_range, conflict.
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = stated(text)
    if given is None:
        return NOTHING
    if given.startswith("="):
        return unreadable(text, "is a formula without its result")
    if word := word_meaning(given):
        return Parsed(word)
    numbers = list(_NUMBER.finditer(given))
    if len(numbers) == 1 and not _CODE.search(given):
        read = _numbered(text, given, numbers[0])
        return (
            read
            if read.value is not None or read.faults[0].problem != ProblemKind.UNREADABLE
            else _led(text, given) or read
        )
    if not numbers and (said := _said(given) or word_meaning(_POSSIBLE.sub("", given))):
        return Parsed(said)
    if (shipped := _SHIPPED.fullmatch(given)) and (said := word_meaning(shipped[1])):
        return Parsed(said)
    led = _led(text, given) if numbers else None
    return led or unreadable(text, "is neither a quantity nor a word for stock")


@lru_cache(maxsize=16384)
def parse_availability(text: str) -> Parsed[Stock]:
    """What an availability column says; a number there is a quantity. Problem: unreadable."""
    given = stated(text)
    if given is None:
        return NOTHING
    if word := word_meaning(given):
        return Parsed(word)
    return parse_stock(text)


@lru_cache(maxsize=16384)
def stock_in_value(text: str) -> tuple[str, Stock | None]:
    """A variant's value without the stock word in brackets at its end, and that word (`Blue [NOT AVAILABLE]`)."""
    match = _BRACKET.search(text) if text.endswith(("]", ")")) else None
    word = word_meaning(match[1]) if match and len(match[1]) > 2 else None
    return (text[: match.start()].strip(), word) if match and word else (text, None)
