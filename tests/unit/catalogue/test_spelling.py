"""Other forms and spellings of words (domain/catalogue/spelling.py)."""

import pytest

from domain.catalogue.spelling import list_possible_forms, list_similar_spellings, select_forms


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("bed", "beds"), ("beds", "bed"), ("couch", "couches"), ("factories", "factory"), ("stuhl", "stuhle"), ("stuhle", "stuhl"),
        ("tisch", "tischen"), ("lampe", "lampen"), ("schranke", "schrank"), ("box", "boxes"),
    ],
)  # fmt: skip
def test_forms_of_a_word_are_found(word: str, other: str) -> None:
    assert other in select_forms(word, list_possible_forms(word))


@pytest.mark.parametrize(("word", "other"), [("oak", "oat"), ("table", "tab"), ("stool", "stuhl")])
def test_different_words_are_not_forms(word: str, other: str) -> None:
    assert select_forms(word, [other]) == []


@pytest.mark.parametrize("word", ["", "a", "ab", "160x200", "x" * 100, "4006381333931"])
def test_short_and_long_words_and_codes_have_no_forms(word: str) -> None:
    assert list_possible_forms(word) == set()
    assert list(list_similar_spellings(word)) == []


@pytest.mark.parametrize("other", ["walnt", "wallnut", "walnit", "awlnut", "walntu", "valnut", "walnuts"])
def test_words_with_one_error_are_similar(other: str) -> None:
    similar = {*list_similar_spellings("walnut")}
    assert other in similar
    assert "walnut" in {*list_similar_spellings(other)}
    assert len(similar) < 500


@pytest.mark.parametrize("other", ["waltun", "wlntu", "wanlutt", "nut"])
def test_words_with_two_errors_are_not_similar(other: str) -> None:
    assert other not in {*list_similar_spellings("walnut")}
