"""Throughput of converting images to WebP, each in a separate process (`make bench-images`)."""

import argparse
import asyncio
import os
import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from PIL import Image, ImageFilter

from adapters.processes.calls import ProcessImageConverter

_SIZES = ((800, 800), (1200, 1200), (2000, 2000), (3000, 2000), (4500, 4500))
"""Sizes that vendors serve, from small shop images to originals of photographers."""


def create_photograph(width: int, height: int, seed: int) -> Image.Image:
    """Create an image with edges, gradients and noise, which compresses like a photograph of furniture."""
    random_source = random.Random(seed)
    small = Image.new("RGB", (48, 48))
    small.putdata([tuple(random_source.randrange(256) for _ in range(3)) for _ in range(48 * 48)])
    image = small.resize((width, height), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))
    noise = Image.effect_noise((width, height), 18).convert("RGB")
    return Image.blend(image, noise, 0.12)


async def measure_conversions(
    files: list[Path], memory_mib: int, rounds: int, at_once: int
) -> tuple[float, float, int]:
    """Convert each file `rounds` times; return the elapsed seconds, the CPU seconds, and the bytes of all created files."""
    command = [sys.executable, "-P", "-m", "entrypoints.imager", str(os.getpid()), str(memory_mib)]
    converter = ProcessImageConverter(command, max_conversions=at_once)

    async def convert(source: Path, number: int) -> int:
        converted = await converter.convert(source, source.with_suffix(f".{number}.webp"))
        return sum(file.bytes for file in converted.files)

    try:
        await convert(files[0], -1)
        started, cpu_before = time.perf_counter(), _read_fork_server_seconds()
        sizes = await asyncio.gather(*(convert(source, number) for number in range(rounds) for source in files))
        return time.perf_counter() - started, _read_fork_server_seconds() - cpu_before, sum(sizes)
    finally:
        await converter.close()


def _read_fork_server_seconds() -> float:
    """Return the CPU seconds of this process's fork servers and of their ended children."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += sum(int(fields[index]) for index in (11, 12, 13, 14)) / ticks
    return total


def main() -> None:
    """Print the throughput for each format and size, and for all files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="conversions of each file")
    parser.add_argument("--at-once", type=int, default=1, help="concurrent conversions")
    parser.add_argument("--memory", type=int, default=1024, help="memory limit of one conversion in MiB")
    arguments: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, list[Path]] = {}
        for number, (width, height) in enumerate(_SIZES):
            picture = create_photograph(width, height, number)
            for name, options in (("JPEG", {"quality": 88}), ("PNG", {"compress_level": 1})):
                if name == "PNG" and width > 2000:
                    continue
                path = Path(folder) / f"{name}-{width}x{height}"
                picture.save(path, name, **options)
                kinds.setdefault(f"{name} {width} x {height}", []).append(path)
        kinds["all files"] = [path for paths in kinds.values() for path in paths]
        for name, files in kinds.items():
            seconds, cpu_seconds, created_bytes = asyncio.run(
                measure_conversions(files, arguments.memory, arguments.rounds, arguments.at_once)
            )
            count = len(files) * arguments.rounds
            size = sum(path.stat().st_size for path in files) * arguments.rounds
            print(
                f"{name:<20} {count / seconds:7.1f} images/s  {count / cpu_seconds if cpu_seconds else 0:7.1f} images/s per core  "
                f"{size / count / 1024:8.0f} KiB in  {created_bytes / count / 1024:7.0f} KiB out",
                flush=True,
            )


if __name__ == "__main__":
    main()
