"""Detection of products of one source that are variants of one product, such as a table in five finishes.

Vendors without a key that joins variants list each variant as a product. The titles of such products are equal apart from
words for colours and sizes.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, Final, TypedDict

from rapidfuzz.distance import Prefix

from domain.ingestion.values.text import clean_value
from domain.matching.features import StoredVariant
from domain.matching.measures import CM_PER_HUNDREDTH_INCH, are_lengths_nearly_equal, extract_sizes
from domain.matching.merge_plan import AUTOMATIC_LIMIT
from domain.matching.words import (
    ADVERTISING_WORDS,
    COLOUR_FILLERS,
    COLOURS,
    STOP_WORDS,
    load_table,
    normalise_characters,
    normalise_item_code,
    normalise_word,
    normalise_words,
)

MAX_TITLE_CHARS: Final = 300
"""Maximum number of characters of the title of a product that can be in a group."""
MAX_OPTION_CHARS: Final = 200
"""Maximum number of characters of the options of a product that can be in a group."""
_MAX_EQUAL_TITLES = 256
"""Maximum number of products with equal titles that are compared with each other."""
_MIN_CODE_PREFIX = 4
"""Minimum number of characters that the codes of the products of a group have in common."""
_MIN_WORDS = 3
"""Minimum number of words that titles without a collection or a common code have in common."""
_BED_SIZES = frozenset(map(normalise_word, load_table("titles")["bed_sizes"]))
_LENGTHS = ("width", "depth", "height", "diameter")
_SEPARATORS = " ,;:|/&+-–—"
_SIZE_PART = re.compile(r"\d[\d./]*+['\"][\d./'\"]*+|[x×]")


@dataclass(frozen=True, slots=True)
class SingleVariant:
    """Product with one variant, reduced to the data by which products are grouped.

    Attributes:
        texts: The brand, the collection and the category of the product, each empty if it is not stated.
        code: The manufacturer's number, or else the SKU.
        rug_size: The text of the size of a rug.
        lengths: The stated dimensions, in hundredths of an inch.
    """

    product: str
    variant: str
    title: str
    texts: tuple[str, str, str] = ("", "", "")
    code: str = ""
    colour: str = ""
    finish: str = ""
    rug_size: str = ""
    lengths: Mapping[str, int] = field(default_factory=dict)

    @classmethod
    def from_variant(cls, stored: StoredVariant) -> "SingleVariant":
        """Return the only variant of a product."""
        product, variant = stored.product_data, stored.variant_data
        dimensions = variant.get("dimensions", {})
        return cls(
            stored.product,
            stored.variant,
            _read_text(product, "title"),
            (_read_text(product, "brand"), _read_text(product, "collection"), _read_text(product, "category")),
            variant.get("mpn") or variant.get("sku") or "",
            _read_text(variant, "colour"),
            _read_text(variant, "finish"),
            _read_text(variant.get("rug", {}), "size_text"),
            {name: dimensions[name]["hundredths_in"] for name in _LENGTHS if name in dimensions},
        )


def _read_text(data: Mapping[str, Any], name: str) -> str:
    """Return a text, cut to one character more than a title may have, so that a text that is too long is still refused."""
    text: str = data.get(name, "")
    return text[: MAX_TITLE_CHARS + 1]


@dataclass(frozen=True, slots=True)
class GroupMember:
    """Product of a group, with its only variant, and with the options that distinguish it from the other members."""

    product: str
    variant: str
    title: str
    axes: Mapping[str, str]


class Grouping(TypedDict):
    """Change that shows the products of several variants as one product.

    `variants` has the options of each variant, by the variant's ID.
    """

    title: str
    variants: Mapping[str, Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class VariantGroup:
    """Products that are variants of one product, ordered by ID, and the words that their titles have in common."""

    title: str
    members: Sequence[GroupMember]

    def build_grouping(self) -> Grouping:
        """Return the change that shows the products as one."""
        return Grouping(title=self.title, variants={member.variant: member.axes for member in self.members})


class _Role(StrEnum):
    """Role of a word in a title: it names a colour or a size, or neither."""

    COLOUR = "colour"
    SIZE = "size"
    OTHER = "other"


@dataclass(frozen=True)
class _Item:
    """Product with the words of its title, as written, and their roles."""

    single: SingleVariant
    words: Sequence[tuple[str, _Role]]

    @cached_property
    def key(self) -> tuple[tuple[str, ...], ...]:
        """The normalised texts that are equal for all products of a group; the title's words are the last."""
        texts = (*self.single.texts, self.join_words(_Role.OTHER))
        return tuple(tuple(word for word in _normalise(text) if word not in STOP_WORDS) for text in texts)

    @cached_property
    def size(self) -> str:
        """The size of a rug, or the words for sizes in the title; empty without a size."""
        return self.single.rug_size or self.join_words(_Role.SIZE)

    def join_words(self, *roles: _Role) -> str:
        """Return the words with these roles as one text, without separators before omitted words and at the ends."""
        chosen = list[str]()
        for word, role in self.words:
            if role in roles:
                chosen.append(word)
            elif chosen:
                chosen[-1] = chosen[-1].rstrip(_SEPARATORS)
        return " ".join(filter(None, chosen)).strip(_SEPARATORS)


