"""Messages of 404 and 405, which are equal for resources of other tenants (docs/conventions.md#errors)."""

import pytest

from domain.kernel.ids import new_id
from entrypoints.http.problems import NotFoundMessages
from tests.http.application import ApplicationHarness
from tests.http.client import Client
from tests.http.sources import open_source_harness
from tests.support.operation_table import load_operation_table

pytestmark = pytest.mark.asyncio


async def _read_detail(client: Client, target: str) -> str:
    response = await client.get(target)
    assert (response.status, response.code) == (404, "not_found")
    return str(response.json()["detail"])


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/v1/product", "The nearest is GET /v1/products. "),
        ("/v1/products/", "The nearest is GET /v1/products. "),
        ("/v1/webhook_endpoints", "The nearest is GET, POST /v1/webhook-endpoints. "),
        ("/v1/products/prod_0000000000000000000000/extra", "The nearest is GET /v1/products/{id}. "),
        ("/v1/sources/src_0000000000000000000000/run", "The nearest is GET, POST /v1/sources/{id}/runs. "),
        ("/v1/variants", "The nearest is POST /v1/variants/{id}/checks. "),
        ("/v1/zzzzzzzz", ""),
        ("/v1", ""),
        ("/v1/" + "a" * 5000, ""),
        ("/v1" + "/a" * 2000, ""),
    ],
)
async def test_an_unknown_path_names_the_nearest(path: str, nearest: str) -> None:
    message = NotFoundMessages(load_operation_table()).describe_path(path)
    assert message == f"This path does not exist. {nearest}See /docs or /openapi.json for all paths."


async def test_a_missing_row_states_what_the_credential_can_read(application: ApplicationHarness) -> None:
    path = f"/v1/things/{new_id('src')}"
    live, test = (
        await _read_detail(await application.create_client(), path),
        await _read_detail(await application.create_client(livemode=False), path),
    )
    assert live == (
        "There is no source with this ID, or it is not visible to you. This request accesses live data only. "
        "For test data, use a test key."
    )
    assert test == (
        "There is no source with this ID, or it is not visible to you. This request accesses test data only. "
        "For live data, use a live key."
    )


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "/v1/sources/prod_0000000000000000000000",
            "This path takes the ID of a source (src_ and 22 letters and digits). The value starts with prod_, so it is "
            "the ID of a product. Send this ID to GET /v1/products/{id}",
        ),
        (
            "/v1/sources/ctg_0000000000000000000000/runs",
            "This path takes the ID of a source (src_ and 22 letters and digits). The value starts with ctg_, so it is "
            "the ID of a category. Send this ID to GET /v1/products?category=ctg_…",
        ),
        (
            "/v1/products/ofr_0000000000000000000000",
            "This path takes the ID of a product (prod_ and 22 letters and digits). The value starts with ofr_, so it is "
            "the ID of an offer. Send this ID to GET /v1/products?offer=ofr_…",
        ),
        (
            "/v1/sources/src_short",
            "This path takes the ID of a source (src_ and 22 letters and digits). The value in the path is not such an ID. Check that you "
            "copied the whole ID.",
        ),
    ],
)
async def test_an_id_of_another_kind_is_reported_with_the_path_that_accepts_it(target: str, message: str) -> None:
    async with open_source_harness() as harness:
        assert await _read_detail(harness.client, target) == message


async def test_a_replayed_response_has_the_same_message() -> None:
    async with open_source_harness() as harness:
        path = f"/v1/sources/{new_id('src')}/runs"
        first, again = [await harness.client.send_json("POST", path, {}, idempotency_key="k") for _ in range(2)]
        assert first.json()["detail"].startswith(
            "There is no source with this ID, or it is not visible to you. This request accesses live data only."
        )
        assert again.body.replace(first.headers["request-id"].encode(), b"") == first.body.replace(
            first.headers["request-id"].encode(), b""
        )


async def test_an_unsupported_method_lists_the_supported_ones(client: Client) -> None:
    response = await client.send("DELETE", "/v1/things")
    assert response.status == 405
    assert response.json()["detail"] == f"This path does not support DELETE. Use one of {response.headers['allow']}."


async def test_paths_outside_the_api_point_to_the_documentation(client: Client) -> None:
    assert "The API's paths start with /v1" in await _read_detail(client, "/products")
    assert "The API's paths start with /v1" in await _read_detail(client, "/errors/no_such_code")
