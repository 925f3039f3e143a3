"""The demo: serves feeds, creates sources, follows runs, and prints what to try next."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession

from domain.access.usecases import KeyRequest
from domain.kernel.paging import PageRequest
from domain.orgs.ports import Memberships, OrgRegistry
from domain.people.ports import People
from entrypoints import settings
from entrypoints.container import opened
from entrypoints.demo import feeds, messages
from entrypoints.demo.client import Api, DemoError, FollowedRun, UnknownKey, follow
from entrypoints.demo.feeds import HOST
from entrypoints.provisioning import begin, issue_key, new_member, new_organisation, sign_in_link
from entrypoints.up.children import free_port
from entrypoints.up.directory import write_private

ORGANISATION = "Demo Furniture Co."
OWNER = "owner@demo-furniture.example"
"""Person whom the printed link signs in."""
ALLOWED = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT = "JOINERY_DEMO_FEEDS_PORT"
FILE = "demo.json"
_FEED_TASKS: Final[set["asyncio.Task[None]"]] = set()
"""Keeps the feed server's task alive until the loop ends."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `config` is that of its source; `paths` are the paths of its feeds on this machine."""

    name: str
    licence_basis: str
    config: Mapping[str, Any]
    paths: Mapping[str, str]

    def source(self, port: int) -> dict[str, Any]:
        """Return the source's config for feeds served on `port`."""
        return {**self.config, **{name: f"http://{HOST}:{port}{path}" for name, path in self.paths.items()}}


LINDGREN = Vendor(
    "Lindgren & Falk",
    "vendor_agreement",
    {"currency": "usd", "format": "csv", "role": "supplier"},
    {"url": feeds.ITEM_MASTER, "stock_url": feeds.STOCK_SHEET},
)
QUILLMERE = Vendor(
    "Quillmere Home", "public_data", {"currency": "usd", "platform": "shopify", "role": "retailer"}, {"url": "/"}
)
VENDORS = (LINDGREN, QUILLMERE)


@dataclass(slots=True)
class State:
    """State of the demo between starts, in DATA/demo.json, readable by its user only.

    `port` is that of the feeds; `sources` maps a vendor's name to its source's ID, `urls` to its URL.
    """

    port: int = 0
    organisation: str = ""
    key: str = ""
    secret: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, data_dir: Path) -> "State":
        """Read the file; return the initial state before the first start.

        Raises:
            DemoError: The file is unreadable.
        """
        path = data_dir / FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError) as error:
            raise DemoError(f"{path} is unreadable ({error}). Remove it to set up the demo again.") from error

    def save(self, data_dir: Path) -> None:
        """Write the file."""
        write_private(data_dir / FILE, json.dumps(asdict(self), indent=2) + "\n")


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """Return the service's variables with the port of the feeds and permission to access it.

    The port is that of the previous start, unless it is in use.
    """
    try:
        port = free_port(State.load(data_dir.expanduser()).port)
    except DemoError:
        port = free_port()
    hosts = [*filter(None, os.environ.get(ALLOWED, "").split(",")), f"{HOST}:{port}"]
    return {ALLOWED: ",".join(hosts), PORT: str(port)}


async def demonstrate(env: Mapping[str, str]) -> None:
    """Serve the feeds, import both, and print how to view the result.

    `env` is the environment of the service. Errors are printed as one sentence.
    """
    try:
        await _demonstrate(env, Path(env["JOINERY_DATA_DIR"]))
    except Exception as error:  # an error of the demo is printed as one sentence, and the service continues
        _print(["", f"The demo could not be completed. {error}"])


def _print(lines: list[str]) -> None:
    print("\n".join(lines), flush=True)


async def _demonstrate(env: Mapping[str, str], data_dir: Path) -> None:
    if not env.get(PORT, "").isdigit():
        raise DemoError(
            f"{PORT} is not set, so the service cannot access the feeds. Start it with `joinery up --demo`."
        )
    state = State.load(data_dir)
    state.port = int(env[PORT])
    await _serve_feeds(state.port)
    async with ClientSession() as session:
        api = await _sign_in(env, session, state, data_dir)
        await _connect(api, state, data_dir)
        runs = await _import(api, state)
        _print(await _closing_words(api, runs, env.get("JOINERY_DOCS_URL", api.base_url), await _console_link(env)))


async def _serve_feeds(port: int) -> None:
    """Serve both vendors' feeds until the loop ends."""
    try:
        runner = await feeds.serve(port)
    except OSError as error:
        raise DemoError(
            f"The vendors' feeds cannot be served on port {port} ({error.strerror}). Start again."
        ) from error

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    task = asyncio.create_task(serve())
    _FEED_TASKS.add(task)
    task.add_done_callback(_FEED_TASKS.discard)


