// Verifies deliveries by the public library: reads {secrets, sent: [{body, headers}]}, writes for each which secrets fit.
import { readFileSync } from "node:fs";
import { Webhook } from "standardwebhooks";

const { secrets, sent } = JSON.parse(readFileSync(0, "utf8"));

function fits(secret, { body, headers }) {
  try {
    const event = new Webhook(secret).verify(body, headers);
    return event.id === headers["webhook-id"];
  } catch {
    return false;
  }
}

console.log(JSON.stringify(sent.map((one) => secrets.map((secret) => fits(secret, one)))));
