// Lists that are read page by page during iteration.

import { LIST_PAGE_FIELDS, PAGE_SIZE } from './tables.js'

/** Iterate with `for await` over all items, or over pages with `pages()`. Each iteration starts from the beginning. */
export class Listing {
  #core
  #asked

  constructor(core, path, ids, query, options = {}) {
    this.#core = core
    this.#asked = { path, ids, query, options }
  }

  /** Yields all pages from the query's start in its direction. */
  async *pages() {
    const { path, ids, options } = this.#asked
    const query = { ...this.#asked.query }
    query.limit ??= PAGE_SIZE
    const onwards = query.ending_before === undefined ? 'starting_after' : 'ending_before'
    for (;;) {
      const page = await this.#core.call('GET', path, ids, { query, options: { signal: options.signal }, needs: LIST_PAGE_FIELDS })
      yield page
      if (!page.has_more) return
      query[onwards] = page.next_cursor
    }
  }

  async *[Symbol.asyncIterator]() {
    for await (const page of this.pages()) yield* page.data
  }
}
