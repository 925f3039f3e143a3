"""Countries of origin: from codes and names to ISO 3166-1 alpha-2."""

import re
import unicodedata
from functools import lru_cache
from typing import Final

from domain.ingestion.values.parsed import NOTHING, Parsed, overlong, unreadable
from domain.ingestion.values.text import stated

CODES: Final = frozenset(
    (
        "AD AE AF AG AI AL AM AO AQ AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BV "
        "BW BY BZ CA CC "
        "CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM "
        "FO FR GA GB GD "
        "GE GF GG GH GI GL GM GN GP GQ GR GS GT GU GW GY HK HM HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM "
        "JO JP KE KG KH "
        "KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR "
        "MS MT MU MV MW "
        "MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS "
        "RU RW SA SB SC "
        "SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ "
        "UA UG UM US UY "
        "UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW"
    ).split()
)
_LONGEST: Final = 500
_NAMES: Final = {
    "AE": "united arab emirates|uae",
    "AF": "afghanistan",
    "AL": "albania|albanien",
    "AM": "armenia",
    "AR": "argentina|argentinien",
    "AT": "austria|osterreich|oesterreich|aut",
    "AU": "australia|australien|aus",
    "BA": "bosnia|bosnia and herzegovina|bosnien und herzegowina|bosnien",
    "BD": "bangladesh|bangladesch|bgd",
    "BE": "belgium|belgien|belgica|bel",
    "BG": "bulgaria|bulgarien|bgr",
    "BR": "brazil|brasil|brasilien|bra",
    "BY": "belarus|weissrussland",
    "CA": "canada|kanada|can",
    "CH": "switzerland|schweiz|suiza|che",
    "CL": "chile|chl",
    "CN": "china|prc|p r c|pr china|p r china|peoples republic of china|people s republic of china|chn",
    "CO": "colombia|kolumbien|col",
    "CR": "costa rica",
    "CZ": "czech republic|czechia|tschechien|tschechische republik|cze",
    "DE": "germany|deutschland|alemania|deu",
    "DK": "denmark|danemark|dinamarca|dnk",
    "DO": "dominican republic|republica dominicana",
    "EC": "ecuador",
    "EE": "estonia|estland|est",
    "EG": "egypt|agypten|egipto|egy",
    "ES": "spain|spanien|espana|esp",
    "ET": "ethiopia",
    "FI": "finland|finnland|fin",
    "FR": "france|frankreich|francia|fra",
    "GB": "united kingdom|great britain|england|uk|grossbritannien|scotland|wales|reino unido|gbr|u k",
    "GR": "greece|griechenland|grc",
    "GT": "guatemala",
    "HK": "hong kong|hongkong",
    "HN": "honduras",
    "HR": "croatia|kroatien|hrv",
    "HU": "hungary|ungarn|hun",
    "ID": "indonesia|indonesien|idn",
    "IE": "ireland|irland",
    "IL": "israel|isr",
    "IN": "india|indien|ind",
    "IR": "iran|persia",
    "IT": "italy|italien|italia|ita",
    "JP": "japan|jpn",
    "KE": "kenya",
    "KH": "cambodia|kambodscha|khm",
    "KR": "south korea|korea|republic of korea|sudkorea|kor",
    "LA": "laos|lao|lao pdr|lao people s democratic republic",
    "LK": "sri lanka|lka",
    "LT": "lithuania|litauen|ltu",
    "LU": "luxembourg",
    "LV": "latvia|lettland|lva",
    "MA": "morocco|marokko|marruecos|mar",
    "MD": "moldova",
    "MG": "madagascar",
    "MK": "north macedonia|macedonia",
    "MM": "myanmar|burma|mmr",
    "MX": "mexico|mexiko|mex",
    "MY": "malaysia|mys",
    "NL": "netherlands|the netherlands|holland|niederlande|paises bajos|nld",
    "NO": "norway|norwegen|nor",
    "NP": "nepal|npl",
    "NZ": "new zealand|neuseeland",
    "PA": "panama",
    "PE": "peru",
    "PH": "philippines|the philippines|philippinen|phl",
    "PK": "pakistan|pak",
    "PL": "poland|polen|polonia|pol",
    "PT": "portugal|prt",
    "RO": "romania|rumanien|rumania|rou",
    "RS": "serbia|serbien|srb",
    "RU": "russia|russian federation|russland|rusia|rus",
    "SA": "saudi arabia",
    "SE": "sweden|schweden|suecia|swe",
    "SG": "singapore|singapur",
    "SI": "slovenia|slowenien|svn",
    "SK": "slovakia|slowakei|svk",
    "SV": "el salvador",
    "TH": "thailand|tailandia|tha",
    "TN": "tunisia|tunesien",
    "TR": "turkey|turkiye|turkei|turquia|tur",
    "TW": "taiwan|twn|taiwan roc",
    "UA": "ukraine|ucrania|ukr",
    "US": "united states|united states of america|usa|u s a|u s|us|america|vereinigte staaten|estados unidos|ee uu",
    "UY": "uruguay",
    "UZ": "uzbekistan",
    "VE": "venezuela",
    "VN": "vietnam|viet nam|vnm",
    "ZA": "south africa|sudafrika|zaf",
    "ZW": "zimbabwe",
}
_BY_NAME: Final = {name: code for code, names in _NAMES.items() for name in names.split("|")}
_LEAD: Final = re.compile(
    r"^(?:made|assembled|manufactured|produced|handmade|hergestellt|hecho|fabricado|imported)\s+(?:in|from|en)\s+"
)


def _plain(text: str) -> str:
    decomposed = unicodedata.normalize("NFKD", text.lower())
    letters = "".join(char for char in decomposed if not unicodedata.combining(char))
    return re.sub(r"[^a-zß]+", " ", letters).strip()


@lru_cache(maxsize=4096)
def parse_country(text: str) -> Parsed[str]:
    """The ISO 3166-1 alpha-2 code that a code or name means.

    `made in usa of imported materials` says where work was done, not the origin: unreadable, as is any unknown name.
    """
    if len(text) > _LONGEST:
        return overlong(text, _LONGEST)
    given = stated(text)
    if given is None:
        return NOTHING
    if given.upper() in CODES:
        return Parsed(given.upper())
    found = _BY_NAME.get(_LEAD.sub("", _plain(given)))
    return Parsed(found) if found else unreadable(text, "names no country that is known")
