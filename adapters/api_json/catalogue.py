"""Rendering of products, variants and offers as stored JSON documents.

Their format is described in docs/conventions.md#products-variants-and-offers.
"""

from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from domain.catalogue.differences import PRICE_FIELDS
from domain.catalogue.merged_statements import FieldOrigin
from domain.catalogue.merged_view import MergedView
from domain.catalogue.model import Offer, OfferLine, Product, Variant
from domain.kernel.json_values import format_time

_OFFER_FIELDS = (*PRICE_FIELDS, "quantity", "incoming", "availability", "lead_time_days")
"""Order of an offer's fields in responses. After merges, the stored order differs."""
_ENCODER = msgspec.json.Encoder(decimal_format="number")
_encode = _ENCODER.encode


def encode_data(data: Mapping[str, Any]) -> msgspec.Raw:
    """Encode the data of a product or variant; the result is embedded in documents without being encoded again."""
    return data if isinstance(data, msgspec.Raw) else msgspec.Raw(_encode(data))


def render_offer(offer: Offer) -> dict[str, Any]:
    """Render an offer as a member of a variant."""
    data = offer.data
    rendered: dict[str, Any] = {"object": "offer", "id": offer.id, "source": offer.source, "location": offer.location}
    rendered |= {name: data[name] for name in _OFFER_FIELDS if name in data}
    rendered["version"] = offer.version
    rendered["observed_at"] = format_time(offer.observed_at)
    if offer.withdrawn_at is not None:
        rendered["withdrawn_at"] = format_time(offer.withdrawn_at)
    return rendered


def render_offer_line(line: OfferLine) -> dict[str, Any]:
    """Render an offer as an entry of the list GET /v1/offers."""
    rendered = render_offer(line.offer)
    rendered |= {"variant": line.offer.variant, "catalogue": line.catalogue, "product": line.offer.product}
    if line.product_title is not None:
        rendered["product_title"] = line.product_title
    if line.variant_sku is not None:
        rendered["variant_sku"] = line.variant_sku
    rendered |= {"product_external_id": line.product_key, "variant_external_id": line.variant_key}
    return rendered


def _render_origins(origins: Mapping[str, FieldOrigin]) -> dict[str, Any]:
    return {
        name: {"source": origin.source, "observed_at": format_time(origin.stated_at), "reason": origin.reason}
        for name, origin in sorted(origins.items())
    }


def _add_merge_info(rendered: dict[str, Any], id: str, merged_view: MergedView) -> dict[str, Any]:
    """Add `merged_from` and `provenance` to a rendered product or variant if it is merged or corrected; return `rendered`."""
    if len(merged_ids := merged_view.ids_by_representative[id]) > 1:
        rendered["merged_from"] = merged_ids[1:]
    if len(merged_ids) > 1 or merged_view.get_origins(id):
        rendered["provenance"] = _render_origins(merged_view.get_origins(id))
    return rendered


def render_merged_product(product: Product, merged_view: MergedView) -> bytes:
    """Render the document of a merged or corrected product."""
    rendered = _add_merge_info(_render_product_members(product, {}), product.id, merged_view)
    rendered["variants"] = [
        _add_merge_info(_render_variant(variant, {}), variant.id, merged_view) for variant in product.variants
    ]
    return _encode(rendered)


def _render_variant(variant: Variant, packed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "object": "variant",
        "id": variant.id,
        "external_id": variant.key,
        "status": variant.status,
        "version": variant.version,
        "data": packed.get(variant.id, variant.data),
        "offers": [render_offer(entry) for entry in variant.offers],
        "updated_at": format_time(variant.updated_at),
    }


def render_product(product: Product, encoded_data_by_id: Mapping[str, Any]) -> bytes:
    """Render the document of a product that is neither merged nor corrected.

    `encoded_data_by_id` contains encoded data of the product and its variants; missing data is encoded now.
    """
    return _encode(_render_product_members(product, encoded_data_by_id))


def _render_product_members(product: Product, packed: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "object": "product",
        "id": product.id,
        "external_id": product.key,
        "catalogue": product.catalogue,
        "status": product.status,
        "version": product.version,
        "data": packed.get(product.id, product.data),
        "variants": [_render_variant(entry, packed) for entry in product.variants],
        "visibility": product.visibility,
        "created_at": format_time(product.created_at),
        "updated_at": format_time(product.updated_at),
    }


