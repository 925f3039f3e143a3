"""Relations between rows with different keys: variants of one product, and sets with their parts."""

from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from domain.catalogue.statements import ProductStatement, VariantStatement
from domain.ingestion.bundles import BundlePartData, complete_components
from domain.ingestion.columns.families import FamilyMember
from domain.ingestion.columns.plan import MAX_VALUE_CHARS, ReadPlan
from domain.ingestion.columns.readers import parse_component_codes
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.pieces import append_short_description
from domain.ingestion.values.text import clean_code, convert_to_text, quote_text
from domain.ingestion.values.words import parse_gtin
from domain.ingestion.vocabulary.header_meanings import normalise_words
from domain.kernel.bounds import MAX_IMPORTED_VARIANTS
from domain.kernel.problems import Problem, ProblemKind
from domain.runs.sheets import Sheet

_MAX_ROWS = 2_000_000
"""Maximum number of rows whose stem hashes are recorded; items of further rows stay separate."""
_MAX_MEMBERS = 100_000
"""Maximum number of items that are grouped; further items stay separate."""


@dataclass(slots=True)
class VariantGrouping:
    """Groups items of a feed into products if they differ only in size or colour and the feed has no product keys.

    Items of one family (similar titles, and codes with the same stem) are candidates for one product. The stem hash of
    a row, a hash of the code's stem, selects the few rows whose families must be read.

    Attributes:
        product_key_by_item_key: Product key of each grouped item, by the item's key.
        product_keys: Product keys of the groups.
        is_over_limit: Whether there were too many items to group.
    """

    product_key_by_item_key: dict[str, str] = field(default_factory=dict)
    product_keys: set[str] = field(default_factory=set)
    is_over_limit: bool = False
    _stem_hashes: "array[int]" = field(default_factory=lambda: array("I"))
    _hashes_by_family: dict[str, dict[str, set[int]]] = field(default_factory=dict)
    _member_count: int = 0

    def create_stem_recorder(self, plan: ReadPlan) -> Callable[[Sequence[Any]], int] | None:
        """Return a function that records and returns a row's stem hash (0 without one).

        Returns None if rows of the sheet have no stem hashes.
        """
        read, hashes = plan.read_stem_hash, self._stem_hashes
        if read is None:
            return None

        def record_stem(cells: Sequence[Any]) -> int:
            stem_hash = read(cells)
            if stem_hash and len(hashes) < _MAX_ROWS:
                hashes.append(stem_hash)
                return stem_hash
            return 0

        return record_stem

    def take_repeated_stem_hashes(self) -> frozenset[int]:
        """Return the stem hashes that several recorded rows have in common, and delete all recorded stem hashes."""
        found: set[int] = set()
        last = 0
        for stem_hash in sorted(self._stem_hashes):
            if stem_hash == last:
                found.add(stem_hash)
            last = stem_hash
        self._stem_hashes = array("I")
        return frozenset(found)

    def add_row(self, key: str, member: FamilyMember) -> None:
        """Add a row whose stem hash also occurs in other rows.

        Args:
            key: Key of the row's item.
            member: Family key and variant hash (size and colour) of the row.
        """
        hashes_by_key = self._hashes_by_family.setdefault(member.family_key, {})
        if key not in hashes_by_key:
            if self._member_count >= _MAX_MEMBERS:
                self.is_over_limit = True
                return
            self._member_count += 1
        hashes_by_key.setdefault(key, set()).add(member.distinguishing_hash)

    def find_problems(self) -> Iterator[Problem]:
        """Yield a problem if there were too many items to group."""
        if self.is_over_limit:
            detail = (
                f"The feed has more than {_MAX_MEMBERS:,} possible variants. The items beyond this limit stay separate "
                f"products."
            )
            yield Problem("variants", ProblemKind.TOO_LONG, detail)

    def group_items(self, *, keeps_separate: bool = False) -> None:
        """Group the items of each family (similar titles and codes) if the items have different sizes or colours.

        Args:
            keeps_separate: Whether all items stay separate.
        """
        for family, hashes_by_key in () if keeps_separate else self._hashes_by_family.items():
            hashes = [variant_hash for hashes in hashes_by_key.values() for variant_hash in hashes]
            if (
                1 < len(hashes_by_key) == len(hashes) == len(set(hashes))
                and len(hashes_by_key) <= MAX_IMPORTED_VARIANTS
            ):
                self.product_key_by_item_key |= dict.fromkeys(hashes_by_key, family)
        self.product_keys.update(self.product_key_by_item_key.values())
        self._hashes_by_family = {}


