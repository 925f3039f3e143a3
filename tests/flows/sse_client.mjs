// Follows a stream with the registry's EventSource and prints each event's id, until so many have come.
import { EventSource } from 'eventsource'
const [url, key, count] = process.argv.slice(2)
const source = new EventSource(url, {
  fetch: (input, init) => fetch(input, { ...init, headers: { ...init.headers, Authorization: `Bearer ${key}` } }),
})
let seen = 0
source.onopen = () => console.log('open')
source.addEventListener('source.degraded', (event) => {
  console.log(JSON.parse(event.data).id)
  seen += 1
  if (seen === Number(count)) process.exit(0)
})
source.onmessage = (event) => { console.log(`unexpected ${event.data}`); process.exit(1) }
