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
from entrypoints.container import open_dependencies
from entrypoints.demo import feeds, messages
from entrypoints.demo.client import ApiKeyRejected, DemoApi, DemoError, FollowedRun, follow_runs
from entrypoints.demo.feeds import HOST
from entrypoints.provisioning import (
    add_organisation_member,
    begin_operator_change,
    create_api_key,
    create_organisation,
    create_sign_in_link,
)
from entrypoints.up.directory import write_private_file
from entrypoints.up.service_processes import find_free_port

ORGANISATION = "Demo Furniture Co."
OWNER_EMAIL = "owner@demo-furniture.example"
"""Email address of the person whom the printed link signs in."""
ALLOWED_HOSTS_VARIABLE = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT_VARIABLE = "JOINERY_DEMO_FEEDS_PORT"
"""Environment variable with the port of the feeds' web server."""
STATE_FILE = "demo.json"
"""File of the demo's state in the data directory."""
_FEED_TASKS: Final[set["asyncio.Task[None]"]] = set()
"""Tasks of the feeds' web server; the references prevent their garbage collection."""


@dataclass(frozen=True, slots=True)
class DemoVendor:
    """Fictitious vendor of the demo.

    Attributes:
        name: The vendor's name.
        licence_basis: The usage rights of the vendor's data.
        config: The configuration of the vendor's source, without URLs.
        paths: The path of each feed, by the setting of the source that contains the feed's URL, such as `stock_url`.
    """

    name: str
    licence_basis: str
    config: Mapping[str, Any]
    paths: Mapping[str, str]

    def build_source_config(self, port: int) -> dict[str, Any]:
        """Return the configuration of the vendor's source, with the URLs of the feeds on `port` of this machine."""
        return {**self.config, **{name: f"http://{HOST}:{port}{path}" for name, path in self.paths.items()}}


LINDGREN = DemoVendor(
    "Lindgren & Falk",
    "vendor_agreement",
    {"currency": "usd", "format": "csv", "role": "supplier"},
    {"url": feeds.ITEM_MASTER, "stock_url": feeds.STOCK_SHEET},
)
QUILLMERE = DemoVendor(
    "Quillmere Home", "public_data", {"currency": "usd", "platform": "shopify", "role": "retailer"}, {"url": "/"}
)
VENDORS = (LINDGREN, QUILLMERE)


@dataclass(slots=True)
class DemoState:
    """State of the demo between starts, stored as demo.json in the data directory.

    Attributes:
        port: The port of the feeds' web server.
        organisation: The organisation's ID.
        key: The API key's ID.
        secret: The API key.
        sources: The sources' IDs by vendor name.
        urls: The URLs of the feeds by vendor name.
    """

    port: int = 0
    organisation: str = ""
    key: str = ""
    secret: str = ""
    sources: dict[str, str] = field(default_factory=dict)
    urls: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, data_dir: Path) -> "DemoState":
        """Read the state from the data directory; return the initial state before the first start.

        Raises:
            DemoError: The file is unreadable.
        """
        path = data_dir / STATE_FILE
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError) as error:
            raise DemoError(f"{path} is unreadable ({error}). Remove it to set up the demo again.") from error

    def save(self, data_dir: Path) -> None:
        """Write the state to the data directory, readable by this user only."""
        write_private_file(data_dir / STATE_FILE, json.dumps(asdict(self), indent=2) + "\n")


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """Return the environment variables that the demo adds: the feeds' port, and the private hosts from which the service may fetch.

    The port of the previous start is reused if it is free.
    """
    try:
        port = find_free_port(DemoState.load(data_dir.expanduser()).port)
    except DemoError:
        port = find_free_port()
    hosts = [*filter(None, os.environ.get(ALLOWED_HOSTS_VARIABLE, "").split(",")), f"{HOST}:{port}"]
    return {ALLOWED_HOSTS_VARIABLE: ",".join(hosts), PORT_VARIABLE: str(port)}


async def run_demo(env: Mapping[str, str]) -> None:
    """Run the demo: serve the feeds, import both vendors' catalogues, and print how to view the result.

    Errors are printed, not raised.

    Args:
        env: The environment of the service.
    """
    try:
        await _run_demo(env, Path(env["JOINERY_DATA_DIR"]))
    except Exception as error:  # an error of the demo is printed as one sentence, and the service continues
        _print(["", f"The demo could not be completed. {error}"])


def _print(lines: list[str]) -> None:
    print("\n".join(lines), flush=True)


async def _run_demo(env: Mapping[str, str], data_dir: Path) -> None:
    """Run the demo. Raises DemoError."""
    if not env.get(PORT_VARIABLE, "").isdigit():
        raise DemoError(
            f"{PORT_VARIABLE} is not set, so the service cannot access the feeds. Start it with `joinery up --demo`."
        )
    state = DemoState.load(data_dir)
    state.port = int(env[PORT_VARIABLE])
    await _serve_feeds(state.port)
    async with ClientSession() as session:
        api = await _open_api(env, session, state, data_dir)
        await _create_sources(api, state, data_dir)
        runs = await _import_catalogues_and_stock(api, state)
        _print(
            await _format_result(api, runs, env.get("JOINERY_DOCS_URL", api.base_url), await _create_console_link(env))
        )


