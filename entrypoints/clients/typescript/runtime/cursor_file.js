// A follower's place in a file that is never half written. For Node.js.

import { builtIn } from './platform.js'

/** Keeps the cursor in one file. One process at a time. */
export class CursorFile {
  #path

  constructor(path) {
    this.#path = path
  }

  /** What was saved last; null when nothing was. Throws TypeError when the file holds no cursor. */
  async load() {
    const { readFile } = await builtIn('fs/promises')
    let content
    try {
      content = await readFile(this.#path, 'utf8')
    } catch (error) {
      if (error.code !== 'ENOENT') throw error
      await this.#checkFolder()
      return null
    }
    const cursor = content.trim()
    if (!/^[!-~]+$/.test(cursor)) {
      throw new TypeError(`${this.#path} holds no cursor. Delete it to begin anew, or give another file.`)
    }
    return cursor
  }

  /** Without its folder nothing could be saved, which would show only after the first page. */
  async #checkFolder() {
    const { stat } = await builtIn('fs/promises')
    const { dirname } = await builtIn('path')
    const folder = dirname(this.#path)
    const found = await stat(folder).catch(() => null)
    if (!found?.isDirectory()) throw new TypeError(`There is no folder ${folder} for the cursor file.`)
  }

  /** Write beside, bring to disk, rename over: a crash leaves the old or the new cursor. */
  async save(cursor) {
    const { open, rename } = await builtIn('fs/promises')
    const beside = `${this.#path}.${globalThis.process.pid}.new`
    const file = await open(beside, 'w')
    try {
      await file.writeFile(cursor)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(beside, this.#path)
    await this.#keepName()
  }

  /** Brings the folder's entry to disk as well, where the system can (not on Windows). */
  async #keepName() {
    const { open } = await builtIn('fs/promises')
    const { dirname } = await builtIn('path')
    let folder
    try {
      folder = await open(dirname(this.#path), 'r')
      await folder.sync()
    } catch {
      // a system without this keeps the name at its own time
    } finally {
      await folder?.close()
    }
  }
}
