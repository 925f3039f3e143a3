"""The calls that every generated client makes, with what openapi-python-client generates."""

import json
import os
import time
from typing import TypeVar

from joinery_opc import AuthenticatedClient
from joinery_opc.api.catalogue import (
    catalogue_list_categories,
    catalogue_list_offers,
    catalogue_list_products,
    catalogue_read_product,
)
from joinery_opc.api.changes import changes_page
from joinery_opc.api.orgs import orgs_list_plans, orgs_read
from joinery_opc.api.platform import platform_status
from joinery_opc.api.runs import runs_list, runs_push, runs_read
from joinery_opc.api.sources import sources_create, sources_list, sources_read, sources_update
from joinery_opc.api.webhooks import webhooks_create, webhooks_delete, webhooks_list, webhooks_update
from joinery_opc.models.category_tree import CategoryTree
from joinery_opc.models.change_page import ChangePage
from joinery_opc.models.feed_event_type import FeedEventType
from joinery_opc.models.offer_line_list import OfferLineList
from joinery_opc.models.organisation import Organisation
from joinery_opc.models.plan_list import PlanList
from joinery_opc.models.platform_status import PlatformStatus
from joinery_opc.models.problem import Problem
from joinery_opc.models.product import Product
from joinery_opc.models.product_list import ProductList
from joinery_opc.models.product_status import ProductStatus
from joinery_opc.models.run import Run
from joinery_opc.models.run_list import RunList
from joinery_opc.models.run_status import RunStatus
from joinery_opc.models.runs_push_body import RunsPushBody
from joinery_opc.models.source import Source
from joinery_opc.models.source_create import SourceCreate
from joinery_opc.models.source_list import SourceList
from joinery_opc.models.source_update import SourceUpdate
from joinery_opc.models.webhook_endpoint import WebhookEndpoint
from joinery_opc.models.webhook_endpoint_create import WebhookEndpointCreate
from joinery_opc.models.webhook_endpoint_list import WebhookEndpointList
from joinery_opc.models.webhook_endpoint_update import WebhookEndpointUpdate
from joinery_opc.models.webhook_endpoint_with_secret import WebhookEndpointWithSecret
from joinery_opc.types import Unset

T = TypeVar("T")
client = AuthenticatedClient(base_url=os.environ["JOINERY_URL"], token=os.environ["JOINERY_KEY"])
called: list[str] = []


def of(kind: type[T], name: str, answer: object) -> T:
    """Return the response, which must be of that type."""
    assert isinstance(answer, kind), (name, answer)
    called.append(name)
    return answer


made = SourceCreate.from_dict(
    {"name": "Pushed", "kind": "push", "config": {"currency": "usd"}, "licence_basis": "own_data"}
)
source = of(Source, "sources.create", sources_create.sync(client=client, body=made, idempotency_key="opc-1"))
of(SourceList, "sources.list", sources_list.sync(client=client, limit=5))
assert of(Source, "sources.read", sources_read.sync(source.id, client=client)).id == source.id
renamed = sources_update.sync_detailed(source.id, client=client, body=SourceUpdate(name="Renamed"), if_match="*")
assert of(Source, "sources.update", renamed.parsed).name == "Renamed"
records = json.loads(os.environ["JOINERY_RECORDS"])
push = RunsPushBody.from_dict({"records": records})
run = of(Run, "runs.push", runs_push.sync(source.id, client=client, body=push, idempotency_key="opc-2"))
for _ in range(200):
    run = of(Run, "runs.read", runs_read.sync(run.id, client=client))
    if run.status not in (RunStatus.QUEUED, RunStatus.RUNNING):
        break
    time.sleep(0.1)
assert run.status == RunStatus.SUCCEEDED, run
of(RunList, "runs.list", runs_list.sync(source.id, client=client))
found = catalogue_list_products.sync(client=client, source=source.id, status=ProductStatus.ACTIVE)
product = of(ProductList, "catalogue.list_products", found).data[0]
assert product.variants[0].offers[0].availability.value == "in_stock"
same = of(Product, "catalogue.read_product", catalogue_read_product.sync(product.id, client=client))
assert same.data.title == product.data.title and same.variants[0].data.dimensions
offers = of(OfferLineList, "catalogue.list_offers", catalogue_list_offers.sync(client=client, source=source.id))
assert offers.data[0].product == product.id and not isinstance(offers.data[0].price, Unset)
of(CategoryTree, "catalogue.list_categories", catalogue_list_categories.sync(client=client))
wanted = [FeedEventType.PRODUCT_CREATED, FeedEventType.OFFER_CREATED]
changes = of(ChangePage, "changes.page", changes_page.sync(client=client, types=wanted))
assert {event.type_ for event in changes.data} == {"product.created", "offer.created"}
hook = WebhookEndpointCreate.from_dict({"url": "https://shop.example/hooks", "event_types": ["offer.changed"]})
endpoint = of(
    WebhookEndpointWithSecret,
    "webhooks.create",
    webhooks_create.sync(client=client, body=hook, idempotency_key="opc-3"),
)
assert endpoint.secret.startswith("whsec_")
body = WebhookEndpointUpdate(description="Prices")
changed = webhooks_update.sync(endpoint.id, client=client, body=body, if_match=f'"{endpoint.version}-x"')
assert of(WebhookEndpoint, "webhooks.update", changed).description == "Prices"
of(WebhookEndpointList, "webhooks.list", webhooks_list.sync(client=client))
assert webhooks_delete.sync_detailed(endpoint.id, client=client).status_code == 204
called.append("webhooks.delete")
of(Organisation, "orgs.read", orgs_read.sync(client=client))
of(PlanList, "orgs.list_plans", orgs_list_plans.sync(client=client))
of(PlatformStatus, "platform.status", platform_status.sync(client=client))
missing = of(Problem, "a problem", catalogue_read_product.sync("prod_0000000000000000000000", client=client))
assert (missing.code, missing.status) == ("not_found", 404)
print(json.dumps(sorted(set(called))))
