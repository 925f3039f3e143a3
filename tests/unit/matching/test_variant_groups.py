"""Detection of products of one source that are variants of one product."""

from collections.abc import Sequence
from cProfile import Profile
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.matching.features import StoredVariant
from domain.matching.variant_groups import MAX_TITLE_CHARS, SingleVariant, VariantGroup, find_variant_groups

FINISHES = ("Oak", "Walnut", "Black", "White", "Grey")


def _create(number: int, title: str, sku: str = "", **fields: Any) -> SingleVariant:
    product = {name: fields.pop(name) for name in ("brand", "collection", "category") if name in fields}
    stored = StoredVariant(
        f"var_{number:03}", f"prod_{number:03}", "src_1", {"title": title} | product, {"sku": sku} | fields
    )
    return SingleVariant.from_variant(stored)


def _create_all(*titles: str, **fields: Any) -> list[SingleVariant]:
    """Create products whose SKUs have a common beginning."""
    return [_create(number, title, f"LUND-160-{number}", **fields) for number, title in enumerate(titles)]


def _size(width: int) -> dict[str, Any]:
    return {"dimensions": {name: {"hundredths_in": width} for name in ("width", "depth")}}


def _list_options(groups: Sequence[VariantGroup]) -> list[dict[str, str]]:
    [group] = groups
    return [dict(member.axes) for member in group.members]


def test_five_finishes_of_a_table_are_a_group() -> None:
    [group] = find_variant_groups(_create_all(*(f"Lund Table, 160 cm - {finish}" for finish in FINISHES)))
    assert group.title == "Lund Table, 160 cm"
    assert [member.axes for member in group.members] == [{"Color": finish} for finish in FINISHES]
    assert [member.product for member in group.members] == [f"prod_{number:03}" for number in range(5)]
    assert group.build_grouping() == {
        "title": "Lund Table, 160 cm",
        "variants": {f"var_{number:03}": {"Color": finish} for number, finish in enumerate(FINISHES)},
    }


def test_stated_finishes_have_precedence_over_the_title() -> None:
    items = [
        _create(1, "Lund Table oak", "LUND-1", finish="Oiled oak"),
        _create(2, "Lund Table walnut", "LUND-2", finish="Smoked walnut"),
    ]
    assert _list_options(find_variant_groups(items)) == [{"Finish": "Oiled oak"}, {"Finish": "Smoked walnut"}]


@pytest.mark.parametrize(
    ("titles", "title", "sizes"),
    [
        (("Nord Rug 160 x 230 cm", "Nord Rug 200 x 300 cm"), "Nord Rug", ["160 x 230 cm", "200 x 300 cm"]),
        (("Queen Bed Holm", "King Bed Holm"), "Bed Holm", ["Queen", "King"]),
        (("Holm Bed w/ Drawers, Pearl White, Full", "Holm Bed w/ Drawers, Pearl White, Twin"), "Holm Bed w/ Drawers, Pearl White", ["Full", "Twin"]),
    ],
)  # fmt: skip
def test_sizes_are_options(titles: tuple[str, ...], title: str, sizes: list[str]) -> None:
    [group] = find_variant_groups(_create_all(*titles))
    assert group.title == title and [member.axes for member in group.members] == [{"Size": size} for size in sizes]


@pytest.mark.parametrize(
    "items",
    [
        pytest.param(_create_all("Lund Table Oak", "Holm Table Oak"), id="other words"),
        pytest.param(_create_all("Lund Table Oak", "Lund Table Oak"), id="the same value"),
        pytest.param(_create_all("Lund Table Oak", "Lund Table"), id="a value is missing"),
        pytest.param(_create_all("Oak", "Walnut"), id="only colours"),
        pytest.param(_create_all("Lund Table Oak", "Lund Table OAK\u200f"), id="an invisible character"),
        pytest.param(_create_all("N/A Oak", "N/A Black"), id="a placeholder as title"),
        pytest.param(
            [_create(number, "Lund Table", "LUND-1", finish=finish + "x" * 200) for number, finish in enumerate(FINISHES)],
            id="long options",
        ),
        pytest.param(
            [_create(1, "Lund Table Oak", "LUND-1", **_size(6000)), _create(2, "Lund Table Black", "LUND-2", **_size(7000))],
            id="other dimensions",
        ),
        pytest.param([_create(1, "Side Table Oak", "A-1"), _create(2, "Side Table Black", "B-7")], id="other codes"),
        pytest.param(
            [_create(1, "Lund Table Oak", "LUND-1", brand="A"), _create(2, "Lund Table Black", "LUND-2", brand="B")],
            id="other brands",
        ),
        pytest.param(_create_all(*("x" * MAX_TITLE_CHARS + f" {finish}" for finish in FINISHES)), id="long titles"),
    ],
)  # fmt: skip
def test_different_articles_are_no_group(items: list[SingleVariant]) -> None:
    assert find_variant_groups(items) == []


def test_a_collection_or_an_exact_description_replaces_similar_codes() -> None:
    titles = "Side Table Oak", "Side Table Black"
    in_collection = [_create(number, title, f"{number}-X", collection="Lund") for number, title in enumerate(titles)]
    assert len(find_variant_groups(in_collection)) == 1
    described = [
        _create(number, f"Lund Nesting {title}", f"{number}-X", **_size(5000)) for number, title in enumerate(titles)
    ]
    assert len(find_variant_groups(described)) == 1


def test_products_of_two_sizes_are_two_groups() -> None:
    items = [
        _create(number, f"Lund Table {finish}", f"LUND-{number}", **_size(6000 if number < 2 else 7000))
        for number, finish in enumerate(FINISHES[:4])
    ]
    assert [len(group.members) for group in find_variant_groups(items)] == [2, 2]


def test_long_texts_are_shortened() -> None:
    long = "x" * 10_000
    fields = dict.fromkeys(("brand", "collection", "category", "colour", "finish"), long)
    single = _create(1, long, rug={"size_text": long}, **fields)
    texts = [single.title, *single.texts, single.colour, single.finish, single.rug_size]
    assert max(map(len, texts)) == MAX_TITLE_CHARS + 1


def test_the_words_of_titles_are_joined_once() -> None:
    items = [_create(number, "Lund Table Oak", "LUND-1", **_size(1000 + 200 * number)) for number in range(100)]
    profile = Profile()
    profile.runcall(find_variant_groups, items)
    calls = {getattr(entry.code, "co_name", ""): entry.callcount for entry in profile.getstats()}
    assert 0 < calls["join_words"] <= 3 * len(items)


_WORDS = st.lists(
    st.sampled_from(("Oak", "Black", "Lund", "Table", "160", "x", "cm", "Queen", "-", "(2)", "''", "é")), max_size=6
)


@given(st.lists(st.tuples(_WORDS, st.sampled_from(("", "Oak", "Black"))), max_size=12))
def test_groups_are_disjoint_and_distinguish_their_members(products: list[tuple[list[str], str]]) -> None:
    items = [
        _create(number, " ".join(words), "LUND-1", colour=colour) for number, (words, colour) in enumerate(products)
    ]
    groups = find_variant_groups(items)
    members = [member.product for group in groups for member in group.members]
    assert len(members) == len(set(members))
    for group in groups:
        assert group.title and len(group.members) > 1
        assert len({tuple(member.axes.values()) for member in group.members}) == len(group.members)
        assert all(value for member in group.members for value in member.axes.values())
