"""Features of an item."""

from time import thread_time

import pytest

from domain.matching import scoring
from domain.matching.comparisons import COMPARISONS, FeatureFrequencies, compare_items
from domain.matching.features import MatchFeatures, compute_features_from_texts
from domain.matching.tables import LEFT, RIGHT, MatchIndex
from domain.matching.words import are_similar_words


def build_features(title: str = "", **fields: str) -> MatchFeatures:
    return compute_features_from_texts(fields.pop("id", "1"), {"title": title, **fields})


def compute_frequencies(*both: MatchFeatures) -> FeatureFrequencies:
    """Return the frequencies of features among one item of each side."""
    index = MatchIndex()
    for side, one in zip((LEFT, RIGHT), both, strict=False):
        index.add(side, one)
    return index.frequencies


def test_a_title_is_split_into_features() -> None:
    facts = build_features(
        "Northwind Fjord 3-Seat Sofa, Lt. Gray, 220x95 cm - FJ-2203LG", brand="Northwind Furniture Inc"
    )
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
def test_spellings_of_one_word_are_equal(one: str, other: str) -> None:
    assert build_features(one).words == build_features(other).words


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
def test_names_of_one_colour_are_equal(one: str, other: str) -> None:
    assert build_features(colour=one).colours == build_features(colour=other).colours != frozenset()


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
def test_a_number_and_its_unit_are_one_quantity(one: str, other: str) -> None:
    assert build_features(one).quantities == build_features(other).quantities != frozenset()
    assert build_features(one).codes == build_features(other).codes == frozenset()


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
    levels = compare_items(
        build_features(one), build_features(other), compute_frequencies(build_features(one), build_features(other))
    )
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
def test_a_pack_has_a_higher_price(packs: str, price: str, other: str, level: int) -> None:
    one, two = build_features(packs, price=price), build_features("Stool", price=other)
    at = [c.name for c in COMPARISONS].index("pieces")
    assert (
        compare_items(one, two, compute_frequencies())[at]
        == compare_items(two, one, compute_frequencies())[at]
        == level
    )


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
def test_pieces_of_a_set_are_counted(title: str, pieces: int | None) -> None:
    assert build_features(title).pieces == pieces


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
def test_packs_are_counted(title: str, packs: int | None) -> None:
    assert build_features(title).packs == packs


def test_other_numbers_are_not_counts() -> None:
    huge = build_features(
        "Stool", pack="9" * 21, pieces="9" * 5000, price="9" * 400, weight="9" * 400, weight_unit="kg"
    )
    assert (huge.packs, huge.pieces, huge.price, huge.weight) == (None,) * 4
    assert build_features("Stool, 2 pack", pack="9" * 21).packs == 2
    assert build_features("Stool", pack="1234567").packs == 1234567


