"""Suggested categories: names of the taxonomy are found, and unknown words yield no suggestion."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue import categories
from domain.catalogue.category_rules import CategoryRule, CategoryRules
from domain.catalogue.category_words import NAMES, NEUTRAL_WORDS
from domain.catalogue.suggestions import LearnedCategories, split_category_name, suggest_category
from tests.support.builders import MOMENT

TREE = list(categories.category_by_id().values())
BY_SLUG = {entry.slug: entry for entry in TREE}
SEVERAL_MEANINGS = {"chaises", "runners"}
"""Slugs whose name alone has another meaning elsewhere: chairs in French, cloths on tables."""
NAMED = [
    (slug, name) for slug, names in (line.split(" | ") for line in NAMES.splitlines()) for name in names.split(", ")
]


def _suggest_slug(*path: str) -> str | None:
    found = suggest_category(path)
    return categories.category_by_id()[found].slug if found else None


@pytest.mark.parametrize("category", TREE, ids=lambda entry: entry.slug)
def test_a_path_of_the_taxonomy_suggests_its_category(category: categories.Category) -> None:
    if category.slug != "chaises":
        assert suggest_category(category.path) == category.id
    if category.slug not in SEVERAL_MEANINGS:
        assert suggest_category((category.name,)) == suggest_category((category.name.upper(),)) == category.id


def test_every_name_suggests_exactly_one_category() -> None:
    assert {slug for slug, _ in NAMED} == BY_SLUG.keys()
    for slug, name in NAMED:
        assert _suggest_slug(name) == slug, name


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        (("Furniture", "Living Room", "Sofas & Loveseats"), "sofas"),
        (("Outdoor", "Chairs"), "outdoor-chairs"),
        (("Patio", "Dining", "Tables"), "outdoor-tables"),
        (("Office", "Chairs"), "office-chairs"),
        (("Bar & Counter Stools",), "stools"),
        (("3-Seater Sofas",), "sofas"),
        (("Möbel", "Esszimmer", "Stühle"), "chairs"),
        (("Meubles", "Canapés"), "sofas"),
        (("Lámparas de mesa",), "table-lamps"),
        (("Muebles", "Sillas de comedor"), "dining-chairs"),
        (("Eetkamerstoelen",), "dining-chairs"),
        (("Beds & Dressers",), "bedroom"),
        (("Outdoor", "Rugs"), "outdoor-rugs"),
        (("Bathroom", "Mirrors"), "mirrors"),
    ],
)
def test_paths_of_vendors_have_suggestions(path: tuple[str, ...], slug: str) -> None:
    assert _suggest_slug(*path) == slug


@pytest.mark.parametrize(
    "path",
    [
        (), ("",), ("Sofa Covers",), ("Chair Legs",), ("Pets", "Beds"), ("Doll Furniture", "Chairs"), ("Lamp Tables",),
        ("Table Runners",), ("Table Set",), ("Sectional Sets",), ("Chaises",), ("Sofas & Beds",), ("Storage Beds",), ("Kids", "Beds"), ("Living Room",),
        ("Bank",), ("Bathroom", "Chairs"), ("Home", "New"), ("42",), ("x" * 2_000,), ("Sofa " * 1_000,),
    ],
)  # fmt: skip
def test_ambiguous_paths_have_no_suggestion(path: tuple[str, ...]) -> None:
    assert suggest_category(path) is None


_NAME = st.sampled_from([name for _, name in NAMED])
_LEVEL = st.lists(st.sampled_from(sorted(NEUTRAL_WORDS)) | _NAME, max_size=4).map(" ".join)


@given(st.lists(_LEVEL | st.text(max_size=20), max_size=4))
def test_paths_with_unknown_words_have_no_suggestion(path: list[str]) -> None:
    found = suggest_category(path)
    assert found is None or found in categories.category_by_id()
    assert suggest_category([*path, "Qwrtx"]) is None and suggest_category(["Qwrtx", *path]) is None
    if path:
        assert suggest_category([*path[:-1], path[-1] + " qwrtx"]) is None


@given(_NAME, st.sampled_from(["", "  ", "\t"]), st.booleans())
def test_case_blanks_and_generic_levels_above_make_no_difference(name: str, blank: str, upper: bool) -> None:
    spelt = f"{blank}{name.upper() if upper else name.title()}{blank}"
    assert suggest_category([spelt]) == suggest_category(["Furniture", spelt]) == suggest_category([name])


def _build_rules(*rules: tuple[tuple[str, ...], str]) -> CategoryRules:
    return CategoryRules("src_1", MOMENT, MOMENT, tuple(CategoryRule(path, BY_SLUG[slug].id) for path, slug in rules))


def test_the_category_of_most_other_sources_is_learned() -> None:
    learned = LearnedCategories(
        [
            _build_rules((("Séating", "Odd"), "chairs")),
            _build_rules((("seating", "ODD"), "chairs"), (("A",), "sofas")),
            _build_rules((("A",), "beds")),
        ]
    )
    assert learned.find_category(("SEATING", "odd")) == BY_SLUG["chairs"].id
    assert learned.find_category(("A",)) is None and learned.find_category(("Seating",)) is None


def test_long_paths_have_no_suggestion_and_words_of_levels_can_be_cached() -> None:
    seen: list[str] = []

    def words(level: str) -> tuple[str, ...]:
        seen.append(level)
        return split_category_name(level)

    assert suggest_category(("Furniture",) * 17 + ("Chairs",), words) is None and seen == []
    assert (
        suggest_category(("Furniture", "Chairs"), words)
        == suggest_category(("Furniture", "Chairs"))
        == BY_SLUG["chairs"].id
    )
    assert seen == ["Furniture", "Chairs"]