_DOCUMENT_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_DATA_DECODER = msgspec.json.Decoder(dict[str, msgspec.Raw])
_MEDIA_DECODER = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_VARIANTS_DECODER = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_OFFERS_DECODER = msgspec.json.Decoder(list[dict[str, msgspec.Raw]])
_URL_DECODER = msgspec.json.Decoder(str)


def set_images(document: bytes, image_id_by_url: Mapping[str, str], base_url: str) -> bytes:
    """Set `id` and `stored_url` of the media whose image is stored; remove both members from all other media.

    Args:
        document: JSON of a product. Only the path to the media is decoded, so all other values keep their bytes.
        image_id_by_url: IDs of stored images by the URL of the media.
        base_url: URL of the API.
    """
    top = _DOCUMENT_DECODER.decode(document)
    variants = _VARIANTS_DECODER.decode(top["variants"])
    for part in (top, *variants):
        data = _DATA_DECODER.decode(part["data"])
        if "media" in data:
            items = [_set_image(item, image_id_by_url, base_url) for item in _MEDIA_DECODER.decode(data["media"])]
            data["media"] = msgspec.Raw(_encode(items))
            part["data"] = msgspec.Raw(_encode(data))
    top["variants"] = msgspec.Raw(_encode(variants))
    return _encode(top)


def _set_image(item: dict[str, msgspec.Raw], image_id_by_url: Mapping[str, str], base_url: str) -> dict[str, Any]:
    original = {name: value for name, value in item.items() if name not in ("id", "stored_url")}
    image = image_id_by_url.get(_URL_DECODER.decode(item["url"])) if "url" in item else None
    return original if image is None else original | {"id": image, "stored_url": f"{base_url}/v1/media/{image}"}


def hide_offer_fields(document: bytes, names: Collection[str]) -> bytes:
    """Remove fields of the offers of a product.

    Args:
        document: JSON of a product. Only the path to the offers is decoded, so all other values keep their bytes.
        names: Names of the fields.
    """
    top = _DOCUMENT_DECODER.decode(document)
    variants = _VARIANTS_DECODER.decode(top["variants"])
    for variant in variants:
        offers = _OFFERS_DECODER.decode(variant["offers"])
        visible = [{name: value for name, value in offer.items() if name not in names} for offer in offers]
        variant["offers"] = msgspec.Raw(_encode(visible))
    top["variants"] = msgspec.Raw(_encode(variants))
    return _encode(top)


class JsonCatalogueRendering:
    """Rendering of the catalogue as JSON; implements the port CatalogueRenderer.

    `base_url` is the URL of the API.
    """

    def __init__(self, base_url: str = "http://127.0.0.1:8080") -> None:
        self._base_url = base_url.rstrip("/")

    def set_members(self, document: bytes, members: Mapping[str, Any]) -> bytes:
        """Replace these members of a product's document."""
        return _encode(
            _DOCUMENT_DECODER.decode(document) | {name: msgspec.Raw(_encode(value)) for name, value in members.items()}
        )

    def hide_offer_fields(self, document: bytes, names: Collection[str]) -> bytes:
        """Remove fields of the offers from a product's document."""
        return hide_offer_fields(document, names) if names else document

    def set_images(self, document: bytes, image_id_by_url: Mapping[str, str]) -> bytes:
        """Set `id` and `stored_url` of the media whose image is stored; remove both members from all other media."""
        return set_images(document, image_id_by_url, self._base_url)

    def encode_data(self, data: Mapping[str, Any]) -> Any:
        """Encode the data of a product or variant once, for all documents that contain it."""
        return encode_data(data)

    def render_product(self, product: Product, encoded_data_by_id: Mapping[str, Any]) -> bytes:
        """Render the document of a product that is not merged."""
        return render_product(product, encoded_data_by_id)

    def render_merged_product(self, product: Product, merged_view: MergedView) -> bytes:
        """Render the document of a merged product."""
        return render_merged_product(product, merged_view)
