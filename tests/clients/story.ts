// What an integrator does, with the TypeScript client: run by tests with a file and a webhook's address.
import { InvalidRequest, isTyped, Joinery, NotFound, PreconditionFailed, type Source, type SourceCreate } from 'joinery-client'

const [path, hook] = process.argv.slice(2) as [string, string]
const called: string[] = []
function passed(name: string, fits: boolean): void {
  if (!fits) throw new Error(name)
  called.push(name)
}
async function all<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = []
  for await (const one of items) found.push(one)
  return found
}

const client = new Joinery()
passed('orgs.get', (await client.orgs.get()).object === 'organisation')
passed('orgs.list_plans', (await client.orgs.listPlans()).data.length > 0)
passed('platform.status', (await client.platform.status()).object === 'platform_status')
const wanted: SourceCreate = { name: 'Price list', kind: 'file', config: { currency: 'usd' } }
passed('sources.create (explained)', (await client.sources.create(wanted, { explain: true })).changes.length === 1)
passed('sources.create (dry run)', (await client.sources.create(wanted, { dryRun: true })).kind === 'file')
const source: Source = await client.sources.create(wanted, { idempotencyKey: 'the-one' })
passed('sources.create', (await client.sources.create(wanted, { idempotencyKey: 'the-one' })).id === source.id)
passed('sources.get', (await client.sources.get(source.id)).name === 'Price list')
const renamed = await client.sources.update(source.id, { name: 'Renamed' }, { ifMatch: source.version })
passed('sources.update', renamed.version === source.version + 1)
try {
  await client.sources.update(source.id, { name: 'Again' }, { ifMatch: source.version })
} catch (error) {
  passed('sources.update (refused)', error instanceof PreconditionFailed && error.status === 412 && !error.maybeDone)
}
passed('sources.list', (await all(client.sources.list())).length === 1)
const cursor = await client.changes.now()
const upload = await client.sources.uploadFile(source.id, path)
const run = await client.runs.wait(upload.run!, { timeout: 60 })
passed('runs.get', run.status === 'succeeded')
passed('uploads.get', (await client.uploads.get(upload.id)).status === 'completed')
passed('runs.list', (await all(client.runs.list(source.id))).length === 1)
const products = await all(client.products.list({ source: source.id, limit: 4, updated_since: new Date(0) }))
passed('products.list', products.length === 10)
passed('products.get', (await client.products.get(products[0]!.id)).data.title === products[0]!.data.title)
let offers = 0
for await (const page of client.offers.list({ product: products[0]!.id }).pages()) offers += page.data.length
passed('offers.list', offers === 2)
passed('categories.list', (await client.categories.list()).categories.length > 10)
passed('mappings.list', (await all(client.mappings.list(source.id))).length === 1)
const seen: string[] = []
for await (const event of client.changes.follow({ cursor, types: ['product.created'], wait: 1 })) {
  if (isTyped(event) && event.type === 'product.created') seen.push(event.data.id)
  if (seen.length === 10) break
}
passed('changes.page', new Set(seen).size === 10)
passed('changes.recent', (await all(client.changes.recent({ types: ['product.created'] }))).length === 10)
try {
  await client.webhooks.create({ url: 'no address', event_types: ['*'] })
} catch (error) {
  passed('webhooks.create (refused)', error instanceof InvalidRequest && error.errors[0]?.field === 'url')
}
const endpoint = await client.webhooks.create({ url: hook, event_types: ['*'] })
passed('webhooks.create', endpoint.secret.startsWith('whsec_'))
passed('webhooks.get', (await client.webhooks.get(endpoint.id)).url === hook)
passed('webhooks.list', (await all(client.webhooks.list())).length === 1)
const rotated = await client.webhooks.rotateSecret(endpoint.id, { overlap_hours: 1 })
passed('webhooks.rotate_secret', rotated.secret !== endpoint.secret)
passed('webhooks.test', (await client.webhooks.test(endpoint.id)).type === 'webhook.test')
passed('webhooks.list_deliveries', (await all(client.webhooks.listDeliveries(endpoint.id))).length === 1)
await client.webhooks.delete(endpoint.id)
try {
  await client.webhooks.get(endpoint.id)
} catch (error) {
  passed('webhooks.delete', error instanceof NotFound && error.code === 'not_found' && error.requestId !== null)
}
const stopping = new AbortController()
setTimeout(() => stopping.abort(new Error('enough')), 300)
try {
  await all(client.changes.follow({ cursor: await client.changes.now(), signal: stopping.signal }))
} catch (error) {
  passed('changes.page (aborted)', (error as Error).message === 'enough')
}
console.log(JSON.stringify(called))
