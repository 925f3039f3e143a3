"""Money as integers in minor units of a currency (ISO 4217)."""

from decimal import ROUND_HALF_UP, Decimal
from typing import Final

_ZERO = "bif clp djf gnf isk jpy kmf krw pyg rwf ugx uyi vnd vuv xaf xof xpf"
_THREE = "bhd iqd jod kwd lyd omr tnd"
_TWO = (
    "aed afn all amd ang aoa ars aud awg azn bam bbd bdt bgn bmd bnd bob brl bsd btn bwp byn bzd cad cdf chf cny cop "
    "crc cup cve czk dkk dop dzd egp ern etb eur fjd fkp gbp gel ghs gip gmd gtq gyd hkd hnl htg huf idr ils inr irr "
    "jmd kes kgs khr kpw kyd kzt lak lbp lkr lrd lsl mad mdl mga mkd mmk mnt mop mru mur mvr mwk mxn myr mzn nad ngn "
    "nio nok npr nzd pab pen pgk php pkr pln qar ron rsd rub sar sbd scr sdg sek sgd shp sle sos srd ssp stn svc syp "
    "szl thb tjs tmt top try ttd twd tzs uah usd uyu uzs ves wst xcd yer zar zmw zwg"
)
EXPONENTS: Final[dict[str, int]] = {
    **dict.fromkeys(_ZERO.split(), 0),
    **dict.fromkeys(_TWO.split(), 2),
    **dict.fromkeys(_THREE.split(), 3),
}


def to_minor_units(amount: Decimal, currency: str) -> int:
    """Return the amount in minor units of the currency, rounded half up.

    Raises KeyError for a currency that is not in ISO 4217.
    """
    return int(amount.scaleb(EXPONENTS[currency]).quantize(Decimal(1), rounding=ROUND_HALF_UP))
