"""The demo: serves feeds, creates sources, follows runs, and prints what to try next."""

import asyncio
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from aiohttp import ClientSession

from domain.access.usecases import KeyRequest
from domain.kernel.paging import PageRequest
from domain.orgs.model import Organisation
from domain.orgs.ports import Memberships, OrgRegistry
from domain.people.model import User
from domain.people.ports import People
from entrypoints import settings
from entrypoints.container import open_dependencies
from entrypoints.demo import feeds, messages
from entrypoints.demo.client import (
    ApiKeyRejected,
    DemoApi,
    DemoError,
    FollowedPublication,
    FollowedRun,
    follow_runs,
)
from entrypoints.demo.feeds import HOST
from entrypoints.demo.vendor import prepare_publication
from entrypoints.dependencies import Dependencies
from entrypoints.provisioning import (
    add_organisation_member,
    begin_operator_change,
    create_api_key,
    create_organisation,
    create_sign_in_link,
)
from entrypoints.settings import Settings
from entrypoints.up.directory import write_private_file
from entrypoints.up.service_processes import find_free_port

ALLOWED_HOSTS_VARIABLE = "JOINERY_ALLOW_PRIVATE_HOSTS"
PORT_VARIABLE = "JOINERY_DEMO_FEEDS_PORT"
"""Environment variable with the port of the feeds' web server."""
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


@dataclass(frozen=True, slots=True)
class DemoOrganisation:
    """Organisation of the demo.

    Attributes:
        kind: `retailer` or `vendor`.
        owner_email: The email address of the person whom the printed link signs in.
        state_file: The file of the organisation's state in the data directory.
        feeds: The feeds that the organisation imports.
    """

    name: str
    kind: str
    owner_email: str
    state_file: str
    feeds: tuple[DemoVendor, ...]


RETAILER = DemoOrganisation(
    "Demo Furniture Co.", "retailer", "owner@demo-furniture.example", "demo.json", (LINDGREN, QUILLMERE)
)
VENDOR = DemoOrganisation(
    LINDGREN.name, "vendor", "owner@lindgren-falk.example", "demo-vendor.json",
    (replace(LINDGREN, licence_basis="own_data", paths={"url": feeds.DINING_ROOM}),),
)  # fmt: skip


