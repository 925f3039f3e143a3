"""What is read of an item."""

from time import thread_time

import pytest

from domain.matching import scoring as rules
from domain.matching.comparisons import COMPARISONS, FeatureFrequencies, compare_items
from domain.matching.features import MatchFeatures, compute_features_from_texts
from domain.matching.tables import LEFT, RIGHT, MatchIndex
from domain.matching.words import are_similar_words


def item(title: str = "", **fields: str) -> MatchFeatures:
    return compute_features_from_texts(fields.pop("id", "1"), {"title": title, **fields})


def rarity(*both: MatchFeatures) -> FeatureFrequencies:
    """How rare things are among one item of each side."""
    index = MatchIndex()
    for side, one in zip((LEFT, RIGHT), both, strict=False):
        index.add(side, one)
    return index.frequencies


def test_a_title_is_taken_apart() -> None:
    facts = item("Northwind Fjord 3-Seat Sofa, Lt. Gray, 220x95 cm - FJ-2203LG", brand="Northwind Furniture Inc")
    assert facts.words == {"fjord", "sofa", "northwind"}
    assert facts.quantities == {"3seat"}
    assert facts.brand == {"northwind"}
    assert facts.colours == {"light", "grey"}
    assert facts.codes == {"fj2203lg"}
    assert facts.stems == {"fj2203"}
    assert facts.sizes == ((220.0, 95.0),)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("chr", "chair"),
        ("Stühle", "Stuhle"),
        ("Böcke", "Boecke"),
        ("couch", "sofa"),
        ("TISCH", "table"),
        ("Schränke", "schranke"),
        ("drws", "drawers"),
        ("shelves", "shelf"),
    ],
)
def test_one_word_has_many_spellings(one: str, other: str) -> None:
    assert item(one).words == item(other).words


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("gray", "grey"),
        ("blk", "onyx"),
        ("weiß", "white"),
        ("navy", "dark blue"),
        ("charcoal", "dark grey"),
        ("Eiche", "oak"),
    ],
)
def test_one_colour_has_many_names(one: str, other: str) -> None:
    assert item(colour=one).colours == item(colour=other).colours != frozenset()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Card 8 GB", "Card 8GB"),
        ("Fridge 18 cu. ft.", "Fridge 18cu.ft"),
        ("Sofa 3 seater", "Sofa 3-seat"),
        ("Flour 0.5 kg", "Flour 500 g"),
        ("Drive 1 TB", "Drive 1000GB"),
        ("Drill 18 V", "Drill 18 volts"),
        ("Bank 20000 mAh", "Bank 20000mAh"),
        ("Juice 1.50 l", "Juice 1500ml"),
    ],
)
def test_a_number_and_its_unit_are_one(one: str, other: str) -> None:
    assert item(one).quantities == item(other).quantities != frozenset()
    assert item(one).codes == item(other).codes == frozenset()


@pytest.mark.parametrize(
    ("one", "other", "level"),
    [
        ("Card 32 GB", "Card 64GB", "contradict"),
        ("Chest of 6 drawers", "Chest of 8 drawers", "contradict"),
        ("Chest of 6 drawers", "Kommode 6 Schubkästen", "same"),
        ("Shampoo 6.8 fl oz", "Shampoo 200 ml", "same"),
        ("Card 32 GB class 10", "Card 32 GB", "one says more"),
        ("Remote 890", "Remote 880", "different"),
    ],
)
def test_numbers_are_compared_by_their_units(one: str, other: str, level: str) -> None:
    levels = compare_items(item(one), item(other), rarity(item(one), item(other)))
    level_by_name = {c.name: c.level_names[found] for c, found in zip(COMPARISONS, levels, strict=True)}
    assert level_by_name["quantities"] == level


@pytest.mark.parametrize(
    ("packs", "price", "other", "level"),
    [
        ("Stool (Set of 2)", "58", "29", 3),
        ("Stool (Set of 2)", "31", "29", 2),
        ("Stool (Set of 2)", "", "29", 2),
        ("Stool", "58", "29", 0),
    ],
)
def test_a_pack_that_costs_more_is_a_pack(packs: str, price: str, other: str, level: int) -> None:
    one, two = item(packs, price=price), item("Stool", price=other)
    at = [c.name for c in COMPARISONS].index("pieces")
    assert compare_items(one, two, rarity())[at] == compare_items(two, one, rarity())[at] == level


@pytest.mark.parametrize(
    ("title", "pieces"),
    [
        ("Table and 4 chairs", 5),
        ("5-piece dining set", 5),
        ("Bistro table + 2 chairs", 3),
        ("Tischgruppe 5-teilig", 5),
        ("Table with 6 dining chairs", 7),
        ("Table for 4 persons", None),
        ("Chest of 4 drawers", None),
    ],
)
def test_pieces_of_a_set(title: str, pieces: int | None) -> None:
    assert item(title).pieces == pieces


@pytest.mark.parametrize(
    ("title", "packs"),
    [
        ("Stool (Set of 2)", 2),
        ("Stool Set/4", 4),
        ("Stool, 2 pack", 2),
        ("Stool 2-pk", 2),
        ("Stool set of two", 2),
        ("Pair of stools", 2),
        ("Stool x2", 2),
        ("Stool", None),
        ("4-seat sofa set", None),
        ("Backpack", None),
        ("Desk pad 24 x 19", None),
    ],
)
def test_how_many_are_sold_together(title: str, packs: int | None) -> None:
    assert item(title).packs == packs


