// A certified OpenID provider: told by one line of JSON where Joinery takes people back to, it answers with its own address.
import { createInterface } from 'node:readline'
import Provider from 'oidc-provider'

const [line] = await new Promise((resolve) => createInterface({ input: process.stdin }).once('line', (text) => resolve([text])))
const { port, redirect, secret } = JSON.parse(line)
const issuer = `http://127.0.0.1:${port}`
const people = { ada: ['ada@fjord.example', true], mallory: ['mallory@oak.example', true], nils: ['nils@fjord.example', false] }
const provider = new Provider(issuer, {
  clients: [{ client_id: 'joinery', client_secret: secret, redirect_uris: [redirect], grant_types: ['authorization_code'] }],
  claims: { openid: ['sub'], email: ['email', 'email_verified'], profile: ['name'] },
  pkce: { required: () => true },
  cookies: { keys: ['for tests alone'] },
  findAccount: (_, sub) => ({
    accountId: sub,
    claims: () => ({ sub, name: sub.toUpperCase(), email: people[sub]?.[0], email_verified: people[sub]?.[1] }),
  }),
})
provider.listen(port, '127.0.0.1', () => console.log(issuer))