def _build_words(count: int, first: str) -> str:
    letters = "bcdfghjklmnp"
    return " ".join(first + letters[at // 144 % 12] + letters[at // 12 % 12] + letters[at % 12] for at in range(count))


def test_features_of_a_title_are_bounded() -> None:
    """The first significant words of the title and of its axes are compared; insignificant words do not count."""
    title = _build_words(300, "qu")
    facts = build_features(
        "new oak " + title, axes=_build_words(300, "vy"), collection="fjord", colour=_build_words(90, "zy")
    )
    assert facts.words == {*title.split()[:64], *_build_words(64, "vy").split()}
    assert facts == build_features(
        "new oak " + title, axes=_build_words(300, "vy"), collection="fjord", colour=_build_words(90, "zy")
    )
    assert facts.colours == set(_build_words(32, "zy").split())
    assert build_features("Table", axes="tapered", collection="fjord").words == {"table", "tapered", "fjord"}
    coded = build_features(" ".join(f"ab-{at}x" for at in range(1000, 1300)))
    assert coded.codes == {f"ab{at}x" for at in range(1000, 1032)} and len(coded.joined) <= 128


def test_very_long_words_are_truncated_and_are_not_codes() -> None:
    facts = build_features("x1" * 500, brand="b" * 1000, mpn="m1" * 100)
    assert {len(one) for one in (*facts.words, *facts.brand)} == {200} and not facts.codes


def test_comparing_very_long_items_takes_bounded_time() -> None:
    def measure_seconds(words: int) -> float:
        one = build_features(
            _build_words(words, "qu"), axes=_build_words(words, "vy"), colour=_build_words(words, "zy")
        )
        other = build_features(
            _build_words(words, "ru"), axes=_build_words(words, "wy"), colour=_build_words(words, "py")
        )
        are_similar_words.cache_clear()
        counted, begun = compute_frequencies(one, other), thread_time()
        compare_items(one, other, counted)
        return thread_time() - begun

    longer = min(measure_seconds(1700) for _ in range(3))
    assert longer <= 0.03 or longer <= 3 * min(measure_seconds(64) for _ in range(3))


def test_only_a_valid_gtin_is_used() -> None:
    assert build_features(gtin="4006381333931").gtin == "4006381333931"
    assert build_features(gtin="0 4006381 333931").gtin == "4006381333931"
    for text in ("4006381333932", "0000000000000", "N/A", "does not apply", ""):
        assert build_features(gtin=text).gtin is None


@pytest.mark.parametrize(
    "text", ["2-seat sofa", "8 GB stick", "5-piece set", "Blu-ray", "MP3 player", "10/100 switch", "Size 12"]
)
def test_quantities_are_not_codes(text: str) -> None:
    assert build_features(text).codes == frozenset()


@pytest.mark.parametrize(
    ("title", "kind"),
    [
        ("Halden sofa cover, grey", "cover"),
        ("Cover for 3-seat sofa", "cover"),
        ("Sofabezug Halden", "cover"),
        ("Bezug für Ecksofa", "cover"),
        ("Housse de canapé", "cover"),
        ("Fodera per divano", "cover"),
        ("Tischbein, schwarz", "leg"),
        ("Rug pad 160x230 cm", "pad"),
        ("Wool rug, pad included", "rug"),
        ("Sofa, velvet, gold legs", "sofa"),
        ("Sofa velvet gold legs", "sofa"),
        ("Sofa with cushions", "sofa"),
        ("Esstisch Halden", "table"),
        ("Bedside table on casters", "table"),
        ("2-seat sofa-bed", "bed"),
        ("Chest of 4 drawers", "chest"),
        ("Halden dining set", "set"),
        ("Essgruppe, 5-teilig", "set"),
        ("Set of 2 chairs", "chair"),
        ("Dining chair of the Halden set", "chair"),
        ("Adjustable storage box for wardrobe", ""),
        ("Halden", ""),
    ],
)
def test_the_kind_is_the_head_noun_of_the_title(title: str, kind: str) -> None:
    assert build_features(title).kind == kind


def test_the_kind_of_a_title_without_a_noun_follows_from_the_category() -> None:
    assert build_features("Halden", category="Seating > Dining chairs").kind == "chair"
    assert build_features("Halden cover", category="Sofas").kind == "cover"


@pytest.mark.parametrize("price", ["1.299,00 €", "$1,299.00", "1299", "USD 1299.00"])
def test_a_price_is_read_with_either_decimal_mark(price: str) -> None:
    assert build_features(price=price).price == 1299.0


def find_conflicts(a: MatchFeatures, b: MatchFeatures) -> tuple[str, ...]:
    return scoring.find_conflicts(a, b, compare_items(a, b, compute_frequencies(a, b)))


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
def test_conflicts_are_found(change: dict[str, str], expected: tuple[str, ...]) -> None:
    one, other = compute_features_from_texts("1", CHAIR), compute_features_from_texts("2", CHAIR | change)
    assert find_conflicts(one, other) == find_conflicts(other, one) == expected


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("Halden sofa cover, grey", "Halden sofa, grey", ("accessory",)),
        ("Halden sofa leg", "Halden sofa", ("accessory",)),
        ("Wool rug pad", "Wool rug", ("accessory",)),
        ("Sofabezug Halden", "Halden Sofa", ("accessory",)),
        ("Halden sofa with cover", "Halden sofa", ()),
        ("Halden sofa cover", "Cover for Halden sofa", ()),
        ("Halden dining chair", "Halden dining set", ("pieces",)),
        ("Halden dining table and chairs", "Halden dining set", ()),
        ("Halden chest of 4 drawers", "Halden chest of 6 drawers", ("count",)),
        ("Halden chest 2 doors/4 drawers", "Halden chest 2 doors/6 drawers", ("count",)),
        ("Halden chest, 4 drawers", "Halden chest", ()),
        ("Halden corner sofa, left", "Halden corner sofa, right", ("orientation",)),
        ("Ecksofa Halden links", "Halden corner sofa RAF", ("orientation",)),
        ("Halden corner sofa, left or right", "Halden corner sofa, right", ()),
    ],
)
def test_kinds_and_counts_conflict(one: str, other: str, expected: tuple[str, ...]) -> None:
    a, b = build_features(one), build_features(other)
    assert find_conflicts(a, b) == find_conflicts(b, a) == expected


def test_identifiers_prove_that_an_accessory_is_the_item() -> None:
    for code in ({"gtin": "4006381333931"}, {"mpn": "HX-2041"}):
        a, b = build_features("Halden sofa top cover", **code), build_features("Halden sofa", **code)
        assert find_conflicts(a, b) == ()


def test_conflicts_of_several_fields_are_found() -> None:
    assert find_conflicts(build_features("A", gtin="4006381333931"), build_features("A", gtin="4006381333948")) == (
        "gtin",
    )
    assert find_conflicts(build_features("Bed 140x200 cm"), build_features("Bed 160x200 cm")) == ("size",)
    assert find_conflicts(build_features("Bed 140x200 cm"), build_features('Bed 55 1/8x78 3/4"')) == ()
    assert find_conflicts(build_features("Table and 4 chairs"), build_features("7-piece dining set")) == ("pieces",)
    assert find_conflicts(build_features("Table and 4 chairs"), build_features("5-piece dining set")) == ()
    assert find_conflicts(build_features("Shelf", finish="oak"), build_features("Shelf", finish="walnut")) == (
        "finish",
    )
    assert find_conflicts(build_features("Cover for sofa"), build_features("Sofa cover")) == ()
    assert (
        find_conflicts(
            build_features("Shelf", width="120", height="166", dim_unit="cm"),
            build_features("Shelf", width="120", height="166", dim_unit="in"),
        )
        == ()
    )
