"""What is compared with what earlier releases stored: were these to change, every source would be read anew."""

import pytest

from domain.catalogue.model import Stream
from domain.ingestion.mapping.proposal import propose
from domain.runs.sheets import context_of, salt_of, settings_digest
from tests.support import builders

CONFIG = {"url": "https://vendor.example/feed.csv", "currency": "USD"}


@pytest.mark.parametrize(
    ("stream", "settings", "salt"),
    [
        (Stream.CATALOGUE, "152402745344e331eb0b6761", "ab4f1e42ad7ee46df903c9cdfce59434"),
        (Stream.STOCK, "4e4f1c31f252158834b9f221", "bfc40403cc2b7361fae60dbe1010ab50"),
    ],
)
def test_digests_stay(stream: Stream, settings: str, salt: str) -> None:
    source = builders.source(id="src_1", catalogue="cat_1", config=CONFIG)
    assert settings_digest(source, stream) == settings
    assert salt_of(None, context_of(source, stream)).hex() == salt


def test_salts_of_mapped_columns_stay() -> None:
    headers = ("SKU", "Title", "Price", "Qty NJ", "Width (in)", "Image 1", "Image 2", "Remarks")
    settings = context_of(builders.source(id="src_1", catalogue="cat_1", config=CONFIG), Stream.CATALOGUE)
    mapping = propose(headers, [["A-1", "Oak table", "499", "3", "80", "a.jpg", "b.jpg", ""]], settings)
    assert salt_of(mapping, settings).hex() == "8fe5b6beac7071f8ac671441310c3586"
