"""Families of items without a common key: two evidences, or they stay apart."""

from hypothesis import given
from hypothesis import strategies as st

from domain.ingestion.columns.families import family_of, own_sizes, parted, shared_title, stem_of

FAMILY = family_of([0], [1], [2])


def _family(sku: str, title: str, colour: str = "") -> str | None:
    assert FAMILY is not None
    member = FAMILY([sku, title, colour])
    return member.family if member else None


def test_codes_of_one_item_share_a_stem() -> None:
    same = (
        ("QZ7864CK-BED", "QZ7864Q-BED"),
        ("HD-310GY", "HD-310WH"),
        ("RU8174M", "RU8174S"),
        ("SF-2200-BLUE", "SF-2200-BEIGE"),
    )
    for one, other in same:
        assert stem_of(one) == stem_of(other) is not None
    for one, other in (("QZ7864Q-BED", "QZ7865Q-BED"), ("QZ7864-N", "QZ7864-D"), ("HD-310-SC", "HD-310-AC")):
        assert stem_of(one) != stem_of(other)
    assert [stem_of(text) for text in ("Blue chair", "12", "A-1", "", "0123456789012345678")] == [None] * 5


def test_a_family_needs_both_evidences() -> None:
    bed = _family("QZ7864Q-BED", "Queen Bed, Sand")
    assert bed == _family("QZ7864EK-BED", "E.King Bed, Dark Oak") is not None
    assert bed != _family("QZ7900Q-BED", "Queen Bed, Sand")
    assert bed != _family("QZ7864Q-BED", "Queen Headboard, Sand")
    assert _family("QZ7864Q-BED", "Bed") is None
    assert _family("QZ7864Q-BED", "Queen, Sand") is None


def test_the_colours_own_column_says_what_the_title_need_not() -> None:
    assert _family("HD-310GY", "Sofa", "Fog") == _family("HD-310WH", "Sofa", "Milk") is not None
    assert _family("HD-310GY", "Sofa, Fog", "Fog") == _family("HD-310WH", "Sofa, Milk", "Milk")


def test_sizes_and_colours_of_a_title() -> None:
    core, sizes, colour = parted('Queen Bed w/ 12" Rail, Dark Oak/White', None)
    assert (core.split(), sizes, colour) == (["Bed", "w/", "Rail,"], ("Queen", '12"'), "Dark Oak/White")
    assert parted("Coffee Table", None)[0] == "Coffee Table"


def test_what_all_share_is_no_axis() -> None:
    assert own_sizes([('13"', "Twin"), ('13"', "Full")]) == [("Twin",), ("Full",)]
    assert own_sizes([("Twin",), ("Twin", "Round")]) == [("Twin",), ("Twin", "Round")]
    assert parted("Twin/Full Bunk Bed")[1] == ("Twin/Full",)
    assert shared_title("Queen Bed, Sand", ["Queen", "Sand"]) == "Bed"


@given(st.text(max_size=40), st.text(max_size=40))
def test_anything_can_be_asked(sku: str, title: str) -> None:
    _family(sku, title)
