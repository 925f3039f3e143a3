// Verifies what a file holds: bodies with headers and secrets, as they were received, and such that must be refused.
import { readFileSync } from 'node:fs'
import { Webhook } from 'standardwebhooks'
import { verifyWebhook, WebhookVerificationError } from 'joinery-client'

const types = []
const other = 'whsec_' + 'bmV3'.repeat(8)
const refused = async (...parameters) => {
  const error = await verifyWebhook(...parameters).then(() => null, (error) => error)
  if (!(error instanceof WebhookVerificationError)) throw new Error(`not refused: ${parameters}`)
}
for (const { body, headers, secret } of JSON.parse(readFileSync(process.argv[2], 'utf8'))) {
  const event = await verifyWebhook(body, headers, secret)
  types.push((await verifyWebhook(new TextEncoder().encode(body), new Headers(headers), [other, secret])).type)
  if (JSON.stringify(event) !== JSON.stringify(new Webhook(secret).verify(body, headers))) throw new Error('not the same event')
  await refused(body + ' ', headers, secret)
  await refused(body, headers, other)
  await refused(body, headers, [])
  await refused(body, { ...headers, 'webhook-id': 'evt_other' }, secret)
  await refused(body, { ...headers, 'webhook-timestamp': String(Number(headers['webhook-timestamp']) - 400) }, secret)
  await refused(body, { ...headers, 'webhook-timestamp': 'soon' }, secret)
  await refused(body, { ...headers, 'webhook-signature': 'v1,%% v2,abc' }, secret)
  await refused(body, {}, secret)
}
const secret = 'whsec_' + 'b2xk'.repeat(8)
const sign = (at) => ({
  'webhook-id': 'evt_1',
  'webhook-timestamp': String(Math.floor(at / 1000)),
  'webhook-signature': `v1,AAAA ${new Webhook(secret).sign('evt_1', new Date(at), '{"type":"x.y"}')}`,
})
types.push((await verifyWebhook('{"type":"x.y"}', sign(Date.now()), secret)).type)
await refused('{"type":"x.y"}', sign(Date.now() - 310_000), secret)
await verifyWebhook('{"type":"x.y"}', sign(Date.now() - 310_000), secret, 600)
console.log(JSON.stringify(types))
