"""Rendering of products, variants and offers (docs/conventions.md#products-variants-and-offers) to stored JSON documents."""

from collections.abc import Mapping
from typing import Any

import msgspec

from domain.catalogue.differences import PRICE_FIELDS
from domain.catalogue.laying import Laid
from domain.catalogue.model import Offer, OfferLine, Product, Variant
from domain.catalogue.overlay import Origin
from domain.kernel.plain import instant

_OFFER_FIELDS = (*PRICE_FIELDS, "quantity", "incoming", "availability", "lead_time_days")
"""Order of an offer's fields in responses; merges and their undo store them in another order."""
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_encode = _ENCODER.encode


def pack(data: Mapping[str, Any]) -> msgspec.Raw:
    """Encode the data once; the result can be embedded in any response."""
    return data if isinstance(data, msgspec.Raw) else msgspec.Raw(_encode(data))


def offer(offer: Offer) -> dict[str, Any]:
    """Render an offer as part of a variant."""
    data = offer.data
    answer: dict[str, Any] = {"object": "offer", "id": offer.id, "source": offer.source, "location": offer.location}
    answer |= {name: data[name] for name in _OFFER_FIELDS if name in data}
    answer["version"] = offer.version
    answer["observed_at"] = instant(offer.observed_at)
    if offer.withdrawn_at is not None:
        answer["withdrawn_at"] = instant(offer.withdrawn_at)
    return answer


def offer_line(line: OfferLine) -> dict[str, Any]:
    """Render an offer as in the list of GET /v1/offers."""
    answer = offer(line.offer)
    answer |= {"variant": line.offer.variant, "catalogue": line.catalogue, "product": line.offer.product}
    if line.product_title is not None:
        answer["product_title"] = line.product_title
    if line.variant_sku is not None:
        answer["variant_sku"] = line.variant_sku
    answer |= {"product_external_id": line.product_key, "variant_external_id": line.variant_key}
    return answer


def _origins(origins: Mapping[str, Origin]) -> dict[str, Any]:
    return {
        name: {"source": origin.source, "observed_at": instant(origin.stated_at), "reason": origin.reason}
        for name, origin in sorted(origins.items())
    }


def _add_merge_info(answer: dict[str, Any], id: str, laid: Laid) -> dict[str, Any]:
    """Add `merged_from` and `provenance` if the product or variant is merged; return the object."""
    if len(parts := laid.parts[id]) > 1:
        answer |= {"merged_from": parts[1:], "provenance": _origins(laid.origins(id))}
    return answer


def merged(entry: Product, laid: Laid) -> bytes:
    """Render the document of a merged product."""
    answer = _add_merge_info(_product(entry, {}), entry.id, laid)
    answer["variants"] = [_add_merge_info(_variant(variant, {}), variant.id, laid) for variant in entry.variants]
    return _encode(answer)


def _variant(variant: Variant, packed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "object": "variant",
        "id": variant.id,
        "external_id": variant.key,
        "status": variant.status,
        "version": variant.version,
        "data": packed.get(variant.id, variant.data),
        "offers": [offer(entry) for entry in variant.offers],
        "updated_at": instant(variant.updated_at),
    }


def product(product: Product, packed: Mapping[str, Any]) -> bytes:
    """Render a product's document; `packed` holds data that is already encoded, by the id of product or variant."""
    return _encode(_product(product, packed))


def _product(product: Product, packed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "object": "product",
        "id": product.id,
        "external_id": product.key,
        "catalogue": product.catalogue,
        "status": product.status,
        "version": product.version,
        "data": packed.get(product.id, product.data),
        "variants": [_variant(entry, packed) for entry in product.variants],
        "visibility": product.visibility,
        "created_at": instant(product.created_at),
        "updated_at": instant(product.updated_at),
    }


_TOP = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DATA = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MEDIA = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_VARIANTS = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_URL = msgspec.json.Decoder(str)


def with_images(document: bytes, images: Mapping[str, str], base_url: str) -> bytes:
    """Set `id` and `stored_url` of media whose URL has a stored image, and remove them from other media.

    Only the path to the media is decoded, so that all other values keep their bytes.
    """
    top = _TOP.decode(document)
    variants = _VARIANTS.decode(top["variants"])
    for part in (top, *variants):
        data = _DATA.decode(part["data"])
        if "media" in data:
            items = [_with_image(item, images, base_url) for item in _MEDIA.decode(data["media"])]
            data["media"] = msgspec.Raw(_encode(items))
            part["data"] = msgspec.Raw(_encode(data))
    top["variants"] = msgspec.Raw(_encode(variants))
    return _encode(top)


def _with_image(item: dict[str, msgspec.Raw], images: Mapping[str, str], base_url: str) -> dict[str, Any]:
    original = {name: value for name, value in item.items() if name not in ("id", "stored_url")}
    image = images.get(_URL.decode(item["url"])) if "url" in item else None
    return original if image is None else original | {"id": image, "stored_url": f"{base_url}/v1/media/{image}"}


class WireRendering:
    """Rendering port of the catalogue; `base_url` is the API's URL."""

    def __init__(self, base_url: str = "http://127.0.0.1:8080") -> None:
        self._base_url = base_url.rstrip("/")

    def with_images(self, document: bytes, images: Mapping[str, str]) -> bytes:
        """Set the stored images of the document's media."""
        return with_images(document, images, self._base_url)

    def pack(self, data: Mapping[str, Any]) -> Any:
        """Encode the data once."""
        return pack(data)

    def product(self, entry: Product, packed: Mapping[str, Any]) -> bytes:
        """Render a product's document."""
        return product(entry, packed)

    def merged(self, entry: Product, laid: Laid) -> bytes:
        """Render the document of a merged product."""
        return merged(entry, laid)
