// Follows and writes the ids of what comes, until it is killed.
import { appendFileSync } from 'node:fs'
import { Joinery } from 'joinery-client'

const [cursorFile, file] = process.argv.slice(2)
for await (const event of new Joinery().changes.follow({ cursorFile, wait: 2, limit: 7 })) appendFileSync(file, event.id + '\n')
