// The calls that every generated client makes, with what openapi-generator generates for TypeScript (typescript-fetch).
import {
  CatalogueApi,
  ChangesApi,
  Configuration,
  FeedEventType,
  OrgsApi,
  PlatformApi,
  ProductStatus,
  ResponseError,
  RunsApi,
  RunsPushBodyFromJSON,
  RunStatus,
  SourceCreateFromJSON,
  SourcesApi,
  WebhookEndpointCreateFromJSON,
  WebhooksApi,
} from "./generated";

const configuration = new Configuration({
  basePath: process.env.JOINERY_URL!,
  // for OAuth's scheme, which comes last, the generator writes what it is given, without the word
  accessToken: `Bearer ${process.env.JOINERY_KEY}`,
});
const sources = new SourcesApi(configuration);
const runs = new RunsApi(configuration);
const catalogue = new CatalogueApi(configuration);
const webhooks = new WebhooksApi(configuration);
const called: string[] = [];

/** The answer, noted as had. */
async function good<T>(name: string, answer: Promise<T>): Promise<T> {
  const had = await answer;
  called.push(name);
  return had;
}

function check(what: unknown, why: string): asserts what {
  if (!what) throw new Error(why);
}

const source = await good(
  "sources.create",
  sources.sourcesCreate({
    idempotencyKey: "ogt-1",
    sourceCreate: SourceCreateFromJSON({
      name: "Pushed",
      kind: "push",
      config: { currency: "usd" },
      licence_basis: "own_data",
    }),
  }),
);
const id = source.id;
await good("sources.list", sources.sourcesList({ limit: 5 }));
await good("sources.read", sources.sourcesRead({ id }));
const renamed = await good(
  "sources.update",
  sources.sourcesUpdate({ id, ifMatch: "*", sourceUpdate: { name: "Renamed" } }),
);
check(renamed.name === "Renamed", "renamed");
const body = RunsPushBodyFromJSON({ records: JSON.parse(process.env.JOINERY_RECORDS!) });
let run = await good("runs.push", runs.runsPush({ id, idempotencyKey: "ogt-2", runsPushBody: body }));
for (let waited = 0; waited < 200 && (run.status === RunStatus.Queued || run.status === RunStatus.Running); waited++) {
  await new Promise((go) => setTimeout(go, 100));
  run = await good("runs.read", runs.runsRead({ id: run.id }));
}
check(run.status === RunStatus.Succeeded, run.status);
await good("runs.list", runs.runsList({ id }));
const products = await good(
  "catalogue.list_products",
  catalogue.catalogueListProducts({ source: id, status: ProductStatus.Active }),
);
const product = products.data[0];
check(product?.variants[0]?.offers[0]?.availability === "in_stock", "in stock");
const same = await good("catalogue.read_product", catalogue.catalogueReadProduct({ id: product.id }));
check(same.variants[0]?.data.dimensions?.width?.hundredthsIn, "a width");
const offers = await good("catalogue.list_offers", catalogue.catalogueListOffers({ source: id }));
check(offers.data[0]?.product === product.id && offers.data[0].price, "the product's offer");
await good("catalogue.list_categories", catalogue.catalogueListCategories());
const page = await good(
  "changes.page",
  new ChangesApi(configuration).changesPage({ types: [FeedEventType.ProductCreated, FeedEventType.OfferCreated] }),
);
check(new Set(page.data.map((event) => event.type)).size === 2, "both types of event");
const endpoint = await good(
  "webhooks.create",
  webhooks.webhooksCreate({
    idempotencyKey: "ogt-3",
    webhookEndpointCreate: WebhookEndpointCreateFromJSON({
      url: "https://shop.example/hooks",
      event_types: ["offer.changed"],
    }),
  }),
);
check(endpoint.secret.startsWith("whsec_"), "a secret");
const changed = await good(
  "webhooks.update",
  webhooks.webhooksUpdate({
    id: endpoint.id,
    ifMatch: `"${endpoint.version}-x"`,
    webhookEndpointUpdate: { description: "Prices" },
  }),
);
check(changed.description === "Prices", "described");
await good("webhooks.list", webhooks.webhooksList());
await good("webhooks.delete", webhooks.webhooksDelete({ id: endpoint.id }));
await good("orgs.read", new OrgsApi(configuration).orgsRead());
await good("orgs.list_plans", new OrgsApi(configuration).orgsListPlans());
await good("platform.status", new PlatformApi(configuration).platformStatus());
try {
  await catalogue.catalogueReadProduct({ id: "prod_0000000000000000000000" });
} catch (error) {
  check(error instanceof ResponseError && error.response.status === 404, "a problem");
  called.push("a problem");
}
console.log(JSON.stringify([...new Set(called)].sort()));
