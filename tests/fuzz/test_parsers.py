"""Arbitrary files and texts: read, or refused with a message; no reader crashes, grows or computes without limit."""

import asyncio
import json
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import strategies as st

from adapters.api_json import pushed_records as wire_records
from adapters.api_json.codec import JsonCodec
from adapters.processes.feed_readers import ProcessFeedReader, ProcessFeedReaders
from domain.ingestion.model import FeedSettings
from domain.ingestion.ports import ParseFailed, ReadRequest
from domain.ingestion.records import parse_record
from domain.ingestion.snapshot_results import MappingRequired, StockOnlySnapshot
from domain.kernel.errors import InvalidRequest
from entrypoints.factories import create_feed_readers
from entrypoints.http import body as json_body
from entrypoints.operations.validation import Validator
from entrypoints.settings import read_settings
from tests.contract.test_feed_readers import ENV
from tests.fuzz.exploration import Effort, check_examples, parametrize_effort
from tests.fuzz.feeds import FORMATS, TOKENS, MutatedFile, build_files
from tests.fuzz.values import JSON, build_values, mutate
from tests.support.processes import list_descendants, peak_memory, processor_seconds
from tests.unit.ingestion.test_linear_text import READERS

BUCKETS = 4
MEMORY = 320
"""Memory limit in MiB of a reader of files of a few hundred kilobytes."""
COMPUTING = 10.0
"""Limit of processor time in seconds for one file, about a hundred times the usual one."""
CONNECTORS = {
    "site": ("json_ld",), "admin": ("shopify-admin",), "woo": ("woocommerce",), "big": ("bigcommerce",),
    "json": ("csv", "api"), "jsonl": ("csv", "api"), "shop": ("shopify", "api", "csv"),
}  # fmt: skip
PARTS = len(FORMATS) + 2
"""Number of tests that share the time: formats, texts, records."""
CONFIGS: list[dict[str, Any]] = [
    {"currency": "usd"},
    {"currency": "jpy", "decimal": "comma", "warehouse": "Main", "price_code": "TRADE"},
    {"records_path": "data.items", "variants_path": "variants"},
    {"records_path": "products", "format": "jsonl"},
    {"format": "csv", "media_base_url": "https://cdn.vendor.example/pictures"},
    {"format": "json_ld"},
    {"format": "google_merchant"},
    {},
]


class ReaderRunner:
    """Feed readers in separate processes, as in workers, with their own event loop."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.readers: ProcessFeedReaders = create_feed_readers(read_settings(ENV), JsonCodec())

    def read(self, folder: Path, order: ReadRequest, sampled: bool) -> None:
        """Read a snapshot to its statements, or its first records."""
        self.runner.run(self._read(folder, order, sampled))

    async def _read(self, folder: Path, order: ReadRequest, sampled: bool) -> None:
        before = self._measure_usage()
        async with self.readers.open(order) as reader:
            with suppress(MappingRequired, StockOnlySnapshot):
                try:
                    await self._read_whole(reader, sampled)
                except ParseFailed as failed:
                    message = str(failed)
                    assert message.strip() and "MiB of memory" not in message and "of CPU time" not in message, message
            after = self._measure_usage()
        assert max((peak for peak, _ in after.values()), default=0) < MEMORY, after
        assert all(used - before.get(pid, (0, 0.0))[1] < COMPUTING for pid, (_, used) in after.items()), after

    async def _read_whole(self, reader: ProcessFeedReader, sampled: bool) -> None:
        if sampled:
            sample = await reader.read_sample(5)
            assert len(sample.records) <= 5
            return
        spooled = await reader.spool(_ignore_progress)
        assert len(spooled.bucket_sizes) == BUCKETS
        assert not spooled.row_count or sum(spooled.bucket_sizes) or spooled.problem_count, "rows are lost silently"
        gathered = await reader.load_keys(range(BUCKETS))
        keys = [one.key for one in gathered.fingerprints]
        assert len(set(keys)) == len(keys)
        stated = await reader.load_statements(range(BUCKETS), keys[:500])
        assert {statement.key for statement in stated.statements} <= set(keys)

    def _measure_usage(self) -> dict[int, tuple[int, float]]:
        server = self.readers._server._process
        processes = list_descendants(server._process.pid) if server is not None and server.is_alive else iter(())
        return {pid: (peak_memory(pid), processor_seconds(pid)) for pid in processes}

    def close(self) -> None:
        """Stop the readers."""
        self.runner.run(self.readers.close())
        self.runner.close()


@pytest.fixture(scope="module")
def reader_runner() -> Iterator[ReaderRunner]:
    made = ReaderRunner()
    yield made
    made.close()


async def _ignore_progress(_: int) -> None:
    """Ignore the progress."""


@pytest.mark.parametrize("format", FORMATS)
@parametrize_effort(examples=60, parts=PARTS)
def test_mutated_files_are_read_or_refused(reader_runner: ReaderRunner, format: str, effort: Effort) -> None:
    connectors = st.sampled_from(CONNECTORS.get(format, ("csv",)))

    def check(file: MutatedFile, connector: str, config: dict[str, Any], stream: str, sampled: bool) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "snapshot")
            path.write_bytes(file.content)
            settings = FeedSettings(
                currency=config.get("currency"),
                decimal=config.get("decimal", "auto"),
                stream=stream,
                media_base_url=config.get("media_base_url"),
            )
            order = ReadRequest(str(path), folder, connector, config, stream, settings, BUCKETS, may_be_stock=True)
            reader_runner.read(Path(folder), order, sampled)

    streams = st.sampled_from(["catalogue", "stock"])
    check_examples(effort, check, build_files(format), connectors, st.sampled_from(CONFIGS), streams, st.booleans())


_HOSTILE = st.sampled_from([token.decode("utf-8", "surrogateescape") for token in TOKENS["text"]])
_VENDOR = st.text(alphabet="0123456789 .,/-+'\"xXWDHLinftcmgkb$€()|:;½″²٣éÃ<>&#\t\n\x9d\0\ud800", max_size=40)
TEXTS = st.lists(st.one_of(_HOSTILE, _VENDOR, st.text(max_size=40)), max_size=6).map("".join)


@parametrize_effort(examples=30, parts=PARTS)
def test_arbitrary_texts_are_parsed(effort: Effort) -> None:
    """Readers of texts never raise."""

    def check(text: str) -> None:
        for name, read in READERS.items():
            try:
                read(text)
            except Exception as error:
                error.add_note(f"{name} given {text!r}")
                raise

    check_examples(effort, check, TEXTS)


@parametrize_effort(examples=200, parts=PARTS)
def test_pushed_records_are_read(effort: Effort) -> None:
    """Arbitrary records, valid for the API's schema or not, result in a statement or problems."""
    schema = wire_records.PUSH["properties"]["records"]["items"]
    records, validator, codec = build_values(schema), Validator(schema), JsonCodec()

    def check(record: Any, given: FeedSettings) -> None:
        with suppress(InvalidRequest):
            value = json_body.decode_body(json.dumps(record).encode(), 400_000)
            faults = validator.find_field_errors(value)
            if not faults:
                (kept,) = codec.decode(wire_records.encode_records([value]))
                statement, problems = parse_record(kept, given)
                assert statement is not None or problems

    given = st.builds(FeedSettings, st.sampled_from([None, "usd", "jpy", "kwd"]))
    check_examples(effort, check, st.one_of(records, records.flatmap(mutate), JSON), given)
