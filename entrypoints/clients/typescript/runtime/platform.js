// What differs between Node.js and browsers: cryptography of older versions, files, the environment.

const node = globalThis.process?.versions?.node

/** A module of Node.js itself; bundlers for browsers are kept from looking for it. */
export function builtIn(name) {
  if (!node) throw new Error(`${name} is there in Node.js only: give a Blob, or an object with load and save.`)
  return import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`)
}

/** WebCrypto, which Node.js 18 keeps in a module. */
export async function webCrypto() {
  return globalThis.crypto ?? (await builtIn('crypto')).webcrypto
}

/** A variable of the environment, or undefined. */
export const variable = (name) => globalThis.process?.env?.[name]

/** Browsers name themselves. */
export const agent = (name) => (node ? { 'User-Agent': name } : {})

/** As long as a timer can be set, in milliseconds; a longer one would fire at once. */
const LONGEST_TIMER = 2 ** 31 - 1

/** A timer that fires after so many seconds; none for Infinity. */
export const timerOf = (act, seconds) =>
  seconds === Infinity ? undefined : setTimeout(act, Math.min(seconds * 1000, LONGEST_TIMER))

/** Waits so many seconds. Throws the signal's reason when it is aborted. */
export function sleep(seconds, signal) {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) return reject(signal.reason)
    const aborted = () => {
      clearTimeout(timer)
      reject(signal.reason)
    }
    const timer = timerOf(() => {
      signal?.removeEventListener('abort', aborted)
      resolve()
    }, seconds)
    signal?.addEventListener('abort', aborted, { once: true })
  })
}

/** What is at a path, as a Blob: read piece by piece where Node.js can. */
export async function fileAt(path) {
  const fs = await builtIn('fs')
  if (fs.openAsBlob) return fs.openAsBlob(path)
  return new Blob([await fs.promises.readFile(path)])
}
