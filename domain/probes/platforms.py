"""Detection of a shop's platform by its signs, with a confidence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from domain.probes.facts import PageFacts, Response
from domain.probes.model import Evidence, Platform

KNOWN_FROM = 0.5
"""Minimum confidence to name a platform."""
SUSPECTED_FROM = 0.2
"""Minimum confidence to request a platform's feed."""
_MOST_ASSETS = 500

_SIGNALS = """
shopify       header     x-shopid                                   0.9
shopify       header     x-sorting-hat-shopid                       0.9
shopify       header     x-shopify-stage                            0.9
shopify       header     powered-by: shopify                        0.9
shopify       cookie     _shopify_                                  0.7
shopify       cookie     secure_customer_sig                        0.4
shopify       asset      //cdn.shopify.com/                         0.6
shopify       asset      /cdn/shop/                                 0.6
shopify       asset      .myshopify.com/                            0.6
shopify       meta       shopify-digital-wallet                     0.8
shopify       meta       shopify-checkout-api-token                 0.8
woocommerce   generator  woocommerce                                0.9
woocommerce   generator  wordpress                                  0.1
woocommerce   asset      /plugins/woocommerce/                      0.8
woocommerce   asset      /wp-content/                               0.1
woocommerce   class      woocommerce                                0.6
woocommerce   cookie     woocommerce_                               0.8
woocommerce   cookie     wp_woocommerce_session                     0.9
woocommerce   header     link: api.w.org                            0.2
bigcommerce   meta       platform: bigcommerce                      0.9
bigcommerce   asset      .bigcommerce.com/                          0.8
bigcommerce   cookie     shop_session_token                         0.6
bigcommerce   cookie     fornax_anonymousid                         0.7
bigcommerce   header     x-bc-                                      0.6
magento       header     x-magento-                                 0.9
magento       cookie     mage-                                      0.8
magento       cookie     x-magento-vary                             0.9
magento       script     text/x-magento-init                        0.9
magento       asset      /static/version                            0.5
magento       asset      /static/frontend/                          0.6
magento       asset      /skin/frontend/                            0.6
magento       asset      /media/catalog/product/                    0.5
magento       class      catalog-product-view                       0.4
squarespace   header     server: squarespace                        0.9
squarespace   header     x-servedby: squarespace                    0.7
squarespace   generator  squarespace                                0.9
squarespace   asset      //static1.squarespace.com/                 0.7
squarespace   asset      //assets.squarespace.com/                  0.7
squarespace   asset      //images.squarespace-cdn.com/              0.6
squarespace   cookie     crumb                                      0.1
shopify       endpoint   /products.json                             0.95
woocommerce   endpoint   /wp-json/wc/store/v1/products              0.95
"""


@dataclass(frozen=True, slots=True)
class Signal:
    """One sign: its place, the text to find there, and its probability on its own."""

    platform: Platform
    place: str
    text: str
    weight: float


def _signals(lines: str) -> Iterator[Signal]:
    for line in lines.strip().splitlines():
        platform, place, rest = line.split(None, 2)
        text, weight = rest.rsplit(None, 1)
        yield Signal(Platform(platform), place, text.strip(), float(weight))


SIGNALS = tuple(_signals(_SIGNALS))
_Seen = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Judgement:
    """The most probable platform, its confidence (0 to 1), and all signs that were found."""

    platform: Platform
    confidence: float
    evidence: tuple[Evidence, ...]

    def suspects(self, platform: Platform) -> bool:
        """Return whether the platform's feed is worth a request: there are signs of it, or of no platform."""
        return self.platform == Platform.CUSTOM or likelihood(self.evidence, platform) >= SUSPECTED_FROM


def judged(visited: Iterable[tuple[Response, PageFacts]], endpoints: Sequence[str] = ()) -> Judgement:
    """Judge the platform of a site by its pages and by the endpoints that responded like a platform's.

    Signs count as independent: two of 0.6 make 0.84. Signs of other platforms reduce the confidence. Below KNOWN_FROM
    the platform is `custom`, with higher confidence the fewer signs there are.
    """
    seen: _Seen = {"endpoint": list(endpoints)}
    for response, page in visited:
        _note(seen, response, page)
    found = [signal for signal in SIGNALS if _shows(signal, seen.get(signal.place, ()))]
    evidence = tuple(Evidence(one.platform, f"{one.place} {one.text}", one.weight) for one in found)
    ranked = sorted(((likelihood(evidence, one), one) for one in Platform if one != Platform.CUSTOM), reverse=True)
    (best, platform), (second, _) = ranked[0], ranked[1]
    sure = best * (1 - second)
    if sure < KNOWN_FROM:
        return Judgement(Platform.CUSTOM, round(1 - best, 2), evidence)
    return Judgement(platform, round(sure, 2), evidence)


def likelihood(evidence: Iterable[Evidence], platform: Platform) -> float:
    """Return the probability of the platform by its signs alone."""
    unlikely = 1.0
    for sign in evidence:
        if sign.platform == platform:
            unlikely *= 1 - sign.weight
    return 1 - unlikely


def _note(seen: _Seen, response: Response, page: PageFacts) -> None:
    generator = page.metas.get("generator", "")
    for place, texts in (
        ("header", [f"{name}: {value}" for name, value in response.headers.items()]),
        ("cookie", response.cookies),
        ("asset", page.assets[:_MOST_ASSETS]),
        ("meta", [f"{name}: {value}" for name, value in page.metas.items()]),
        ("generator", [generator] if generator else []),
        ("class", page.classes),
        ("script", page.script_types),
    ):
        seen.setdefault(place, []).extend(text.lower() for text in texts)


def _shows(signal: Signal, texts: Iterable[str]) -> bool:
    """Return whether the sign is present: a prefix of cookie and header names, an exact class, otherwise a substring."""
    if signal.place in ("header", "meta"):
        name, _, value = signal.text.partition(": ")
        return any(text.startswith(name) and value in text.partition(": ")[2] for text in texts)
    if signal.place == "cookie":
        return any(text.startswith(signal.text) for text in texts)
    if signal.place in ("class", "script", "endpoint"):
        return signal.text in texts
    return any(signal.text in text for text in texts)
