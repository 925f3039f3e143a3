"""Kinds of furniture by the vendor's words: certain ones, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.catalogue import categories
from domain.ingestion.vocabulary.kinds import _BY_NAME, find_brick, find_kind_in_path, find_kind_in_title
from tests.unit.ingestion.test_normalisation import _normalise


@pytest.mark.parametrize(
    ("path", "slug", "brick"),
    [
        (("Bedroom", "Beds"), "beds", "10002207"),
        (("Dining", "Chair"), "dining-chairs", "10002193"),
        (("Chairs",), "chairs", "10002193"),
        (("Outdoor", "Table"), "outdoor-tables", "10003245"),
        (("Patio Furniture", "Arm Chairs"), "outdoor-chairs", "10003242"),
        (("Dining", "Dining Set"), "dining-sets", None),
        (("Mattresses",), "mattresses", "10002210"),
        (("Bedroom", "Night Stand"), "nightstands", None),
    ],
)
def test_paths_have_a_kind(path: tuple[str, ...], slug: str, brick: str | None) -> None:
    kind = find_kind_in_path(path)
    assert kind is not None
    assert (kind.slug, kind.brick) == (slug, brick)


def test_ambiguous_paths_have_no_kind() -> None:
    paths = ((), ("Tables & desks",), ("Outdoor", "Bed"), ("Furniture",), ("Sofas & armchairs",), ("Bar furniture",))
    assert [find_kind_in_path(path) for path in paths] == [None] * len(paths)


@pytest.mark.parametrize(
    ("title", "slug"),
    [
        ("Oslo Dining Table", "dining-tables"),
        ("Acme - OSLO Dining Table (AB-100)", "dining-tables"),
        ("Sofa, Grey", "sofas"),
        ("Sofa Table", "console-tables"),
        ("Desk with Bookcase", "desks"),
        ("Cushion for Sofa", None),
        ("Sofa Cover", None),
        ("", None),
    ],
)
def test_titles_end_with_a_kind(title: str, slug: str | None) -> None:
    kind = find_kind_in_title(title)
    assert (kind and kind.slug) == slug


def test_plausible_measures_are_ranges() -> None:
    sofa = find_kind_in_path(("Sofas",))
    assert sofa is not None
    assert (84_00 in sofa.side, 840_00 in sofa.side, 8_40 in sofa.side, 120_00 in sofa.weight) == (
        True,
        False,
        False,
        True,
    )
    assert all(kind.side and kind.weight for kind in _BY_NAME.values())


def test_powered_seats_have_no_brick() -> None:
    sofa = find_kind_in_path(("Sofas",))
    assert sofa is not None
    assert [find_brick(sofa, title) for title in ("Oslo Sofa", "Oslo Power Sofa")] == ["10002195", None]


def test_every_kind_is_in_the_taxonomy() -> None:
    assert all(categories.find_id_by_slug(kind.slug) for kind in _BY_NAME.values())


def test_a_stated_kind_is_kept() -> None:
    headers = ["SKU", "Title", "Category", "GPC Brick", "Google Product Category"]
    (product,), _ = _normalise(headers, [["A-1", "Oslo", "Sofas", "10002202", "443"]])
    assert (product.data["gpc_brick"], product.data["category"]) == ("10002202", categories.find_id_by_google_id(443))
    (product,), _ = _normalise(headers[:3], [["A-1", "Dining Table", "Odds and ends"]])
    assert "gpc_brick" not in product.data
    assert "category" not in product.data


@given(st.lists(st.text(max_size=12), max_size=4).map(tuple))
def test_any_path_is_accepted(path: tuple[str, ...]) -> None:
    find_kind_in_path(path)
    find_kind_in_title(" ".join(path))