@dataclass(slots=True)
class DemoState:
    """State of an organisation of the demo between starts, stored in the data directory.

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
    def load(cls, path: Path) -> "DemoState":
        """Read the state from the file; return the initial state before the first start.

        Raises:
            DemoError: The file is unreadable.
        """
        try:
            return cls(**json.loads(path.read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (OSError, ValueError, TypeError) as error:
            raise DemoError(f"{path} is unreadable ({error}). Remove it to set up the demo again.") from error

    def save(self, path: Path) -> None:
        """Write the state to the file, readable by this user only."""
        write_private_file(path, json.dumps(asdict(self), indent=2) + "\n")


def prepare_environment(data_dir: Path) -> dict[str, str]:
    """Return the environment variables that the demo adds: the feeds' port, and the private hosts from which the service may fetch.

    The port of the previous start is reused if it is free.
    """
    try:
        port = find_free_port(DemoState.load(data_dir.expanduser() / RETAILER.state_file).port)
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
    port = int(env[PORT_VARIABLE])
    await _serve_feeds(port)
    async with ClientSession() as session, open_dependencies(settings.read_settings(env)) as dependencies:
        retailer, vendor = [
            await _open_tenant(dependencies, organisation, session, data_dir, port)
            for organisation in (RETAILER, VENDOR)
        ]
        if (await vendor.api.get("/v1/catalogue")).get("last_run") is None:
            await prepare_publication(dependencies, vendor.organisation, vendor.owner, retailer.organisation)
        runs = await _import_catalogues_and_stock(retailer, vendor)
        await _follow_catalogue(retailer, vendor)
        links = [
            await create_sign_in_link(dependencies, tenant.owner, tenant.organisation) for tenant in (retailer, vendor)
        ]
        _print(
            await _format_result(
                retailer.api, vendor.api, runs, env.get("JOINERY_DOCS_URL", retailer.api.base_url), links
            )
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


@dataclass(frozen=True, slots=True)
class DemoTenant:
    """Organisation of the demo as it is stored, with its owner, sources and an API client."""

    organisation: Organisation
    owner: User
    api: DemoApi
    source_ids: Mapping[str, str]


async def _open_tenant(
    dependencies: Dependencies, wanted: DemoOrganisation, session: ClientSession, data_dir: Path, port: int
) -> DemoTenant:
    """Return an organisation of the demo with its owner and sources; whatever is missing is created."""
    path = data_dir / wanted.state_file
    state = DemoState.load(path)
    state.port = port
    organisation = await _ensure_organisation(dependencies, wanted, state.organisation)
    owner = await _ensure_owner(dependencies, organisation, wanted.owner_email)
    api = await _open_api(dependencies, organisation, session, state, path)
    await _create_sources(api, wanted, state, path)
    return DemoTenant(organisation, owner, api, state.sources)


async def _ensure_organisation(dependencies: Dependencies, wanted: DemoOrganisation, id: str) -> Organisation:
    """Return the organisation with the ID, or else the name, which is created if the database does not have it."""
    for id_or_name in filter(None, (id, wanted.name)):
        if (organisation := await dependencies[OrgRegistry].find(id_or_name)) is not None:
            return organisation
    plan = await dependencies[OrgRegistry].find_plan("standard")
    if plan is None:
        raise DemoError("The database has no plan `standard`. Start the demo with a new data directory (`--data-dir`).")
    return await create_organisation(dependencies, wanted.name, wanted.kind, plan)


async def _ensure_owner(dependencies: Dependencies, organisation: Organisation, email: str) -> User:
    """Return the owner, who is created and added to the organisation if necessary."""
    user = await dependencies[People].find_by_email(email)
    of_user = await dependencies[Memberships].list_organisations(user.id, PageRequest(limit=100)) if user else None
    if of_user is None or organisation.id not in [row.id for row in of_user.items]:
        await add_organisation_member(dependencies, organisation, email, "owner")
        user = await dependencies[People].find_by_email(email)
    if user is None:
        raise DemoError(f"The owner of {organisation.name} does not exist. Start the demo again.")
    return user


async def _open_api(
    dependencies: Dependencies, organisation: Organisation, session: ClientSession, state: DemoState, path: Path
) -> DemoApi:
    """Return an API client with a valid key, which is created at the first start, or if the database is a new one."""
    base_url = dependencies[Settings].base_url
    if state.secret:
        api = DemoApi(session, base_url, state.secret)
        try:
            await api.get("/v1/org")
        except ApiKeyRejected:
            pass
        else:
            return api
    async with begin_operator_change(dependencies, organisation, "keys.create") as tx:
        key, state.secret = await create_api_key(dependencies, tx, KeyRequest(name="demo"))
    state.organisation, state.key, state.sources, state.urls = organisation.id, key.id, {}, {}
    state.save(path)
    return DemoApi(session, base_url, state.secret)


async def _create_sources(api: DemoApi, wanted: DemoOrganisation, state: DemoState, path: Path) -> None:
    """Create the organisation's sources, or update the feeds' URLs in existing sources."""
    for vendor in wanted.feeds:
        config = vendor.build_source_config(state.port)
        source = {"name": vendor.name, "kind": "url", "config": config, "licence_basis": vendor.licence_basis}
        if vendor.name not in state.sources:
            source_resource = await api.post("/v1/sources", source, f"demo-source-{vendor.name}-{state.port}")
            state.sources[vendor.name] = source_resource["id"]
        elif state.urls.get(vendor.name) != config["url"]:
            await api.patch(f"/v1/sources/{state.sources[vendor.name]}", {"config": config, "status": "active"})
        state.urls[vendor.name] = config["url"]
        state.save(path)


async def _import_catalogues_and_stock(retailer: DemoTenant, vendor: DemoTenant) -> list[FollowedRun]:
    """Import all catalogues concurrently, then the retailer's stock file while the vendor publishes; return the retailer's runs.

    If the run of a catalogue does not succeed, what depends on it is omitted.
    """
    catalogues = [FollowedRun(retailer.api, feed.name, retailer.source_ids[feed.name]) for feed in RETAILER.feeds]
    own = FollowedRun(vendor.api, f"{VENDOR.name} (vendor)", vendor.source_ids[VENDOR.name])
    await _import([*catalogues, own], ["", "Importing the feeds of two vendors:"])
    following: list[FollowedRun] = []
    if catalogues[0].run["status"] == "succeeded":
        stock = FollowedRun(retailer.api, f"{LINDGREN.name}, stock", catalogues[0].source, "stock")
        catalogues.append(stock)
        following.append(stock)
    if own.run["status"] == "succeeded":
        following.append(FollowedPublication(vendor.api, own.name))
    await _import(following, [])
    return catalogues


async def _follow_catalogue(retailer: DemoTenant, vendor: DemoTenant) -> None:
    """Create a source of the retailer that follows the vendor's catalogue, once it is published; the scheduler queues its runs."""
    catalogue = await vendor.api.get("/v1/catalogue")
    config = {"catalogue": catalogue["id"]}
    sources = (await retailer.api.get("/v1/sources", limit="100"))["data"]
    if catalogue["published"] and config not in [source["config"] for source in sources]:
        name = f"{VENDOR.name} (published catalogue)"
        source = {"name": name, "kind": "api", "connector": "network", "config": config}
        await retailer.api.post("/v1/sources", source, f"demo-source-{catalogue['id']}")


async def _import(runs: list[FollowedRun], title: list[str]) -> None:
    """Start or resume the runs, and show their progress below the lines of the title until all have ended."""
    for followed in runs:
        await followed.start_or_resume()
    if all(followed.has_ended for followed in runs):
        return
    if title:
        _print(title)
    await follow_runs(runs)


async def _format_result(
    api: DemoApi, vendor_api: DemoApi, runs: list[FollowedRun], docs_url: str, links: list[str]
) -> list[str]:
    """Return the lines that are printed at the end: results of the runs, links, the API key and example requests."""
    products = (await api.get("/v1/products", q="panel bed", limit="1"))["data"]
    catalogue = await vendor_api.get("/v1/catalogue")
    lines = ["", f"{RETAILER.name} has imported:"]
    for followed in runs:
        lines += messages.format_summary(followed.name, followed.run)
    return [
        *lines,
        messages.format_publication(VENDOR.name, RETAILER.name, catalogue),
        "",
        f"Console      {links[0]}",
        "             (sign-in link, valid once and for 15 minutes)",
        f"Vendor       {links[1]}",
        f"             (sign-in link of {VENDOR.name}; open it in a private window to stay signed in to both)",
        "",
        f"Reference    {docs_url.rstrip('/')}/docs",
        f"API key      {api.secret}",
        "",
        *messages.format_example_requests(
            api.base_url, api.secret, products[0]["id"] if products else None, runs[0].run["id"], catalogue["id"]
        ),
        "",
        "# Your own feed (paste all lines; without my-feed.csv, an example with one row is created)",
        *messages.format_own_feed_commands(api.base_url, api.secret),
        "",
    ]
