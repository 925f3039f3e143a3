// openid-client against every flow and refusal; prints what was done.

import assert from "node:assert/strict";
import * as client from "openid-client";
import { consent, device } from "./browsing.mjs";

const { JOINERY_URL: url, JOINERY_APPS } = process.env;
const apps = JSON.parse(JOINERY_APPS);
const done = [];
const insecure = { execute: [client.allowInsecureRequests], algorithm: "oauth2" };
const redirect_uri = "https://app.example/cb";

async function discovered({ client_id, client_secret }, auth) {
  return client.discovery(new URL(url), client_id, undefined, auth ?? (client_secret ? client.ClientSecretPost(client_secret) : client.None()), insecure);
}

async function refused(error, work) {
  const told = await work().then(() => assert.fail(`not refused: ${error}`), (thrown) => thrown);
  const body = told.code === "OAUTH_WWW_AUTHENTICATE_CHALLENGE" ? await told.response.json() : {};
  assert.equal(told.error ?? told.cause?.error ?? body.error, error, String(told) + JSON.stringify(told.cause ?? {}));
  done.push(`refused: ${error}`);
}

async function begun(config, more = {}) {
  const verifier = client.randomPKCECodeVerifier(), state = client.randomState();
  const asked = { redirect_uri, scope: "products:read", state, code_challenge: await client.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256", ...more };
  return { place: client.buildAuthorizationUrl(config, asked), checks: { pkceCodeVerifier: verifier, expectedState: state } };
}

async function signedIn(config, more) {
  const { place, checks } = await begun(config, more);
  return client.authorizationCodeGrant(config, await consent(place), checks);
}

async function api(config, token, path = "/v1/products") {
  return (await client.fetchProtectedResource(config, token, new URL(path, url), "GET")).status;
}

for (const [name, auth] of [["web", client.ClientSecretBasic], ["web", client.ClientSecretPost], ["single_page", client.None], ["native", client.None]]) {
  const config = await discovered(apps[name], auth(apps[name].client_secret));
  const more = name === "native" ? { redirect_uri: "http://127.0.0.1:49152/cb" } : {};
  const tokens = await signedIn(config, { ...more, resource: `${url}/v1` });
  assert.equal(await api(config, tokens.access_token), 200);
  assert.equal(tokens.expiresIn() > 590, true);
  const fresh = await client.refreshTokenGrant(config, tokens.refresh_token);
  assert.notEqual(fresh.refresh_token, tokens.refresh_token);
  const told = await client.tokenIntrospection(config, fresh.access_token);
  assert.equal(told.active, true);
  assert.deepEqual(told.aud, [`${url}/v1`]);
  await client.tokenRevocation(config, fresh.refresh_token);
  assert.equal((await client.tokenIntrospection(config, fresh.access_token)).active, false);
  await refused("invalid_grant", () => client.refreshTokenGrant(config, fresh.refresh_token));
  done.push(`${name} by ${auth.name}`);
}

const machine = await discovered(apps.machine);
const own = await client.clientCredentialsGrant(machine, { scope: "products:read" });
assert.equal(await api(machine, own.access_token), 200);
await refused("invalid_scope", () => client.clientCredentialsGrant(machine, { scope: "exports:write" }));
await refused("invalid_target", () => client.clientCredentialsGrant(machine, { resource: "https://other.example" }));
done.push("machine");

const native = await discovered(apps.native);
for (const [decision, error] of [["allow"], ["deny", "access_denied"]]) {
  const started = await client.initiateDeviceAuthorization(native, { scope: "products:read" });
  await device(started.verification_uri_complete, decision);
  const polled = () => client.pollDeviceAuthorizationGrant(native, { ...started, interval: 1 });
  if (error) await refused(error, polled);
  else assert.equal(await api(native, (await polled()).access_token), 200);
}
done.push("device");

const registered = await client.dynamicClientRegistration(new URL(url), { redirect_uris: [redirect_uri], client_name: "Registered", token_endpoint_auth_method: "client_secret_basic" }, undefined, insecure);
assert.equal(await api(registered, (await signedIn(registered, { scope: "products:read" })).access_token), 200);
await refused("invalid_redirect_uri", () => client.dynamicClientRegistration(new URL(url), { redirect_uris: ["javascript:alert(1)"] }, undefined, insecure));
done.push("registration");

const web = await discovered(apps.web);
const denied = await begun(web, { prompt: "consent" });
await refused("access_denied", async () => client.authorizationCodeGrant(web, await consent(denied.place, "deny"), denied.checks));
await refused("invalid_request", async () => client.authorizationCodeGrant(web, await consent((await begun(web, { code_challenge_method: "plain" })).place), { expectedState: client.skipStateCheck }));
const reused = await begun(web);
const place = await consent(reused.place);
const first = await client.authorizationCodeGrant(web, place, reused.checks);
await refused("invalid_grant", () => client.authorizationCodeGrant(web, place, reused.checks));
await refused("invalid_grant", () => client.refreshTokenGrant(web, first.refresh_token));
const mixed = new URL((await consent((await begun(web)).place)));
mixed.searchParams.set("iss", "https://other.example");
await assert.rejects(client.authorizationCodeGrant(web, mixed, { expectedState: client.skipStateCheck }), (thrown) => /"iss"/.test(String(thrown.cause)));
done.push("mix-up is seen by iss");
await refused("invalid_client", async () => client.clientCredentialsGrant(await discovered({ client_id: apps.machine.client_id, client_secret: "wrong" })));
await refused("unauthorized_client", () => client.clientCredentialsGrant(web));

console.log(JSON.stringify(done));
