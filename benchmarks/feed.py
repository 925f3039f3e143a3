"""What the event log costs its writers and its readers, and whether readers miss anything (`make bench-feed`)."""

import argparse
import asyncio

from benchmarks.append import append_figures
from benchmarks.stack import stack


def slower(milliseconds: float) -> dict[str, str]:
    """Settings under which PostgreSQL waits so long before each flush of its log, as for a slower disk."""
    return {"commit_delay": str(int(milliseconds * 1000)), "commit_siblings": "0"} if milliseconds else {}


async def main(told: argparse.Namespace) -> None:
    """Every figure of the command, or those that are named."""
    async with stack(postgres_settings=slower(told.disk_ms)) as parts:
        if "append" in told.only:
            await append_figures(parts, told.rounds, told.seconds)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", nargs="+", default=["append"], choices=["append"])
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--seconds", type=float, default=2.0, help="of each way in each round (default: 2)")
    options.add_argument("--disk-ms", type=float, default=0.0, help="make every flush to disk so much slower")
    asyncio.run(main(options.parse_args()))
