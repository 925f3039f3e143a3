// The types of the runtime, written by hand; those of the API are generated.

/** Settings of a client. `baseUrl` and `key` default to JOINERY_URL and JOINERY_KEY where there is an environment. */
export interface ClientSettings {
  /** Where the service is: `https://…`. */
  baseUrl?: string
  /** An API key. Never ship one to browsers of strangers. */
  key?: string
  /** Seconds until an answer is given up (default 30); Infinity never gives up. */
  timeout?: number
  /** How often a call is tried again (default 4). */
  retries?: number
  /** Another dated version of the API than the one that this package is made for. */
  version?: string
  /** Hears of every call that is tried again in `seconds`; a follower tries for ever. */
  onRetry?: (retry: { error: JoineryError; seconds: number; tries: number }) => void
  /** In place of the global `fetch`. */
  fetch?: typeof globalThis.fetch
}

/** Of every call. */
export interface ReadOptions {
  /** Ends the call, and any waiting between its tries. */
  signal?: AbortSignal
}

/** Of calls that change something. */
export interface WriteOptions extends ReadOptions {
  /** Answer as if it were done, and do nothing. */
  dryRun?: boolean
  explain?: false
}

/** Answer what would change, and do nothing. */
export interface ExplainOptions extends ReadOptions {
  explain: true
}

/** Of calls that are done once, however often they are sent. */
export interface Keyed {
  /** Makes repeating safe beyond this call; without it the call makes its own. */
  idempotencyKey?: string
}

/** Of calls that name the version that they change. */
export interface Matched {
  /** The `version` that you read, or an ETag, or `"*"` for any. */
  ifMatch: number | string
}

/** One page: up to `limit` items; `next_cursor` goes on behind it. */
export interface Page<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  next_cursor: string | null
}

/** Iterate with `for await` for every item; `pages()` gives page by page. Each iteration starts anew. */
export declare class Listing<T> implements AsyncIterable<T> {
  private constructor()
  pages(): AsyncGenerator<Page<T>, void, undefined>
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined>
}

/** Where a follower keeps its place. */
export interface CursorStore {
  /** The cursor that was saved last. */
  load(): Promise<string | null | undefined> | string | null | undefined
  /** Keep the cursor; once this is done, a crash does not lose it. */
  save(cursor: string): Promise<void> | void
}

/** Keeps the cursor in one file, never half written. For Node.js; one process at a time. */
export declare class CursorFile implements CursorStore {
  constructor(path: string)
  load(): Promise<string | null>
  save(cursor: string): Promise<void>
}

/** What is followed, and from where. */
export interface FollowSettings<Type extends string> extends ReadOptions {
  /** Where to begin when no place is saved: a cursor, or `"now"`; without it, with the oldest event kept. */
  cursor?: string
  /** A file's path (Node.js), or an object that keeps the place. A saved place wins over `cursor`. */
  cursorFile?: string | CursorStore
  types?: readonly Type[]
  catalogues?: readonly string[]
  /** Seconds that the server holds a request when there is nothing new: 0 to 30 (default 25). */
  wait?: number
  /** Events a page, at most (default 1000). */
  limit?: number
}

/** Some events, the oldest first. `next_cursor` is the place behind them. */
export interface FeedPage<E> {
  object: 'change_page'
  data: E[]
  next_cursor: string
  caught_up: boolean
}

/** Iterate with `for await` for every event, for ever; `pages()` gives page by page, for those who keep `next_cursor`. */
export declare class Follower<E> implements AsyncIterable<E> {
  private constructor()
  pages(): AsyncGenerator<FeedPage<E>, void, undefined>
  [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined>
}

/** `follow` and `now` of `client.changes`. */
export declare class FollowChanges<E, Type extends string> {
  protected constructor()
  /**
   * Every event from the cursor on, for ever, by long polling; outages of the server are waited out.
   *
   * The place is saved once a page has been worked on. After a crash the events of the last page come again: deduplicate
   * by `id`, apply by `version`. Throws CursorExpired when the cursor is too old.
   */
  follow(settings?: FollowSettings<Type>): Follower<E>
  /** A cursor behind the newest event: take it before you list, then follow from it, and nothing is missed. */
  now(options?: ReadOptions): Promise<string>
}

/** What a file is handed in with. */
export interface UploadSettings extends ReadOptions {
  filename?: string
  contentType?: string
  /** Let the run withdraw as much as it finds gone. */
  acceptShrink?: boolean
}

/** `uploadFile` of `client.sources`. */
export declare class UploadFiles<U> {
  protected constructor()
  /** Hand a file in (a path in Node.js) and have it read; the answer's `run` is what to wait for. */
  uploadFile(source: string, file: string | Blob | Uint8Array, settings?: UploadSettings): Promise<U>
}

/** `wait` of `client.runs`. */
export declare class WaitForRuns<R> {
  protected constructor()
  /** The run once it has ended, well or not: see its `status`. Throws WaitTimeout after `timeout` seconds (300). */
  wait(run: string, settings?: ReadOptions & { timeout?: number }): Promise<R>
}

/** A call that failed. */
export declare class JoineryError extends Error {
  constructor(detail: string)
  /** For people. */
  readonly detail: string
  /** The HTTP status; null without an answer. */
  readonly status: number | null
  /** Stable; what programs compare. */
  readonly code: string | null
  /** Each wrong field. */
  readonly errors: ReadonlyArray<{ field: string; code: string; detail: string }>
  /** Where the code is explained. */
  readonly docUrl: string | null
  readonly requestId: string | null
  /** Seconds. */
  readonly retryAfter: number | null
  /** An earlier try got no clear answer: the change may have been made. */
  readonly maybeDone: boolean
  /** The whole body. */
  readonly problem: Readonly<Record<string, unknown>>
}
export * from './error_kinds.js'
/** A run that went on for longer than one wanted to wait. */
export declare class WaitTimeout extends JoineryError {}
