"""The demo from its first start on: feeds served, sources connected, runs followed, and what to try next."""

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
"""Whom the printed link signs in."""
ALLOWED = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT = "JOINERY_DEMO_FEEDS_PORT"
FILE = "demo.json"
_SERVING: Final[set["asyncio.Task[None]"]] = set()
"""What keeps the feeds alive until the loop ends."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `config` is that of its source; `paths` are where this machine serves its feeds."""

    name: str
    licence_basis: str
    config: Mapping[str, Any]
    paths: Mapping[str, str]

    def source(self, port: int) -> dict[str, Any]:
        """Build the source's config while the feeds are served on `port`."""
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
    """What the demo keeps between starts, in DATA/demo.json, for its user's eyes only.

    `port` is where the feeds are served; `sources` maps a vendor's name to its source's id, `urls` to its URL.
    """

    port: int = 0
    organisation: str = ""
    key: str = ""
    secret: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, data_dir: Path) -> "State":
        """Read the file; nothing is kept before the first start.

        Raises:
            DemoError: The file cannot be read.
        """
        path = data_dir / FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError) as error:
            raise DemoError(f"{path} cannot be read ({error}); remove it to set the demo up anew.") from error

    def save(self, data_dir: Path) -> None:
        """Write the file."""
        write_private(data_dir / FILE, json.dumps(asdict(self), indent=2) + "\n")


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """Build the variables that the service is started with: where the feeds will be, and leave to reach them.

    The port is that of the start before, unless another program has taken it.
    """
    try:
        port = free_port(State.load(data_dir.expanduser()).port)
    except DemoError:
        port = free_port()
    hosts = [*filter(None, os.environ.get(ALLOWED, "").split(",")), f"{HOST}:{port}"]
    return {ALLOWED: ",".join(hosts), PORT: str(port)}


async def demonstrate(env: Mapping[str, str]) -> None:
    """Serve the feeds from now on, have both read, and print how to look at the result.

    `env` is what the service runs with. What goes wrong is printed in a sentence.
    """
    try:
        await _demonstrate(env, Path(env["JOINERY_DATA_DIR"]))
    except Exception as error:  # the service runs, and what stops its demo is one sentence, not a traceback
        _print(["", f"The demo could not be completed. {error}"])


def _print(lines: list[str]) -> None:
    print("\n".join(lines), flush=True)


async def _demonstrate(env: Mapping[str, str], data_dir: Path) -> None:
    if not env.get(PORT, "").isdigit():
        raise DemoError(
            f"{PORT} is not set, so the service would not reach the feeds; start it by `joinery up --demo`."
        )
    state = State.load(data_dir)
    state.port = int(env[PORT])
    await _serve_feeds(state.port)
    async with ClientSession() as session:
        api = await _sign_in(env, session, state, data_dir)
        await _connect(api, state, data_dir)
        runs = await _read(api, state)
        _print(await _closing_words(api, runs, env.get("JOINERY_DOCS_URL", api.base_url), await _console_link(env)))


async def _serve_feeds(port: int) -> None:
    """Serve both vendors' feeds until this loop ends."""
    try:
        runner = await feeds.serve(port)
    except OSError as error:
        raise DemoError(
            f"The vendors' feeds cannot be served on port {port} ({error.strerror}); start again."
        ) from error

    async def serve() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            await runner.cleanup()

    task = asyncio.create_task(serve())
    _SERVING.add(task)
    task.add_done_callback(_SERVING.discard)


async def _sign_in(env: Mapping[str, str], session: ClientSession, state: State, data_dir: Path) -> Api:
    """Return the service with a key that it knows, made at the first start and whenever the database is another one."""
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
                raise DemoError("There is no plan standard.")
            organisation = await new_organisation(parts, ORGANISATION, "retailer", plan)
        async with begin(parts, organisation, "keys.create") as tx:
            key, state.secret = await issue_key(parts, tx, KeyRequest(name="demo"))
    state.organisation, state.key, state.sources, state.urls = organisation.id, key.id, {}, {}
    state.save(data_dir)
    return Api(session, env["JOINERY_BASE_URL"], state.secret)


async def _connect(api: Api, state: State, data_dir: Path) -> None:
    """Make both vendors' sources, or lead them to the addresses where their feeds are served now."""
    for vendor in VENDORS:
        config = vendor.source(state.port)
        source = {"name": vendor.name, "kind": "url", "config": config, "licence_basis": vendor.licence_basis}
        if vendor.name not in state.sources:
            made = await api.post("/v1/sources", source, f"demo-source-{vendor.name}-{state.port}")
            state.sources[vendor.name] = made["id"]
        elif state.urls.get(vendor.name) != config["url"]:
            await api.patch(f"/v1/sources/{state.sources[vendor.name]}", {"config": config, "status": "active"})
        state.urls[vendor.name] = config["url"]
        state.save(data_dir)


async def _read(api: Api, state: State) -> list[FollowedRun]:
    """Read both catalogues side by side, then the stock of the vendor that sends it apart."""
    catalogues = [FollowedRun(vendor.name, state.sources[vendor.name]) for vendor in VENDORS]
    await _carry_out(api, catalogues, ["", "Reading the feeds of two vendors:"])
    if catalogues[0].run["status"] != "succeeded":
        return catalogues
    stock = FollowedRun(f"{LINDGREN.name}, stock", state.sources[LINDGREN.name], "stock")
    await _carry_out(api, [stock], [])
    return [*catalogues, stock]


async def _carry_out(api: Api, runs: list[FollowedRun], title: list[str]) -> None:
    for followed in runs:
        await followed.begin(api)
    if all(followed.ended for followed in runs):
        return
    if title:
        _print(title)
    await follow(api, runs)


async def _console_link(env: Mapping[str, str]) -> str:
    """Return an address that signs the demo's owner in to the console, once."""
    async with opened(settings.from_environment(env)) as parts:
        organisation = await parts[OrgRegistry].find(ORGANISATION)
        if organisation is None:
            raise DemoError("The demo's organisation is gone.")
        user = await parts[People].by_email(OWNER)
        of_user = await parts[Memberships].of_user(user.id, PageRequest(limit=100)) if user else None
        if of_user is None or organisation.id not in [one.id for one in of_user.items]:
            await new_member(parts, organisation, OWNER, "owner")
            user = await parts[People].by_email(OWNER)
        if user is None:
            raise DemoError("The demo's owner is gone.")
        return await sign_in_link(parts, user, organisation)


async def _closing_words(api: Api, runs: list[FollowedRun], docs_url: str, console: str) -> list[str]:
    found = (await api.get("/v1/products", q="panel bed", limit="1"))["data"]
    lines = ["", f"{ORGANISATION} has read:"]
    for followed in runs:
        lines += messages.summary(followed.name, followed.run)
    return [
        *lines,
        "",
        f"Console      {console}",
        "             (signs you in, once within 15 minutes)",
        "",
        f"Reference    {docs_url.rstrip('/')}/docs",
        f"API key      {api.secret}",
        "",
        *messages.requests_to_try(api.base_url, api.secret, found[0]["id"] if found else None, runs[0].run["id"]),
        "",
        "# A feed of your own (paste all lines; without my-feed.csv an example of one row is made)",
        *messages.own_feed(api.base_url, api.secret),
        "",
    ]
