// The calls that every generated client makes, with openapi-fetch over the types of openapi-typescript.
import createClient from "openapi-fetch";
import type { components, paths } from "./api";

type Event = components["schemas"]["typed_event"];

const client = createClient<paths>({
  baseUrl: process.env.JOINERY_URL!,
  headers: { Authorization: `Bearer ${process.env.JOINERY_KEY}` },
});
const called: string[] = [];

/** The answer's data, which has to be there. */
function good<T>(name: string, answer: { data?: T; error?: { code: string; detail: string } }): T {
  if (answer.data === undefined) throw new Error(`${name}: ${answer.error?.code} ${answer.error?.detail}`);
  called.push(name);
  return answer.data;
}

function check(what: unknown, why: string): asserts what {
  if (!what) throw new Error(why);
}

/** Old and new price of an event, told apart by its type. */
function facets(event: Event): string[] {
  return event.type === "offer.changed" ? event.data.facets : [];
}

const header = (key: string) => ({ "Idempotency-Key": key });
const source = good(
  "sources.create",
  await client.POST("/v1/sources", {
    params: { header: header("fetch-1") },
    body: { name: "Pushed", kind: "push", config: { currency: "usd" }, licence_basis: "own_data" },
  }),
);
const path = { id: source.id };
good("sources.list", await client.GET("/v1/sources", { params: { query: { limit: 5 } } }));
good("sources.read", await client.GET("/v1/sources/{id}", { params: { path } }));
const renamed = good(
  "sources.update",
  await client.PATCH("/v1/sources/{id}", { params: { path, header: { "If-Match": "*" } }, body: { name: "Renamed" } }),
);
check(renamed.name === "Renamed", "renamed");
const push = await client.POST("/v1/sources/{id}/records", {
  params: { path, header: header("fetch-2") },
  body: { records: JSON.parse(process.env.JOINERY_RECORDS!) as components["schemas"]["pushed_record"][] },
});
let run = good("runs.push", push);
for (let waited = 0; waited < 200 && (run.status === "queued" || run.status === "running"); waited++) {
  await new Promise((go) => setTimeout(go, 100));
  run = good("runs.read", await client.GET("/v1/runs/{id}", { params: { path: { id: run.id } } }));
}
check(run.status === "succeeded", run.status);
good("runs.list", await client.GET("/v1/sources/{id}/runs", { params: { path } }));
const products = good(
  "catalogue.list_products",
  await client.GET("/v1/products", { params: { query: { source: source.id, status: "active" } } }),
);
const product = products.data[0];
check(product?.variants[0]?.offers[0]?.availability === "in_stock", "in stock");
const same = good(
  "catalogue.read_product",
  await client.GET("/v1/products/{id}", { params: { path: { id: product.id } } }),
);
check(same.variants[0]?.data.dimensions?.width?.hundredths_in, "a width");
const offers = good(
  "catalogue.list_offers",
  await client.GET("/v1/offers", { params: { query: { source: source.id } } }),
);
check(offers.data[0]?.product === product.id && offers.data[0].price, "the product's offer");
good("catalogue.list_categories", await client.GET("/v1/categories"));
const changes = good(
  "changes.page",
  await client.GET("/v1/changes", { params: { query: { types: ["product.created", "offer.created"] } } }),
);
check(new Set(changes.data.map((event) => event.type)).size === 2, "both types of event");
check(changes.data.every((event) => facets(event as Event).length === 0), "nothing changed yet");
const endpoint = good(
  "webhooks.create",
  await client.POST("/v1/webhook-endpoints", {
    params: { header: header("fetch-3") },
    body: { url: "https://shop.example/hooks", event_types: ["offer.changed"] },
  }),
);
check(endpoint.secret.startsWith("whsec_"), "a secret");
const hook = { path: { id: endpoint.id } };
const changed = good(
  "webhooks.update",
  await client.PATCH("/v1/webhook-endpoints/{id}", {
    params: { ...hook, header: { "If-Match": `"${endpoint.version}-x"` } },
    body: { description: "Prices" },
  }),
);
check(changed.description === "Prices", "described");
good("webhooks.list", await client.GET("/v1/webhook-endpoints"));
const gone = await client.DELETE("/v1/webhook-endpoints/{id}", { params: hook });
check(gone.response.status === 204, "deleted");
called.push("webhooks.delete");
good("orgs.read", await client.GET("/v1/org"));
good("orgs.list_plans", await client.GET("/v1/plans"));
good("platform.status", await client.GET("/v1/status"));
const missing = await client.GET("/v1/products/{id}", { params: { path: { id: "prod_0000000000000000000000" } } });
check(missing.error?.code === "not_found", "a problem");
called.push("a problem");
console.log(JSON.stringify([...new Set(called)].sort()));
