// Converts responses to values and errors.

import { BY_STATUS, ServerError, UnexpectedResponse } from './error_kinds.js'
import { isObject, JoineryError, textOf } from './errors.js'
import { REDIRECTED, UNREADABLE } from './tables.js'

/** Returns the error of a response. Without a problem document (a proxy's page), the beginning of the body is the detail. */
export function refusal(answer) {
  const problem = objectOf(answer.text) ?? {}
  const Made = BY_STATUS[answer.status] ?? (answer.status >= 500 ? ServerError : JoineryError)
  const detail = textOf(problem.detail) ?? redirectOf(answer) ?? beginningOf(answer)
  return new Made(detail, { status: answer.status || null, problem, headers: answer.headers })
}

/** Returns the detail for a redirect. Browsers hide its target, and its status is 0. */
function redirectOf({ status, headers }) {
  const location = status === 0 ? 'another address' : headers.get('location')
  const redirects = location && (status === 0 || (status >= 300 && status < 400))
  return redirects ? REDIRECTED.replace('{location}', () => location) : null
}

const beginningOf = (answer) => answer.text.slice(0, 200).trim() || 'The response has no body.'

/** Returns the JSON object of a response, or undefined for a 204 without needed fields. Throws UnexpectedResponse. */
export function valueOf(answer, needs = [], maybeDone = false) {
  if (answer.status === 204 && !needs.length) return undefined
  const found = objectOf(answer.text)
  const lacks = !found || needs.some((name) => (found[name] ?? null) === null)
  if (lacks || (needs.includes('data') && !Array.isArray(found.data))) {
    const detail = UNREADABLE.replace('{beginning}', () => beginningOf(answer))
    throw new UnexpectedResponse(detail, { status: answer.status, headers: answer.headers, maybeDone })
  }
  return found
}

function objectOf(text) {
  try {
    const found = JSON.parse(text)
    return isObject(found) ? found : null
  } catch {
    return null
  }
}
