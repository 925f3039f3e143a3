// The types of the runtime, written by hand; those of the API are generated.

/** Settings of a client. `baseUrl` and `key` default to JOINERY_URL and JOINERY_KEY, if environment variables are available. */
export interface ClientSettings {
  /** URL of the service: `https://…`. */
  baseUrl?: string
  /** An API key. Never expose one in public web pages. */
  key?: string
  /** Seconds until a request times out (default 30); Infinity for no timeout. */
  timeout?: number
  /** Maximum number of retries per call (default 4). */
  retries?: number
  /** Another dated API version than that of this package. */
  version?: string
  /** Called before every retry, which starts after `seconds`; a follower retries without limit. */
  onRetry?: (retry: { error: JoineryError; seconds: number; tries: number }) => void
  /** Replaces the global `fetch`. */
  fetch?: typeof globalThis.fetch
}

/** Options of every call. */
export interface ReadOptions {
  /** Aborts the call, including waits between tries. */
  signal?: AbortSignal
}

/** Options of calls that change something. */
export interface WriteOptions extends ReadOptions {
  /** Returns the result without changing anything. */
  dryRun?: boolean
  explain?: false
}

/** Returns a preview of the changes without making them. */
export interface ExplainOptions extends ReadOptions {
  explain: true
}

/** Options of calls with an idempotency key. */
export interface Keyed {
  /** Makes retries beyond this call safe; by default, each call generates its own. */
  idempotencyKey?: string
}

/** Options of calls that require the version to change. */
export interface Matched {
  /** The `version` that you read, or an ETag, or `"*"` for any. */
  ifMatch: number | string
}

/** One page of up to `limit` items; `next_cursor` leads to the next one. */
export interface Page<T> {
  object: 'list'
  data: T[]
  has_more: boolean
  next_cursor: string | null
}

/** Iterate with `for await` over all items, or over pages with `pages()`. Each iteration starts from the beginning. */
export declare class Listing<T> implements AsyncIterable<T> {
  private constructor()
  pages(): AsyncGenerator<Page<T>, void, undefined>
  [Symbol.asyncIterator](): AsyncGenerator<T, void, undefined>
}

/** Storage of a follower's position. */
export interface CursorStore {
  /** Returns the last saved cursor. */
  load(): Promise<string | null | undefined> | string | null | undefined
  /** Saves the cursor durably before it returns. */
  save(cursor: string): Promise<void> | void
}

/** Stores the cursor in one file, written atomically. For Node.js; one process at a time. */
export declare class CursorFile implements CursorStore {
  constructor(path: string)
  load(): Promise<string | null>
  save(cursor: string): Promise<void>
}

/** Options of following. */
export interface FollowSettings<Type extends string> extends ReadOptions {
  /** Start position if none is saved: a cursor, or `"now"`; by default the oldest event kept. */
  cursor?: string
  /** A file path (Node.js), or an object that stores the position. A saved position takes precedence over `cursor`. */
  cursorFile?: string | CursorStore
  types?: readonly Type[]
  catalogues?: readonly string[]
  /** Seconds that the server waits for an event: 0 to 30 (default 25). */
  wait?: number
  /** Maximum events per page (default 1000). */
  limit?: number
}

/** Events, the oldest first; `next_cursor` is the position after them. */
export interface FeedPage<E> {
  object: 'change_page'
  data: E[]
  next_cursor: string
  caught_up: boolean
}

/** Iterate with `for await` over all events, without end, or over pages with `pages()` to store `next_cursor` yourself. */
export declare class Follower<E> implements AsyncIterable<E> {
  private constructor()
  pages(): AsyncGenerator<FeedPage<E>, void, undefined>
  [Symbol.asyncIterator](): AsyncGenerator<E, void, undefined>
}

/** `follow` and `now` of `client.changes`. */
export declare class FollowChanges<E, Type extends string> {
  protected constructor()
  /**
   * Follows all events from the cursor on, without end, by long polling; retries during outages of the server.
   *
   * The position is saved after each page is processed. After a crash, the events of the last page are repeated: deduplicate
   * by `id`, apply by `version`. Throws CursorExpired if the cursor is too old.
   */
  follow(settings?: FollowSettings<Type>): Follower<E>
  /** Returns a cursor after the newest event. Get it before you list, then follow from it, and no event is missed. */
  now(options?: ReadOptions): Promise<string>
}

/** Options of an upload. */
export interface UploadSettings extends ReadOptions {
  filename?: string
  contentType?: string
  /** Allows the run to withdraw all items that are missing from the file. */
  acceptShrink?: boolean
}

/** `uploadFile` of `client.sources`. */
export declare class UploadFiles<U> {
  protected constructor()
  /** Uploads a file (a path in Node.js) and starts its import; wait for the result's `run`. */
  uploadFile(source: string, file: string | Blob | Uint8Array, settings?: UploadSettings): Promise<U>
}

/** `wait` of `client.runs`. */
export declare class WaitForRuns<R> {
  protected constructor()
  /** Waits until the run has ended and returns it; its `status` is the result. Throws WaitTimeout after `timeout` seconds (300). */
  wait(run: string, settings?: ReadOptions & { timeout?: number }): Promise<R>
}

/** A failed call. */
export declare class JoineryError extends Error {
  constructor(detail: string)
  /** Description for people. */
  readonly detail: string
  /** The HTTP status; null without a response. */
  readonly status: number | null
  /** Stable error code, for programs. */
  readonly code: string | null
  /** Each invalid field. */
  readonly errors: ReadonlyArray<{ field: string; code: string; detail: string }>
  /** URL of the code's documentation. */
  readonly docUrl: string | null
  readonly requestId: string | null
  /** Seconds until a retry. */
  readonly retryAfter: number | null
  /** Whether a try failed without a clear result, so that the change may have been made. */
  readonly maybeDone: boolean
  /** The whole body. */
  readonly problem: Readonly<Record<string, unknown>>
}
export * from './error_kinds.js'
/** A run that did not end within the timeout. */
export declare class WaitTimeout extends JoineryError {}
