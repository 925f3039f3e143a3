"""Texts, codes, words, countries, images and boxes."""

from decimal import Decimal

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from domain.ingestion.values.cartons import parse_boxes, parse_pieces_per_carton
from domain.ingestion.values.media import determine_media_role, parse_image_urls
from domain.ingestion.values.text import (
    clean_code,
    clean_line,
    clean_value,
    convert_to_text,
    remove_line_markup,
    strip_markup,
)
from domain.ingestion.values.words import (
    compute_check_digit,
    parse_assembly_required,
    parse_boolean,
    parse_components,
    parse_country,
    parse_features,
    parse_freight_class,
    parse_gtin,
    parse_materials,
    parse_sturdy_compliance,
    parse_tags,
    parse_tsca_compliance,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("  Oak\u00a0 table ", "Oak table"),
        ("Oak\x9d\x00 table", "Oak table"),
        ("HÃ–HENVERSTELLBAR", "HÖHENVERSTELLBAR"),
        ("CafÃ© table", "Café table"),
        ("â€œNordâ€\x9d chair", "“Nord” chair"),
        ("Übergröße", "Übergröße"),
        ("Ångström", "Ångström"),
        ("Größe mit CafÃ©", "Größe mit Café"),
    ],
)
def test_texts_are_cleaned(text: str, found: str) -> None:
    assert clean_line(text) == found


@given(text=st.text(alphabet="äöüßéèñçÅØ“”–", min_size=1, max_size=20))
def test_double_encoding_is_undone(text: str) -> None:
    try:
        damaged = text.encode("utf-8").decode("cp1252")
    except UnicodeDecodeError:
        return
    assume(clean_line(text) == text)
    assert clean_line(damaged) == text


@pytest.mark.parametrize("text", ["", ".", "?", "-", "N/A", "#N/A", "None", "TBD", "No old price", "\xa0"])
def test_placeholders_state_nothing(text: str) -> None:
    assert clean_value(text) is None


@pytest.mark.parametrize(
    ("text", "found"),
    [("'101", "101"), ("10002.0", "10002"), ('="0042"', "0042"), ("AB-1.0", "AB-1.0"), ("00012", "00012")],
)
def test_protective_marks_of_codes_are_removed(text: str, found: str) -> None:
    assert clean_code(text) == found


def test_cells_become_text() -> None:
    assert convert_to_text(Decimal("12.50")) == "12.5"
    assert convert_to_text(True) == "true"
    assert convert_to_text(["a", "b"]) == "a, b"
    assert convert_to_text(None) == ""


def test_html_becomes_lines() -> None:
    html = "<p>Solid <b>oak</b> &amp; steel</p><ul><li>Felt lined</li><li>Soft close</li></ul><script>x()</script>"
    assert strip_markup(html) == "Solid oak & steel\n- Felt lined\n- Soft close"
    assert strip_markup("Seats < 4 and > 2") == "Seats < 4 and > 2"
    assert remove_line_markup("Beds &amp; Frames") == "Beds & Frames"


@pytest.mark.parametrize(
    "text", ["4006381333931", "'4006381333931", "4006381333931.0", "40063813-33931", " 4006381333931 "]
)
def test_a_gtin_is_read_in_every_notation(text: str) -> None:
    assert parse_gtin(text).value == "4006381333931"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("4006381333932", "bad_check_digit"),
        ("4.00638E+12", "unreadable"),
        ("01", "unreadable"),
        ("111111111111", "unreadable"),
        ("ABC", "unreadable"),
    ],
)
def test_an_invalid_gtin_is_reported(text: str, problem: str) -> None:
    assert [fault.problem for fault in parse_gtin(text).faults] == [problem]


def test_a_dropped_zero_is_restored_only_if_proven() -> None:
    assert parse_gtin("12345678905").value == "012345678905"
    assert parse_gtin("12345678906").value is None


@given(payload=st.integers(10**11, 10**12 - 1))
def test_computed_check_digits_are_valid(payload: int) -> None:
    digits = f"{payload}{compute_check_digit(str(payload))}"
    assert parse_gtin(digits).value == digits or len(set(digits)) == 1


def test_booleans_and_assembly_are_read() -> None:
    assert [parse_boolean(word).value for word in ("Yes", "n", "TRUE", "0", "Ja", "x")] == [
        True,
        False,
        True,
        False,
        True,
        True,
    ]
    assert parse_boolean("perhaps").faults[0].problem == "unreadable"
    assert parse_assembly_required("K/D").value is True
    assert parse_assembly_required("Fully assembled").value is False


def test_freight_classes_are_read() -> None:
    assert parse_freight_class("92.5").value == "92.5"
    assert parse_freight_class("Class 125").value == "125"
    assert parse_freight_class("70.0").value == "70"
    assert parse_freight_class("93").faults[0].problem == "out_of_range"


