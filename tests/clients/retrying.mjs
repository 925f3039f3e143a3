// Calls through a proxy that loses connections and refuses; the test sets its faults before each step (argv: step).
import { ConnectionFailed, Joinery, PreconditionFailed } from 'joinery-client'

const client = new Joinery({ retries: 3 })
const steps = {
  async create() {
    return (await client.sources.create({ name: 'A source', kind: 'push' })).id
  },
  async update(id) {
    const error = await client.sources.update(id, { name: 'Renamed' }, { ifMatch: 1 }).catch((error) => error)
    return [error instanceof PreconditionFailed, error.maybeDone, /unknown whether the change was made/.test(error.message), (await client.sources.get(id)).name]
  },
  async read() {
    return (await client.orgs.get()).object
  },
  async keyless(id) {
    const error = await client.sources.test(id).catch((error) => error)
    return [error instanceof ConnectionFailed, error.maybeDone]
  },
  async unreachable(baseUrl) {
    const nobody = new Joinery({ baseUrl, key: 'k', retries: 1 })
    const error = await nobody.orgs.get().catch((error) => error)
    return [error instanceof ConnectionFailed, error.message.includes('ECONNREFUSED'), error.status]
  },
}
const [step, ...parameters] = process.argv.slice(2)
console.log(JSON.stringify(await steps[step](...parameters)))
