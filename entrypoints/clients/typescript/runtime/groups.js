// Methods in addition to the generated ones: following, uploading files, waiting for runs.

import { listed } from './core.js'
import { CursorFile } from './cursor_file.js'
import { WaitTimeout } from './errors.js'
import { fileAt, sleep } from './platform.js'
import { FEED_PAGE_FIELDS, MEDIA_TYPES, OPEN_RUN_STATUSES } from './tables.js'

const CHANGES = '/v1/changes'

/** Methods of one area. */
export class Group {
  constructor(core) {
    this.core = core
  }
}

/** Iterate with `for await` over all events, without end, or over pages with `pages()`. */
export class Follower {
  #core
  #asked

  constructor(core, asked) {
    this.#core = core
    this.#asked = asked
  }

  /** Yields all pages; a page's cursor is saved when the next page is requested, after it was processed. */
  async *pages() {
    const { cursor: first, cursorFile, types, catalogues, wait = 25, limit = 1000, signal } = this.#asked
    const store = typeof cursorFile === 'string' ? new CursorFile(cursorFile) : cursorFile
    let saved = (await store?.load()) ?? undefined
    let cursor = saved ?? first
    let patience = 0
    for (;;) {
      const query = listed({ cursor, wait: patience || undefined, types, catalogues, limit }, ['types', 'catalogues'])
      const page = await this.#core.follow(CHANGES, query, signal)
      yield page
      if (store && page.next_cursor !== saved) {
        saved = page.next_cursor
        await store.save(saved)
      }
      cursor = page.next_cursor
      patience = page.caught_up ? wait : 0
    }
  }

  async *[Symbol.asyncIterator]() {
    for await (const page of this.pages()) yield* page.data
  }
}

/** `follow` and `now` of `client.changes`. */
export class FollowChanges extends Group {
  follow(asked = {}) {
    return new Follower(this.core, asked)
  }

  async now(options = {}) {
    return (await this.core.call('GET', CHANGES, [], { query: { cursor: 'now' }, options, needs: FEED_PAGE_FIELDS })).next_cursor
  }
}

/** `uploadFile` of `client.sources`. */
export class UploadFiles extends Group {
  async uploadFile(source, file, { filename, contentType, acceptShrink, signal } = {}) {
    const content = typeof file === 'string' ? await fileAt(file) : file
    const name = filename ?? (typeof file === 'string' ? file.split(/[\\/]/).pop() : content.name) ?? 'feed'
    const kind = contentType || MEDIA_TYPES[name.split('.').pop().toLowerCase()] || content.type || 'application/octet-stream'
    const body = { filename: name, content_type: kind, bytes: content.size ?? content.byteLength }
    const options = { signal }
    const upload = await this.core.call('POST', '/v1/sources/{}/uploads', [source], { body, keyed: true, options, needs: ['id', 'target'] })
    await this.core.put(upload.target.url, upload.target.headers, content, signal)
    const decision = acceptShrink === undefined ? undefined : { accept_shrink: acceptShrink }
    return this.core.call('POST', '/v1/uploads/{}/complete', [upload.id], { body: decision, keyed: true, options })
  }
}

/** `wait` of `client.runs`. */
export class WaitForRuns extends Group {
  async wait(run, { timeout = 300, signal } = {}) {
    const until = Date.now() + timeout * 1000
    for (let pause = 0.25; ; pause = Math.min(pause * 1.5, 5)) {
      const found = await this.core.call('GET', '/v1/runs/{}', [run], { options: { signal }, needs: ['status'] })
      if (!OPEN_RUN_STATUSES.includes(found.status)) return found
      const left = (until - Date.now()) / 1000
      if (left <= 0) throw new WaitTimeout(`${run} is still ${found.status} after ${timeout} s.`)
      await sleep(Math.min(pause, left), signal)
    }
  }
}
