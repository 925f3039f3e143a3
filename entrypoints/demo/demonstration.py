"""The demo from its first start on: feeds served, sources connected, runs followed, and what to try next."""

import asyncio
import os
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from aiohttp import ClientSession, web

from entrypoints.demo import feeds, keeping, messages
from entrypoints.demo.api import Api
from entrypoints.demo.errors import DemoError, UnknownKey
from entrypoints.demo.feeds import HOST
from entrypoints.demo.following import FollowedRun, begin, follow
from entrypoints.demo.keeping import Kept
from entrypoints.demo.opening import LINDGREN, ORGANISATION, VENDORS, connect, console_link, new_tenant

_SERVING: Final[set["asyncio.Task[None]"]] = set()
"""What keeps the feeds alive until the loop ends."""
ALLOWED: Final = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT: Final = "JOINERY_DEMO_FEEDS_PORT"


async def demonstrate(env: Mapping[str, str]) -> None:
    """Serve the feeds from now on, bring the demo to where everything is read, and tell how to look at it.

    `env` is what the service runs with. What goes wrong is said in a sentence.
    """
    try:
        await _demonstrate(env, Path(env["JOINERY_DATA_DIR"]))
    except Exception as error:  # the service runs, and what stops its demo is one sentence, not a traceback
        _say(["", f"The demo could not be completed. {error}"])


def _say(lines: list[str]) -> None:
    print("\n".join(lines), flush=True)


async def _demonstrate(env: Mapping[str, str], data_dir: Path) -> None:
    port = chosen_port(env)
    await serve_feeds(port)
    async with ClientSession() as session:
        kept = keeping.load(data_dir)
        kept.port = port
        api = await _signed_in(env, session, kept, data_dir)
        await connect(api, kept, data_dir)
        runs = await _read(api, kept)
        _say(await _closing_words(api, runs, env.get("JOINERY_DOCS_URL", api.base_url), await console_link(env)))


async def serve_feeds(port: int) -> None:
    """Serve both vendors' feeds until this loop ends. Raises DemoError when the port was taken meanwhile."""
    try:
        runner = await feeds.serve(port)
    except OSError as error:
        raise DemoError(
            f"The vendors' feeds cannot be served on port {port} ({error.strerror}); start again."
        ) from error
    task = asyncio.create_task(_serve_on(runner))
    _SERVING.add(task)
    task.add_done_callback(_SERVING.discard)


async def _serve_on(runner: web.AppRunner) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        await runner.cleanup()


async def _signed_in(env: Mapping[str, str], session: ClientSession, kept: Kept, data_dir: Path) -> Api:
    """The service with a key that it knows, made at the first start and whenever the database is another one."""
    base_url = env["JOINERY_BASE_URL"]
    if kept.secret:
        api = Api(session, base_url, kept.secret)
        try:
            await api.get("/v1/org")
        except UnknownKey:
            pass
        else:
            return api
    fresh = await new_tenant(env, kept.port)
    kept.organisation, kept.key, kept.secret = fresh.organisation, fresh.key, fresh.secret
    kept.sources, kept.urls = {}, {}
    keeping.save(data_dir, kept)
    return Api(session, base_url, kept.secret)


async def _read(api: Api, kept: Kept) -> list[FollowedRun]:
    """Both catalogues side by side, then the stock of the vendor that sends it apart."""
    catalogues = [FollowedRun(vendor.name, kept.sources[vendor.name]) for vendor in VENDORS]
    await _carry_out(api, catalogues, "Reading the feeds of two vendors:")
    if catalogues[VENDORS.index(LINDGREN)].run["status"] != "succeeded":
        return catalogues
    stock = FollowedRun(f"{LINDGREN.name}, stock", kept.sources[LINDGREN.name], "stock")
    await _carry_out(api, [stock], "")
    return [*catalogues, stock]


async def _carry_out(api: Api, runs: list[FollowedRun], title: str) -> None:
    for followed in runs:
        await begin(api, followed)
    if all(followed.ended for followed in runs):
        return
    if title:
        _say(["", title])
    await follow(api, runs)


async def _closing_words(api: Api, runs: list[FollowedRun], docs_url: str, console: str) -> list[str]:
    found = (await api.get("/v1/products", q="panel bed", limit="1"))["data"]
    product = str(found[0]["id"]) if found else None
    lines = messages.heading(f"{ORGANISATION} has read:")
    for followed in runs:
        lines += messages.summary(followed.name, followed.run)
    lines += messages.heading(f"Console      {console}")
    lines += ["             (signs you in, once within 15 minutes)"]
    lines += messages.heading(f"Reference    {docs_url.rstrip('/')}/docs")
    lines += [f"API key      {api.secret}", ""]
    lines += messages.requests_to_try(api.base_url, api.secret, product, runs[0].run["id"])
    lines += messages.heading(
        "# A feed of your own (paste all lines; without my-feed.csv an example of one row is made)"
    )
    return [*lines, *messages.own_feed(api.base_url, api.secret), ""]


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """The variables that the service is started with: where the feeds will be, and leave to reach them.

    The port is that of the start before, unless another program has taken it.
    """
    try:
        port = free_port(keeping.load(data_dir.expanduser()).port)
    except DemoError:
        port = free_port(0)
    hosts = [*filter(None, os.environ.get(ALLOWED, "").split(",")), f"{HOST}:{port}"]
    return {ALLOWED: ",".join(hosts), PORT: str(port)}


def chosen_port(env: Mapping[str, str]) -> int:
    """The port that was chosen. Raises DemoError when the service was started without `prepare_environment`."""
    text = env.get(PORT, "")
    if not text.isdigit():
        raise DemoError(
            f"{PORT} is not set, so the service would not reach the feeds; start it by `joinery up --demo`."
        )
    return int(text)


def free_port(wanted: int = 0) -> int:
    """The wanted port of this machine if no program has it, else another one. Raises DemoError."""
    for port in (wanted, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise DemoError("No port is free on this machine.")
