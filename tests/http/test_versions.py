"""Conversion between API versions, tested with a third version (docs/conventions.md#versions)."""

from typing import Any

import pytest

from domain.kernel.versions import SUPPORTED, Version, Versions
from tests.http import example_area
from tests.http.application import run_application

Body = dict[str, Any]


def _rename_name_to_title(thing: Body) -> Body:
    """Before 2026-11-01 a thing's `name` was called `title`."""
    renamed = dict(thing)
    renamed["title"] = renamed.pop("name")
    return renamed


def _remove_version(thing: Body) -> Body:
    """Before 2026-12-01 a thing had no `version`."""
    return {name: value for name, value in thing.items() if name != "version"}


THREE = Versions(
    (
        Version("2026-10-01"),
        Version("2026-11-01", {"thing": _rename_name_to_title}),
        Version("2026-12-01", {"thing": _remove_version}),
    )
)


def test_conversions_apply_from_the_newest_version_down() -> None:
    body = {
        "object": "list",
        "data": [{"object": "thing", "name": "a", "version": 1, "in": {"object": "thing", "name": "b"}}],
    }
    assert THREE.latest == "2026-12-01"
    assert THREE.convert(body, "2026-12-01") == body
    assert THREE.convert(body, "2026-11-01")["data"][0]["name"] == "a"
    oldest = THREE.convert(body, "2026-10-01")["data"][0]
    assert oldest == {"object": "thing", "title": "a", "in": {"object": "thing", "title": "b"}}
    assert body["data"][0]["version"] == 1  # type: ignore[index]


def test_supported_versions_render_the_same() -> None:
    assert SUPPORTED.dates == ("2026-10-01", "2026-10-04")
    assert all(SUPPORTED.has_latest_shape(date) for date in SUPPORTED.dates)


@pytest.mark.asyncio
async def test_responses_are_converted() -> None:
    async with run_application(versions=THREE) as application:
        client = await application.create_client()
        thing = example_area.add_thing(application.orgs["Fjord"].id)
        newest = await client.get(f"/v1/things/{thing.id}", service_version="2026-12-01")
        oldest = await client.get(f"/v1/things/{thing.id}", service_version="2026-10-01")
        assert newest.json()["version"] == 1
        assert oldest.json() == {"object": "thing", "id": thing.id, "title": "oak"}
        assert oldest.headers["service-version"] == "2026-10-01"
        assert oldest.headers["etag"] != newest.headers["etag"]
        assert oldest.headers["etag"].startswith('"1-'), "If-Match works in every version"
        example_area.BEHAVIOUR["etag"] = "abc"
        assert (await client.get("/v1/things/special", service_version="2026-10-01")).headers[
            "etag"
        ] == '"abc2026-10-01"'
