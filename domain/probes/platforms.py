"""Detection of the platform of a shop by signals on its pages, with a confidence."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from domain.probes.facts import PageFacts, ProbeResponse
from domain.probes.model import Evidence, Platform

MIN_KNOWN_CONFIDENCE = 0.5
"""Minimum confidence at which a platform counts as detected."""
MIN_QUERY_PROBABILITY = 0.2
"""Minimum probability of a platform at which the platform's product list is requested."""
_MAX_ASSETS = 500

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
class PlatformSignal:
    """Text by which a platform is detected.

    Attributes:
        text_kind: The kind of text that contains the signal: header, cookie, asset, meta, generator, class, script or
            endpoint.
        text: The text of the signal.
        weight: The probability (0 to 1) of the platform if this is the only signal.
    """

    platform: Platform
    text_kind: str
    text: str
    weight: float


def _parse_signals(lines: str) -> Iterator[PlatformSignal]:
    """Yield the signals in a table with the columns platform, kind of text, text and weight."""
    for line in lines.strip().splitlines():
        platform, place, rest = line.split(None, 2)
        text, weight = rest.rsplit(None, 1)
        yield PlatformSignal(Platform(platform), place, text.strip(), float(weight))


SIGNALS = tuple(_parse_signals(_SIGNALS))
"""All known signals of platforms."""
_TextsByKind = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class DetectedPlatform:
    """Most probable platform of a site.

    Attributes:
        confidence: The confidence (0 to 1) in the platform.
        evidence: All signals that were found, including signals of other platforms.
    """

    platform: Platform
    confidence: float
    evidence: tuple[Evidence, ...]

    def should_query(self, platform: Platform) -> bool:
        """Return whether the product list of a platform should be requested.

        True if no platform was detected, or if the platform's probability is at least MIN_QUERY_PROBABILITY.
        """
        return self.platform == Platform.CUSTOM or compute_probability(self.evidence, platform) >= MIN_QUERY_PROBABILITY


def detect_platform(
    pages: Iterable[tuple[ProbeResponse, PageFacts]], endpoint_paths: Sequence[str] = ()
) -> DetectedPlatform:
    """Return the most probable platform of a site.

    Signals count as independent: two signals of 0.6 result in a probability of 0.84. The probability of the second
    platform reduces the confidence in the most probable platform. If this confidence is below MIN_KNOWN_CONFIDENCE, the
    platform is `custom`, and the confidence is 1 minus the highest probability of a platform.

    Args:
        pages: The pages that were read, with their responses.
        endpoint_paths: The paths of product lists that responded.
    """
    texts_by_kind: _TextsByKind = {"endpoint": list(endpoint_paths)}
    for response, page in pages:
        _collect_texts(texts_by_kind, response, page)
    found = [signal for signal in SIGNALS if _is_present(signal, texts_by_kind.get(signal.text_kind, ()))]
    evidence = tuple(Evidence(one.platform, f"{one.text_kind} {one.text}", one.weight) for one in found)
    ranked = sorted(
        ((compute_probability(evidence, one), one) for one in Platform if one != Platform.CUSTOM), reverse=True
    )
    (best, platform), (second, _) = ranked[0], ranked[1]
    confidence = best * (1 - second)
    if confidence < MIN_KNOWN_CONFIDENCE:
        return DetectedPlatform(Platform.CUSTOM, round(1 - best, 2), evidence)
    return DetectedPlatform(platform, round(confidence, 2), evidence)


def compute_probability(evidence: Iterable[Evidence], platform: Platform) -> float:
    """Return the probability (0 to 1) of a platform by its signals, ignoring signals of other platforms."""
    unlikely = 1.0
    for signal in evidence:
        if signal.platform == platform:
            unlikely *= 1 - signal.weight
    return 1 - unlikely


def _collect_texts(texts_by_kind: _TextsByKind, response: ProbeResponse, page: PageFacts) -> None:
    """Add the texts of a page and its response, in lower case, to the texts by kind."""
    generator = page.meta_values.get("generator", "")
    for place, texts in (
        ("header", [f"{name}: {value}" for name, value in response.headers.items()]),
        ("cookie", response.cookies),
        ("asset", page.assets[:_MAX_ASSETS]),
        ("meta", [f"{name}: {value}" for name, value in page.meta_values.items()]),
        ("generator", [generator] if generator else []),
        ("class", page.classes),
        ("script", page.script_types),
    ):
        texts_by_kind.setdefault(place, []).extend(text.lower() for text in texts)


def _is_present(signal: PlatformSignal, texts: Iterable[str]) -> bool:
    """Return whether a signal occurs in the texts of its kind.

    Headers and meta tags match if their name starts with the signal's name and their value contains the signal's value.
    Cookies match by the start of their name. Classes, script types and endpoints must equal the signal's text. Assets
    and generators must contain it.
    """
    if signal.text_kind in ("header", "meta"):
        name, _, value = signal.text.partition(": ")
        return any(text.startswith(name) and value in text.partition(": ")[2] for text in texts)
    if signal.text_kind == "cookie":
        return any(text.startswith(signal.text) for text in texts)
    if signal.text_kind in ("class", "script", "endpoint"):
        return signal.text in texts
    return any(signal.text in text for text in texts)
