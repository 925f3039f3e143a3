// The runtime of the generated methods.

export { Core, listed } from './core.js'
export { CursorFile } from './cursor_file.js'
export * from './error_kinds.js'
export { JoineryError, WaitTimeout } from './errors.js'
export { Follower, FollowChanges, Group, UploadFiles, WaitForRuns } from './groups.js'
export { Listing } from './paging.js'
export { verifyWebhook } from './signatures.js'
