"""A worker process fetches the images after a run."""

from urllib.parse import urlsplit

from tests.flows.feeds import FeedServer, build_csv
from tests.flows.service_processes import ServiceProcesses, Tenancy, wait_until
from tests.support import images


def test_images_are_fetched_after_a_run(services: ServiceProcesses, fjord: Tenancy, feeds: FeedServer) -> None:
    urls = [feeds.serve(f"/pictures/{number}.jpg", images.build_jpeg(40 * number)) for number in range(3)]
    hostile = [
        feeds.serve("/pictures/bomb.png", images.build_png_bomb()),
        feeds.serve("/pictures/text.png", images.build_text_bomb()),
    ]
    rows = [(f"item-{n}", f"Chair {n}", f"SKU-{n}", "9.00", url) for n, url in enumerate(urls + hostile)]
    feed = feeds.serve("/pictures.csv", build_csv(("Handle", "Title", "SKU", "Price", "Image URL"), list(rows)))
    source = fjord.api.create_source("url", config={"url": feed, "currency": "usd"})
    assert fjord.api.pull(source)["status"] == "succeeded"

    def shown() -> list[str]:
        data = [product["data"]["media"][0] for product in fjord.api.get("/v1/products", limit=10)["data"]]
        stored = [item["stored_url"] for item in data if item["url"] in urls and "stored_url" in item]
        return stored if len(stored) == len(urls) else []

    for stored in wait_until(shown, "the images are shown", within=60):
        image = fjord.api.get(urlsplit(stored).path)
        assert (image["width"], image["height"]) == (60, 40)
    assert {feeds.count(urlsplit(url).path) for url in urls} == {1}
    later = "SELECT count(*) FROM image_addresses WHERE org = %(org)s AND url LIKE '%%/text.png' AND tries = 1 AND image IS NULL"
    wait_until(
        lambda: services.fetch_value(later, org=fjord.tenant.org), "the hostile one waits for another try", within=60
    )