async def _sign_in(env: Mapping[str, str], session: ClientSession, state: State, data_dir: Path) -> Api:
    """Return the API with a valid key, created at the first start and whenever the database is another one."""
    if state.secret:
        api = Api(session, env["JOINERY_BASE_URL"], state.secret)
        try:
            await api.get("/v1/org")
        except UnknownKey:
            pass
        else:
            return api
    async with opened(settings.from_environment(env)) as parts:
        organisation = await parts[OrgRegistry].find(ORGANISATION)
        if organisation is None:
            plan = await parts[OrgRegistry].plan("standard")
            if plan is None:
                raise DemoError("The plan standard does not exist.")
            organisation = await new_organisation(parts, ORGANISATION, "retailer", plan)
        async with begin(parts, organisation, "keys.create") as tx:
            key, state.secret = await issue_key(parts, tx, KeyRequest(name="demo"))
    state.organisation, state.key, state.sources, state.urls = organisation.id, key.id, {}, {}
    state.save(data_dir)
    return Api(session, env["JOINERY_BASE_URL"], state.secret)


async def _connect(api: Api, state: State, data_dir: Path) -> None:
    """Create both vendors' sources, or update the URLs of their feeds."""
    for vendor in VENDORS:
        config = vendor.source(state.port)
        source = {"name": vendor.name, "kind": "url", "config": config, "licence_basis": vendor.licence_basis}
        if vendor.name not in state.sources:
            source_resource = await api.post("/v1/sources", source, f"demo-source-{vendor.name}-{state.port}")
            state.sources[vendor.name] = source_resource["id"]
        elif state.urls.get(vendor.name) != config["url"]:
            await api.patch(f"/v1/sources/{state.sources[vendor.name]}", {"config": config, "status": "active"})
        state.urls[vendor.name] = config["url"]
        state.save(data_dir)


async def _import(api: Api, state: State) -> list[FollowedRun]:
    """Import both catalogues concurrently, then the stock of the vendor with a separate stock file."""
    catalogues = [FollowedRun(vendor.name, state.sources[vendor.name]) for vendor in VENDORS]
    await _follow_runs(api, catalogues, ["", "Importing the feeds of two vendors:"])
    if catalogues[0].run["status"] != "succeeded":
        return catalogues
    stock = FollowedRun(f"{LINDGREN.name}, stock", state.sources[LINDGREN.name], "stock")
    await _follow_runs(api, [stock], [])
    return [*catalogues, stock]


async def _follow_runs(api: Api, runs: list[FollowedRun], title: list[str]) -> None:
    for followed in runs:
        await followed.begin(api)
    if all(followed.ended for followed in runs):
        return
    if title:
        _print(title)
    await follow(api, runs)


async def _console_link(env: Mapping[str, str]) -> str:
    """Return a one-time URL that signs the demo's owner in to the console."""
    async with opened(settings.from_environment(env)) as parts:
        organisation = await parts[OrgRegistry].find(ORGANISATION)
        if organisation is None:
            raise DemoError("The demo's organisation does not exist.")
        user = await parts[People].by_email(OWNER)
        of_user = await parts[Memberships].of_user(user.id, PageRequest(limit=100)) if user else None
        if of_user is None or organisation.id not in [row.id for row in of_user.items]:
            await new_member(parts, organisation, OWNER, "owner")
            user = await parts[People].by_email(OWNER)
        if user is None:
            raise DemoError("The demo's owner does not exist.")
        return await sign_in_link(parts, user, organisation)


async def _closing_words(api: Api, runs: list[FollowedRun], docs_url: str, console: str) -> list[str]:
    products = (await api.get("/v1/products", q="panel bed", limit="1"))["data"]
    lines = ["", f"{ORGANISATION} has imported:"]
    for followed in runs:
        lines += messages.summary(followed.name, followed.run)
    return [
        *lines,
        "",
        f"Console      {console}",
        "             (signs you in once within 15 minutes)",
        "",
        f"Reference    {docs_url.rstrip('/')}/docs",
        f"API key      {api.secret}",
        "",
        *messages.requests_to_try(api.base_url, api.secret, products[0]["id"] if products else None, runs[0].run["id"]),
        "",
        "# Your own feed (paste all lines; without my-feed.csv, an example with one row is created)",
        *messages.own_feed(api.base_url, api.secret),
        "",
    ]