def find_variant_groups(products: Sequence[SingleVariant]) -> list[VariantGroup]:
    """Return the groups of products of one source that are variants of one product.

    The products of a group have the same brand, collection and category, and the same title apart from words for colours
    and sizes. Their colours or sizes differ. Products with the same size text, or without one, have the same dimensions.
    Since titles such as `Side Table` occur for different articles, products also need a common collection, a common beginning
    of their codes, or titles of at least three words and known dimensions.

    Args:
        products: The only variant of each product.
    """
    by_key: defaultdict[tuple[object, ...], list[_Item]] = defaultdict(list)
    for single in products:
        if (item := _read_item(single)) is not None:
            by_key[item.key].append(item)
    candidates = (
        cluster
        for items in by_key.values()
        if len(items) <= _MAX_EQUAL_TITLES
        for cluster in _split_by_dimensions(items)
    )
    groups = (_build_group(items) for items in candidates if 2 <= len(items) <= AUTOMATIC_LIMIT.products)
    return sorted((group for group in groups if group is not None), key=lambda group: group.members[0].product)


def _read_item(single: SingleVariant) -> _Item | None:
    """Return a product with the words of its title; None if the title is too long or names only colours and sizes."""
    title = single.title
    if len(title) > MAX_TITLE_CHARS:
        return None
    stated = {word for text in (single.colour, single.finish) for word in _normalise(text)}
    without_sizes = set(extract_sizes(normalise_characters(title))[1].split())
    item = _Item(single, [(word, _find_role(word, stated, without_sizes)) for word in title.split()])
    return item if item.key[-1] else None


def _find_role(word: str, stated_colours: Collection[str], words_without_sizes: Collection[str]) -> _Role:
    """Return the role of a word of a title.

    Args:
        word: The word, as written.
        stated_colours: The normalised words of the product's colour and finish.
        words_without_sizes: The words of the title apart from sizes that are recognised in the whole title.
    """
    normalised, plain = _normalise(word), normalise_characters(word)
    if not normalised:
        return _Role.OTHER
    if all(one in COLOURS or one in stated_colours or one in COLOUR_FILLERS for one in normalised):
        return _Role.COLOUR
    bare = plain.strip(_SEPARATORS)
    is_removed = plain not in words_without_sizes and bare not in words_without_sizes
    return _Role.SIZE if is_removed or _SIZE_PART.fullmatch(bare) or _BED_SIZES & {*normalised} else _Role.OTHER


def _normalise(text: str) -> list[str]:
    return normalise_words(normalise_characters(text))


def _split_by_dimensions(items: Sequence[_Item]) -> list[list[_Item]]:
    """Divide products into clusters, in which products with the same size text have no contradicting dimensions."""
    clusters: list[list[_Item]] = []
    for item in sorted(items, key=lambda one: one.single.product):
        for cluster in clusters:
            if all(_have_equal_dimensions(item, other) for other in cluster if other.size == item.size):
                cluster.append(item)
                break
        else:
            clusters.append([item])
    return clusters


def _have_equal_dimensions(item: _Item, other: _Item) -> bool:
    """Return whether no dimension that is known for both products differs."""
    first, second = item.single.lengths, other.single.lengths
    return all(
        are_lengths_nearly_equal(first[name] * CM_PER_HUNDREDTH_INCH, second[name] * CM_PER_HUNDREDTH_INCH)
        for name in first.keys() & second.keys()
    )


def _build_group(items: Sequence[_Item]) -> VariantGroup | None:
    """Return the group of products with equal titles; None if no options distinguish them, or they may be different articles."""
    values_by_axis = {axis: values for axis, values in _list_values(items).items() if len(set(values)) > 1}
    if not values_by_axis or not all(map(all, values_by_axis.values())) or not _is_same_article(items):
        return None
    options = [dict(zip(values_by_axis, values, strict=True)) for values in zip(*values_by_axis.values(), strict=True)]
    if len({tuple(map(_normalise_option, one.values())) for one in options}) < len(items):
        return None
    common = [role for role in _Role if role == _Role.OTHER or len({item.join_words(role) for item in items}) == 1]
    title = items[0].join_words(*common)
    values = [value for one in options for value in one.values()]
    if any(len(value) > MAX_OPTION_CHARS for value in values) or not all(map(clean_value, (title, *values))):
        return None  # corrections cannot have these values, such as the placeholder `n/a`
    members = [
        GroupMember(item.single.product, item.single.variant, item.single.title, axes)
        for item, axes in zip(items, options, strict=True)
    ]
    return VariantGroup(title, members)


def _normalise_option(text: str) -> str:
    """Return an option in lower case, without accents and invisible characters such as marks of the writing direction."""
    return "".join(filter(str.isprintable, normalise_characters(text)))


def _list_values(items: Sequence[_Item]) -> dict[str, list[str]]:
    """Return the value of each product for each axis. A stated finish or colour has precedence over words of the title."""
    finishes, colours = [item.single.finish for item in items], [item.single.colour for item in items]
    sizes = {"Size": [item.size for item in items]}
    if all(finishes) and len(set(finishes)) > 1:
        return {"Finish": finishes} | sizes
    return {"Color": colours if all(colours) else [item.join_words(_Role.COLOUR) for item in items]} | sizes


def _is_same_article(items: Sequence[_Item]) -> bool:
    """Return whether products with equal titles have a collection, similar codes, or long titles and known dimensions."""
    if items[0].single.texts[1]:
        return True
    codes = [normalise_item_code(item.single.code) for item in items]
    shared = min(Prefix.similarity(codes[0], code) for code in codes)
    if shared >= _MIN_CODE_PREFIX and 2 * shared >= max(map(len, codes)):
        return True
    words = set(items[0].key[-1]) - ADVERTISING_WORDS
    return len(words) >= _MIN_WORDS and all(item.single.lengths for item in items)