_MAX_IDENTIFIERS = 1_000_000
"""Maximum number of identifiers that are recorded; further ones are not compared."""
_MAX_SHARED_IDENTIFIERS = 10_000
"""Maximum number of rows with shared identifiers that are compared; further ones are not reported."""
_HASH_MASK = (1 << 32) - 1
_IDENTIFIER_NAMES = {"gtin": "GTIN", "mpn": "manufacturer's number"}


class _IdentifierUse(NamedTuple):
    """Row that states an identifier: where it is, the text of the cell, and the words of the item's title."""

    sheet: Sheet
    key: str
    line: int
    header: str | None
    text: str
    title_words: frozenset[str]


@dataclass(slots=True)
class SharedIdentifiers:
    """Finds GTINs and manufacturer's numbers that several items of a feed state although each identifies one item.

    While rows are spooled, only hashes are recorded. If several items have the same hash of an identifier, the rows of their keys are
    read again and compared exactly.
    """

    _recorded: "array[int]" = field(default_factory=lambda: array("Q"))
    _key_hashes: "array[int]" = field(default_factory=lambda: array("I"))
    _uses: dict[tuple[str, str], dict[str, _IdentifierUse]] = field(default_factory=dict)
    _use_count: int = 0

    def create_recorder(self, plan: ReadPlan) -> Callable[[str, Sequence[Any]], None] | None:
        """Return a function that records the identifiers in the row of a key; None if the sheet has no columns with identifiers."""
        positions = plan.identifier_positions
        if not positions:
            return None

        read_item = plan.read_variant_key if plan.has_product_column else None

        def record_row(key: str, cells: Sequence[Any]) -> None:
            for name, position in positions:
                if position < len(cells) and (cell := cells[position]) and len(self._recorded) < _MAX_IDENTIFIERS:
                    item = (name == "gtin" and read_item and read_item(cells)) or key
                    # Hashes of equal texts are equal within a process; other texts with the same hash are compared later.
                    text = cell if cell.__class__ is str else convert_to_text(cell)
                    identifier_hash = hash(text.strip()) & _HASH_MASK
                    self._recorded.append(identifier_hash << 32 | hash(item) & _HASH_MASK)
                    self._key_hashes.append(hash(key) & _HASH_MASK)

        return record_row

    def take_suspect_test(self) -> Callable[[str], bool] | None:
        """Return whether the rows of a key may have an identifier of another item; None without such keys. Recorded hashes are deleted."""
        shared: set[int] = set()
        last = -1
        for recorded in sorted(self._recorded):
            if recorded >> 32 == last >> 32 and recorded != last:
                shared.add(recorded >> 32)
            last = recorded
        suspects = {
            key for recorded, key in zip(self._recorded, self._key_hashes, strict=True) if recorded >> 32 in shared
        }
        self._recorded, self._key_hashes = array("Q"), array("I")
        return (lambda key: hash(key) & _HASH_MASK in suspects) if suspects else None

    def add_row(self, sheet: Sheet, key: str, product_key: str, line: int, cells: Sequence[Any]) -> None:
        """Add the identifiers in a row of a suspect key.

        Args:
            sheet: The sheet of the row.
            key: The key of the row.
            product_key: The key of the product to which the item belongs.
            line: The line of the row.
            cells: The cells of the row.
        """
        plan = sheet.plan
        assert plan is not None
        title = (plan.read_title and plan.read_title(cells)) or ""
        for name, position in plan.identifier_positions:
            text = clean_code(convert_to_text(cells[position])) if position < len(cells) else None
            value = parse_gtin(text).value if text and name == "gtin" else text
            if value and len(value) <= MAX_VALUE_CHARS and self._use_count < _MAX_SHARED_IDENTIFIERS:
                # One manufacturer's number can stand for all colours and sizes of a product.
                item = (plan.read_variant_key(cells) or key) if name == "gtin" else product_key
                uses = self._uses.setdefault((name, value), {})
                self._use_count += item not in uses
                words = frozenset(normalise_words(title[:MAX_VALUE_CHARS]).split())
                uses.setdefault(item, _IdentifierUse(sheet, key, line, plan.find_header(position), value, words))

    def find_problems(self) -> Iterator[Problem]:
        """Yield a problem for each identifier of several items, located at the second of them."""
        for (name, value), uses in self._uses.items():
            if len(uses) < 2 or (name == "mpn" and _have_similar_titles([use.title_words for use in uses.values()])):
                continue
            use = list(uses.values())[1]
            detail = (
                f"{len(uses):,} items have the {_IDENTIFIER_NAMES[name]} {quote_text(value)}: {', '.join(islice(uses, 5))}. "
                "It identifies one item. Correct it for the others."
            )
            if use.sheet.plan and (use.header, ProblemKind.DUPLICATE) not in use.sheet.plan.ignored_problems:
                yield Problem(
                    name, ProblemKind.DUPLICATE, detail, use.line, use.header, use.sheet.name, use.key, use.text
                )


