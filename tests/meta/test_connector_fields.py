"""The fields of the SDK equal those of the mapping."""

import re
from collections.abc import Iterator
from itertools import chain

import pytest

from connectors.sdk.tables import (
    DECLARED_FIELD_PARTS,
    DECLARED_FIELDS,
    OFFER_FIELDS,
    PRODUCT_FIELDS,
    VARIANT_FIELDS,
    base_field,
    is_declarable_field,
)
from domain.ingestion.vocabulary import fields
from domain.ingestion.vocabulary.fields import IGNORE, is_field


def list_words(*patterns: str) -> set[str]:
    """Return every name of a pattern."""
    return set(chain.from_iterable(re.findall(r"[a-z_][a-z0-9_]+", pattern) for pattern in patterns))


HEADS = {
    base_field(name)
    for name in (
        *fields.PRODUCT,
        *fields.VARIANT,
        *fields.OFFER,
        *fields._SUBFIELDS,
        *list_words(fields._NUMBERED_FIELD.pattern),
        "axes",
    )
} | DECLARED_FIELDS
PARTS = set().union(
    *fields._SUBFIELDS.values(),
    fields.CARTON_PARTS,
    list_words(*DECLARED_FIELD_PARTS.values()),
    {"quantity", "eta", "hero", "Colour"},
)


def list_names() -> Iterator[str]:
    """Return candidate names: fields, parts, numbered parts and unknown names."""
    for head in sorted(HEADS | {"prize", ""}):
        yield head
        for part in (*sorted(PARTS), "widht", "0", "12", "123", "0.", ""):
            yield f"{head}.{part}"
            yield f"{head}.0.{part}"


@pytest.mark.parametrize("head", sorted(HEADS))
def test_no_field_is_missing(head: str) -> None:
    mapped = [name for name in list_names() if base_field(name) == head and is_field(name)]
    if mapped and head != IGNORE:
        assert head in DECLARED_FIELDS, f"connectors.sdk.tables lacks {head}, which mappings may name"


def test_the_sdk_and_the_mapping_accept_the_same_names() -> None:
    for name in list_names():
        assert is_declarable_field(name) is (is_field(name) and name != IGNORE), name
        assert is_declarable_field(f"{name}@unit=g") is is_declarable_field(name)


def test_every_declared_field_is_mapped() -> None:
    assert {base_field(name) for name in list_names() if is_field(name)} - {IGNORE} == DECLARED_FIELDS
    assert len(DECLARED_FIELDS) == len(PRODUCT_FIELDS) + len(VARIANT_FIELDS) + len(OFFER_FIELDS), (
        "each name occurs once"
    )
