"""Products, variants and offers as JSON (docs/conventions.md#products-variants-and-offers): rendered once, answered as bytes."""

from collections.abc import Mapping
from typing import Any

import msgspec

from domain.catalogue.differences import PRICE_FIELDS
from domain.catalogue.laying import Laid
from domain.catalogue.model import Offer, OfferLine, Product, Variant
from domain.catalogue.overlay import Origin
from domain.kernel.plain import instant

_OFFER_FACTS = (*PRICE_FIELDS, "quantity", "incoming", "availability", "lead_time_days")
"""The order of an offer's facts in answers, because a merge and its undo store them in the store's own order."""
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_encode = _ENCODER.encode


def pack(data: Mapping[str, Any]) -> msgspec.Raw:
    """The data as JSON, encoded once; it stands wherever data is answered."""
    return data if isinstance(data, msgspec.Raw) else msgspec.Raw(_encode(data))


def offer(offer: Offer) -> dict[str, Any]:
    """An offer's wire object, without what surrounds it."""
    data = offer.data
    answer: dict[str, Any] = {"object": "offer", "id": offer.id, "source": offer.source, "location": offer.location}
    answer |= {name: data[name] for name in _OFFER_FACTS if name in data}
    answer["version"] = offer.version
    answer["observed_at"] = instant(offer.observed_at)
    if offer.withdrawn_at is not None:
        answer["withdrawn_at"] = instant(offer.withdrawn_at)
    return answer


def offer_line(line: OfferLine) -> dict[str, Any]:
    """An offer as GET /v1/offers lists it."""
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
        name: {"source": one.source, "observed_at": instant(one.stated_at), "reason": one.reason}
        for name, one in sorted(origins.items())
    }


def _told_apart(answer: dict[str, Any], id: str, laid: Laid) -> dict[str, Any]:
    """The object with what merges tell of it: what is merged into it, and where its fields come from."""
    if len(parts := laid.parts[id]) > 1:
        answer |= {"merged_from": parts[1:], "provenance": _origins(laid.origins(id))}
    return answer


def merged(entry: Product, laid: Laid) -> bytes:
    """The document of a product that merges tie to others."""
    answer = _told_apart(_product(entry, {}), entry.id, laid)
    answer["variants"] = [_told_apart(_variant(one, {}), one.id, laid) for one in entry.variants]
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
    """A product's document; `packed` as Rendering.product takes it."""
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
    """The document with `id` and `stored_url` at media whose address has an image, and at no others.

    Only what leads to the media is taken apart: numbers and texts stay the bytes they were.
    """
    top = _TOP.decode(document)
    variants = _VARIANTS.decode(top["variants"])
    for part in (top, *variants):
        data = _DATA.decode(part["data"])
        if "media" in data:
            items = [_pictured(item, images, base_url) for item in _MEDIA.decode(data["media"])]
            data["media"] = msgspec.Raw(_encode(items))
            part["data"] = msgspec.Raw(_encode(data))
    top["variants"] = msgspec.Raw(_encode(variants))
    return _encode(top)


def _pictured(item: dict[str, msgspec.Raw], images: Mapping[str, str], base_url: str) -> dict[str, Any]:
    kept = {name: value for name, value in item.items() if name not in ("id", "stored_url")}
    image = images.get(_URL.decode(item["url"])) if "url" in item else None
    return kept if image is None else kept | {"id": image, "stored_url": f"{base_url}/v1/media/{image}"}


class WireRendering:
    """The port's face of this module; `base_url` is where the API answers."""

    def __init__(self, base_url: str = "http://127.0.0.1:8080") -> None:
        self._base_url = base_url.rstrip("/")

    def with_images(self, document: bytes, images: Mapping[str, str]) -> bytes:
        """The document with its stored images."""
        return with_images(document, images, self._base_url)

    def pack(self, data: Mapping[str, Any]) -> Any:
        """The data encoded once."""
        return pack(data)

    def product(self, entry: Product, packed: Mapping[str, Any]) -> bytes:
        """The product's document."""
        return product(entry, packed)

    def merged(self, entry: Product, laid: Laid) -> bytes:
        """The document of a product that merges tie to others."""
        return merged(entry, laid)
