"""Meanings of headers by their words, in all spellings and languages, with neighbours and values."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.ingestion.mapping.columns import SECOND_FIELD
from domain.ingestion.mapping.neighbours import find_meanings_of_headers
from domain.ingestion.mapping.proposal import propose_column_mapping
from domain.ingestion.model import FeedSettings, MappingTier
from domain.ingestion.vocabulary.header_meanings import find_field_class, find_header_meanings, normalise_header

PAIRS = {
    "dimensions.seat_height": ["seat height", "Sitzhöhe", "hauteur assise", "zithoogte", "altura asiento", "altezza seduta",
                               "sitthöjd", "sædehøjde", "istuinkorkeus", "wysokość siedziska", "высота сиденья"],
    "cartons.0.width": ["carton width", "Verpackungsbreite", "largeur colis", "breedte verpakking", "ancho embalaje",
                        "larghezza imballo", "ширина упаковки", "szerokość opakowania"],
    "weight": ["net weight", "Nettogewicht", "poids net", "peso neto", "peso netto", "nettovikt", "вес нетто"],
    "mpn": ["manufacturer part number", "Hersteller-Artikelnummer", "référence fabricant", "código fabricante",
            "codice produttore", "код производителя"],
    "cost": ["purchase price", "Einkaufspreis", "prix d'achat", "inkoopprijs", "precio de compra", "inköpspris", "закупочная цена"],
    "msrp": ["recommended retail price", "unverbindliche Preisempfehlung", "prix conseillé", "adviesprijs", "precio recomendado",
             "vejledende pris", "рекомендованная цена"],
    "lead_time_days": ["delivery time", "Lieferzeit", "délai de livraison", "levertijd", "plazo de entrega", "tempo di consegna",
                       "leveranstid", "срок поставки"],
    "compliance.country_of_origin": ["country of origin", "Ursprungsland", "pays d'origine", "land van herkomst",
                                     "país de origen", "paese di origine", "ursprungsland", "kraj pochodzenia"],
    "colour": ["main colour", "Hauptfarbe", "couleur principale", "hoofdkleur", "color principal", "colore principale", "цвет"],
    "brand": ["brand name", "Markenname", "marque", "merk", "marca", "marchio", "varumärke", "бренд"],
}  # fmt: skip
PHRASES = [(field, words) for field, spelled in PAIRS.items() for words in spelled]
PARTS = ["drawer", "mattress", "cushion", "headboard", "tabletop", "Schublade", "tiroir", "cassetto"]
SIDES = ["width", "depth", "height", "Breite", "hauteur", "altezza"]


def _build_spellings(words: str) -> list[str]:
    parts = words.replace("'", " ").split()
    return [
        words,
        words.upper(),
        "_".join(parts).lower(),
        "".join(part.capitalize() for part in parts),
        f"Product {words}",
        f"  {words} *",
        f"{words}\n",
        "-".join(parts),
    ]


def _find_field(header: str) -> str | None:
    found = find_header_meanings(header)
    return found[0].field if found else None


@pytest.mark.parametrize(("field", "words"), PHRASES)
def test_words_have_the_same_meaning_in_every_language(field: str, words: str) -> None:
    assert _find_field(words) == field


@given(
    st.sampled_from(PHRASES).flatmap(
        lambda phrase: st.tuples(st.just(phrase[0]), st.sampled_from(_build_spellings(phrase[1])))
    )
)
@settings(max_examples=300, deadline=None)
def test_spelling_makes_no_difference(case: tuple[str, str]) -> None:
    field, header = case
    if "\n" not in header and "_" in header and not header.isascii():
        return  # codes are written without accents
    assert _find_field(header) == field, header


@given(
    st.sampled_from(PARTS),
    st.sampled_from(SIDES),
    st.sampled_from(["{} {}", "{1} {0}", "{}_{}", "{1} of the {0} (cm)"]),
)
@settings(deadline=None)
def test_measures_of_a_part_are_not_measures_of_the_item(part: str, side: str, form: str) -> None:
    field = _find_field(form.format(part, side))
    assert field in (None, "ignore") or not field.startswith("dimensions")


@pytest.mark.parametrize("header", ["Heigth", "widht", "Lenght", "Wieght", "Manufcturer", "Descripton", "Materal"])
def test_misspellings_are_recognised(header: str) -> None:
    found = find_header_meanings(header)
    assert found
    assert found[0].is_guess


@pytest.mark.parametrize(
    "header",
    ["Price per sqm", "Shipping cost", "Minimum order qty", "Colour code", "Warranty", "Meta title", "Product URL", "VAT rate",
     "Reserved stock", "Zolltarifnummer", "Garantie", "Pflegehinweise", "Date created", "Number of drawers", "Energieeffizienzklasse"],
)  # fmt: skip
def test_unknown_headers_are_not_mapped(header: str) -> None:
    mapping = propose_column_mapping(["SKU", header], [["A-1", "12"], ["A-2", "13"]], FeedSettings(currency="usd"))
    assert [column.column for column in mapping.columns] == ["SKU"]


def test_sides_among_columns_of_a_package_belong_to_the_package() -> None:
    headers = ["SKU", "Width", "Depth", "Height", "Carton count", "Width", "Depth", "Height", "Carton weight"]
    fields = [column.field for column in propose_column_mapping(headers, [], FeedSettings()).columns]
    assert fields[1:4] == ["dimensions.width", "dimensions.depth", "dimensions.height"]
    assert fields[5:8] == ["cartons.0.width", "cartons.0.depth", "cartons.0.height"]


def test_separate_columns_of_feet_and_inches_are_not_sizes() -> None:
    headers = ["SKU", "Length feet", "Length inches"]
    mapping = propose_column_mapping(headers, [["A", "7", "6"], ["B", "5", "11"]], FeedSettings(currency="usd"))
    assert [column.field for column in mapping.columns] == ["sku"]
    assert {left.reason for left in mapping.unmapped} == {"ambiguous"}


def test_a_shape_belongs_to_a_rug_only_among_rug_columns() -> None:
    assert "rug.shape" not in {
        c.field for c in propose_column_mapping(["SKU", "Title", "Shape"], [], FeedSettings()).columns
    }
    assert "rug.shape" in {
        c.field for c in propose_column_mapping(["SKU", "Pile height", "Shape"], [], FeedSettings()).columns
    }


@pytest.mark.parametrize(
    ("header", "values"),
    [
        ("UPC 5", ["12345", "54321"]),
        ("Material", ["yes", "no"]),
        ("Image", ["Y", "N"]),
        ("Price", ["https://a.example/1", "https://a.example/2"]),
        ("Width", ["oak", "ash"]),
        ("Dimension Unit", ["12.5", "13"]),
    ],
)
def test_values_refute_a_header(header: str, values: list[str]) -> None:
    mapping = propose_column_mapping(
        ["SKU", header], [[f"A-{at}", value] for at, value in enumerate(values)], FeedSettings(currency="usd")
    )
    assert [column.column for column in mapping.columns] == ["SKU"]
    assert [left.reason for left in mapping.unmapped] == ["ambiguous"]


def test_a_gtin_is_recognised_by_its_check_digits_under_any_header() -> None:
    rows = [["A-1", "4006381333931"], ["A-2", "5901234123457"], ["A-3", "012345678905"]]
    column = propose_column_mapping(["SKU", "Zorp"], rows, FeedSettings()).columns[1]
    assert (column.field, column.tier) == ("gtin", MappingTier.FUZZY)


def test_additional_prices_are_listed_but_not_read() -> None:
    mapping = propose_column_mapping(
        ["SKU", "Price", "Showroom price"],
        [["A", "10.00", "12.00"], ["B", "11.00", "13.00"]],
        FeedSettings(currency="usd"),
    )
    other = mapping.columns[2]
    assert (other.field, other.settings["alternative"]) == ("price", "yes")


@given(st.lists(st.sampled_from([*(words for _, words in PHRASES), "Flux", "SKU", "Price"]), min_size=1, max_size=12))
@settings(max_examples=60, deadline=None)
def test_a_header_without_neighbours_is_never_certain(headers: list[str]) -> None:
    assert all(column.confidence < 0.9 for column in propose_column_mapping(headers, [], FeedSettings()).columns)
    assert propose_column_mapping(headers, [], FeedSettings()) == propose_column_mapping(headers, [], FeedSettings())


@pytest.mark.parametrize(
    ("base", "inflected"),
    [
        ("Fecha previsto", "Fecha prevista"),
        ("Prezzo scontato", "Prezzo scontati"),
        ("Lagerbestand", "Lagerbestands"),
        ("Bruttovikt", "bruttovikten"),
    ],
)
def test_inflected_words_are_recognised(base: str, inflected: str) -> None:
    """Gender, number and case make no difference."""
    assert _find_field(base) == _find_field(inflected) is not None


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("core::supplierPartNumber", "sku"),
        ("Parameter: Brand", "brand"),
        ("Fashion:size", "axes.Size"),
        ("innkjoepspris", "cost"),
        ("H seduta", "dimensions.seat_height"),
        ("package_size_l", "cartons.0.depth"),
        ("Breite (angegeben in cm)", "dimensions.width"),
        ("Precio de descuento", "sale_price"),
        ("Kod wewnętrzny", "sku"),
    ],
)
def test_paths_letters_and_filler_words_are_ignored(header: str, field: str) -> None:
    assert _find_field(header) == field


@pytest.mark.parametrize("header", ["Sztuk w kartonie", "Pcs in Carton", "Unità di misura", "DIM. Weight", "ASIN"])
def test_headers_that_only_resemble_a_field_are_not_mapped(header: str) -> None:
    """Pieces in a box are not a number of boxes, and a unit of measure is not a unit of lengths."""
    assert _find_field(header) in (None, "ignore")


def _map_headers(headers: list[str], *rows: list[str]) -> dict[str, str]:
    mapping = propose_column_mapping(headers, rows or [[""] * len(headers)], FeedSettings())
    return {column.column: column.field for column in mapping.columns if not column.is_alternative}


def test_a_prefix_of_every_header_is_ignored() -> None:
    """A platform's name is skipped if many headers share it; a part's name is not."""
    shared = _map_headers(["SKU", "zq_width", "zq_height", "zq_brand", "zq_in_stock"])
    assert shared["zq_width"] == "dimensions.width"
    assert shared["zq_brand"] == "brand"
    few = ["SKU", "Title", "Price", "Colour", "Width", "Height", "Brand", "Bunkbay width", "Bunkbay height"]
    assert find_meanings_of_headers(few)[-2:] == [(), ()]


def test_the_title_is_the_one_without_a_language() -> None:
    """`name` precedes `name_en`, in any order of columns."""
    assert _map_headers(["sku", "name_en", "name"])["name"] == "title"


def test_a_description_is_a_title_only_if_its_values_are_short() -> None:
    """Two lines of text next to a code are a description; a few words are a title."""
    text = "A solid sofa for the living room, " * 8
    assert _map_headers(["sku", "description"], ["A-1", text], ["A-2", text])["description"] == "description"
    assert _map_headers(["sku", "description"], ["A-1", "Sofa Alma"], ["A-2", "Sofa Bert"])["description"] == "title"


def test_numbers_after_a_point_count_from_the_first_one() -> None:
    """`width.1` belongs to the first box if no column belongs to box 0."""
    assert _map_headers(["sku", "carton width.1", "carton width.2"])["carton width.1"] == "cartons.0.width"
    assert _map_headers(["sku", "carton width.0", "carton width.1"])["carton width.1"] == "cartons.1.width"


def test_an_id_next_to_a_sku_is_the_product_key() -> None:
    """Without a SKU, the ID is the SKU."""
    assert _map_headers(["product_id", "sku"])["product_id"] == "product_key"
    assert _map_headers(["product_id", "title"])["product_id"] == "sku"


def test_a_temporary_sale_price_is_listed_but_not_read() -> None:
    """The dates of the sale price have separate columns."""
    headers = ["sku", "price", "special_price", "special_from_date", "special_to_date"]
    mapping = propose_column_mapping(
        headers, [["A-1", "10.00", "8.00", "2026-01-01", "2026-01-31"]], FeedSettings(currency="usd")
    )
    column = next(column for column in mapping.columns if column.column == "special_price")
    assert column.field == "sale_price"
    assert column.is_alternative


@pytest.mark.parametrize("header", ["Einheit Breitte (cm)", "unit lenght cm", "weight units foo kg"])
def test_a_unit_column_with_a_unit_has_no_meaning(header: str) -> None:
    """A column that states the unit of other columns and names a unit itself has no meaning."""
    assert not any(sense.field.endswith("_unit") for sense in find_header_meanings(header))


def test_all_numbers_of_a_field_have_one_class() -> None:
    """`Category 5` resembles categories as much as `Category 1`."""
    assert (
        find_field_class("category_path.4") == find_field_class("category_path.0") == find_field_class("category_path")
    )
    assert find_field_class("cartons.3.width") == "cartons.0.width"


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("Art.-Nr.", "sku"),
        ("Bezeichng.", "title"),
        ("Oberfl.", "finish"),
        ("Nettogew. (kg)", "weight"),
        ("Verp.-Höhe", "cartons.0.height"),
        ("Lagerbest.", "quantity"),
        ("Lieferz. (WT)", "lead_time_days"),
        ("Sitzh.", "dimensions.seat_height"),
        ("Giac.", "quantity"),
        ("Rivest.", "materials"),
        ("Acab.", "finish"),
        ("Désign.", "title"),
        ("Zith.", "dimensions.seat_height"),
        ("Wys. siedz.", "dimensions.seat_height"),
        ("Istuinkork.", "dimensions.seat_height"),
        ("Lagerbeh.", "quantity"),
        ("Выс. сид.", "dimensions.seat_height"),
    ],
)
def test_abbreviations_with_a_period_are_completed(header: str, field: str) -> None:
    assert _find_field(header) == field


@pytest.mark.parametrize("header", ["Ver.", "Xq.", "price.zz", "Kl. 3.5", "a.b.c.d"])
def test_abbreviations_of_several_words_or_of_none_are_kept(header: str) -> None:
    assert normalise_header(header).plain_texts[0] == " ".join(header.lower().replace(".", " ").split())


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzäöüłø.. ", max_size=300))
@settings(max_examples=150, deadline=None)
def test_any_text_with_periods_is_normalised(header: str) -> None:
    assert len(normalise_header(header).lookup_texts) < 20


@pytest.mark.parametrize(
    ("header", "order"),
    [
        ("LxPxH", "wdh"),
        ("B x T x H", "bth"),
        ("B x H x T (cm)", "bht"),
        ("Maße BxHxT", "bht"),
        ("W×D×H", "wdh"),
        ("A x F x H", "wdh"),
        ("SxGxW", "wdh"),
        ("ШхГхВ", "wdh"),
        ("LXWXH", "lwh"),
    ],
)
def test_an_order_of_letters_is_a_size_in_that_order(header: str, order: str) -> None:
    first = find_header_meanings(header)[0]
    assert (first.field, dict(first.settings)["order"]) == ("dimensions", order)


@pytest.mark.parametrize(
    ("headers", "sides"),
    [
        ("L P H", "width depth height"),
        ("B T H", "width depth height"),
        ("W D H", "width depth height"),
        ("S G W", "width depth height"),
        ("A F H", "width depth height"),
        ("L P H V", "width depth height"),
        ("A B C D", None),
    ],
)
def test_single_letters_are_sides_in_the_language_that_has_all_of_them(headers: str, sides: str | None) -> None:
    mapped = _map_headers(["SKU", *headers.split()])
    expected = [f"dimensions.{side}" for side in sides.split()] if sides else []
    assert [mapped[letter] for letter in headers.split() if letter in mapped] == expected


@pytest.mark.parametrize(
    ("header", "field"),
    [
        ("Ø", "dimensions.diameter"),
        ("Ø (cm)", "dimensions.diameter"),
        ("Colli", "carton_count"),
        ("bultos", "carton_count"),
        ("Nb colis", "carton_count"),
        ("Netto", "cost"),
        ("Neto", "cost"),
        ("Netto (kg)", "weight"),
        ("VPN", "sku"),
        ("Consegna", "lead_time_days"),
        ("log_height", "cartons.0.height"),
        ("price::minimumAdvertisedPrice", "map"),
        ("dims::seat::height", "dimensions.seat_height"),
        ("carton::2::width", "cartons.1.width"),
        ("logistics::countryOfOrigin", "compliance.country_of_origin"),
        ("stock_amount", "quantity"),
        ("pim_colour", "colour"),
        ("attr_finish", "finish"),
        ("Vater-Artikelnummer", "product_key"),
        ("Item code (EAN)", "gtin"),
        ("Breite x Höhe x Tiefe", "dimensions"),
    ],
)
def test_signs_prefixes_and_paths_are_understood(header: str, field: str) -> None:
    assert _find_field(header) == field


@pytest.mark.parametrize(
    "header",
    [
        "Thickness",
        "W/H",
        "Buyer item number",
        "Show price",
        "Ext. price",
        "carton_weight_unit",
        "Closed width",
        "Code famille",
    ],
)
def test_headers_about_something_else_are_not_mapped(header: str) -> None:
    assert _find_field(header) in (None, "ignore", "weight_unit")


@pytest.mark.parametrize(
    ("headers", "sheet", "price", "field"),
    [
        (["Order Qty", "Item", "Description", "Unit Price", "Ext. Price"], None, "Unit Price", "cost"),
        (["VendorItemNumber", "UnitPrice", "UnitPriceBasis", "BuyerItemNumber"], None, "UnitPrice", "cost"),
        (["default_code", "name", "categ_id", "list_price", "standard_price"], None, "standard_price", "cost"),
        (["item_sku", "item_name", "standard_price", "map_price"], None, "standard_price", "price"),
        (["SKU", "Name", "Price", "MSRP"], "Wholesale price list", "Price", "cost"),
        (["SKU", "Name", "Price", "MSRP", "MOQ", "Case pack"], None, "Price", "cost"),
        (["SKU", "Name", "Price", "MSRP"], None, "Price", "price"),
        (["SKU", "Name", "Price", "Cost"], "Wholesale", "Price", "price"),
    ],
)
def test_the_kind_of_a_table_determines_the_price(
    headers: list[str], sheet: str | None, price: str, field: str
) -> None:
    mapping = propose_column_mapping(headers, [], FeedSettings(), sheet)
    assert next(column.field for column in mapping.columns if column.column == price) == field
    assert "quantity" not in {column.field for column in mapping.columns if column.column == "Order Qty"}


@pytest.mark.parametrize(
    ("header", "unit"),
    [
        ("Lieferzeit [Wo.]", "weeks"),
        ("Lieferz. (WT)", "days"),
        ("lead_time_weeks", "weeks"),
        ("PLIFZ", "days"),
        ("Lead time (hrs)", "hours"),
        ("Срок поставки, дней", "days"),
        ("Lieferzeit", None),
        ("Std. lead time", None),
        ("Lead Time (mo.)", None),
    ],
)
def test_headers_state_the_unit_of_lead_times(header: str, unit: str | None) -> None:
    meaning = find_header_meanings(header)[0]
    assert (meaning.field, dict(meaning.settings).get("unit")) == ("lead_time_days", unit)


def test_the_field_of_a_second_reader_lowers_the_confidence() -> None:
    """`Motif` can be a style or a pattern; values that confirm a field need no second reader."""
    disputed = [
        column
        for header in ("Design Name", "Product Use", "Style Name", "GROUP", "Model Name", "Range")
        for column in propose_column_mapping(["SKU", "Title", header], [], FeedSettings()).columns
        if SECOND_FIELD in column.settings
    ]
    assert disputed
    assert all(column.confidence < 0.8 and column.settings[SECOND_FIELD] != column.field for column in disputed)
    [proven] = [
        column
        for column in propose_column_mapping(["SKU", "EAN"], [["A-1", "4006381333931"]] * 3, FeedSettings()).columns
        if column.column == "EAN"
    ]
    assert SECOND_FIELD not in proven.settings


@pytest.mark.parametrize(
    ("header", "field", "order"),
    [
        ("Paczka 1 dł. x szer. x wys. [cm]", "cartons.0.dimensions", "lwh"),
        ("Ancho x Fondo x Alto (cm)", "dimensions", "wdh"),
        ("An x Fo x Al", "dimensions", "wdh"),
        ("Afm. (Ø x h)", "dimensions", None),
    ],
)
def test_words_state_the_order_of_dimensions(header: str, field: str, order: str | None) -> None:
    meaning = find_header_meanings(header)[0]
    assert (meaning.field, dict(meaning.settings).get("order")) == (field, order)