async def _serve_feeds(port: int) -> None:
    """Serve both vendors' feeds until the event loop ends. Raises DemoError if the port is in use."""
    try:
        runner = await feeds.start_server(port)
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


async def _open_api(env: Mapping[str, str], session: ClientSession, state: DemoState, data_dir: Path) -> DemoApi:
    """Return an API client with a valid key.

    At the first start, or if the database is a new one, the organisation and the key are created.
    """
    if state.secret:
        api = DemoApi(session, env["JOINERY_BASE_URL"], state.secret)
        try:
            await api.get("/v1/org")
        except ApiKeyRejected:
            pass
        else:
            return api
    async with open_dependencies(settings.read_settings(env)) as dependencies:
        organisation = await dependencies[OrgRegistry].find(ORGANISATION)
        if organisation is None:
            plan = await dependencies[OrgRegistry].find_plan("standard")
            if plan is None:
                raise DemoError(
                    "The database has no plan `standard`. Start the demo with a new data directory (`--data-dir`)."
                )
            organisation = await create_organisation(dependencies, ORGANISATION, "retailer", plan)
        async with begin_operator_change(dependencies, organisation, "keys.create") as tx:
            key, state.secret = await create_api_key(dependencies, tx, KeyRequest(name="demo"))
    state.organisation, state.key, state.sources, state.urls = organisation.id, key.id, {}, {}
    state.save(data_dir)
    return DemoApi(session, env["JOINERY_BASE_URL"], state.secret)


async def _create_sources(api: DemoApi, state: DemoState, data_dir: Path) -> None:
    """Create the sources of both vendors, or update the feeds' URLs in existing sources."""
    for vendor in VENDORS:
        config = vendor.build_source_config(state.port)
        source = {"name": vendor.name, "kind": "url", "config": config, "licence_basis": vendor.licence_basis}
        if vendor.name not in state.sources:
            source_resource = await api.post("/v1/sources", source, f"demo-source-{vendor.name}-{state.port}")
            state.sources[vendor.name] = source_resource["id"]
        elif state.urls.get(vendor.name) != config["url"]:
            await api.patch(f"/v1/sources/{state.sources[vendor.name]}", {"config": config, "status": "active"})
        state.urls[vendor.name] = config["url"]
        state.save(data_dir)


async def _import_catalogues_and_stock(api: DemoApi, state: DemoState) -> list[FollowedRun]:
    """Import both catalogues concurrently, then the stock file of the vendor LINDGREN; return the runs.

    If the run of LINDGREN's catalogue does not succeed, the stock file is not imported.
    """
    catalogues = [FollowedRun(vendor.name, state.sources[vendor.name]) for vendor in VENDORS]
    await _import(api, catalogues, ["", "Importing the feeds of two vendors:"])
    if catalogues[0].run["status"] != "succeeded":
        return catalogues
    stock = FollowedRun(f"{LINDGREN.name}, stock", state.sources[LINDGREN.name], "stock")
    await _import(api, [stock], [])
    return [*catalogues, stock]


async def _import(api: DemoApi, runs: list[FollowedRun], title: list[str]) -> None:
    """Start or resume the runs, and show their progress below the lines of the title until all have ended."""
    for followed in runs:
        await followed.start_or_resume(api)
    if all(followed.has_ended for followed in runs):
        return
    if title:
        _print(title)
    await follow_runs(api, runs)


async def _create_console_link(env: Mapping[str, str]) -> str:
    """Return a one-time URL that signs the demo's owner in to the console."""
    async with open_dependencies(settings.read_settings(env)) as dependencies:
        organisation = await dependencies[OrgRegistry].find(ORGANISATION)
        if organisation is None:
            raise DemoError("The demo's organisation does not exist. Start the demo again.")
        user = await dependencies[People].find_by_email(OWNER_EMAIL)
        of_user = await dependencies[Memberships].list_organisations(user.id, PageRequest(limit=100)) if user else None
        if of_user is None or organisation.id not in [row.id for row in of_user.items]:
            await add_organisation_member(dependencies, organisation, OWNER_EMAIL, "owner")
            user = await dependencies[People].find_by_email(OWNER_EMAIL)
        if user is None:
            raise DemoError("The demo's owner does not exist. Start the demo again.")
        return await create_sign_in_link(dependencies, user, organisation)


async def _format_result(api: DemoApi, runs: list[FollowedRun], docs_url: str, console_url: str) -> list[str]:
    """Return the lines that are printed at the end: results of the runs, links, the API key and example requests."""
    products = (await api.get("/v1/products", q="panel bed", limit="1"))["data"]
    lines = ["", f"{ORGANISATION} has imported:"]
    for followed in runs:
        lines += messages.format_summary(followed.name, followed.run)
    return [
        *lines,
        "",
        f"Console      {console_url}",
        "             (sign-in link, valid once and for 15 minutes)",
        "",
        f"Reference    {docs_url.rstrip('/')}/docs",
        f"API key      {api.secret}",
        "",
        *messages.format_example_requests(
            api.base_url, api.secret, products[0]["id"] if products else None, runs[0].run["id"]
        ),
        "",
        "# Your own feed (paste all lines; without my-feed.csv, an example with one row is created)",
        *messages.format_own_feed_commands(api.base_url, api.secret),
        "",
    ]