def test_numbers_that_count_nothing_are_none() -> None:
    huge = item("Stool", pack="9" * 21, pieces="9" * 5000, price="9" * 400, weight="9" * 400, weight_unit="kg")
    assert (huge.packs, huge.pieces, huge.price, huge.weight) == (None,) * 4
    assert item("Stool, 2 pack", pack="9" * 21).packs == 2
    assert item("Stool", pack="1234567").packs == 1234567


def _different(count: int, first: str) -> str:
    letters = "bcdfghjklmnp"
    return " ".join(first + letters[at // 144 % 12] + letters[at // 12 % 12] + letters[at % 12] for at in range(count))


def test_what_is_compared_of_a_title_is_bounded() -> None:
    """The first significant words of the title, and as many of its axes; insignificant words do not count."""
    title = _different(300, "qu")
    facts = item("new oak " + title, axes=_different(300, "vy"), collection="fjord", colour=_different(90, "zy"))
    assert facts.words == {*title.split()[:64], *_different(64, "vy").split()}
    assert facts == item(
        "new oak " + title, axes=_different(300, "vy"), collection="fjord", colour=_different(90, "zy")
    )
    assert facts.colours == set(_different(32, "zy").split())
    assert item("Table", axes="tapered", collection="fjord").words == {"table", "tapered", "fjord"}
    coded = item(" ".join(f"ab-{at}x" for at in range(1000, 1300)))
    assert coded.codes == {f"ab{at}x" for at in range(1000, 1032)} and len(coded.joined) <= 128


def test_very_long_words_are_cut_and_are_no_codes() -> None:
    facts = item("x1" * 500, brand="b" * 1000, mpn="m1" * 100)
    assert {len(one) for one in (*facts.words, *facts.brand)} == {200} and not facts.codes


def test_comparing_the_longest_items_is_no_more_than_comparing_long_ones() -> None:
    def compared(words: int) -> float:
        one = item(_different(words, "qu"), axes=_different(words, "vy"), colour=_different(words, "zy"))
        other = item(_different(words, "ru"), axes=_different(words, "wy"), colour=_different(words, "py"))
        are_similar_words.cache_clear()
        counted, begun = rarity(one, other), thread_time()
        compare_items(one, other, counted)
        return thread_time() - begun

    longer = min(compared(1700) for _ in range(3))
    assert longer <= 0.03 or longer <= 3 * min(compared(64) for _ in range(3))


def test_only_a_proven_gtin_counts() -> None:
    assert item(gtin="4006381333931").gtin == "4006381333931"
    assert item(gtin="0 4006381 333931").gtin == "4006381333931"
    for text in ("4006381333932", "0000000000000", "N/A", "does not apply", ""):
        assert item(gtin=text).gtin is None


@pytest.mark.parametrize(
    "text", ["2-seat sofa", "8 GB stick", "5-piece set", "Blu-ray", "MP3 player", "10/100 switch", "Size 12"]
)
def test_quantities_are_no_codes(text: str) -> None:
    assert item(text).codes == frozenset()


@pytest.mark.parametrize("price", ["1.299,00 €", "$1,299.00", "1299", "USD 1299.00"])
def test_a_price_is_read_with_either_mark(price: str) -> None:
    assert item(price=price).price == 1299.0


def conflicts(a: MatchFeatures, b: MatchFeatures) -> tuple[str, ...]:
    return rules.find_conflicts(a, b, compare_items(a, b, rarity(a, b)))


CHAIR = {
    "title": "Lindholm chair, grey",
    "brand": "Aster",
    "colour": "grey",
    "width": "50",
    "depth": "55",
    "height": "80",
    "dim_unit": "cm",
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ()),
        ({"width": "21.65", "depth": "19.69", "height": "31.5", "dim_unit": "in"}, ()),
        ({"width": "50.8"}, ()),
        ({"width": "60"}, ("dimensions",)),
        ({"colour": "green", "title": "Lindholm chair, green"}, ("colour",)),
        ({"colour": "grey oak"}, ("colour",)),
        ({"colour": "gray"}, ()),
        ({"title": "Lindholm chair, grey (set of 2)"}, ("pieces",)),
        ({"title": "Lindholm cushion for chair, grey"}, ("accessory",)),
        ({"brand": "Another"}, ()),
    ],
)
def test_conflicts_of_furniture(change: dict[str, str], expected: tuple[str, ...]) -> None:
    one, other = compute_features_from_texts("1", CHAIR), compute_features_from_texts("2", CHAIR | change)
    assert conflicts(one, other) == conflicts(other, one) == expected


def test_more_conflicts() -> None:
    assert conflicts(item("A", gtin="4006381333931"), item("A", gtin="4006381333948")) == ("gtin",)
    assert conflicts(item("Bed 140x200 cm"), item("Bed 160x200 cm")) == ("size",)
    assert conflicts(item("Bed 140x200 cm"), item('Bed 55 1/8x78 3/4"')) == ()
    assert conflicts(item("Table and 4 chairs"), item("7-piece dining set")) == ("pieces",)
    assert conflicts(item("Table and 4 chairs"), item("5-piece dining set")) == ()
    assert conflicts(item("Shelf", finish="oak"), item("Shelf", finish="walnut")) == ("finish",)
    assert conflicts(item("Cover for sofa"), item("Sofa cover")) == ()
    assert (
        conflicts(
            item("Shelf", width="120", height="166", dim_unit="cm"),
            item("Shelf", width="120", height="166", dim_unit="in"),
        )
        == ()
    )
