// Errors of calls: JoineryError, with a subclass per kind in `error_kinds.js`.

const MAYBE_DONE =
  'It is unknown whether the change was made. Read the object before you try again.'

/** A failed call; `toString()` returns all details in one line. */
export class JoineryError extends Error {
  constructor(detail, { status = null, problem = {}, headers = null, maybeDone = false, cause } = {}) {
    super(detail, cause === undefined ? undefined : { cause })
    this.name = new.target.name
    this.detail = detail
    this.status = status
    this.problem = problem
    this.code = textOf(problem.code)
    this.errors = Array.isArray(problem.errors) ? problem.errors.filter(isObject) : [] // a proxy's body may be anything
    this.docUrl = textOf(problem.doc_url)
    this.requestId = textOf(problem.request_id) ?? headers?.get('request-id') ?? null
    this.retryAfter = secondsOf(headers?.get('retry-after'))
    this.maybeDone = maybeDone
    this.describe()
  }

  /** Builds `message` from all details. */
  describe() {
    const head = [this.status, this.code].filter((part) => part !== null).join(' ')
    const fields = this.errors.map((one) => `${one.field}: ${one.detail}`).join('; ')
    const text = [head ? `${head}: ${this.detail}` : this.detail, fields && `(${fields})`, this.hint, this.maybeDone && MAYBE_DONE]
    this.message = [text.filter(Boolean).join(' '), this.docUrl, this.requestId].filter(Boolean).join(' · ')
  }
}

/** Returns a non-empty string, or null. */
export const textOf = (value) => (typeof value === 'string' && value ? value : null)

/** Returns whether the value is a JSON object. */
export const isObject = (value) => value !== null && typeof value === 'object' && !Array.isArray(value)

/** A run that did not end within the timeout. */
export class WaitTimeout extends JoineryError {}

/** Returns Retry-After in seconds from now: a number, or a date (RFC 9110 §10.2.3). */
export function secondsOf(retryAfter) {
  if (!retryAfter) return null
  if (/^\s*\d+\s*$/.test(retryAfter)) return Number(retryAfter)
  if (!/^\s*[a-z]{3}/i.test(retryAfter)) return null // Date.parse would accept it as a year
  const at = Date.parse(retryAfter)
  return Number.isNaN(at) ? null : Math.max(0, (at - Date.now()) / 1000)
}
