// A follower's position in a file that is written atomically. For Node.js.

import { builtIn } from './platform.js'

/** Stores the cursor in one file, for one process at a time. */
export class CursorFile {
  #path

  constructor(path) {
    this.#path = path
  }

  /** Returns the last saved cursor, or null. Throws TypeError if the file contains no cursor. */
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
      throw new TypeError(`${this.#path} contains no cursor. Delete it to start from the beginning, or use another file.`)
    }
    return cursor
  }

  /** Fails early if the folder does not exist: saving would fail after the first page. */
  async #checkFolder() {
    const { stat } = await builtIn('fs/promises')
    const { dirname } = await builtIn('path')
    const folder = dirname(this.#path)
    const found = await stat(folder).catch(() => null)
    if (!found?.isDirectory()) throw new TypeError(`The folder ${folder} of the cursor file does not exist.`)
  }

  /** Writes to a temporary file, syncs and renames it: after a crash, the file has the old or the new cursor. */
  async save(cursor) {
    const { open, rename } = await builtIn('fs/promises')
    const temporary = `${this.#path}.${globalThis.process.pid}.new`
    const file = await open(temporary, 'w')
    try {
      await file.writeFile(cursor)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(temporary, this.#path)
    await this.#syncFolder()
  }

  /** Syncs the folder's entry as well, where the system supports it (not on Windows). */
  async #syncFolder() {
    const { open } = await builtIn('fs/promises')
    const { dirname } = await builtIn('path')
    let folder
    try {
      folder = await open(dirname(this.#path), 'r')
      await folder.sync()
    } catch {
      // not supported by the system
    } finally {
      await folder?.close()
    }
  }
}
