"""Reading, mapping and normalisation of a snapshot without a database, for use in a separate process."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import reduce
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any

from domain.catalogue.batch import RowFingerprint
from domain.catalogue.statements import ProductStatement, merge_statements
from domain.ingestion.mapping.columns import complete_settings
from domain.ingestion.model import FeedTable, HeaderMapping
from domain.ingestion.normalisation import normalise_rows
from domain.ingestion.ports import Connectors, ConnectorTask, FeedLine, ReadRequest
from domain.ingestion.records import parse_record
from domain.ingestion.snapshot_results import BucketKeys, FeedExcerpt, RowSearchResult, SnapshotSample, SpoolResult
from domain.ingestion.vocabulary.header_meanings import count_known_headers
from domain.kernel.bounds import MAX_ROWS_PER_PRODUCT
from domain.kernel.problems import Problem
from domain.runs.chunks import compute_bucket_count, compute_max_spool_bytes, compute_slot
from domain.runs.ports import SpoolFactory
from domain.runs.usecases.excerpts import find_in_records, find_in_tables, read_excerpts, sample_records, sample_tables
from domain.runs.usecases.spool import PUSHED_TABLE, SAMPLE_ROWS, RowSpooler, compute_row_weight, propose_mapping
from ports.codec import Codec

EncodedLine = tuple[int, int, bytes]
"""Table number, line number and encoded cells of a row."""


_COMPRESSED_MAGIC = (b"PK\x03\x04", b"\x1f\x8b")


def compute_spool_bounds(snapshot: Path) -> tuple[int, int]:
    """Return the number of buckets for a snapshot's rows, and their maximum total size in bytes."""
    with snapshot.open("rb") as file:
        is_compressed = file.read(4).startswith(_COMPRESSED_MAGIC)
    size = snapshot.stat().st_size
    return compute_bucket_count(size, is_compressed=is_compressed), compute_max_spool_bytes(
        size, is_compressed=is_compressed
    )


