"""The keys that products are found by."""

import pytest

from domain.catalogue.search import brand_key, code, fold, query_words, words
from tests.support.filters import found


@pytest.mark.parametrize(
    ("text", "folded"),
    [("Café  Öst", "cafe ost"), ("STRASSE straße", "strasse strasse"), ("Ⅳ ﬁne", "iv fine"), (" \t\n", ""), ("İ", "i")],
)
def test_fold(text: str, folded: str) -> None:
    assert fold(text) == folded
    assert fold(fold(text)) == folded


def test_words() -> None:
    assert words("Sofa, 3-seater (oak_veneer)", "O'Keeffe & Co.") == {
        "sofa", "3", "seater", "oak", "veneer", "o", "keeffe", "co",
    }  # fmt: skip
    assert words(None, None) == set()


@pytest.mark.parametrize(("text", "made"), [("AB-12/c", "ab12c"), (" ab 12C ", "ab12c"), ("Ö.7", "o7"), ("--", "")])
def test_code(text: str, made: str) -> None:
    assert code(text) == made


def test_brand_key() -> None:
    assert brand_key("West  Elm") == brand_key(" westELM ") == "westelm"
    assert brand_key("Lindgren Möbler") == "lindgrenmobler"


def test_only_eight_words_of_a_query_count() -> None:
    assert query_words("a b c a d e f g h i j") == ["a", "b", "c", "d", "e", "f", "g", "h"]
    assert found("a b c d e f g h missing", set("abcdefgh"), ())


def test_found() -> None:
    assert found("oak TABLE", {"oak", "table", "round"}, ())
    assert not found("oak tab", {"oak", "table"}, ())
    assert found("AB 12-c", set(), {"ab12c"})
    assert not found("--", {"oak"}, {""})
