"""Signed links and the ETags of responses that contain them."""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
import pytest_asyncio

from adapters.s3.objects import S3Objects
from domain.exports.model import ExportFile, ExportStatus
from domain.exports.ports import ExportStore
from domain.kernel.clock import CLOCK
from domain.kernel.links import LINK_STEP, link_expiry, round_down_to_step
from domain.kernel.tenancy import Tenant
from ports.objects import ObjectStore
from tests.http.application import ApplicationHarness, run_application
from tests.http.client import Client
from tests.support import builders, catalogues
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.asyncio
EXPORT = builders.export(
    status=ExportStatus.SUCCEEDED,
    files=(ExportFile("products", 1, 20, "aa", "exports/a"), ExportFile("manifest", 1, 20, "bb", "exports/b")),
    completed_at=builders.MOMENT,
)


@pytest_asyncio.fixture
async def application() -> AsyncIterator[ApplicationHarness]:
    async with run_application(objects=MemoryObjects()) as application:
        yield application


async def _list_reads(application: ApplicationHarness) -> tuple[Client, dict[str, Any]]:
    """Return a client, and for each path a function that extracts link and key from the response."""
    tenant = Tenant(application.orgs["Elm"].id, True)
    image = await catalogues.add_image(application.uow, tenant, "prod_1")
    async with application.uow.begin(tenant, builders.CALL) as tx:
        await tx[ExportStore].add(EXPORT)
    client = await application.create_client("Elm")
    return client, {
        f"/v1/media/{image.id}": lambda body: (body["download"]["url"], image.key),
        f"/v1/exports/{EXPORT.id}": lambda body: (body["files"][0]["url"], "exports/a"),
        "/v1/exports": lambda body: (body["data"][0]["files"][0]["url"], "exports/a"),
    }


async def test_reads_within_a_step_have_one_etag(application: ApplicationHarness) -> None:
    client, reads = await _list_reads(application)
    for path, link_of in reads.items():
        begun = round_down_to_step(application.clock.now()) + LINK_STEP + timedelta(seconds=2)
        application.clock.set(begun)
        first = await client.get(path)
        assert first.status == 200
        url, key = link_of(first.json())
        application.clock.set(begun + timedelta(seconds=20))
        again = await client.get(path, if_none_match=first.headers["etag"])
        assert (again.status, again.headers["etag"]) == (304, first.headers["etag"]), path
        signature = {"signature": parse_qs(urlsplit(url).query)["signature"][0]}
        assert application.dependencies[ObjectStore].verify_link(
            "GET", key, signature, begun + timedelta(minutes=14)
        ), path
        application.clock.set(begun + LINK_STEP)
        renewed = await client.get(path, if_none_match=first.headers["etag"])
        assert renewed.status == 200 and link_of(renewed.json())[0] != url


async def test_a_link_is_valid_for_almost_its_lifetime() -> None:
    lifetime = timedelta(minutes=15)
    for seconds in range(0, 600, 7):
        now = builders.MOMENT + timedelta(seconds=seconds, milliseconds=seconds)
        assert lifetime - LINK_STEP < link_expiry(now, lifetime) - now <= lifetime


async def test_links_to_a_bucket_are_equal_within_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    keys = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
    objects = S3Objects("s3://bucket?endpoint=https://s3.example&region=eu-west-1", keys)
    start = round_down_to_step(builders.MOMENT)
    until, links = start + timedelta(hours=1), []
    for seconds in (0, 29, 30):
        moment = start + timedelta(seconds=seconds)
        monkeypatch.setattr(type(CLOCK), "now", lambda _, moment=moment: moment)
        links.append(await objects.sign_get("k", filename="x", expires_at=until))
    assert links[0] == links[1] != links[2]
    for url, seconds in zip(links, (3600, 3600, 3570), strict=True):
        assert parse_qs(urlsplit(url).query)["X-Amz-Expires"] == [str(seconds)]
