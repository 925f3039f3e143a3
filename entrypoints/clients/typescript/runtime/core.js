// HTTP core of the client.

import { agent, sleep, timerOf, variable, webCrypto } from './platform.js'
import { UnexpectedResponse } from './error_kinds.js'
import { valueOf } from './refusals.js'
import { call, patient, pauseOf, RETRY_POLICY, writes } from './retrying.js'
import { FEED_PAGE_FIELDS } from './tables.js'

/** Base URL, headers and retry policy of a client. */
export class Core {
  constructor({ baseUrl, key, timeout = 30, retries = RETRY_POLICY.retries, version, onRetry, fetch: given } = {}, own) {
    this.baseUrl = (baseUrl ?? variable('JOINERY_URL') ?? '').trim().replace(/\/+$/, '')
    const secret = (key ?? variable('JOINERY_KEY') ?? '').trim() // a value from a file may end with a line break
    if (!/^https?:\/\//.test(this.baseUrl)) {
      throw new TypeError('Set the service URL as baseUrl or JOINERY_URL, such as https://… or http://127.0.0.1:8080.')
    }
    if (!secret) throw new TypeError('Set an API key as key or JOINERY_KEY.')
    if (this.baseUrl.includes('@')) {
      throw new TypeError("The service's URL contains a user or password. Remove them: only the API key is sent.")
    }
    if (!/^[!-~]+$/.test(secret)) {
      throw new TypeError('The API key contains invalid characters, such as spaces or line breaks. Use it exactly as shown.')
    }
    this.headers = {
      Authorization: `Bearer ${secret}`,
      'Service-Version': version ?? own.version,
      Accept: 'application/json',
      ...agent(own.agent),
    }
    if (!(typeof timeout === 'number' && timeout > 0)) throw new TypeError('The timeout must be a number of seconds above 0, or Infinity.')
    this.timeout = timeout
    this.onRetry = onRetry
    this.policy = { ...RETRY_POLICY, retries }
    this.fetch = given ?? ((...parameters) => globalThis.fetch(...parameters))
  }

  /** Executes one operation; returns its JSON object with the fields `needs`, or undefined for an empty response. Throws JoineryError. */
  async call(method, path, ids, { query, body, keyed, options = {}, needs } = {}) {
    const headers = { ...this.headers }
    if (body !== undefined && body !== null) headers['Content-Type'] = 'application/json'
    if (keyed) headers['Idempotency-Key'] = options.idempotencyKey ?? (await webCrypto()).randomUUID()
    if (options.ifMatch !== undefined) headers['If-Match'] = tagOf(options.ifMatch)
    if (options.explain || options.dryRun) headers['Service-Dry-Run'] = options.explain ? 'explain' : 'true'
    const content = headers['Content-Type'] ? JSON.stringify(body) : undefined
    const { signal } = options
    const wait = Number(query?.wait ?? 0) // the server may delay the response by this time
    const request = { method, url: this.url(path, ids, query), headers, body: content, signal, wait }
    return valueOf(await this.send(request, this.policy), needs, writes(request))
  }

  /** Reads a page with unlimited retries; the server may delay the response by `wait` seconds. */
  async follow(path, query, signal) {
    const wait = Number(query.wait ?? 0)
    const request = { method: 'GET', url: this.url(path, [], query), headers: this.headers, wait, signal }
    const policy = patient(this.policy)
    for (let tries = 1; ; tries++) {
      const answer = await this.send(request, policy)
      try {
        return valueOf(answer, FEED_PAGE_FIELDS)
      } catch (error) {
        if (!(error instanceof UnexpectedResponse)) throw error
        const seconds = pauseOf(policy, tries, 0, error.retryAfter)
        this.onRetry?.({ error, seconds, tries })
        await sleep(seconds, signal)
      }
    }
  }

  /** Sends a file to its upload URL, without the credential. */
  put(url, headers, body, signal) {
    return this.send({ method: 'PUT', url, headers, body, signal, isFile: true }, this.policy)
  }

  send(request, policy) {
    return call(request, policy, (one) => this.exchange(one), sleep, this.onRetry)
  }

  /** Sends a request once; returns {status, headers, text}, or {noResponse}. Throws the abort reason of the caller's signal. */
  async exchange(request) {
    request.signal?.throwIfAborted()
    const ours = new AbortController()
    const seconds = this.timeout + (request.wait ?? 0)
    const timer = timerOf(() => ours.abort(new Error(`no response within ${seconds} s`)), seconds)
    const aborted = () => ours.abort(request.signal.reason)
    request.signal?.addEventListener('abort', aborted, { once: true })
    try {
      const { method, headers, body } = request
      // redirects are errors: following one would send the key to another host
      const answer = await this.fetch(request.url, { method, headers, body, signal: ours.signal, redirect: 'manual' })
      return { status: answer.status, headers: answer.headers, text: await answer.text() }
    } catch (error) {
      if (request.signal?.aborted) throw request.signal.reason
      return { noResponse: ours.signal.aborted ? ours.signal.reason : error }
    } finally {
      clearTimeout(timer)
      request.signal?.removeEventListener('abort', aborted)
    }
  }

  /** Returns the URL; each `{}` of the path is the next ID. Throws TypeError for an invalid ID. */
  url(path, ids, query = {}) {
    const left = [...ids]
    const filled = path.replace(/\{\}/g, () => idOf(left.shift(), path))
    const given = Object.entries(query ?? {}).filter(([, value]) => value !== undefined && value !== null)
    const written = new URLSearchParams(given.map(([name, value]) => [name, textOf(value)])).toString()
    return this.baseUrl + filled + (written && `?${written}`)
  }
}

/** Returns the query with list parameters as arrays; a single string is a list of one, whose commas are literal. */
export function listed(query, names) {
  const found = { ...query }
  for (const name of names) if (typeof found[name] === 'string') found[name] = [found[name]]
  return found
}

function idOf(id, path) {
  if (typeof id !== 'string' || /^\.*$/.test(id)) throw new TypeError(`An ID for ${path} is empty.`)
  return encodeURIComponent(id)
}

function textOf(value) {
  if (value instanceof Date) return value.toISOString()
  // commas and backslashes inside values are escaped
  return Array.isArray(value) ? value.map((one) => String(one).replace(/[\\,]/g, '\\$&')).join(',') : String(value)
}

const tagOf = (version) => (typeof version === 'number' ? `"${version}"` : version)
