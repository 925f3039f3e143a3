"""How fast images are verified, decoded and made WebP, each in a process of its own (`make bench-images`)."""

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

from adapters.processes.calls import ProcessImages

_SIZES = ((800, 800), (1200, 1200), (2000, 2000), (3000, 2000), (4500, 4500))
"""Of what vendors serve: from thumbnails for shops to what a photographer handed in."""


def photograph(width: int, height: int, seed: int) -> Image.Image:
    """Something with edges, gradients and grain, as photographs of furniture have."""
    chance = random.Random(seed)
    small = Image.new("RGB", (48, 48))
    small.putdata([tuple(chance.randrange(256) for _ in range(3)) for _ in range(48 * 48)])
    made = small.resize((width, height), Image.Resampling.BICUBIC).filter(ImageFilter.GaussianBlur(2))
    grain = Image.effect_noise((width, height), 18).convert("RGB")
    return Image.blend(made, grain, 0.12)


async def measured(files: list[Path], memory: int, rounds: int, at_once: int) -> tuple[float, float, int]:
    """Seconds, seconds of processor time, and bytes of what was made."""
    command = [sys.executable, "-P", "-m", "entrypoints.imager", str(os.getpid()), str(memory)]
    converter = ProcessImages(command, most=at_once)

    async def one(source: Path, number: int) -> int:
        converted = await converter.convert(source, source.with_suffix(f".{number}.webp"))
        return sum(file.bytes for file in converted.files)

    try:
        await one(files[0], -1)
        began, used = time.perf_counter(), _of_descendants()
        made = await asyncio.gather(*(one(source, number) for number in range(rounds) for source in files))
        return time.perf_counter() - began, _of_descendants() - used, sum(made)
    finally:
        await converter.close()


def _of_descendants() -> float:
    """Processor seconds of the fork servers of this process and of their children that ended."""
    ticks = os.sysconf("SC_CLK_TCK")
    total = 0.0
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            total += sum(int(fields[place]) for place in (11, 12, 13, 14)) / ticks
    return total


def main() -> None:
    """Print a line for each kind of file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each file is converted")
    parser.add_argument("--at-once", type=int, default=1, help="how many at a time")
    parser.add_argument("--memory", type=int, default=1024, help="MiB that one may take")
    asked: Any = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        kinds: dict[str, list[Path]] = {}
        for number, (width, height) in enumerate(_SIZES):
            picture = photograph(width, height, number)
            for name, options in (("JPEG", {"quality": 88}), ("PNG", {"compress_level": 1})):
                if name == "PNG" and width > 2000:
                    continue
                path = Path(folder) / f"{name}-{width}x{height}"
                picture.save(path, name, **options)
                kinds.setdefault(f"{name} {width} x {height}", []).append(path)
        kinds["all of them"] = [path for paths in kinds.values() for path in paths]
        for name, files in kinds.items():
            seconds, cpu, made = asyncio.run(measured(files, asked.memory, asked.rounds, asked.at_once))
            count = len(files) * asked.rounds
            size = sum(path.stat().st_size for path in files) * asked.rounds
            print(
                f"{name:<20} {count / seconds:7.1f} a second  {count / cpu if cpu else 0:7.1f} a core's second  "
                f"{size / count / 1024:8.0f} KiB in  {made / count / 1024:7.0f} KiB out",
                flush=True,
            )


if __name__ == "__main__":
    main()
