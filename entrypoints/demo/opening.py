"""Makes what the demo needs and does not have yet: an organisation, an API key, two sources."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from domain.access.usecases import KeyRequest
from domain.audit.model import Change
from domain.audit.ports import AuditLog
from domain.kernel.paging import PageRequest
from domain.kernel.tenancy import Actor, AuditContext, Tenant
from entrypoints import settings
from entrypoints.cli.orgs import new_organisation
from entrypoints.cli.people import new_member, sign_in_link
from entrypoints.container import Container, opened
from entrypoints.demo import keeping
from entrypoints.demo.api import Api
from entrypoints.demo.errors import DemoError
from entrypoints.demo.feeds import HOST, ITEM_MASTER, STOCK_SHEET
from entrypoints.demo.keeping import Kept

ORGANISATION: Final = "Demo Furniture Co."
PLAN: Final = "standard"
OWNER: Final = "owner@demo-furniture.example"
"""Whom the printed link signs in."""


@dataclass(frozen=True, slots=True)
class Vendor:
    """One vendor. `path` is where its feed is; `stock_path` its stock sheet, if it sends one apart."""

    name: str
    path: str
    settings: dict[str, Any] = field(default_factory=dict)
    stock_path: str | None = None
    licence_basis: str = "vendor_agreement"

    def url(self, port: int) -> str:
        """Where the feed is while it is served on `port`."""
        return f"http://{HOST}:{port}{self.path}"

    def config(self, port: int) -> dict[str, Any]:
        """The source's settings."""
        config = {"url": self.url(port), "currency": "usd", **self.settings}
        return config if self.stock_path is None else config | {"stock_url": f"http://{HOST}:{port}{self.stock_path}"}


LINDGREN: Final = Vendor("Lindgren & Falk", ITEM_MASTER, {"format": "csv", "role": "supplier"}, STOCK_SHEET)
QUILLMERE: Final = Vendor(
    "Quillmere Home", "/", {"platform": "shopify", "role": "retailer"}, licence_basis="public_data"
)
VENDORS: Final = (LINDGREN, QUILLMERE)


async def new_tenant(env: Mapping[str, str], port: int) -> Kept:
    """An organisation (the one of the demo's name, if there is one) with a new key for live data."""
    async with opened(settings.from_environment(env)) as parts:
        organisation = await parts.registry().find(ORGANISATION)
        if organisation is None:
            organisation = await new_organisation(parts, ORGANISATION, "retailer", PLAN)
        key, secret = await _new_key(parts, Tenant(organisation.id, True))
    return Kept(port, organisation.id, key, secret)


async def console_link(env: Mapping[str, str]) -> str:
    """An address that signs the demo's owner in to the console, once."""
    async with opened(settings.from_environment(env)) as parts:
        organisation = await parts.registry().find(ORGANISATION)
        if organisation is None:
            raise DemoError("The demo's organisation is gone.")
        user = await parts.people().by_email(OWNER)
        if user is None or organisation.id not in await _organisations_of(parts, user.id):
            await new_member(parts, organisation, OWNER, "owner")
            user = await parts.people().by_email(OWNER)
        if user is None:
            raise DemoError("The demo's owner is gone.")
        return await sign_in_link(parts, user, organisation)


async def _organisations_of(parts: Container, user: str) -> list[str]:
    page = await parts.memberships().of_user(user, PageRequest(limit=100))
    return [one.id for one in page.items]


async def _new_key(parts: Container, tenant: Tenant) -> tuple[str, str]:
    async with parts.uow().begin(tenant, AuditContext(Actor("service", "operator"), "keys.create")) as tx:
        key, secret = await parts.access().issue_key(tx, KeyRequest(name="demo"))
        after = {"name": key.name, "scopes": sorted(key.scopes), "restricted": key.restricted, "last4": key.last4}
        await tx[AuditLog].add(Change("api_key", key.id, "create", {}, after))
    return key.id, secret


async def connect(api: Api, kept: Kept, data_dir: Path) -> None:
    """Both vendors' sources, at the addresses where their feeds are served now. Raises DemoError."""
    for vendor in VENDORS:
        url = vendor.url(kept.port)
        if vendor.name not in kept.sources:
            kept.sources[vendor.name] = await _connected(api, kept, vendor)
        elif kept.urls.get(vendor.name) != url:
            moved = {"config": vendor.config(kept.port), "status": "active"}
            await api.patch(f"/v1/sources/{kept.sources[vendor.name]}", moved)
        kept.urls[vendor.name] = url
        keeping.save(data_dir, kept)


async def _connected(api: Api, kept: Kept, vendor: Vendor) -> str:
    body = {
        "name": vendor.name,
        "kind": "url",
        "config": vendor.config(kept.port),
        "licence_basis": vendor.licence_basis,
    }
    source = await api.post("/v1/sources", body, f"demo-source-{vendor.name}-{kept.port}")
    return str(source["id"])
