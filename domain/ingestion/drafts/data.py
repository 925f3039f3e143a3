"""From a product's draft to its `data`."""

from typing import Any

from domain.catalogue.data import Media, ProductData
from domain.ingestion.drafts.draft import ProductDraft, RowDraft
from domain.ingestion.values.media import role_of


def add_media(row: RowDraft) -> None:
    """Add a row's pictures to its product, each address once; a position or text for them holds when there is one."""
    media = row.product.media
    single = len(row.media_urls) == 1
    for url in row.media_urls:
        if url in media:
            continue
        item: dict[str, Any] = {"url": url}
        alt = row.media_alts.get(url) if row.media_alts else row.media_alt if single else None
        if alt:
            item["alt"] = alt
        if single and row.media_position:
            item["order"] = row.media_position
        media[url] = item


def media_list(urls: list[dict[str, Any]], hero: str | None) -> list[Media]:
    """Pictures in their order with role and position; the hero is the one named so, else the first."""
    if any("order" in item for item in urls):
        urls = sorted(urls, key=lambda item: item.get("order", 10_000))
    if hero is not None:
        urls = sorted(urls, key=lambda item: item["url"] != hero)
    out: list[Media] = []
    first = True
    for position, item in enumerate(urls, start=1):
        role = role_of(item["url"], first)
        first = first and role != "hero"
        media: Media = {"url": item["url"], "role": role, "position": position}
        if "alt" in item:
            media["alt"] = item["alt"]
        out.append(media)
    return out


def finish_product(product: ProductDraft) -> tuple[ProductData, bool]:
    """A product's data, and whether its rows say that it is discontinued."""
    data = product.data
    path = product.category_path()
    if path:
        data["category_path"] = list(path)
    if product.tags:
        data["tags"] = list(product.tags)
    if product.features:
        data["features"] = list(product.features)
    if product.compliance:
        data["compliance"] = product.compliance  # type: ignore[typeddict-item]
    if product.media:
        data["media"] = media_list(list(product.media.values()), product.hero)
    variants = product.variants.values()
    gone = bool(variants) and all(variant.data.get("discontinued") is True for variant in variants)
    return data, gone or product.discontinued == {True}
