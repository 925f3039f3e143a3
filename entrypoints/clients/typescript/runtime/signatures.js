// Verification of webhooks by the Standard Webhooks specification 1.0.0, with WebCrypto (which compares in constant time).

import { WebhookVerificationError } from './error_kinds.js'
import { webCrypto } from './platform.js'

/** Minimum length of a key; shorter ones, such as an unset secret, can be guessed. */
const LEAST_BYTES = 16

/** Returns the event of a webhook that one of the secrets has signed. `body` is the raw body before any parsing. */
export async function verifyWebhook(body, headers, secret, tolerance = 300) {
  const keys = (Array.isArray(secret) ? secret : [secret]).map(keyOf)
  // also rejects NaN, which would accept any age
  if (!(tolerance >= 0)) throw new TypeError('The tolerance must be a number of seconds, 0 or more.')
  const content = typeof body === 'string' ? new TextEncoder().encode(body) : new Uint8Array(body)
  const [id, stamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map((name) => {
    const found = headerOf(headers, name)
    if (!found) throw new WebhookVerificationError(`The header ${name} is missing.`)
    return found
  })
  checkTime(stamp, tolerance)
  const start = new TextEncoder().encode(`${id}.${stamp}.`)
  const signed = new Uint8Array(start.length + content.length)
  signed.set(start)
  signed.set(content, start.length)
  // proxies join two headers with a comma
  const offered = signatures.split(/\s+/).filter((one) => one.startsWith('v1,')).map((one) => one.slice(3).replace(/,+$/, ''))
  for (const one of keys) {
    if (await fits(one, offered, signed)) return eventOf(content)
  }
  throw new WebhookVerificationError(
    'No signature of the webhook matches the secret. Check the secret, and pass the body exactly as received.',
  )
}

function keyOf(secret) {
  if (!secret) throw new TypeError('A webhook secret is empty. Check the setting that contains it.')
  const raw = bytesOf(String(secret).trim().replace(/^whsec_/, ''))
  if (!(raw?.length >= LEAST_BYTES)) {
    throw new TypeError('A webhook secret must be `whsec_` and base64 of at least 16 bytes, as shown when the endpoint was created.')
  }
  return raw
}

async function fits(raw, offered, signed) {
  const { subtle } = await webCrypto()
  const key = await subtle.importKey('raw', raw, { name: 'HMAC', hash: 'SHA-256' }, false, ['verify'])
  for (const text of offered) {
    const signature = bytesOf(text)
    if (signature && (await subtle.verify('HMAC', key, signature, signed))) return true
  }
  return false
}

function bytesOf(base64) {
  try {
    return Uint8Array.from(atob(base64), (one) => one.charCodeAt(0))
  } catch {
    return null
  }
}

function headerOf(headers, name) {
  if (typeof headers.get === 'function') return headers.get(name)
  const found = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1]
  return Array.isArray(found) ? found.join(' ') : found
}

function checkTime(stamp, tolerance) {
  if (!/^\d{1,12}$/.test(stamp)) throw new WebhookVerificationError('The header webhook-timestamp is not a Unix timestamp in seconds.')
  const off = Math.round(Date.now() / 1000 - Number(stamp))
  if (Math.abs(off) > tolerance) {
    throw new WebhookVerificationError(
      `The webhook's timestamp is ${Math.abs(off)} s in the ${off > 0 ? 'past' : 'future'}, ` +
        `more than the tolerance of ${tolerance} s. Check this machine's clock.`,
    )
  }
}

function eventOf(content) {
  try {
    return JSON.parse(new TextDecoder().decode(content))
  } catch {
    throw new WebhookVerificationError("The webhook's body is not JSON.")
  }
}
