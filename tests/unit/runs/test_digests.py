"""Digests that are compared with those of earlier releases: a change would import every source again."""

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.runs.sheets import compute_salt, compute_settings_digest, create_feed_settings
from tests.support import builders

CONFIG = {"url": "https://vendor.example/feed.csv", "currency": "USD"}


@pytest.mark.parametrize(
    ("stream", "settings", "salt"),
    [
        (Stream.CATALOGUE, "152402745344e331eb0b6761", "6d00bf32658d00a9b93234fa9eb53f19"),
        (Stream.STOCK, "4e4f1c31f252158834b9f221", "4c1761653fd755a60ab48d9d7118deb8"),
    ],
)
def test_digests_do_not_change(stream: Stream, settings: str, salt: str) -> None:
    source = builders.source(id="src_1", catalogue="cat_1", config=CONFIG)
    assert compute_settings_digest(source, stream) == settings
    assert compute_salt(None, create_feed_settings(source, stream)).hex() == salt


def test_salts_of_mapped_columns_do_not_change() -> None:
    headers = ("SKU", "Title", "Price", "Qty NJ", "Width (in)", "Image 1", "Image 2", "Remarks")
    settings = create_feed_settings(builders.source(id="src_1", catalogue="cat_1", config=CONFIG), Stream.CATALOGUE)
    mapping = propose_column_mapping(headers, [["A-1", "Oak table", "499", "3", "80", "a.jpg", "b.jpg", ""]], settings)
    assert compute_salt(mapping, settings).hex() == "bbfc1af23cdaa7e202ecc39de3f7c4cc"
