"""Readers that crash, hang or exhaust memory do not affect others."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from adapters.api_json.codec import JsonCodec
from adapters.processes.feed_readers import ProcessFeedReaders, ReaderFailed, ReaderLimits
from domain.ingestion.ports import FeedReaderFailed, ParseFailed, ReadRequest

pytestmark = pytest.mark.asyncio
COMMAND = [sys.executable, "-m", "tests.support.hostile_reader"]
ROOT = Path(__file__).parents[2]


@pytest_asyncio.fixture
async def readers(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[ProcessFeedReaders]:
    """Create at most two concurrent readers with limits of one second and 256 MiB."""
    monkeypatch.setenv("PYTHONPATH", f"{ROOT}:{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setenv("JOINERY_SECRET", "not for readers")
    process_readers = ProcessFeedReaders(
        COMMAND,
        JsonCodec(),
        max_readers=2,
        limits=ReaderLimits(memory_mib=256, cpu_seconds=1, call_seconds=5.0, sample_seconds=2.0),
    )
    yield process_readers
    await process_readers.close()


def _build_request(folder: Path, action: str = "well") -> ReadRequest:
    (folder / "snapshot").write_bytes(b"x")
    return ReadRequest(str(folder / "snapshot"), str(folder), action, {}, "catalogue")


async def _ignore_progress(_: int) -> None:
    """Ignore the progress."""


async def _read_process_id(readers: ProcessFeedReaders, folder: Path) -> int:
    async with readers.open(_build_request(folder)) as reader:
        return int((await reader.read_sample(1)).records[0]["pid"])


@pytest.mark.parametrize(
    ("action", "error", "message"),
    [
        ("eat", ParseFailed, "256 MiB of memory"),
        ("spin", ParseFailed, "1 seconds of CPU time"),
        ("abort", FeedReaderFailed, "SIGABRT"),
        ("die", FeedReaderFailed, "SIGKILL"),
        ("segfault", FeedReaderFailed, "SIGSEGV"),
        ("leave", FeedReaderFailed, "ended with the exit status 7"),
        ("sleep", FeedReaderFailed, "more than 5 seconds"),
        ("raise", ReaderFailed, "KeyError at"),
        ("server", ReaderFailed, "fork server exited"),
    ],
)
async def test_a_failing_reader_affects_only_itself(
    readers: ProcessFeedReaders, tmp_path: Path, action: str, error: type[Exception], message: str
) -> None:
    for folder in ("one", "other"):
        (tmp_path / folder).mkdir()
    async with readers.open(_build_request(tmp_path / "other")) as neighbour:
        await neighbour.spool(_ignore_progress)
        async with readers.open(_build_request(tmp_path / "one", action)) as reader:
            with pytest.raises(error, match=message) as raised:
                await reader.spool(_ignore_progress)
            assert "secret" not in str(raised.value)
            with pytest.raises(FeedReaderFailed):
                await reader.load_keys(range(1))
        if action != "server":
            assert await neighbour.read_sample(1)
    assert await _read_process_id(readers, tmp_path) > 0


async def test_a_reader_has_no_secrets(readers: ProcessFeedReaders, tmp_path: Path) -> None:
    async with readers.open(_build_request(tmp_path, "environment")) as reader:
        with pytest.raises(ParseFailed, match="^none$"):
            await reader.spool(_ignore_progress)


async def test_an_abandoned_reader_is_terminated(readers: ProcessFeedReaders, tmp_path: Path) -> None:
    async with readers.open(_build_request(tmp_path, "sleep")) as reader:
        work = asyncio.create_task(reader.spool(_ignore_progress))
        await asyncio.sleep(0.3)
        work.cancel()
        await asyncio.gather(work, return_exceptions=True)
    async with asyncio.timeout(5):
        assert await reader.fork.exit_status == -9


async def test_small_feeds_share_a_process_and_large_ones_do_not(readers: ProcessFeedReaders, tmp_path: Path) -> None:
    assert await _read_process_id(readers, tmp_path) == await _read_process_id(readers, tmp_path)
    first, order = await _read_process_id(readers, tmp_path), _build_request(tmp_path)
    (tmp_path / "snapshot").write_bytes(bytes(5 << 20))
    async with readers.open(order) as reader:
        await reader.spool(_ignore_progress)
    assert await _read_process_id(readers, tmp_path) != first


async def test_concurrent_readers_are_limited(readers: ProcessFeedReaders, tmp_path: Path) -> None:
    async with readers.open(_build_request(tmp_path)), readers.open(_build_request(tmp_path)):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.2), readers.open(_build_request(tmp_path)):
                raise AssertionError("a third one")


async def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    script = (
        "import asyncio, os, signal\nfrom pathlib import Path\nfrom tests.processes.test_feed_readers import COMMAND, _build_request\n"
        "from adapters.processes.feed_readers import ProcessFeedReaders\nfrom adapters.api_json.codec import JsonCodec\n"
        "async def main():\n    readers = ProcessFeedReaders(COMMAND, JsonCodec(), max_readers=2)\n"
        f"    async with readers.open(_build_request(Path({str(tmp_path)!r}))) as reader:\n"
        "        print((await reader.read_sample(1)).records[0]['pid'], flush=True)\n"
        f"        asyncio.create_task(readers.open(_build_request(Path({str(tmp_path)!r}))).__aenter__())\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\nasyncio.run(main())"
    )
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", script, stdout=-1, env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    output, _ = await process.communicate()
    pid = int(output)
    async with asyncio.timeout(5):
        while Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().split()[2]:
            await asyncio.sleep(0.05)
