"""File names of images below the base URL of a source's settings (domain/ingestion/values/media.py)."""

from urllib.parse import unquote, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue.model import Stream
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings
from domain.ingestion.records import parse_record
from domain.ingestion.values.media import append_file_name, parse_image_urls
from domain.runs.sheets import compute_salt, create_feed_settings
from tests.support import builders

BASE = "https://cdn.vendor.example/pictures"


@pytest.mark.parametrize(
    ("name", "below"),
    [
        ("AB-1.jpg", "AB-1.jpg"),
        ("AB-1.JPEG", "AB-1.JPEG"),
        ("images/AB 1.jpg", "images/AB%201.jpg"),
        ("images\\AB 1.jpg", "images/AB%201.jpg"),
        ("./AB-1.jpg", "AB-1.jpg"),
        ("AB%201.jpg", "AB%201.jpg"),
        ("100% wool.jpg", "100%25%20wool.jpg"),
        ("AB#1.jpg", "AB%231.jpg"),
        ("Stühle/Eiche.png", "St%C3%BChle/Eiche.png"),
        ("AB(1),left.jpg", "AB(1),left.jpg"),
        ("AB-1.jpg?v=2&w=9", "AB-1.jpg?v=2&w=9"),
        ("AB.1.v2.webp", "AB.1.v2.webp"),
        ("manual.pdf", "manual.pdf"),
        ("a/b/c/d.gif", "a/b/c/d.gif"),
    ],
)
def test_file_names_are_appended_to_the_base_url(name: str, below: str) -> None:
    for base in (BASE, BASE + "/"):
        assert append_file_name(base, name) == f"{BASE}/{below}"


@pytest.mark.parametrize(
    "name",
    [
        "", " ", "AB-1", "TBD", "see website", "no image.", "AB-1.xlsx", ".jpg.", "a.jpgx",
        "/AB-1.jpg", "//evil.example/AB-1.jpg", "\\\\server\\share\\AB-1.jpg", "\\AB-1.jpg",
        "../AB-1.jpg", "images/../../AB-1.jpg", "images/..\\AB-1.jpg", "%2e%2e/AB-1.jpg", "images/%2E%2e/AB-1.jpg",
        "images/%2e./AB-1.jpg", "images%2f..%2fAB-1.jpg", "%252e%252e/AB-1.jpg", "images/%5c..%5cAB-1.jpg", "images//AB-1.jpg",
        "images/./AB-1.jpg", "images/ .. /AB-1.jpg", "www.evil.example/AB-1.jpg", "evil.example/AB-1.jpg",
        "AB-1.jpg AB-2.jpg", "AB-1.gif,AB-2.gif", "AB\x001.jpg", "AB%00.jpg", "AB%0d%0aHost:x.jpg", "\ud800.jpg",
    ],
)  # fmt: skip
def test_other_texts_are_not_file_names(name: str) -> None:
    assert append_file_name(BASE, name) is None


def test_only_web_addresses_are_base_urls() -> None:
    for base in ("ftp://a.example/", "file:///etc", "javascript:", "", "cdn.vendor.example"):
        assert append_file_name(base, "AB-1.jpg") is None


@given(st.one_of(st.text(), st.text("./\\%2e5cF?#: ab", max_size=12)))
def test_no_name_escapes_the_base_url(name: str) -> None:
    for ending in ("", ".jpg"):
        found = append_file_name(BASE, name + ending)
        for url in (found,) if found else parse_image_urls(name + ending, BASE).value or ():
            if not url.startswith(BASE):
                assert not found
                continue
            parts = urlsplit(url)
            assert (parts.scheme, parts.netloc) == ("https", "cdn.vendor.example") and url.isascii()
            read = unquote(unquote(parts.path)).replace("\\", "/").split("/")
            assert read[1] == "pictures" and not {".", "..", ""} & set(read[2:]) and not parts.fragment


def test_file_names_in_cells_become_urls() -> None:
    found = parse_image_urls("AB 1.jpg, images/AB-2.png | https://a.example/3.jpg;//b.example/4.jpg", BASE)
    assert found.value == (
        f"{BASE}/AB%201.jpg", f"{BASE}/images/AB-2.png", "https://a.example/3.jpg", "https://b.example/4.jpg"
    ) and not found.faults  # fmt: skip
    left = parse_image_urls("AB-1.jpg|../AB-2.jpg|ftp://a.example/3.jpg|file:///etc/passwd.jpg|C:\\AB-4.jpg", BASE)
    assert left.value == (f"{BASE}/AB-1.jpg",) and [fault.problem for fault in left.faults] == [
        "unreadable",
        "unsafe_url",
    ]
    assert parse_image_urls("AB-1.jpg").value == (), "names are ignored without a base URL"
    long = parse_image_urls("a" * 2050 + ".jpg", BASE)
    assert long.value == () and [fault.problem for fault in long.faults] == ["too_long"]


def test_file_names_in_records_become_urls() -> None:
    record = {
        "product": {"external_id": "A", "media": ["AB 1.jpg", {"url": "b.jpg", "alt": "b"}]},
        "variants": [{"external_id": "A-1", "media": [{"url": "c.jpg"}]}],
    }
    statement, problems = parse_record(record, FeedSettings(media_base_url=BASE))
    assert statement is not None and problems == []
    assert [item["url"] for item in statement.data["media"]] == [f"{BASE}/AB%201.jpg", f"{BASE}/b.jpg"]
    assert [item["url"] for item in statement.variants[0].data["media"]] == [f"{BASE}/c.jpg"]
    statement, problems = parse_record(record, FeedSettings())
    assert (
        statement is not None and "media" not in statement.data and {one.problem for one in problems} == {"unreadable"}
    )


def test_the_base_url_is_part_of_the_salt() -> None:
    def compute_salts(**config: str) -> tuple[bytes, bytes]:
        settings = create_feed_settings(builders.source(config={"currency": "usd", **config}), Stream.CATALOGUE)
        return compute_salt(None, settings), compute_salt(
            propose_column_mapping(("SKU", "Image"), [["A", "a.jpg"]], settings), settings
        )

    without, one, other = compute_salts(), compute_salts(media_base_url=BASE), compute_salts(media_base_url=BASE + "2")
    assert len({*without, *one, *other}) == 6 and compute_salts(media_base_url=BASE) == one
