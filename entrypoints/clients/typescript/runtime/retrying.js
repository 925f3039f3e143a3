// Retry rules: when a request is sent again, and after which delay.

import { ConnectionFailed } from './error_kinds.js'
import { refusal } from './refusals.js'
import { IN_PROGRESS, KEPT_STATUSES, MAX_FEED_RETRY_DELAY, RATE_LIMITED, RETRIED_STATUSES } from './tables.js'

/** Error codes of connections that were never established; in all other cases the request may have reached the server. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** At most `retries` retries with a total delay of `maxTotalDelay` seconds; Infinity for no limit. */
export const RETRY_POLICY = { retries: 4, maxTotalDelay: 60, initialDelay: 0.5, maxDelay: 8 }

/** The same policy without limits, for followers. */
export const patient = (policy) => ({ ...policy, retries: Infinity, maxTotalDelay: Infinity, maxDelay: 30 })

const isPatient = (policy) => policy.retries === Infinity

/** Returns the seconds until the next try, or null for no retry. Exponential backoff with jitter between half and all. */
export function pauseOf(policy, tries, waited, retryAfter) {
  if (tries >= policy.retries) return null
  const step = Math.min(policy.maxDelay, policy.initialDelay * 2 ** Math.min(tries, 16))
  const asked = Math.max(step * (0.5 + Math.random() / 2), retryAfter ?? 0)
  const pause = isPatient(policy) ? Math.min(asked, MAX_FEED_RETRY_DELAY) : asked
  return waited + pause > policy.maxTotalDelay ? null : pause
}

/** Sends the request until it has a final response {status, headers, text}. Throws JoineryError. */
export async function call(request, policy, send, sleep, onRetry) {
  let unclear = false
  let waited = 0
  for (let tries = 0; ; tries++) {
    const outcome = await send(request)
    if (outcome.status >= 200 && outcome.status < 300) return outcome
    const error = errorOf(request, outcome)
    unclear = isUnclear(request, outcome, error, unclear)
    const pause = shouldRetry(request, outcome, error, policy) ? pauseOf(policy, tries, waited, error.retryAfter) : null
    if (pause === null) {
      error.maybeDone = unclear
      error.describe()
      throw error
    }
    waited += pause
    onRetry?.({ error, seconds: pause, tries: tries + 1 })
    await sleep(pause, request.signal)
  }
}

function errorOf(request, outcome) {
  if (!outcome.noResponse) return refusal(outcome)
  const reason = outcome.noResponse.cause?.code ?? outcome.noResponse.message
  const address = request.url.split('?')[0]
  return new ConnectionFailed(`No response from ${address}: ${reason}`, { cause: outcome.noResponse })
}

/** Returns whether the request can be sent again without further effect. */
const isRepeatable = (request) => request.method !== 'POST' || 'Idempotency-Key' in request.headers

/** Returns whether the request may have reached the server. */
const wasSent = (error) => !NOT_SENT.includes(error.cause?.code)

/** Returns whether a retry is useful and safe: what may have reached the server is retried only if repeatable. */
function shouldRetry(request, outcome, error, policy) {
  if (outcome.noResponse) return isRepeatable(request) || !wasSent(outcome.noResponse)
  // a follower only reads, so it retries all server and proxy errors
  if (isPatient(policy) && isRepeatable(request) && (outcome.status >= 500 || outcome.status === 408)) return true
  // rejected before execution; without a code, by a proxy
  if (outcome.status === 429) return error.code === RATE_LIMITED || error.code === null
  const arriving = request.isFile && outcome.status === 409 // the server is still processing the broken try
  return (RETRIED_STATUSES.includes(outcome.status) || error.code === IN_PROGRESS || arriving) && isRepeatable(request)
}

/** Returns whether the request may change something. */
export const writes = (request) => request.method !== 'GET' && !('Service-Dry-Run' in request.headers)

/** Returns whether the change may have been made although the request failed. */
function isUnclear(request, outcome, error, earlier) {
  if (!writes(request)) return false
  if (outcome.noResponse) return earlier || wasSent(outcome.noResponse)
  if (outcome.status >= 500 || error.code === IN_PROGRESS) return true
  return earlier && !('Idempotency-Key' in request.headers && KEPT_STATUSES.includes(outcome.status))
}
