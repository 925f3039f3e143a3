"""Image URLs, and when they are fetched again (domain/media)."""

from datetime import timedelta

import pytest

from domain.media.model import (
    MAX_FAILED_FETCHES,
    ProductMedia,
    build_image_urls,
    compute_retry_delay,
    compute_url_digest,
    detect_format,
    parse_host,
)
from tests.support import images


@pytest.mark.parametrize(
    ("url", "host"),
    [
        ("https://Images.Vendor.example/a.jpg", "images.vendor.example"),
        ("http://vendor.example:8080/a.jpg", "vendor.example:8080"),
        ("HTTPS://vendor.example", "vendor.example"),
        ("ftp://vendor.example/a.jpg", None),
        ("a.jpg", None),
        ("https:///a.jpg", None),
        ("https://vendor.example:99999/a.jpg", None),
        ("https://[::1/a.jpg", None),
        ("", None),
    ],
)
def test_the_lane_of_a_url_is_its_host(url: str, host: str | None) -> None:
    assert parse_host(url) == host


def test_media_that_may_be_images_are_selected() -> None:
    items = (
        ("https://a.example/1.jpg", "hero"), ("https://a.example/1.jpg", None), ("https://a.example/2", "detail"),
        ("https://a.example/3.mp4", "video"), ("https://a.example/4.pdf", "document"), ("5.jpg", "hero"),
    )  # fmt: skip
    assert ProductMedia("prod_1", items).find_image_urls() == {"https://a.example/1.jpg", "https://a.example/2"}


def test_urls_are_unique_and_ordered_by_digest() -> None:
    urls = [f"https://a.example/{number}" for number in (3, 1, 2, 1)] + ["b.jpg"]
    images = build_image_urls(urls, "run_1")
    assert sorted(one.url for one in images) == sorted(set(urls) - {"b.jpg"})
    assert [one.url_digest for one in images] == sorted(compute_url_digest(one.url) for one in images)
    assert {(one.host, one.run, one.tries, one.image) for one in images} == {("a.example", "run_1", 0, None)}
    assert len(compute_url_digest("https://a.example/" + "ü" * 2000)) == 32


def test_retry_delays_grow_until_the_last_attempt() -> None:
    waits = [compute_retry_delay(tries) for tries in range(1, MAX_FAILED_FETCHES + 1)]
    assert waits == [*(timedelta(minutes=minutes) for minutes in (5, 20, 80, 320, 360)), None]


def test_formats_are_detected_by_the_first_bytes() -> None:
    for name in ("JPEG", "PNG", "GIF", "WEBP"):
        assert detect_format(images.encode_image(images.build_image(), name)[:12]) == name
    for other in (
        images.SVG,
        images.HTML,
        images.encode_image(images.build_image(), "TIFF"),
        b"",
        b"\xff\xd8",
        b"RIFF0000WAVE",
    ):
        assert detect_format(other[:12]) is None
