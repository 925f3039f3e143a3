// oauth4webapi, which checks every answer as the RFCs have it, against the flows and refusals; prints what was done.

import assert from "node:assert/strict";
import * as oauth from "oauth4webapi";
import { consent, device } from "./browsing.mjs";

const { JOINERY_URL: url, JOINERY_APPS } = process.env;
const apps = JSON.parse(JOINERY_APPS);
const options = { [oauth.allowInsecureRequests]: true };
const done = [];
const issuer = new URL(url);

const server = await oauth.processDiscoveryResponse(issuer, await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...options }));
assert.deepEqual(server.code_challenge_methods_supported, ["S256"]);
for (const edge of ["", "/v1", "/mcp"]) {
  const resource = new URL(url + edge);
  const told = await oauth.processResourceDiscoveryResponse(resource, await oauth.resourceDiscoveryRequest(resource, options));
  assert.deepEqual(told.authorization_servers, [url]);
}
done.push("discovery");

async function code(client, redirect_uri, more = {}, decision = "allow") {
  const verifier = oauth.generateRandomCodeVerifier(), state = oauth.generateRandomState();
  const place = new URL(server.authorization_endpoint);
  place.search = new URLSearchParams({
    client_id: client.client_id, redirect_uri, response_type: "code", state, scope: "products:read",
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier), code_challenge_method: "S256", ...more,
  });
  return { parameters: oauth.validateAuthResponse(server, client, await consent(place, decision), state), verifier };
}

async function redeemed(client, auth, redirect_uri, { parameters, verifier }) {
  const answer = await oauth.authorizationCodeGrantRequest(server, client, auth, parameters, redirect_uri, verifier, options);
  return oauth.processAuthorizationCodeResponse(server, client, answer);
}

async function refused(error, work) {
  const told = await work().then(() => assert.fail(`not refused: ${error}`), (thrown) => thrown);
  assert.equal(told.error, error, String(told));
  done.push(`refused: ${error}`);
}

const https = "https://app.example/cb";
const native = "http://127.0.0.1:50505/cb";
for (const [name, redirect_uri] of [["web", https], ["single_page", https], ["native", native]]) {
  const client = { client_id: apps[name].client_id };
  const auth = apps[name].client_secret ? oauth.ClientSecretBasic(apps[name].client_secret) : oauth.None();
  const tokens = await redeemed(client, auth, redirect_uri, await code(client, redirect_uri, { resource: `${url}/v1` }));
  const got = await oauth.protectedResourceRequest(tokens.access_token, "GET", new URL("/v1/products", url), undefined, undefined, options);
  assert.equal(got.status, 200);
  const wrong = await oauth.protectedResourceRequest(tokens.access_token, "GET", new URL("/v1/sources", url), undefined, undefined, options);
  assert.equal(wrong.status, 403);
  const refresh = async (token, more = {}) => oauth.processRefreshTokenResponse(server, client, await oauth.refreshTokenGrantRequest(server, client, auth, token, { additionalParameters: more, ...options }));
  await refused("invalid_scope", () => refresh(tokens.refresh_token, { scope: "products:read exports:write" }));
  await refused("invalid_target", () => refresh(tokens.refresh_token, { resource: `${url}/mcp` }));
  const fresh = await refresh(tokens.refresh_token);
  const newest = await refresh(fresh.refresh_token);
  await refused("invalid_grant", () => refresh(tokens.refresh_token));
  await refused("invalid_grant", () => refresh(newest.refresh_token));
  const told = await oauth.processIntrospectionResponse(server, client, await oauth.introspectionRequest(server, client, auth, newest.access_token, options));
  assert.equal(told.active, false);
  done.push(`${name}: theft ends the sign-in`);
  const once = await code(client, redirect_uri);
  await refused("invalid_grant", () => redeemed(client, auth, redirect_uri, { ...once, verifier: oauth.generateRandomCodeVerifier() }));
  const left = await redeemed(client, auth, redirect_uri, once);
  await oauth.processRevocationResponse(await oauth.revocationRequest(server, client, auth, left.refresh_token, options));
  await new Promise((resolve) => setTimeout(resolve, 1000));
  await assert.rejects(oauth.protectedResourceRequest(left.access_token, "GET", new URL("/v1/products", url), undefined, undefined, options));
  done.push(`${name}: revoked within a second`);
}

const web = { client_id: apps.web.client_id }, secret = oauth.ClientSecretPost(apps.web.client_secret);
const theirs = await code({ client_id: apps.single_page.client_id }, https);
await refused("invalid_grant", () => redeemed(web, secret, https, theirs));
await refused("access_denied", () => code(web, https, { prompt: "consent" }, "deny"));
await refused("invalid_scope", () => code(web, https, { scope: "everything" }));
await refused("invalid_target", () => code(web, https, { resource: "https://other.example/" }));
await refused("unsupported_response_type", () => code(web, https, { response_type: "token" }));
await refused("interaction_required", () => code(web, https, { prompt: "none", scope: "exports:write" }));

const machine = { client_id: apps.machine.client_id };
const granted = (auth) => async () => oauth.processClientCredentialsResponse(server, machine, await oauth.clientCredentialsGrantRequest(server, machine, auth, {}, options));
assert.equal((await granted(oauth.ClientSecretBasic(apps.machine.client_secret))()).scope, "products:read");
const strange = await granted(oauth.ClientSecretBasic("wrong"))().then(() => assert.fail("let in"), (thrown) => thrown);
assert.equal(strange.cause?.[0]?.scheme ?? strange.error, strange.error ?? "basic");
done.push("machine");

const tv = { client_id: apps.native.client_id };
const started = await oauth.processDeviceAuthorizationResponse(server, tv, await oauth.deviceAuthorizationRequest(server, tv, oauth.None(), { scope: "products:read" }, options));
const poll = async () => oauth.processDeviceCodeResponse(server, tv, await oauth.deviceCodeGrantRequest(server, tv, oauth.None(), started.device_code, options));
await refused("authorization_pending", poll);
await refused("slow_down", poll);
await device(started.verification_uri_complete);
assert.equal((await poll()).token_type, "bearer");
done.push("device");

const said = await oauth.processDynamicClientRegistrationResponse(await oauth.dynamicClientRegistrationRequest(server, { redirect_uris: [native], token_endpoint_auth_method: "none", client_name: "Registered" }, options));
const own = { client_id: said.client_id };
assert.equal((await redeemed(own, oauth.None(), native, await code(own, native))).token_type, "bearer");
done.push("registration");

console.log(JSON.stringify(done));