def test_lists_are_read() -> None:
    assert parse_materials("Solid Oak, Oak Veneer, Others").value == ("Solid Oak", "Oak Veneer")
    assert parse_materials("Steel/Glass").value == ("Steel", "Glass")
    assert parse_tags("2027, Outdoor, Outdoor").value == ("2027", "Outdoor")
    assert parse_features("Walnut,Solid Wood, Others,Felt-lined drawer").value == (
        "Walnut",
        "Solid Wood, Others",
        "Felt-lined drawer",
    )
    assert parse_features("Turned legs, hand carved").value == ("Turned legs, hand carved",)
    assert parse_components("AB-1, AB-2 x2, AB-1").value == (
        {"sku": "AB-1", "quantity": 2},
        {"sku": "AB-2", "quantity": 2},
    )


def test_named_components_are_read() -> None:
    assert parse_components("Bed (B-1), 2 Nightstands (N-1), Dresser D-10 x2").value == (
        {"name": "Bed", "sku": "B-1", "quantity": 1},
        {"name": "Nightstands", "sku": "N-1", "quantity": 2},
        {"name": "Dresser", "sku": "D-10", "quantity": 2},
    )
    assert parse_components("1 table + 4 x chairs").value == (
        {"name": "table", "quantity": 1},
        {"name": "chairs", "quantity": 4},
    )
    for text in ("Bed 80 in, Dresser", "assorted pieces of wood", "2"):
        assert parse_components(text).faults


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("VN", "VN"),
        ("viet nam", "VN"),
        ("Made in Italy", "IT"),
        ("Türkei", "TR"),
        ("México", "MX"),
        ("Włochy", "IT"),
        ("België", "BE"),
    ],
)
def test_countries_are_read(text: str, found: str) -> None:
    assert parse_country(text).value == found


def test_a_country_of_assembly_is_not_an_origin() -> None:
    assert parse_country("Made in USA of imported materials").faults[0].problem == "unreadable"


def test_declarations_require_the_exact_standard() -> None:
    assert parse_sturdy_compliance("ASTM F2057-23").value is True
    assert parse_sturdy_compliance("ASTM F2057-19").value is None
    assert parse_tsca_compliance("3").value is None
    assert parse_tsca_compliance("Yes").value is True


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("https://a.example/1.jpg", 1),
        ("https://a.example/1.jpg|https://a.example/2.jpg", 2),
        ("https://a.example/1.jpg, https://a.example/2.jpg", 2),
        ("https://a.example/1,2.jpg", 1),
        ("https://a.example/1.jpg\nhttps://a.example/2.jpg", 2),
        ('["https://a.example/1.jpg","https://a.example/2.jpg"]', 2),
        ("https://a.example/1.jpg|https://a.example/1.jpg", 1),
        ("//a.example/1.jpg", 1),
    ],
)
def test_image_urls_are_read(text: str, count: int) -> None:
    found = parse_image_urls(text)
    assert (len(found.value or ()), found.faults) == (count, ())


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("chair-1.jpg", "unreadable"),
        ("javascript:alert(1)", "unsafe_url"),
        ("ftp://a.example/1.jpg", "unsafe_url"),
        ("file:///etc/passwd", "unsafe_url"),
        ("https://user:secret@a.example/1.jpg", "unsafe_url"),
    ],
)
def test_unsafe_image_urls_are_refused(text: str, problem: str) -> None:
    found = parse_image_urls(text)
    assert (found.value, [fault.problem for fault in found.faults]) == ((), [problem])


def test_media_have_roles() -> None:
    assert [
        determine_media_role("https://a.example/1.jpg", True),
        determine_media_role("https://a.example/2.jpg", False),
    ] == [
        "hero",
        "alternate",
    ]
    assert determine_media_role("https://a.example/care.pdf", True) == "document"


def test_boxes_in_one_cell_are_read() -> None:
    text = (
        "NORD frame Article no: 100.200.30 Width: 48cm Height: 3cm Length: 80cm Weight: 4.9kg Package(s): 1,"
        "NORD leg, oak Article no: 100.200.31 Width: 10cm Height: 10cm Length: 40cm Weight: 1kg Package(s): 4"
    )
    packages = parse_boxes(text).value
    assert packages is not None
    assert [(p.name, p.sku, p.carton["count"]) for p in packages] == [
        ("NORD frame", "100.200.30", 1),
        ("NORD leg, oak", "100.200.31", 4),
    ]
    assert packages[0].carton["depth"]["hundredths_in"] == 3150
    assert parse_pieces_per_carton("Side Chair (2/CTN)") == 2