class SnapshotReader:
    """Synchronous reader of one snapshot, with the functions of FeedReader.

    The rows of the snapshot are spooled to files in the folder that the ReadRequest states.
    """

    def __init__(
        self, connectors: Connectors, codec: Codec, create_spools: Callable[[Path], SpoolFactory], request: ReadRequest
    ) -> None:
        self._connectors, self._codec, self._request = connectors, codec, request
        self._spools = create_spools(Path(request.folder))
        self._spooler = RowSpooler(request, codec)
        self._exit_stack = ExitStack()
        self._cached_lines: tuple[range, dict[str, list[EncodedLine]]] = range(0), {}
        """The buckets that were read last, and their lines by key, in the feed's order."""

    def close(self) -> None:
        """Close and delete the spool files."""
        self._exit_stack.close()

    @property
    def row_count(self) -> int:
        """The number of rows read so far; safe to call from another thread."""
        return self._spooler.row_count

    def spool(self) -> SpoolResult:
        """Spool all rows with their keys. Raises ParseFailed, MappingRequired, StockOnlySnapshot."""
        spool = self._exit_stack.enter_context(self._spools.create(self._request.buckets))
        if self._request.has_records:
            return self._spooler.spool_records(spool, self._read_parts())
        return self._spooler.spool_tables(spool, self._open_tables())

    def propose_mappings(self) -> Iterator[tuple[str | None, HeaderMapping]]:
        """Yield each table's name and its column mapping, determined from its first rows. Raises ParseFailed."""
        for table in self._open_tables():
            settings = complete_settings(self._request.settings, table.notes)
            yield table.sheet, propose_mapping(table, list(islice(table.rows, SAMPLE_ROWS)), settings)

    def read_sample(self, count: int) -> SnapshotSample:
        """Return the first `count` records, with values by column name, and the problems of the first rows."""
        if self._request.has_records:
            return sample_records(chain.from_iterable(self._read_parts()), count, self._request.settings)
        return sample_tables(self._open_tables(), count, self._request.settings)

    def find_rows(self, texts: Collection[str], max_results: int) -> RowSearchResult:
        """Return the first rows, at most `max_results`, with a cell that equals one of the texts."""
        if self._request.has_records:
            return find_in_records(chain.from_iterable(self._read_parts()), texts, max_results, self._request.max_rows)
        return find_in_tables(self._open_tables(), texts, max_results, self._request.max_rows)

    def read_excerpts(self, lines: Collection[FeedLine], context_rows: int) -> Sequence[FeedExcerpt]:
        """Return these lines of the tables with `context_rows` neighbours on each side; empty for pushed records."""
        return [] if self._request.has_records else read_excerpts(self._open_tables(), lines, context_rows)

    def load_keys(self, buckets: range) -> BucketKeys:
        """Return the keys in the buckets with their fingerprints, first lines and numbers of rows."""
        spooler, fingerprints, lines, rows = self._spooler, [], [], []
        for key, key_lines in self._read_lines(buckets).items():
            if spooler.lacks_own_product(key):
                continue
            digest = blake2b(spooler.bundles.compute_parts_digest(key), digest_size=16)
            for table, _, cells in key_lines:
                digest.update(spooler.sheets[max(table, 0)].salt)
                digest.update(cells)
            fingerprints.append(RowFingerprint(compute_slot(key, spooler.stream), key, digest.digest()))
            lines.append(key_lines[0][1])
            rows.append(sum(compute_row_weight(cells) for _, _, cells in key_lines))
        return BucketKeys(fingerprints, lines, rows)

    def load_statements(
        self, buckets: range, keys: Collection[str], problems: list[Problem]
    ) -> Iterator[ProductStatement]:
        """Yield what the feed states about the product of each key; each pushed record is yielded separately, in order.

        Args:
            buckets: The buckets that contain the keys.
            keys: The keys.
            problems: List to which problems with values are appended.
        """
        wanted = frozenset(keys)
        for key, lines in self._read_lines(buckets).items():
            if key not in wanted:
                continue
            statement, found = None, list[Problem]()
            if lines[0][0] == PUSHED_TABLE:
                for _, line, cells in lines:
                    record, unread = parse_record(self._codec.decode(cells), self._request.settings, line)
                    problems += unread
                    if record is not None:
                        yield record
            else:
                statement = self._build_statement(key, lines, found)
            found += self._spooler.row_limit.find_problems(key)
            problems += [replace(problem, external_id=key) for problem in found]
            if statement is not None:
                yield statement

    def _open_tables(self) -> Iterator[FeedTable]:
        request = self._request
        task = ConnectorTask(request.config, None, request.stream)
        return self._connectors.parse_tables(
            request.connector, task, Path(request.snapshot), count_known_headers, self._spooler.problems.add
        )

    def _read_parts(self) -> Iterator[Sequence[Mapping[str, Any]]]:
        """Yield the pushed records of a snapshot, part by part."""
        with Path(self._request.snapshot).open("rb") as file:
            for line in file:
                yield self._codec.decode(line)

    def _read_lines(self, buckets: range) -> dict[str, list[EncodedLine]]:
        """Return the lines of the buckets by key; the result of the last call is cached."""
        if self._cached_lines[0] != buckets:
            spooler, by_key = self._spooler, dict[str, list[EncodedLine]]()
            self._cached_lines = buckets, by_key
            for bucket in buckets:
                for table, key, line, _, cells in spooler.read_rows([bucket]):
                    by_key.setdefault(key, []).append((table, line, cells))
                for family in by_key.keys() & spooler.grouping.product_keys:
                    by_key[family].sort()
                if spooler.bucket_weights[bucket] > MAX_ROWS_PER_PRODUCT:
                    self._drop_excess_rows(by_key)
        return self._cached_lines[1]

    def _drop_excess_rows(self, by_key: dict[str, list[EncodedLine]]) -> None:
        """Remove each key's rows beyond the maximum of one product (MAX_ROWS_PER_PRODUCT), and record their number.

        From tables, the last rows are removed; from pushed records, the first ones.
        """
        for key, lines in by_key.items():
            is_pushed = lines[0][0] == PUSHED_TABLE
            kept_count, weight = 0, 0
            for _, _, cells in reversed(lines) if is_pushed else lines:
                weight += compute_row_weight(cells)
                if weight > MAX_ROWS_PER_PRODUCT and kept_count:
                    break
                kept_count += 1
            if kept_count < len(lines):
                table, line, _ = lines[0 if is_pushed else kept_count]
                sheet = None if is_pushed else self._spooler.sheets[table].name
                self._spooler.row_limit.record_omitted_on_reading(key, (len(lines) - kept_count, line, sheet))
                del lines[slice(None, -kept_count) if is_pushed else slice(kept_count, None)]

    def _build_statement(self, key: str, lines: Sequence[EncodedLine], problems: list[Problem]) -> ProductStatement:
        """Return what all sheets together state about the product of one key; problems are appended to `problems`."""
        bundles, statements = self._spooler.bundles, []
        for table in dict.fromkeys(entry[0] for entry in lines):
            rows = [(line, self._codec.decode(cells)) for number, line, cells in lines if number == table]
            sheet = self._spooler.sheets[table]
            assert sheet.plan is not None
            is_family = key in self._spooler.grouping.product_keys
            statement, found = normalise_rows(key, rows, sheet.plan, sheet.name, is_family=is_family)
            if key in bundles.part_codes_by_set:
                found += bundles.complete_sets(statement, sheet.plan, rows, sheet.name)
            statements.append(statement)
            problems += found
        merged = reduce(merge_statements, statements)
        merged.key = key
        return merged
