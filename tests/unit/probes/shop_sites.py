"""Small, regular shop websites on several platforms."""

import json
from typing import Any

from tests.support.memory.hosts import MemoryWeb

SITE = "https://vendor.example"
WORDS = "<p>" + "Chairs, tables and beds of oak, made by hand. " * 30 + "</p>"
XML = "http://www.sitemaps.org/schemas/sitemap/0.9"


def build_page(head: str = "", body: str = WORDS, title: str = "Vendor", attributes: str = "") -> str:
    """Return a web page."""
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body {attributes}>{body}</body></html>"


def build_json_ld(value: Any) -> str:
    """Return a block of structured data."""
    return f'<script type="application/ld+json">{json.dumps(value)}</script>'


def build_product(number: int, **changes: Any) -> dict[str, Any]:
    """Return a product with all required fields."""
    offer = {
        "@type": "Offer",
        "price": f"{100 + number}.00",
        "priceCurrency": "EUR",
        "availability": "https://schema.org/InStock",
    }
    values = {
        "@context": "https://schema.org", "@type": "Product", "name": f"Oak chair {number}", "sku": f"OC-{number}",
        "image": ["https://img.example/1.jpg"], "brand": {"@type": "Brand", "name": "Lindgren"}, "offers": offer,
    }  # fmt: skip
    return {name: value for name, value in {**values, **changes}.items() if value is not None}


def build_sitemap(*urls: str) -> str:
    """Return a sitemap of pages."""
    return (
        f'<?xml version="1.0"?><urlset xmlns="{XML}">'
        + "".join(f"<url><loc>{url}</loc></url>" for url in urls)
        + "</urlset>"
    )


def build_sitemap_index(*urls: str) -> str:
    """Return a sitemap of sitemaps."""
    return (
        f'<sitemapindex xmlns="{XML}">'
        + "".join(f"<sitemap><loc>{url}</loc></sitemap>" for url in urls)
        + "</sitemapindex>"
    )


def serve_robots(web: MemoryWeb, text: str = "User-agent: *\nDisallow: /cart\n", site: str = SITE) -> None:
    """Serve the rules of the site."""
    web.serve(f"{site}/robots.txt", text, content_type="text/plain")


def serve_shopify_shop(web: MemoryWeb, products: int = 5) -> None:
    """Serve a shop on Shopify."""
    serve_robots(web, f"User-agent: *\nDisallow: /cart\nSitemap: {SITE}/sitemap.xml\n")
    web.serve(f"{SITE}/", build_page('<script src="//cdn.shopify.com/s/a.js"></script>'), cookies=("_shopify_y",))
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
        build_sitemap_index(f"{SITE}/sitemap_pages_1.xml", f"{SITE}/sitemap_products_1.xml"),
        content_type="application/xml",
    )
    web.serve(f"{SITE}/sitemap_pages_1.xml", build_sitemap(f"{SITE}/pages/about"), content_type="application/xml")
    urls = [f"{SITE}/products/oak-chair-{number}" for number in range(30)]
    web.serve(f"{SITE}/sitemap_products_1.xml", build_sitemap(*urls), content_type="application/xml")
    for number, url in enumerate(urls):
        web.serve(url, build_page(build_json_ld(build_product(number))))


def serve_woocommerce_shop(web: MemoryWeb) -> None:
    """Serve a shop on WooCommerce."""
    serve_robots(web, "User-agent: *\nDisallow: /wp-admin/\nAllow: /wp-admin/admin-ajax.php\n")
    head = '<meta name="generator" content="WooCommerce 9.1"><link href="/wp-content/plugins/woocommerce/a.css">'
    web.serve(f"{SITE}/", build_page(head, attributes='class="home woocommerce"'))
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


def serve_magento_shop(web: MemoryWeb, products: int = 12) -> None:
    """Serve a shop on Magento: no machine-readable list, but structured data on every page."""
    serve_robots(web)
    head = '<script type="text/x-magento-init">{}</script><script src="/static/version171/frontend/a.js"></script>'
    web.serve(f"{SITE}/", build_page(head))
    urls = [f"{SITE}/oak-chair-{1000 + number}.html" for number in range(products)]
    web.serve(f"{SITE}/sitemap.xml", build_sitemap(f"{SITE}/about-us", *urls), content_type="text/xml")
    for number, url in enumerate(urls):
        web.serve(url, build_page(head + build_json_ld(build_product(number))))
