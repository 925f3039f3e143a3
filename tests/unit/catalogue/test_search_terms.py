"""Normalised search terms of products."""

import pytest

from domain.catalogue.search_terms import normalise_brand, normalise_code, normalise_text, product_words, split_query
from tests.support.filters import matches_query


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Café  Öst", "cafe ost"), ("STRASSE straße", "strasse strasse"), ("Ⅳ ﬁne", "iv fine"), (" \t\n", ""), ("İ", "i")],
)
def test_texts_are_normalised(text: str, folded: str) -> None:
    assert normalise_text(text) == folded
    assert normalise_text(normalise_text(text)) == folded


def test_words_of_texts() -> None:
    assert product_words("Sofa, 3-seater (oak_veneer)", "O'Keeffe & Co.") == {
        "sofa", "3", "seater", "oak", "veneer", "o", "keeffe", "co",
    }  # fmt: skip
    assert product_words(None, None) == set()


@pytest.mark.parametrize(("text", "expected"), [("AB-12/c", "ab12c"), (" ab 12C ", "ab12c"), ("Ö.7", "o7"), ("--", "")])
def test_codes_are_normalised(text: str, expected: str) -> None:
    assert normalise_code(text) == expected


def test_brands_are_normalised() -> None:
    assert normalise_brand("West  Elm") == normalise_brand(" westELM ") == "westelm"
    assert normalise_brand("Lindgren Möbler") == "lindgrenmobler"


def test_a_query_is_limited_to_eight_words() -> None:
    assert split_query("a b c a d e f g h i j") == ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert matches_query("a b c d e f g h missing", set("abcdefgh"), ())


def test_a_query_matches_words_and_codes() -> None:
    assert matches_query("oak TABLE", {"oak", "table", "round"}, ())
    assert not matches_query("oak tab", {"oak", "table"}, ())
    assert matches_query("AB 12-c", set(), {"ab12c"})
    assert not matches_query("--", {"oak"}, {""})