def _have_similar_titles(titles: Sequence[frozenset[str]]) -> bool:
    """Return whether titles share at least half of their words, as those of the colours and sizes of one model do."""
    return all(2 * len(titles[0] & title) >= min(len(titles[0]), len(title)) for title in titles[1:])


_MAX_SETS = 50_000
"""Maximum number of sets whose parts are looked up; further sets are read without their parts."""
_MAX_PARTS = 50_000
"""Maximum number of parts that are looked up; further sets are read without their parts."""
_PRICE_FIELDS = ("cost", "msrp", "map", "price")

DecodedLine = tuple[int, int, Any]
"""Table number, line number and cells."""


@dataclass(slots=True)
class BundleResolver:
    """Completes sets (articles that consist of other articles) with data from the rows of their parts.

    Attributes:
        part_codes_by_set: Codes (SKUs) of the parts of each set, by the set's product key.
        part_facts: Data of each part, by the part's code.
        part_only_keys: Keys of items that are only parts of sets and do not become products.
        is_over_limit: Whether there were too many sets or parts.
    """

    part_codes_by_set: dict[str, tuple[str, ...]] = field(default_factory=dict)
    part_facts: dict[str, BundlePartData] = field(default_factory=dict)
    part_only_keys: set[str] = field(default_factory=set)
    is_over_limit: bool = False
    _listed_codes: set[str] = field(default_factory=set)
    _marked_parts: set[str] = field(default_factory=set)

    def create_part_recorder(self, plan: ReadPlan) -> Callable[[str, Sequence[Any]], None] | None:
        """Return a function that records the parts that a row lists, and whether the row is marked as a part.

        The function's arguments are the key of the row's item and the row's cells. Returns None if the sheet has no
        columns for parts.
        """
        if not plan.component_positions and plan.is_part is None:
            return None

        def record_row(key: str, cells: Sequence[Any]) -> None:
            for position in plan.component_positions:
                if position < len(cells) and cells[position]:
                    self._add_set(
                        key,
                        [part["sku"] for part in parse_component_codes(cells[position]).value or () if "sku" in part],
                    )
            if plan.is_part is not None and plan.is_part(cells) and len(self._marked_parts) < _MAX_PARTS:
                self._marked_parts.add(key)

        return record_row

    def _add_set(self, key: str, codes: Sequence[str]) -> None:
        if len(self.part_codes_by_set) >= _MAX_SETS or len(self._listed_codes) + len(codes) > _MAX_PARTS:
            self.is_over_limit = True
            return
        self.part_codes_by_set[key] = (*self.part_codes_by_set.get(key, ()), *codes)
        self._listed_codes.update(codes)

    def may_be_part(self, plan: ReadPlan, key: str) -> bool:
        """Return whether rows of the key may be parts of sets, so that they must be read again."""
        return plan.has_product_column or key in self._listed_codes or key in self._marked_parts

    @property
    def has_possible_parts(self) -> bool:
        """True if rows must be read again because they may be parts of sets."""
        return bool(self._listed_codes or self._marked_parts)

    def store_parts(self, sheets: Sequence[Sheet], key: str, lines: Sequence[DecodedLine]) -> Problem | None:
        """Store the data of a key's rows that are parts of sets.

        Returns a problem, located at the first line, if the item is only a part and does not become a product.

        Args:
            sheets: The feed's tables, by table number.
            key: The key of all these lines.
            lines: The lines.
        """
        has_title = False
        for table in dict.fromkeys(line[0] for line in lines):
            plan = sheets[table].plan
            assert plan is not None
            rows = [(line, cells) for number, line, cells in lines if number == table]
            rows_by_code: dict[str, list[tuple[int, Any]]] = {}
            for row in rows:
                rows_by_code.setdefault((plan.has_product_column and plan.read_variant_key(row[1])) or key, []).append(
                    row
                )
            for code, code_rows in rows_by_code.items():
                if code in self._listed_codes or code in self._marked_parts:
                    statement, _ = normalise_rows(key, code_rows, plan, sheets[table].name)
                    has_title |= self._store_part(code, statement, plan, code_rows)
        table, line, _ = lines[0]
        plan = sheets[table].plan
        only_part = key in self._marked_parts and key in self._listed_codes
        if (
            (has_title and not only_part)
            or plan is None
            or plan.has_product_column
            or plan.read_title is None
            or key not in self.part_only_keys
        ):
            self.part_only_keys.discard(key)
            return None
        return Problem("title", ProblemKind.MISSING, "", line, None, sheets[table].name)

    def _store_part(self, code: str, statement: ProductStatement, plan: ReadPlan, rows: Sequence[Any]) -> bool:
        """Store the data of the part with this code for sets that contain it; return whether the part has a title."""
        variant = next(iter(statement.variants), None)
        title_text = (variant.data.get("title") if variant else None) or statement.data.get("title")
        title = append_short_description(title_text, statement.data.get("description")) or None
        if variant is not None and code in self._listed_codes and code not in self.part_facts:
            data = variant.data
            volume = plan.read_volume(rows[0][1]) if plan.read_volume else None
            cartons = tuple(data.get("cartons", ()))
            self.part_facts[code] = BundlePartData(title, data.get("weight"), volume, data.get("dimensions"), cartons)
        if not plan.has_product_column and self._is_only_part(code, variant, title):
            self.part_only_keys.add(code)
        return title is not None

    def _is_only_part(self, code: str, variant: VariantStatement | None, title: str | None) -> bool:
        """Return whether an item is only a part, not a product.

        An item that is marked as a part is only a part if it has no title or a set lists it. Any other item is only a
        part if it has neither a title nor a price.
        """
        if code in self._marked_parts:
            return title is None or code in self._listed_codes
        offers = variant.offers if variant else ()
        return title is None and not any(name in offer.data for offer in offers for name in _PRICE_FIELDS)

    def reassign_parts(self, product_key_by_item_key: Mapping[str, str]) -> None:
        """Assign the parts of each set that is now a variant of a product to the product's key.

        Args:
            product_key_by_item_key: Product key of each grouped item, by the item's key.
        """
        for key in self.part_codes_by_set.keys() & product_key_by_item_key.keys():
            codes = self.part_codes_by_set.pop(key)
            self.part_codes_by_set[product_key_by_item_key[key]] = (
                *self.part_codes_by_set.get(product_key_by_item_key[key], ()),
                *codes,
            )

    def compute_parts_digest(self, key: str) -> bytes:
        """Return a digest of the data of a set's parts; empty if no set has the key."""
        codes = self.part_codes_by_set.get(key)
        if codes is None:
            return b""
        # Stored row fingerprints contain this digest: another text would re-import every set.
        texts = [
            f"PartFacts(title={part.title!r}, weight={part.weight!r}, volume={part.volume!r}, dimensions={part.dimensions!r},"
            f" cartons={part.cartons!r})"
            if (part := self.part_facts.get(code))
            else "None"
            for code in codes
        ]
        return blake2b(f"[{', '.join(texts)}]".encode(), digest_size=16).digest()

    def complete_sets(
        self, statement: ProductStatement, plan: ReadPlan, rows: Sequence[tuple[int, Any]], sheet: str | None
    ) -> Iterable[Problem]:
        """Add the data of parts to the variants that are sets, in place; yield problems."""
        for variant in statement.variants:
            if not variant.data.get("components"):
                continue
            line, cells = next((row for row in rows if plan.read_variant_key(row[1]) == variant.key), rows[0])
            title = variant.data.get("title") or statement.data.get("title")
            title = append_short_description(title, statement.data.get("description")) or variant.key
            volume = plan.read_volume(cells) if plan.read_volume else None
            states_cartons = "cartons" in variant.data
            faults = complete_components(variant.data, title, volume, self.part_facts)
            if "cartons" in variant.data and not states_cartons:
                variant.carton_cells = None  # the cartons are those of the parts, not of the row's blank cells
            for fault in faults:
                yield Problem("components", fault.problem, fault.detail, line, None, sheet)

    def summarise_problems(self, part_problems: Sequence[Problem]) -> Iterable[Problem]:
        """Summarise problems: yield one for each sheet with items that are only parts, and one if there were too many sets.

        Args:
            part_problems: The problems that `store_parts` has returned, one for each item that is only a part.
        """
        for sheet in dict.fromkeys(problem.sheet for problem in part_problems):
            sheet_problems = [problem for problem in part_problems if problem.sheet == sheet]
            detail = f"{len(sheet_problems):,} items are only parts of sets and do not become products."
            yield Problem(
                "title", ProblemKind.MISSING, detail, min(problem.line or 0 for problem in sheet_problems), None, sheet
            )
        if self.is_over_limit:
            detail = (
                f"The feed has more than {_MAX_SETS:,} sets or {_MAX_PARTS:,} parts. Sets beyond these limits are read "
                f"without their parts."
            )
            yield Problem("components", ProblemKind.TOO_LONG, detail)
