"""Families of items without a common key require two kinds of evidence."""

from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.columns.families import (
    create_family_reader,
    extract_code_stem,
    remove_distinguishing_texts,
    remove_shared_sizes,
    split_title,
)

FAMILY = create_family_reader([0], [1], [2])


def _find_family_key(sku: str, title: str, colour: str = "") -> str | None:
    assert FAMILY is not None
    member = FAMILY([sku, title, colour])
    return member.family_key if member else None


def test_codes_of_one_item_share_a_stem() -> None:
    same = (
        ("QZ7864CK-BED", "QZ7864Q-BED"),
        ("HD-310GY", "HD-310WH"),
        ("RU8174M", "RU8174S"),
        ("SF-2200-BLUE", "SF-2200-BEIGE"),
    )
    for one, other in same:
        assert extract_code_stem(one) == extract_code_stem(other) is not None
    for one, other in (("QZ7864Q-BED", "QZ7865Q-BED"), ("QZ7864-N", "QZ7864-D"), ("HD-310-SC", "HD-310-AC")):
        assert extract_code_stem(one) != extract_code_stem(other)
    assert [extract_code_stem(text) for text in ("Blue chair", "12", "A-1", "", "0123456789012345678")] == [None] * 5


def test_a_family_requires_two_kinds_of_evidence() -> None:
    bed = _find_family_key("QZ7864Q-BED", "Queen Bed, Sand")
    assert bed == _find_family_key("QZ7864EK-BED", "E.King Bed, Dark Oak") is not None
    assert bed != _find_family_key("QZ7900Q-BED", "Queen Bed, Sand")
    assert bed != _find_family_key("QZ7864Q-BED", "Queen Headboard, Sand")
    assert _find_family_key("QZ7864Q-BED", "Bed") is None
    assert _find_family_key("QZ7864Q-BED", "Queen, Sand") is None


def test_the_colour_column_suffices_without_the_colour_in_the_title() -> None:
    assert _find_family_key("HD-310GY", "Sofa", "Fog") == _find_family_key("HD-310WH", "Sofa", "Milk") is not None
    assert _find_family_key("HD-310GY", "Sofa, Fog", "Fog") == _find_family_key("HD-310WH", "Sofa, Milk", "Milk")


def test_a_title_is_split_into_sizes_and_colours() -> None:
    core, sizes, colour = split_title('Queen Bed w/ 12" Rail, Dark Oak/White', None)
    assert (core.split(), sizes, colour) == (["Bed", "w/", "Rail,"], ("Queen", '12"'), "Dark Oak/White")
    assert split_title("Coffee Table", None)[0] == "Coffee Table"


def test_shared_sizes_are_not_axes() -> None:
    assert remove_shared_sizes([('13"', "Twin"), ('13"', "Full")]) == [("Twin",), ("Full",)]
    assert remove_shared_sizes([("Twin",), ("Twin", "Round")]) == [("Twin",), ("Twin", "Round")]
    assert split_title("Twin/Full Bunk Bed")[1] == ("Twin/Full",)
    assert remove_distinguishing_texts("Queen Bed, Sand", ["Queen", "Sand"]) == "Bed"


@given(st.text(max_size=40), st.text(max_size=40))
def test_any_text_is_accepted(sku: str, title: str) -> None:
    _find_family_key(sku, title)
