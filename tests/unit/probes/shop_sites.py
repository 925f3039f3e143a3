"""Shops on the web, small and regular, by the platforms that they are built on."""

import json
from typing import Any

from tests.support.memory.hosts import MemoryWeb

SITE = "https://vendor.example"
WORDS = "<p>" + "Chairs, tables and beds of oak, made by hand. " * 30 + "</p>"
XML = "http://www.sitemaps.org/schemas/sitemap/0.9"


def page(head: str = "", body: str = WORDS, title: str = "Vendor", attributes: str = "") -> str:
    """A web page."""
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body {attributes}>{body}</body></html>"


def json_ld(value: Any) -> str:
    """A block of structured data."""
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def product(number: int, **changes: Any) -> dict[str, Any]:
    """A product with all that is needed."""
    offer = {
        "@type": "Offer",
        "price": f"{100 + number}.00",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    }
    made = {
        "@context": "https://schema.org", "@type": "Product", "name": f"Oak chair {number}", "sku": f"OC-{number}",
        "image": ["https://img.example/1.jpg"], "brand": {"@type": "Brand", "name": "Lindgren"}, "offers": offer,
    }  # fmt: skip
    return {name: value for name, value in {**made, **changes}.items() if value is not None}


def urlset(*urls: str) -> str:
    """A sitemap of pages."""
    return (
        f'<?xml version="1.0"?><urlset xmlns="{XML}">'
        + "".join(f"<url><loc>{url}</loc></url>" for url in urls)
        + "</urlset>"
    )


def index(*urls: str) -> str:
    """A sitemap of sitemaps."""
    return (
        f'<sitemapindex xmlns="{XML}">'
        + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
        + "</sitemapindex>"
    )


def robots(web: MemoryWeb, text: str = "User-agent: *\nDisallow: /cart\n", site: str = SITE) -> None:
    """The site's rules."""
    web.serve(f"{site}/robots.txt", text, content_type="text/plain")


def shopify(web: MemoryWeb, products: int = 5) -> None:
    """A shop on Shopify."""
    robots(web, f"User-agent: *\nDisallow: /cart\nSitemap: {SITE}/sitemap.xml\n")
    web.serve(f"{SITE}/", page('<script src="//cdn.shopify.com/s/a.js"></script>'), cookies=("_shopify_y",))
    listed = [
        {
            "id": number,
            "title": f"Oak chair {number}",
            "vendor": "Lindgren",
            "variants": [{"sku": f"OC-{number}", "price": "10.00"}],
        }
        for number in range(products)
    ]
    web.serve(f"{SITE}/products.json?limit=25", json.dumps({"products": listed}), content_type="application/json")
    meta = {"currency": "EUR", "published_products_count": 1204}
    web.serve(f"{SITE}/meta.json", json.dumps(meta), content_type="application/json")
    web.serve(
        f"{SITE}/sitemap.xml",
        index(f"{SITE}/sitemap_pages_1.xml", f"{SITE}/sitemap_products_1.xml"),
        content_type="application/xml",
    )
    web.serve(f"{SITE}/sitemap_pages_1.xml", urlset(f"{SITE}/pages/about"), content_type="application/xml")
    urls = [f"{SITE}/products/oak-chair-{number}" for number in range(30)]
    web.serve(f"{SITE}/sitemap_products_1.xml", urlset(*urls), content_type="application/xml")
    for number, url in enumerate(urls):
        web.serve(url, page(json_ld(product(number))))


def woocommerce(web: MemoryWeb) -> None:
    """A shop on WooCommerce."""
    robots(web, "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n")
    head = '<meta name="generator" content="WooCommerce 9.1"><link href="/wp-content/plugins/woocommerce/a.css">'
    web.serve(f"{SITE}/", page(head, attributes='class="home woocommerce"'))
    listed = [
        {
            "id": 1,
            "name": "Oak chair",
            "sku": "OC-1",
            "prices": {"price": "19900", "currency_code": "GBP", "currency_minor_unit": 2},
        }
    ]
    web.serve(
        f"{SITE}/wp-json/wc/store/v1/products?per_page=25",
        json.dumps(listed),
        content_type="application/json",
        x_wp_total="412",
    )


def magento(web: MemoryWeb, products: int = 12) -> None:
    """A shop on Magento: no list for machines, but structured data on every page."""
    robots(web)
    head = '<script type="text/x-magento-init">{}</script><script src="/static/version171/frontend/a.js"></script>'
    web.serve(f"{SITE}/", page(head))
    urls = [f"{SITE}/oak-chair-{1000 + number}.html" for number in range(products)]
    web.serve(f"{SITE}/sitemap.xml", urlset(f"{SITE}/about-us", *urls), content_type="text/xml")
    for number, url in enumerate(urls):
        web.serve(url, page(head + json_ld(product(number))))
