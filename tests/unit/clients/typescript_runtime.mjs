// Runs a command of the Python tests with the runtime of the TypeScript client (argv: its folder and the command; stdin: JSON).
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const [folder, command] = process.argv.slice(2)
const load = (module) => import(join(folder, module))
const { call, RETRY_POLICY } = await load('runtime/retrying.js')
const { Core, JoineryError, verifyWebhook, WebhookVerificationError } = await load('runtime/index.js')
const { Joinery } = await load('index.js')
const tables = await load('runtime/tables.js')
const { BY_STATUS } = await load('runtime/error_kinds.js')
const own = { version: '2026-01-01', agent: 'tests' }

const buildResponse = (status, code) => ({ status, headers: new Headers(), text: code ? JSON.stringify({ code, detail: 'No.' }) : '<html>' })
const outcomeOf = ({ status, code, sent }) =>
  status ? buildResponse(status, code) : { noResponse: Object.assign(new Error('cut'), { cause: { code: sent ? 'ECONNRESET' : 'ECONNREFUSED' } }) }

const commands = {
  /** Number of attempts of each request, and whether it succeeds if the second attempt would. */
  async retries(cases) {
    const found = []
    for (const { method, headers, outcome } of cases) {
      const outcomes = [outcomeOf(outcome), buildResponse(200)]
      let sent = 0
      const send = async () => outcomes[sent++]
      const ended = await call({ method, headers, url: 'http://x/v1/sources' }, RETRY_POLICY, send, async () => {}).catch(() => null)
      found.push([sent, ended !== null])
    }
    return found
  },
  addresses: async (query) => new Core({ baseUrl: 'http://x', key: 'k' }, own).url('/v1/offers', [], query),
  tables: async () => ({ ...tables, BY_STATUS: Object.fromEntries(Object.entries(BY_STATUS).map(([status, kind]) => [status, kind.name])) }),
  async hint() {
    const answer = { status: 410, headers: new Headers(), text: async () => '{"code":"cursor_expired","detail":"Gone."}' }
    const error = await new Joinery({ baseUrl: 'http://x', key: 'k', fetch: async () => answer }).orgs.get().catch((error) => error)
    return [error.name, error.message]
  },
  /** Errors of calls and uploads that are redirected. */
  async redirects(baseUrl) {
    const core = new Core({ baseUrl, key: 'secret' }, own)
    const calls = [() => core.call('GET', '/v1/organisation', []), () => core.call('POST', '/v1/sources', [], { body: {}, keyed: true }),
      () => core.put(baseUrl + '/objects/1', {}, new Blob(['a']))]
    return Promise.all(calls.map((one) => one().then(() => null, (error) => [error.name, error.status, error.message])))
  },
  /** The same in browsers, which hide the target of a redirect. */
  async hiddenRedirect() {
    const answer = { status: 0, type: 'opaqueredirect', headers: new Headers(), text: async () => '' }
    const core = new Core({ baseUrl: 'http://x', key: 'k', fetch: async () => answer }, own)
    return core.call('GET', '/v1/organisation', []).catch((error) => [error.name, error.status, error.message])
  },
  /** Delays of a follower and error of a call for each response that precedes a valid page. */
  async answers(cases) {
    const timers = []
    const real = globalThis.setTimeout
    globalThis.setTimeout = (act, wait) => real(act, (timers.push(wait), 0))
    const page = { status: 200, headers: {}, body: '{"data":[],"next_cursor":"c1","caught_up":true}' }
    const coreOf = (answers, more) => {
      const left = answers.map(({ status, headers, body }) => ({ status, headers: new Headers(headers), text: async () => body }))
      return new Core({ baseUrl: 'http://x', key: 'k', fetch: async () => left.shift(), ...more }, own)
    }
    const found = []
    for (const one of cases) {
      const pauses = []
      const core = coreOf([one, page], { onRetry: ({ seconds }) => pauses.push(seconds) })
      const followed = await core.follow('/v1/changes', {}).then(({ next_cursor }) => next_cursor, String)
      const error = await coreOf([one], { retries: 0 }).call('GET', '/v1/runs/1', [], { needs: ['status'] }).catch((error) => error)
      found.push([followed, pauses, error instanceof JoineryError && error.name, error.message, error.retryAfter])
    }
    return { found, longest: Math.max(...timers) }
  },
  /** The URL that a method requests. */
  async requestUrl({ group, method, query, page }) {
    const seen = []
    const fetch = async (url) => (seen.push(url), new Response(page))
    const listing = new Joinery({ baseUrl: 'http://x', key: 'k', fetch })[group][method](query)
    await (listing.pages ? listing.pages().next() : listing)
    return seen[0]
  },
  /** The cursors of a follower, and its error. */
  async cursorFile(cursorFile) {
    const seen = []
    const fetch = async (url) => (seen.push(new URL(url).searchParams.get('cursor')),
      new Response('{"data":[{"id":"evt_1"}],"next_cursor":"c2","caught_up":true}'))
    const follower = new Joinery({ baseUrl: 'http://x', key: 'k', fetch }).changes.follow({ cursor: 'begin', cursorFile })
    const error = await follower.pages().next().then(() => null, (error) => error.message)
    return [seen, error]
  },
  /** The normalised settings, or the error. */
  settings: (cases) =>
    cases.map((one) => {
      try {
        const core = new Core({ baseUrl: 'http://x', key: 'k', ...one }, own)
        return [core.baseUrl, core.headers.Authorization]
      } catch (error) {
        return [error.name, error.message]
      }
    }),
  /** Whether a call completes within each timeout. */
  timeouts: () =>
    Promise.all([Infinity, 3_000_000, 5, 0, -1, NaN, '30', null].map(async (timeout) => {
      const fetch = (_, { signal }) =>
        new Promise((resolve, reject) => {
          const timer = setTimeout(() => resolve(new Response('{}')), 50)
          signal.addEventListener('abort', () => (clearTimeout(timer), reject(signal.reason)))
        })
      const createCore = async () => new Core({ baseUrl: 'http://x', key: 'k', timeout, retries: 0, fetch }, own)
      return createCore().then((core) => core.call('GET', '/v1/x', [])).then(() => 'completed', (error) => error.name)
    })),
  webhooks: (cases) =>
    Promise.all(cases.map(({ body, headers, secret }) => verifyWebhook(body, headers, secret).then(() => 'accepted', (error) => {
      if (error instanceof WebhookVerificationError) return 'refused'
      if (error instanceof TypeError && error.message.includes('secret')) return 'no secret'
      return String(error)
    }))),
  tolerances: ({ headers, secret }) =>
    Promise.all([NaN, -1, 'soon'].map((one) => verifyWebhook('{}', headers, secret, one).then(() => null, (error) => [error.name, error.message]))),
}
console.log(JSON.stringify(await commands[command](JSON.parse(readFileSync(0, 'utf8')))))
