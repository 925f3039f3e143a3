// When a request is sent again, how long to wait before, and what is thrown when it is not.

import { ConnectionFailed } from './error_kinds.js'
import { refusal } from './refusals.js'
import { IN_PROGRESS, KEPT_STATUSES, LONGEST_PAUSE, RATE_LIMITED, RETRIED_STATUSES } from './tables.js'

/** What tells that a connection was never made; anything else may have reached the server. */
const NOT_SENT = ['ECONNREFUSED', 'ENOTFOUND', 'EAI_AGAIN', 'EHOSTUNREACH', 'ENETUNREACH', 'UND_ERR_CONNECT_TIMEOUT']

/** At most `retries` repetitions, which wait no longer than `maxTotalDelay` seconds in all; Infinity for ever. */
export const RETRY_POLICY = { retries: 4, maxTotalDelay: 60, initialDelay: 0.5, maxDelay: 8 }

/** The same, but for ever: a follower outlives any outage. */
export const patient = (policy) => ({ ...policy, retries: Infinity, maxTotalDelay: Infinity, maxDelay: 30 })

const isPatient = (policy) => policy.retries === Infinity

/** Seconds until the next try, or null for no further one. Doubles each time; between half and all of that is drawn. */
export function pauseOf(policy, tries, waited, retryAfter) {
  if (tries >= policy.retries) return null
  const step = Math.min(policy.maxDelay, policy.initialDelay * 2 ** Math.min(tries, 16))
  const asked = Math.max(step * (0.5 + Math.random() / 2), retryAfter ?? 0)
  const pause = isPatient(policy) ? Math.min(asked, LONGEST_PAUSE) : asked
  return waited + pause > policy.maxTotalDelay ? null : pause
}

/** Sends the request until there is an answer that counts: {status, headers, text}. Throws JoineryError. */
export async function call(request, policy, send, sleep, onRetry) {
  let unclear = false
  let waited = 0
  for (let tries = 0; ; tries++) {
    const outcome = await send(request)
    if (outcome.status >= 200 && outcome.status < 300) return outcome
    const error = errorOf(request, outcome)
    unclear = isUnclear(request, outcome, error, unclear)
    const pause = isPassing(request, outcome, error, policy) ? pauseOf(policy, tries, waited, error.retryAfter) : null
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
  return new ConnectionFailed(`No answer from ${address}: ${reason}`, { cause: outcome.noResponse })
}

/** Whether sending it twice does no more than sending it once. */
const isRepeatable = (request) => request.method !== 'POST' || 'Idempotency-Key' in request.headers

/** Whether the request may have reached the server. */
const wasSent = (error) => !NOT_SENT.includes(error.cause?.code)

/** Whether trying again can help and does no harm. What may have reached the server is only repeated when that is safe. */
function isPassing(request, outcome, error, policy) {
  if (outcome.noResponse) return isRepeatable(request) || !wasSent(outcome.noResponse)
  // a follower only reads, and outlives whatever a proxy says of an outage
  if (isPatient(policy) && isRepeatable(request) && (outcome.status >= 500 || outcome.status === 408)) return true
  // refused before anything was done; without a code it is a proxy's
  if (outcome.status === 429) return error.code === RATE_LIMITED || error.code === null
  const arriving = request.isFile && outcome.status === 409 // the server still has the broken try in hand
  return (RETRIED_STATUSES.includes(outcome.status) || error.code === IN_PROGRESS || arriving) && isRepeatable(request)
}

/** Whether it may change something. */
export const writes = (request) => request.method !== 'GET' && !('Service-Dry-Run' in request.headers)

/** Whether the change may have been made, though this is how it ended. */
function isUnclear(request, outcome, error, earlier) {
  if (!writes(request)) return false
  if (outcome.noResponse) return earlier || wasSent(outcome.noResponse)
  if (outcome.status >= 500 || error.code === IN_PROGRESS) return true
  return earlier && !('Idempotency-Key' in request.headers && KEPT_STATUSES.includes(outcome.status))
}
