"""The kit's fields are the model's: connectors may give every column that a mapping may name, and no other."""

import re
from collections.abc import Iterator
from itertools import chain

import pytest

from connectors.sdk.tables import (
    GIVEN_FIELDS,
    GIVEN_PARTS,
    OFFER_FIELDS,
    PRODUCT_FIELDS,
    VARIANT_FIELDS,
    given_field,
    is_given,
)
from domain.ingestion.vocabulary import fields
from domain.ingestion.vocabulary.fields import IGNORE, is_field


def words(*patterns: str) -> set[str]:
    """Every name that stands in a pattern."""
    return set(chain.from_iterable(re.findall(r"[a-z_][a-z0-9_]+", pattern) for pattern in patterns))


HEADS = {
    given_field(name)
    for name in (
        *fields.PRODUCT,
        *fields.VARIANT,
        *fields.OFFER,
        *fields._NAMED,
        *words(fields._NUMBERED.pattern),
        "axes",
    )
} | GIVEN_FIELDS
PARTS = set().union(
    *fields._NAMED.values(), fields.CARTON_PARTS, words(*GIVEN_PARTS.values()), {"quantity", "eta", "hero", "Colour"}
)


def names() -> Iterator[str]:
    """Every name that either side could know: fields, their parts, their numbered parts, and what nobody knows."""
    for head in sorted(HEADS | {"prize", ""}):
        yield head
        for part in (*sorted(PARTS), "widht", "0", "12", "123", "0.", ""):
            yield f"{head}.{part}"
            yield f"{head}.0.{part}"


@pytest.mark.parametrize("head", sorted(HEADS))
def test_no_field_is_missing(head: str) -> None:
    mapped = [name for name in names() if given_field(name) == head and is_field(name)]
    if mapped and head != IGNORE:
        assert head in GIVEN_FIELDS, f"connectors.sdk.tables lacks {head}, which mappings may name"


def test_both_sides_know_the_same_names() -> None:
    for name in names():
        assert is_given(name) is (is_field(name) and name != IGNORE), name
        assert is_given(f"{name}@unit=g") is is_given(name)


def test_every_field_that_may_be_given_means_something() -> None:
    assert {given_field(name) for name in names() if is_field(name)} - {IGNORE} == GIVEN_FIELDS
    assert len(GIVEN_FIELDS) == len(PRODUCT_FIELDS) + len(VARIANT_FIELDS) + len(OFFER_FIELDS), "each stands once"
