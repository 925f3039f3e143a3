"""The calls that every generated client makes, with what openapi-generator generates for Python."""

import json
import os
import time

from joinery_ogp import (
    ApiClient,
    CatalogueApi,
    ChangesApi,
    Configuration,
    FeedEventType,
    OrgsApi,
    PlatformApi,
    ProductStatus,
    RunsApi,
    RunsPushBody,
    RunStatus,
    SourceCreate,
    SourcesApi,
    SourceUpdate,
    WebhookEndpointCreate,
    WebhookEndpointUpdate,
    WebhooksApi,
)
from joinery_ogp.exceptions import NotFoundException

configuration = Configuration(host=os.environ["JOINERY_URL"], access_token=os.environ["JOINERY_KEY"])
client = ApiClient(configuration)
sources, runs, catalogue, changes = SourcesApi(client), RunsApi(client), CatalogueApi(client), ChangesApi(client)
webhooks, orgs, platform = WebhooksApi(client), OrgsApi(client), PlatformApi(client)
called: list[str] = []

made = SourceCreate.from_dict(
    {"name": "Pushed", "kind": "push", "config": {"currency": "usd"}, "licence_basis": "own_data"}
)
assert made is not None
source = sources.sources_create("ogp-1", made)
called.append("sources.create")
assert sources.sources_list(limit=5).data
called.append("sources.list")
assert sources.sources_read(source.id).id == source.id
called.append("sources.read")
assert sources.sources_update(source.id, "*", SourceUpdate(name="Renamed")).name == "Renamed"
called.append("sources.update")
push = RunsPushBody.from_dict({"records": json.loads(os.environ["JOINERY_RECORDS"])})
assert push is not None
run = runs.runs_push(source.id, "ogp-2", push)
called.append("runs.push")
for _ in range(200):
    run = runs.runs_read(run.id)
    if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
        break
    time.sleep(0.1)
called.append("runs.read")
assert run.status == RunStatus.SUCCEEDED, run
assert runs.runs_list(source.id).data[0].id == run.id
called.append("runs.list")
product = catalogue.catalogue_list_products(source=source.id, status=ProductStatus.ACTIVE).data[0]
called.append("catalogue.list_products")
assert product.variants[0].offers[0].availability == "in_stock"
same = catalogue.catalogue_read_product(product.id)
called.append("catalogue.read_product")
assert same.data.title == product.data.title and same.variants[0].data.dimensions
offers = catalogue.catalogue_list_offers(source=source.id)
called.append("catalogue.list_offers")
assert offers.data[0].product == product.id and offers.data[0].price
assert catalogue.catalogue_list_categories().categories
called.append("catalogue.list_categories")
page = changes.changes_page(types=[FeedEventType.PRODUCT_DOT_CREATED, FeedEventType.OFFER_DOT_CREATED])
called.append("changes.page")
assert {event.type for event in page.data} == {"product.created", "offer.created"}
hook = WebhookEndpointCreate.from_dict({"url": "https://shop.example/hooks", "event_types": ["offer.changed"]})
assert hook is not None
endpoint = webhooks.webhooks_create("ogp-3", hook)
called.append("webhooks.create")
assert endpoint.secret.startswith("whsec_")
body = WebhookEndpointUpdate(description="Prices")
changed = webhooks.webhooks_update(endpoint.id, f'"{endpoint.version}-x"', body)
called.append("webhooks.update")
assert changed.description == "Prices"
assert webhooks.webhooks_list().data
called.append("webhooks.list")
webhooks.webhooks_delete(endpoint.id)
called.append("webhooks.delete")
assert orgs.orgs_read().name
called.append("orgs.read")
assert orgs.orgs_list_plans().data
called.append("orgs.list_plans")
assert platform.platform_status().state
called.append("platform.status")
try:
    catalogue.catalogue_read_product("prod_0000000000000000000000")
except NotFoundException as error:
    assert error.data is not None and error.data.code == "not_found"
    called.append("a problem")
print(json.dumps(sorted(set(called))))
