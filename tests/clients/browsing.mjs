// A person at a browser: a cookie of the console, the page that asks for consent, and the form on it.

import { request } from "node:http";

const unescaped = (text) => text.replaceAll("&amp;", "&").replaceAll("&#39;", "'").replaceAll("&#34;", '"').replaceAll("&lt;", "<");

function send(url, { method = "GET", headers = {}, body } = {}) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { cookie: `joinery=${process.env.JOINERY_COOKIE}`, ...headers } }, (answer) => {
      let text = "";
      answer.setEncoding("utf8").on("data", (piece) => (text += piece)).on("end", () => resolve({ status: answer.statusCode, place: answer.headers.location, text }));
    });
    sent.on("error", reject).end(body);
  });
}

function field(text, name) {
  const found = new RegExp(`name="${name}" value="([^"]*)"`).exec(text);
  if (!found) throw new Error(`no field ${name} on the page:\n${text.slice(0, 3000)}`);
  return unescaped(found[1]);
}

async function word(url, action, names, decision) {
  const page = await send(url);
  if (page.status === 303) return page.place;
  const form = new URLSearchParams({ decision, ...Object.fromEntries([...names, "csrf", "submission_id", "org"].map((name) => [name, field(page.text, name)])) });
  const { origin } = new URL(url);
  const headers = { "content-type": "application/x-www-form-urlencoded", origin, "sec-fetch-site": "same-origin" };
  const done = await send(new URL(action, url), { method: "POST", headers, body: form.toString() });
  return done.place ?? done.text;
}

/** Where the browser is sent once the person has answered. */
export const consent = async (url, decision = "allow") => new URL(await word(url, "/oauth/authorize", ["request"], decision));

/** The person types the code of a device. */
export const device = (url, decision = "allow") => word(url, "/oauth/device/decision", ["user_code"], decision);
