"""GET /v1/media/{id} through the application."""

from datetime import timedelta
from urllib.parse import urlsplit

import pytest

from domain.kernel.tenancy import Tenant
from domain.media.ports import MediaStore
from ports.objects import ObjectStore
from tests.http.application import run_application
from tests.support import catalogues
from tests.support.memory.objects import MemoryObjects

pytestmark = pytest.mark.asyncio
UNKNOWN = "/v1/media/img_0000000000000000000000"


async def test_an_image_and_its_link() -> None:
    async with run_application(objects=MemoryObjects()) as application:
        tenant = Tenant(application.orgs["Fjord"].id, True)
        image = await catalogues.add_image(application.uow, tenant, "prod_1")
        client = await application.create_client(scopes=frozenset({"products:read"}))
        response = await client.get(f"/v1/media/{image.id}")
        assert response.status == 200
        item = response.json()
        link, smaller = item.pop("download"), item.pop("renditions")
        assert item == {
            "object": "media", "id": image.id, "content_type": "image/webp", "width": 1600, "height": 1200,
            "bytes": 148213, "created_at": "2026-11-20T13:08:00.000Z",
        }  # fmt: skip
        assert link["expires_at"] == "2026-11-20T13:23:00.000Z"
        grant = application.dependencies[ObjectStore].verify_link(
            "GET", image.key, {"signature": link["url"].rpartition("signature=")[2]}, application.clock.now()
        )
        assert (
            grant.expires_at == application.clock.now() + timedelta(minutes=15) and grant.filename == f"{image.id}.webp"
        )
        assert urlsplit(link["url"]).scheme
        links = [one.pop("url") for one in smaller]
        assert smaller == [
            {"width": 320, "height": 240, "bytes": 11204}, {"width": 960, "height": 720, "bytes": 60113}
        ]  # fmt: skip
        for rendition, link in zip(image.renditions, links, strict=True):
            query = {"signature": link.rpartition("signature=")[2]}
            grant = application.dependencies[ObjectStore].verify_link(
                "GET", rendition.key, query, application.clock.now()
            )
            assert grant.expires_at == application.clock.now() + timedelta(minutes=15)
            assert grant.filename == f"{image.id}-{rendition.width}x{rendition.height}.webp"


async def test_an_unreferenced_image_is_unknown() -> None:
    async with run_application(objects=MemoryObjects()) as application:
        tenant = Tenant(application.orgs["Fjord"].id, True)
        image = await catalogues.add_image(application.uow, tenant, "prod_1")
        path = f"/v1/media/{image.id}"
        clients = [await application.create_client("Oak"), await application.create_client(livemode=False)]
        async with application.uow.begin(tenant, catalogues.builders.CALL) as tx:
            assert await tx[MediaStore].replace_image_urls({"prod_1": []}, [], tx.now) == list(image.keys)
        clients.append(await application.create_client())
        for client in clients:
            response, unknown = await client.get(path), await client.get(UNKNOWN)
            assert response.status == unknown.status == 404
            refused, other = response.json(), unknown.json()
            assert refused.pop("request_id") != other.pop("request_id")
            assert {**refused, "instance": ""} == {**other, "instance": ""}
        assert (await clients[0].get("/v1/media/prod_0000000000000000000000")).status == 404
        other_scope = await application.create_client(scopes=frozenset({"sources:read"}))
        assert (await other_scope.get(path)).status == 403
