// Differences between Node.js and browsers: cryptography of older versions, files, environment.

const node = globalThis.process?.versions?.node

/** Imports a built-in module of Node.js, hidden from browser bundlers. */
export function builtIn(name) {
  if (!node) throw new Error(`${name} is available in Node.js only. Use a Blob, or an object with load and save.`)
  return import(/* webpackIgnore: true */ /* @vite-ignore */ `node:${name}`)
}

/** Returns WebCrypto, which is a module in Node.js 18. */
export async function webCrypto() {
  return globalThis.crypto ?? (await builtIn('crypto')).webcrypto
}

/** Returns an environment variable, or undefined. */
export const variable = (name) => globalThis.process?.env?.[name]

/** Returns the User-Agent header; browsers set their own. */
export const agent = (name) => (node ? { 'User-Agent': name } : {})

/** Maximum milliseconds of a timer; a longer one would fire immediately. */
const LONGEST_TIMER = 2 ** 31 - 1

/** Starts a timer that fires after `seconds`; none for Infinity. */
export const timerOf = (act, seconds) =>
  seconds === Infinity ? undefined : setTimeout(act, Math.min(seconds * 1000, LONGEST_TIMER))

/** Waits for `seconds`. Throws the signal's reason if it is aborted. */
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

/** Opens a file as a Blob, read in chunks if Node.js supports it. */
export async function fileAt(path) {
  const fs = await builtIn('fs')
  if (fs.openAsBlob) return fs.openAsBlob(path)
  return new Blob([await fs.promises.readFile(path)])
}
